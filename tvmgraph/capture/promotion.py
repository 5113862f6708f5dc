"""Numbers and sizes that differ from call to call become symbols of a capture.

What varies is found by comparing calls (:mod:`tvmgraph.jit.dynamic`) or declared by the user; here
the symbols are put in place while a function is captured, and what every call must check and
compute for them becomes one Python function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tvmgraph.capture.containers import dict_like, items_in, list_like, pairs
from tvmgraph.core.arguments import literal
from tvmgraph.core.limits import Limits
from tvmgraph.core.sizes import LEAST, Dim
from tvmgraph.core.storage import aligned_empty
from tvmgraph.core.symbols import NAMESPACE, Scalar, Symbol, SymbolScope
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.dtypes import DType

Operand = Tensor | int | float  #: what a capture computes for the graph, or returns as it is
Resolver = Callable[[Sequence[Tensor], object], list[Operand] | None]


class MutableInt(int):
    """An int that :func:`tvmgraph.mutable` marked as varying."""


class MutableFloat(float):
    """A float that :func:`tvmgraph.mutable` marked as varying."""


class MutableTuple(tuple):
    """A tuple of tensors that :func:`tvmgraph.mutable` returned."""

    __slots__ = ()


class MutableList(list):
    """A list of tensors that :func:`tvmgraph.mutable` returned."""

    __slots__ = ()


class MutableDict(dict):
    """A dict of tensors that :func:`tvmgraph.mutable` returned."""

    __slots__ = ()


#: What :func:`tvmgraph.mutable` returns for containers of tensors, by the class given: only these
#: are among "all inputs" of :class:`tvmgraph.GradOperation`.
CONTAINERS: dict[type, type] = {tuple: MutableTuple, list: MutableList, dict: MutableDict}
PLAIN: dict[type, type] = {marked: plain for plain, marked in CONTAINERS.items()}


#: Classes of arguments that count as numbers, with the class of the number.
NUMBERS: dict[type, type] = {int: int, float: float, MutableInt: int, MutableFloat: float}


@dataclass(frozen=True)
class Slot:
    """A place outside of the function that holds a number: an attribute, global or closure.

    Attributes:
        key: Identifies the place.
        label: What it is called in messages.
        read: Returns what it holds.
        write: Puts something there.
    """

    key: object
    label: str
    read: Callable[[], object]
    write: Callable[[object], None]


@dataclass(frozen=True)
class Promotion:
    """What is symbolic in a capture.

    Attributes:
        sizes: Name of a root by number of the tensor argument and axis; axes of one name have
            equal sizes.
        numbers: Name of a root by number of the Python number among the arguments.
        slots: Places outside of the function, by name of the root.
        limits: What the user says of sizes, by name of the root; calls beyond do not fit.
        ships: Whether the graph is for a file.
        describes: Whether the graph is only written down and not compiled here, so that operators
            take axes of any size that their kernels do not; where the code decides by sizes, it may
            be what it does from some size on.
    """

    sizes: Mapping[tuple[int, int], str] = field(default_factory=dict)
    numbers: Mapping[int, str] = field(default_factory=dict)
    slots: Mapping[str, Slot] = field(default_factory=dict)
    limits: Mapping[str, Limits] = field(default_factory=dict)
    ships: bool = False
    describes: bool = False

    def __bool__(self) -> bool:
        return bool(self.sizes or self.numbers or self.slots)

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for promotions of the same things."""
        slots = {n: s.key for n, s in self.slots.items()}
        return tuple(frozenset(d.items()) for d in (self.sizes, self.numbers, slots))

    def describe(self, roots: frozenset[str]) -> str:
        """Names what some symbols stand for.

        Args:
            roots: Names of the symbols.
        """
        found = [axis_label(i, a) for (i, a), n in self.sizes.items() if n in roots]
        found += [number_label(i) for i, n in self.numbers.items() if n in roots]
        found += [slot.label for n, slot in self.slots.items() if n in roots]
        return ", ".join(found)

    def type_of(self, leaf: int, type: TensorType) -> TensorType:
        """Returns the symbolic type of a tensor argument.

        Args:
            leaf: Number of the tensor among the arguments.
            type: Its type in this call.
        """
        names = [self.sizes.get((leaf, a)) for a in range(type.ndim)]
        if not any(names):
            return type
        return type.with_shape(d if n is None else Dim(n) for n, d in zip(names, type.shape))

    def scope(self, leaves: Sequence[Tensor], numbers: Sequence[object]) -> SymbolScope:
        """Returns the symbols with their values in a call.

        Args:
            leaves: The tensors among the arguments.
            numbers: The numbers among the arguments.
        """
        values: dict[str, object] = {n: leaves[i].shape[a] for (i, a), n in self.sizes.items()}
        values.update((n, plain(numbers[i])) for i, n in self.numbers.items())
        values.update((n, s.read()) for n, s in self.slots.items())
        stated = [text for n, limits in self.limits.items() for text in limits.conditions(n)]
        return SymbolScope(values, dict.fromkeys((f"({t})" for t in stated), True),
                           ships=self.ships, describes=self.describes)  # fmt: skip

    @contextmanager
    def in_place(self, scope: SymbolScope) -> Iterator[None]:
        """Puts symbols into the slots for the time of a capture.

        Args:
            scope: The symbols with their values.
        """
        before = {n: s.read() for n, s in self.slots.items()}
        try:
            for name, slot in self.slots.items():
                slot.write(Scalar(name, frozenset((name,)), scope.values[name]))
            yield
        finally:
            for name, slot in self.slots.items():
                slot.write(before[name])


