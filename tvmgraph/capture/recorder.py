"""The recorder: the interpreter that turns operator applications into graph nodes."""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeGuard

import numpy as np

from tvmgraph import dtypes
from tvmgraph.capture import identity
from tvmgraph.capture.checks import is_cell
from tvmgraph.capture.deciding import Deciding
from tvmgraph.capture.guards import Guards
from tvmgraph.capture.ranges import Range, too_wide
from tvmgraph.capture.region import Given, Region, nothing
from tvmgraph.capture.sources import held, put_back
from tvmgraph.capture.traced import TracedTensor
from tvmgraph.capture.traced_number import TracedNumber
from tvmgraph.capture.tree import Names
from tvmgraph.core.op import OPS, F, Op
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.random import STATE_TYPE
from tvmgraph.core.symbols import Specialise, Symbol, SymbolScope, bound, needed
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.core.types import Dim, TensorType, tensor_type
from tvmgraph.dtypes import DType
from tvmgraph.errors import CaptureError, user_source
from tvmgraph.graph import Graph, GraphBuilder, Role, Value

_BOUND = re.compile(r"u\d+")  # a size that only the values decide
_SMALL: Range = (-(1 << 31), (1 << 31) - 1)  # numbers whose products fit 64 bits


class Recorder:
    """Records operators on traced tensors.

    Tensors that existed before the capture are read by reference: they become PARAMETER
    parameters, so later changes of their elements are seen. Tensors built from host data during
    the capture become constants (Parameters stay parameters).

    Attributes:
        region: The graph or region under construction.
        root: The graph of the function.
        captured: Tensors read by reference, with the parameter's value.
        guards: What the Python code read besides tensors.
        call: Calls a Python function; an engine that interprets user code replaces it.
        drawn: Parameters of the graph for first values that Python draws at every call, with what
            draws them and how many random blocks come before.
        symbols: The numbers that differ from call to call, if any.
        sizes: For every symbolic size an input that has it.
        limits: How small and large a size can be that a branch decides.
        numbers: Symbolic Python numbers that became parameters, by text and dtype.
        computes: Whether Python computes numbers at every call.
        whole: Integers of Python that the graph computes, with what refuses them.
        deciding: The tensors whose elements may count as constants, if any.
        keeps_identity: Whether one tensor that comes in several ways stays one.
        chosen: The tensors that a tensor chose among others.
        aliasing_matters: Whether it was asked if two tensors are one.
        moving: What loops carry, by ``id``, with what refuses to compare it.
        moved: What loops carried, and the tensors it may be, with what refuses to write to it.
    """

    def __init__(self, name: str) -> None:
        self.root = self.region = Region(name)
        self.guards = Guards()
        self.captured: list[tuple[Tensor, Value]] = []
        self.arguments: list[TracedTensor] = []
        self.call: Callable[..., Any] = _call
        self.random_state: Value | None = None
        self.symbols: SymbolScope | None = None
        self.sizes: dict[str, Value] = {}
        self.limits: dict[str, tuple[int, int]] = {}
        self.numbers: dict[tuple[str, DType | None], tuple[Symbol, Value | None, DType | None]] = {}
        self.computes = True
        self.whole: dict[Value, Callable[[], object]] = {}
        self._ranges: dict[Value, Range] = {}  # of numbers from outside, or of tensors
        self.deciding: Deciding | None = None
        self.keeps_identity = False
        self.chosen: list[TracedTensor] = []
        self._related: set[int] = set()  # ids of those and of the others
        self.aliasing_matters = False
        self.moving: dict[int, tuple[Tensor, Callable[[], None]]] = {}
        self.moved: dict[int, tuple[Tensor, Callable[[], None]]] = {}
        self._arguments_of: dict[int, TracedTensor] = {}  # by id of the tensor that was passed
        self._current: dict[int, Value] = {}  # value denoted by a concrete tensor, by id
        self._written: dict[int, Tensor] = {}
        self._created: dict[int, Tensor] = {}  # keeps them alive, so ids stay unique
        self._homes: dict[int, Region] = {}  # where those were created
        self._first: dict[int, Tensor] = {}  # those that start anew at every call
        self._without: dict[int, Tensor] = {}  # those whose first elements are not known
        self.drawn: list[tuple[Value, Callable[[int, int], Tensor], int]] = []
        self._labels = Names()
        self._journal: list[tuple[object, str | None, object]] = []  # attributes; whole Cells
        self._cells: list[object] = []
        self.lasting = False  # whether functions of the call are still needed when it is over

    def let_go(self) -> None:
        """Forgets the call when it is over, whose arguments Python may let go of."""
        if self.lasting:
            return
        vars(self).clear()  # it is part of cycles
        self.call = _call

    # ---- Interpreter ------------------------------------------------------------------------

    def run(
        self, op: Op, args: tuple[Tensor, ...], attrs: dict[str, Any], types: tuple[TensorType, ...]
    ) -> tuple[Tensor, ...]:
        """Adds a node.

        Args:
            op: The row of the operator.
            args: Its operands.
            attrs: Its attributes.
            types: Types of its results.
        """
        self.lasting |= op.name not in OPS  # compiling it calls functions that its maker passed
        inputs = [self.value_of(a) for a in args]
        region = self.region
        if op.traits.binds:
            found = region.equal(op, inputs, attrs)
            if found is not None:
                return tuple([TracedTensor(self, v) for v in found])
            attrs, types = self._bound(op, args, attrs)
        outputs = region.node(op, inputs, attrs, types)
        if op.traits.binds:
            size = attrs[op.traits.binds]
            self.sizes[size] = next(v for v in outputs if size in v.type.roots)
        return tuple([TracedTensor(self, v) for v in outputs])

    def _bound(
        self, op: Op, args: tuple[Tensor, ...], attrs: dict[str, Any]
    ) -> tuple[dict[str, object], tuple[TensorType, ...]]:
        """Gives the size that an operator finds out a name of its own."""
        if self.symbols is None:
            self.symbols = SymbolScope({})
        taken, name = self.symbols.bound, attrs[op.traits.binds]
        if not _BOUND.fullmatch(name) or name in taken:  # a graph that is replayed has its names
            name = next(n for n in map("u{}".format, itertools.count()) if n not in taken)
        taken.add(name)
        attrs = {**attrs, op.traits.binds: name}
        return attrs, op.types(*[a.aval for a in args], **attrs)

    def number(self, value: Symbol, dtype: DType) -> Tensor:
        """Returns a number that differs from call to call as a 0-d tensor.

        A size is read off the arguments in the graph; a Python number is computed in Python at
        every call and becomes a parameter.

        Args:
            value: The symbol of the number.
            dtype: The dtype.
        """
        if isinstance(value, TracedNumber):
            return value.as_tensor(dtype)
        if isinstance(value, Dim):
            return F.size_value(*self.having(value.roots), size=value, dtype=dtype)
        here = self.symbols  # a file computes numbers of sizes itself: it has no Python
        if here is not None and here.ships and value.is_arithmetic(self.sizes):
            wide = {r: self.number(Dim(r), dtypes.float64) for r in value.roots}
            return F.cast(value.evaluate(wide), dtype)
        key = (value.text, dtype)
        found = self.numbers.get(key)
        if found is None:
            if not self.computes:
                raise Specialise(value.roots)
            np.array(value.current(), dtype.numpy)  # refuses what does not fit, as in eager code
            label = self._labels.add("number")
            param = self.root.builder.param(tensor_type((), dtype), Role.STATE, label)
            self.root.adopt(param)
            found = self.numbers[key] = (value, param, dtype)
            self._note_range(value, param)
        assert found[1] is not None
        return TracedTensor(self, found[1])

    def _note_range(self, value: Symbol, param: Value) -> None:
        """Makes it a condition that a number is small, so that what is computed with it is."""
        low, high = _SMALL
        if value.kind is int and self.symbols is not None and low <= value.current() <= high:
            self.symbols.conditions[f"{low} <= {value.text} <= {high}"] = True
            self._ranges[param] = _SMALL

    def computed_whole(self, tensor: TracedTensor) -> None:
        """Notes that the graph computes an integer where Python, whose ``int`` has no end, would.

        Args:
            tensor: What holds it.
        """
        if self.interprets:
            self.whole[tensor.value] = self.call.__self__.wide()  # pyright: ignore

    def take_for_small(self, tensor: TracedTensor) -> None:
        """Takes an integer for one whose products fit 64 bits: in strict code they wrap around.

        Args:
            tensor: What holds it.
        """
        self._ranges[tensor.value] = _SMALL

    def check_whole(self, graph: Graph) -> None:
        """Refuses a graph in which an integer of Python may not fit 64 bits.

        Args:
            graph: The graph of the function.
        """
        if self.whole:
            for refuse in too_wide(graph, self._ranges, self.whole):
                refuse()

    def having(self, roots: frozenset[str]) -> list[Tensor]:
        """Returns tensors that have some sizes.

        Args:
            roots: Names of the symbols of the sizes.
        """
        return [TracedTensor(self, self.sizes[root]) for root in sorted(roots)]

    def is_bound(self, value: object) -> TypeGuard[Symbol]:
        """Whether a number is one that only the values of tensors decide.

        Args:
            value: Any object.
        """
        return isinstance(value, Symbol) and (value.traced or bound(value.roots))

    def size_as_tensor(self, value: Any) -> Any:
        """Returns a number that only the values decide as a 0-d tensor, others as they are.

        Args:
            value: Any object.
        """
        if isinstance(value, TracedNumber):
            return value.tensor
        return self.number(value, dtypes.int64) if self.is_bound(value) else value

    def result(self, value: Symbol) -> int:
        """Notes a number that the function returns or stores; returns its place in `computed`.

        Args:
            value: The symbol of the number.
        """
        if self.is_bound(value):  # Python computes it before the graph runs
            raise needed(value.roots)
        key = (value.text, None)
        self.numbers.setdefault(key, (value, None, None))
        return list(self.numbers).index(key)

    def computed(self) -> list[tuple[Symbol, Value | None, DType | None]]:
        """Returns what Python computes at every call: for parameters, and for results."""
        return list(self.numbers.values())

    def assign(self, target: Tensor, new: Tensor) -> None:
        """Writes to a tensor for the rest of the capture, whichever one it is.

        Args:
            target: The tensor that is written.
            new: What it denotes from here on.
        """
        target = self._arguments_of.get(id(target), target)
        identity.check_written(self, target)
        if id(target) in self._related:
            identity.write(self, target, new)
        else:
            self.denote(target, new)

    def chose(self, tensor: TracedTensor, choice: identity.Choice) -> None:
        """Notes that a tensor is one of two others.

        Args:
            tensor: A tensor of the capture, or of the outside.
            choice: The condition and both others.
        """
        tensor.choice = choice
        self.chosen.append(tensor)
        self._related.update(map(id, (tensor, choice.then, choice.orelse)))

    def denote(self, target: Tensor, new: Tensor) -> None:
        """Makes ``target`` denote ``new``.

        Args:
            target: The tensor that is written.
            new: What it denotes from here on.
        """
        value = self.value_of(new)
        target = self._arguments_of.get(id(target), target)
        if isinstance(target, TracedTensor):
            self.region.assigned.setdefault(id(target), (target, target.value))
            target.value = value
            return
        self.value_of(target)
        before = (target, self._current.get(id(target)))
        self.region.assigned.setdefault(id(target), before)
        self._current[id(target)] = value
        self._written[id(target)] = target

    def first_values(
        self, blocks: int, type: TensorType, make: Callable[[int, int], Tensor]
    ) -> Tensor:
        """Adds a parameter for values that Python draws at every call.

        Args:
            blocks: How many blocks of random numbers the values take.
            type: Their type.
            make: Makes them of the seed and the first block.

        Raises:
            CaptureError: where a tensor decides whether, or how much was drawn before.
        """
        position, delta = self.draw(blocks)
        if self.region is not self.root or self.value_of(position) is not self.random_state:
            raise CaptureError(
                "first values of a Parameter are drawn where a tensor decides whether, or how many "
                "random numbers are drawn before",
                op="jit", at=user_source(), fix="make the Parameter or Cell outside",
            )  # fmt: skip
        value = self.root.builder.param(type, Role.STATE, self._labels.add("first_values"))
        self.root.adopt(value)
        self.drawn.append((value, make, delta))
        return TracedTensor(self, value)

    def has_elements(self, tensor: Tensor) -> bool:
        """Whether the elements of a tensor are known during the capture.

        Args:
            tensor: A tensor of the capture, or of the outside.
        """
        return not isinstance(tensor, TracedTensor)

    def known(self, tensor: TracedTensor, given: Given = nothing) -> Tensor | None:
        """Returns a tensor with its elements where constants alone decide them.

        Args:
            tensor: A tensor of the capture.
            given: Returns the elements of a parameter of the function if they count as constants.
        """
        region: Region | None = self.region
        while region is not None and not region.defines(tensor.value):
            region = region.parent
        found = None if region is None else region.elements(tensor.value, given)
        return None if found is None else tensor_from_numpy(found.copy())

    def starts_as(self, parameter: Tensor, value: Tensor) -> None:
        """Makes a tensor that comes into being here denote its first value at every call.

        Args:
            parameter: The tensor that comes into being.
            value: Its first value.
        """
        if self.has_elements(value):
            const = self.root.builder.const(value.array.copy())
            self.root.adopt(const)
            self._current[id(parameter)] = const
        else:
            self._current[id(parameter)] = self.value_of(value)
            self._without[id(parameter)] = parameter
        self._first[id(parameter)] = parameter

    def keep(self, parameter: Tensor) -> None:
        """Makes a Parameter that came into being here take what it denotes at the end.

        Args:
            parameter: The Parameter.
        """
        if self._first.pop(id(parameter), None) is not None:
            self._admit(parameter)
            self._written[id(parameter)] = parameter

    def made(self) -> list[Tensor]:
        """Returns the Parameters that came into being and are not kept."""
        return list(self._first.values())

    def created(self, tensor: Tensor) -> None:
        """Notes a tensor built from host data: a constant of the graph.

        Args:
            tensor: A tensor of the capture, or of the outside.
        """
        self._created[id(tensor)] = tensor
        self._homes[id(tensor)] = self.region

    def read(self, tensor: Tensor) -> None:
        """Guards the elements of a tensor of the outside that Python code looks at.

        Args:
            tensor: A tensor of the capture, or of the outside.
        """
        if id(tensor) in self._written or id(tensor) in self._without:
            raise CaptureError(
                "the value of a tensor that was changed or drawn here is not known while a "
                "function is compiled",
                op="jit", at=user_source(), fix="read it before the change, or outside",
            )  # fmt: skip
        if id(tensor) not in self._created:
            self.guards.add_value(tensor)

    def draw(self, blocks: int) -> tuple[Tensor, int]:
        """Reserves random counter blocks after those drawn before.

        Args:
            blocks: How many.
        """
        if self.is_bound(blocks):
            start = TracedTensor(self, self.position())
            count = self.number(blocks, dtypes.int64)
            self.set_position(self.value_of(start + F.stack((count * 0, count))))
            return start, 0
        region = self.region
        if region.random is None:
            region.random = region.localise(self._position_before(region))
        delta = region.blocks
        region.blocks += blocks
        return TracedTensor(self, region.random), delta

    def _position_before(self, region: Region) -> Value:
        """Returns the random position at which a region starts."""
        if region.parent is not None:
            with self.recording_into(region.parent):
                return self.position()
        if self.random_state is None:
            self.random_state = self.root.builder.param(STATE_TYPE, Role.STATE, "random_state")
            self.root.adopt(self.random_state)
        return self.random_state

    def position(self) -> Value:
        """Returns the random position now, as a value of the current region."""
        region = self.region
        if region.random is None:
            return region.localise(self._position_before(region))
        if not region.blocks:
            return region.random
        moved = F.add(
            TracedTensor(self, region.random), Tensor(np.array([0, region.blocks], np.int64))
        )
        return self.value_of(moved)

    def set_position(self, value: Value) -> None:
        """Continues the random stream of the current region at a computed position.

        Args:
            value: The graph's value with the position.
        """
        self.region.random, self.region.blocks = value, 0

    def snapshot(self, tensor: Tensor) -> Tensor:
        """Returns a traced tensor that keeps denoting the current value.

        Args:
            tensor: A tensor of the capture, or of the outside.
        """
        return TracedTensor(self, self.value_of(tensor))

    def enter_cell(self, cell: object, scope: tuple[str, ...]) -> str:
        """Notes that a Cell is called; returns its name in the tree.

        Args:
            cell: The Cell, traced or from outside.
            scope: Names of the Cells around it.
        """
        if is_cell(cell):
            self.guards.add_cell(cell)
        parent = self._cells[len(scope) - 1] if 0 < len(scope) <= len(self._cells) else None
        self._cells[len(scope) :] = [cell]
        for name, child in getattr(parent, "_cells", {}).items():
            if child is cell:
                return name
        return type(cell).__name__

    # ---- values -----------------------------------------------------------------------------

    def argument(self, type: TensorType, label: str) -> TracedTensor:
        """Adds an INPUT parameter and returns its tensor.

        Args:
            type: Its type.
            label: What it is called in messages.
        """
        self._labels.add(label)
        t = TracedTensor(self, self.root.builder.param(type, Role.INPUT, label))
        self.root.adopt(t.value)
        for d in type.shape:
            if isinstance(d, Dim) and d.is_root:
                self.sizes.setdefault(d.text, t.value)
        self.arguments.append(t)
        return t

    def identify(self, given: Sequence[Tensor], traced: Sequence[TracedTensor]) -> None:
        """Makes every given tensor denote the argument that stands for it first.

        Args:
            given: The tensors of the call.
            traced: The arguments that stand for them.
        """
        for t, new in zip(given, traced):
            self._arguments_of.setdefault(id(t), new)
        identity.keep_views(given, self._arguments_of)

    def same_as(self, given: Tensor, new: Tensor) -> Tensor:
        """Returns the argument that stands for a tensor, ``new`` if there is no other.

        Args:
            given: The tensor of the call.
            new: The argument that was made for it.
        """
        return self._arguments_of.get(id(given), new)

    def value_of(self, tensor: Tensor) -> Value:
        """Returns the value a tensor denotes now, under its name in the current region.

        Args:
            tensor: A tensor of the capture, or of the outside.
        """
        return self.region.localise(self._denoted(tensor))

    def _denoted(self, tensor: Tensor) -> Value:
        if isinstance(tensor, TracedTensor):
            if tensor.recorder is not self:
                raise CaptureError(
                    "a tensor of an earlier capture is used again", op="jit", at=user_source(),
                    fix="do not keep tensors of a compiled function in globals or lists",
                )  # fmt: skip
            return tensor.value
        if id(tensor) in self._arguments_of:
            return self._arguments_of[id(tensor)].value
        found = self._current.get(id(tensor))
        if found is None:
            if id(tensor) in self._created and not isinstance(tensor, Parameter):
                return self.region.constant(tensor)
            found = self._current[id(tensor)] = self._admit(tensor)
        return found

    def _admit(self, tensor: Tensor) -> Value:
        label = tensor.name if isinstance(tensor, Parameter) else "tensor"
        value = self.root.builder.param(tensor.aval, Role.PARAMETER, self._labels.add(label))
        self.root.adopt(value)
        self.captured.append((tensor, value))
        return value

    def is_constant(self, tensor: Tensor) -> bool:
        """Whether a tensor with elements was made during the capture and not changed since.

        Args:
            tensor: A tensor of the capture, or of the outside.
        """
        made = id(tensor) in self._created and not isinstance(tensor, Parameter)
        return made and id(tensor) not in self._current

    def is_pure(self, run: Callable[[], object]) -> bool:
        """Whether running something only computes; unknown where code is not interpreted.

        Args:
            run: What is run.
        """
        return self.interprets and self.call.__self__.is_pure(run)  # pyright: ignore

    @property
    def interprets(self) -> bool:
        """Whether user code is interpreted, so that every attribute write is known."""
        return self.call is not _call

    # ---- regions ----------------------------------------------------------------------------

    @property
    def builder(self) -> GraphBuilder:
        """The graph or region under construction."""
        return self.region.builder

    @contextmanager
    def recording_into(self, region: Region) -> Iterator[Region]:
        """Records into another region for a while.

        Args:
            region: Where nodes go meanwhile.
        """
        outer, self.region = self.region, region
        try:
            yield region
        finally:
            self.region = outer

    def leave(self, region: Region) -> dict[int, tuple[Tensor, Value]]:
        """Takes back the assignments made in a region.

        Args:
            region: Where nodes go meanwhile.

        Returns:
            The tensors of further out that were assigned, with what they denoted at the end.
        """
        changed: dict[int, tuple[Tensor, Value]] = {}
        for key, (tensor, before) in region.assigned.items():
            if self._homes.get(key) is region or (before is not None and region.defines(before)):
                continue  # made in the region: nobody else knows it
            if isinstance(tensor, TracedTensor):
                now, tensor.value = tensor.value, before or tensor.value
            else:
                now = self._current[key]
                if before is None:
                    del self._current[key]
                else:
                    self._current[key] = before
            changed[key] = (tensor, now)
        return changed

    # ---- effects ----------------------------------------------------------------------------

    def written(self) -> list[tuple[Tensor, Value]]:
        """Returns captured tensors whose value changed, with the new value."""
        held = {id(t) for t, _ in self.captured}
        return [(t, self._current[i]) for i, t in self._written.items() if i in held]

    def made_cell(self, cell: object) -> None:
        """Notes that a Cell comes into being: its guards must not see it go.

        Args:
            cell: The Cell, traced or from outside.
        """
        if is_cell(cell):
            self.guards.made[id(cell)] = cell

    def before_attribute(self, cell: object, name: str) -> None:
        """Notes what an attribute of a Cell held before it is written.

        Args:
            cell: The Cell, traced or from outside.
            name: Name of the attribute.
        """
        self._journal.append((cell, name, held(cell, name)))

    def is_made(self, parameter: object) -> bool:
        """Whether the capture made a Parameter.

        Args:
            parameter: The Parameter.
        """
        return id(parameter) in self._created

    def before_change(self, owner: object) -> None:
        """Notes what a Cell or Parameter holds before its members or settings change.

        Args:
            owner: The Cell or Parameter.

        Raises:
            CaptureError: with graph breaks for one from outside, which Python changes.
        """
        if id(owner) in self.guards.made or id(owner) in self._created:
            return
        if self.guards.pure:
            raise CaptureError(
                f"a {type(owner).__name__} from outside gets other members or settings", op="jit",
                at=user_source(), fix="change it outside of the compiled function",
            )  # fmt: skip
        if is_cell(owner):
            held = {k: copy.copy(v) if k in _TABLES else v for k, v in owner.__dict__.items()}
            self._journal.append((owner, None, held))

    def attributes(self) -> list[tuple[object, str, object]]:
        """Returns the Cell attributes that were written, once each, with what they held before."""
        first: dict[tuple[int, str], tuple[object, str, object]] = {}
        for cell, name, before in self._journal:
            if name is not None and id(cell) not in self.guards.fresh:
                first.setdefault((id(cell), name), (cell, name, before))
        return list(first.values())

    def roll_back(self) -> None:
        """Restores every written Cell attribute after a failed capture."""
        for cell, name, before in reversed(self._journal):
            self.restore(cell, name, before)

    @staticmethod
    def restore(cell: object, name: str | None, before: object) -> None:
        """Puts back what an attribute, or a whole Cell, held.

        Args:
            cell: The Cell, traced or from outside.
            name: Name of the attribute; None for the whole Cell.
            before: What it held.
        """
        if name is None:
            assert isinstance(before, dict)
            cell.__dict__.clear()
            cell.__dict__.update(before)
            return
        put_back(cell, name, before)


def _call(
    function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]
) -> object:
    return function(*args, **kwargs)


_TABLES = ("_params", "_cells", "_buffers", "_flags")