def axis_label(leaf: int, axis: int) -> str:
    """Returns what an axis of an argument is called in messages.

    Args:
        leaf: Number of the tensor among the arguments.
        axis: The axis.
    """
    return f"axis {axis} of tensor argument {leaf}"


def number_label(position: int) -> str:
    """Returns what a number among the arguments is called in messages.

    Args:
        position: Which number it is.
    """
    return f"number argument {position}"


def plain(number: Any) -> object:
    """Returns a number argument as an ``int`` or ``float``.

    Args:
        number: The number, or what stands for it.
    """
    kind = number.__class__
    return number if kind is int or kind is float else NUMBERS[kind](number)


def number_paths(value: object, path: str = "given") -> list[tuple[str, object]]:
    """Returns the Python numbers among arguments in order, each with the expression to get it.

    Args:
        value: The arguments.
        path: The expression for all of them.
    """
    if value.__class__ in NUMBERS:
        return [(path, value)]
    found: list[tuple[str, object]] = []
    if isinstance(value, dict):
        for k, v in pairs(value):
            if isinstance(k, (str, int)):
                found += number_paths(v, f"{path}[{k!r}]")
    elif isinstance(value, (tuple, list)):
        for i, v in enumerate(items_in(value)):
            found += number_paths(v, f"{path}[{i}]")
    return found


def with_numbers(value: object, new: Iterator[object]) -> Any:
    """Returns arguments with their Python numbers replaced in order.

    Args:
        value: The arguments.
        new: The other numbers.
    """
    if value.__class__ in NUMBERS:
        return next(new)
    if isinstance(value, dict):
        return dict_like(value)(
            (k, with_numbers(v, new) if isinstance(k, (str, int)) else v) for k, v in pairs(value)
        )
    if isinstance(value, (tuple, list)):
        return list_like(value, [with_numbers(v, new) for v in items_in(value)])
    return value


def symbols_for(promotion: Promotion, given: object) -> Iterator[object]:
    """Yields the numbers among arguments, those that vary as symbols.

    Args:
        promotion: Which numbers and sizes vary.
        given: ``(args, kwargs)`` of the call.
    """
    for i, (_, number) in enumerate(number_paths(given)):
        name = promotion.numbers.get(i)
        value = plain(number)
        yield value if name is None else Scalar(name, frozenset((name,)), value)


# ---- what every call does -----------------------------------------------------------------------


def resolver(
    promotion: Promotion,
    symbols: SymbolScope,
    computed: Sequence[tuple[Symbol, DType | None]],
    leaves: Sequence[Tensor],
    given: object,
    same: Callable[[Sequence[Tensor]], bool] | None = None,
) -> Resolver:
    """Writes the function that tells whether a capture fits a call and computes its numbers.

    Args:
        promotion: What is symbolic.
        symbols: What was decided and computed by them while capturing.
        computed: Numbers that the graph takes (with the dtype of the 0-d tensor) or that are
            results (``None``).
        leaves: Tensor arguments of the captured call.
        given: ``(args, kwargs)`` of the captured call.
        same: Whether the tensors of another call have the elements that count as constants.

    Returns:
        ``resolve(leaves, given)``: the computed numbers, or ``None`` if the capture does not fit.
    """
    env: dict[str, Any] = {**NAMESPACE, "tensor": _as_tensor}
    lines = _size_lines(promotion, leaves)
    if same is not None:
        env["same"] = same
        lines.append("if not same(leaves): return None")
    for i, (path, number) in enumerate(number_paths(given)):
        name, env[f"c{i}"] = promotion.numbers.get(i), number.__class__
        if name is not None:
            value = name if number.__class__ is plain(number).__class__ else f"plain({name})"
            lines += [f"{name} = {path}", f"if {name}.__class__ is not c{i}: return None"]
            lines += [f"{name} = {value}"] if value != name else []
        else:
            env[f"k{i}"] = literal(number)
            lines.append(f"if literal({path}) != k{i}: return None")
    for name, slot in promotion.slots.items():
        env[f"read_{name}"], env[f"c_{name}"] = slot.read, slot.read().__class__
        lines += [f"{name} = read_{name}()", f"if {name}.__class__ is not c_{name}: return None"]
    for text, outcome in symbols.conditions.items():
        lines.append(f"if {'not ' if outcome else ''}{text}: return None")
    lines += symbols.possible  # raises where the code would
    parts = []
    for i, (symbol, dtype) in enumerate(computed):
        env[f"k_{i}"], env[f"d{i}"] = symbol.kind, dtype and tensor_type((), dtype)
        lines += [f"v{i} = {symbol.text}", f"if v{i}.__class__ is not k_{i}: return None"]
        parts.append(f"v{i}" if dtype is None else f"tensor(v{i}, d{i})")
    lines.append(f"return [{', '.join(parts)}]")
    body = "\n".join(f"        {line}" for line in lines)
    source = (
        f"def resolve(leaves, given):\n    try:\n{body}\n"
        "    except (ArithmeticError, ValueError, TypeError, LookupError):\n        return None\n"
    )
    env |= {"__builtins__": {"literal": literal, "ArithmeticError": ArithmeticError,
            "ValueError": ValueError, "TypeError": TypeError, "LookupError": LookupError},
            "plain": plain}  # fmt: skip
    exec(compile(source, "<resolve>", "exec"), env)
    return env["resolve"]


def _size_lines(promotion: Promotion, leaves: Sequence[Tensor]) -> list[str]:
    lines: list[str] = []
    known: set[str] = set()
    for i, leaf in enumerate(leaves):
        axes = leaf.shape
        if axes:
            lines.append(f"shape = leaves[{i}].aval.shape")
        for a, size in enumerate(axes):
            name = promotion.sizes.get((i, a))
            if name is None:
                lines.append(f"if shape[{a}] != {size}: return None")
            elif name in known:
                lines.append(f"if shape[{a}] != {name}: return None")
            else:
                known.add(name)
                lines += [f"{name} = shape[{a}]", f"if {name} < {LEAST}: return None"]
    return lines


def _as_tensor(value: object, type: TensorType) -> Tensor:
    array = aligned_empty((), type.dtype.numpy)  # compiled code takes it as it is
    array[()] = value  # refuses what does not fit
    return tensor_from_numpy(array, type)
