"""Fusion beyond TVM's: kernels that treat every row alike, and siblings, become one kernel.

TVM's FuseOps stops at every reduction that is read more than once and never fuses kernels that
only share their operands. Here the schedule decides: two kernels are fused whenever the result is
still something it runs row by row (or element by element) in one pass over memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

import tvm
from tvm import ir, relax

from tvmgraph.backend.base import backend_of
from tvmgraph.backend.fusion import Shape, another, fused_shape, instance, merged, read, shape_of
from tvmgraph.backend.loop_ir.program import Program, Stage
from tvmgraph.backend.loop_ir.types import Buffer
from tvmgraph.compiler.relax.in_place import reads_of, writes_of
from tvmgraph.config.graph_kernel import GraphKernel
from tvmgraph.config.options import CompileOptions
from tvmgraph.machine.processor import CpuModel

_T = relax.transform
_MAX_UNITS = 24  # kernels fused into one: bounds its size and the time to compile it
_MAX_ATTEMPTS = 400  # trial fusions per graph: bounds the time on very large graphs


@dataclass(eq=False)
class _Kernel:
    """A kernel that may be fused: its stages, and what they run over."""

    var: ir.GlobalVar
    program: Program
    shape: Shape


@dataclass(eq=False)
class _Unit:
    """A call of a kernel: the binding, and the numbers of what it reads and of what it gives."""

    index: int
    kernel: _Kernel
    call: relax.Call
    operands: tuple[int, ...]
    result: int
    stages: tuple[Stage, ...] | None = None  # the kernel's at this call, once they are asked for


@dataclass(eq=False)
class _Group:
    """Calls that become one kernel, in order."""

    units: list[_Unit]
    shape: Shape
    refused: set[_Group] = field(default_factory=set)  # it cannot be fused with them


def fuse_kernels(mod: tvm.IRModule, options: CompileOptions) -> tvm.IRModule:
    """Fuses kernels of every function of a module.

    Args:
        mod: A module after FuseTIR.
        options: How it is compiled; the switches ``rows`` and ``parallel`` say what is fused.
    """
    return fuse_and_trace(mod, options.settings, backend_of(options.target).fusion_model(options))[
        0
    ]


def fuse_and_trace(
    mod: tvm.IRModule, settings: GraphKernel, model: CpuModel
) -> tuple[tvm.IRModule, dict[str, list[list[int]]]]:
    """Fuses kernels and says what became of their calls.

    Args:
        mod: A module after TVM's own fusion.
        settings: Flags, which may leave a kind of fusion out.
        model: The processor, by which the schedule decides what is one pass over memory.

    Returns:
        The module, and by function for every call of a kernel that is left the positions of the
        bindings it replaces.
    """
    order: dict[str, list[list[int]]] = {}
    fused: dict[ir.GlobalVar, relax.Function] = {}
    builder = relax.BlockBuilder(mod)  # one for all functions: it looks through the whole module
    for gv, function in mod.functions.items():
        if isinstance(function, relax.Function):
            fuser = _Fuser(mod, function, settings, model)
            found = fuser.run(builder)
            if found is not None:
                fused[gv] = found
            order[str(gv.name_hint)] = fuser.order
    if fused:
        mod = builder.get()
        for gv, function in fused.items():
            mod[gv] = function
        mod = _T.FuseTIR()(_T.Normalize()(mod))
    return _T.DeadCodeElimination()(mod), order


class _Order:
    """An order in which bindings can be computed, where some of them are one node.

    Args:
        inputs: The bindings that each reads, all of them earlier ones.
    """

    def __init__(self, inputs: Sequence[set[int]]) -> None:
        self._inputs = list(inputs)  # of the whole node of a binding
        self._places = list(range(len(inputs)))
        self._nodes = [{i} for i in self._places]  # by their places, of which some stay empty

    def between(self, inside: set[int]) -> set[int] | None:
        """What some nodes need that comes after the first of them.

        Args:
            inside: The bindings of the nodes.

        Returns:
            The bindings; None if one needs what is inside, so that joining would make a cycle.
        """
        first = min(self._places[i] for i in inside)
        found: set[int] = set()
        todo = list(self._needs(inside))
        while todo:
            i = todo.pop()
            if i in found or self._places[i] < first:
                continue
            if not self._inputs[i].isdisjoint(inside):
                return None
            found |= self._nodes[self._places[i]]
            todo += self._inputs[i] - found
        return found

    def join(self, inside: set[int], between: set[int]) -> None:
        """Makes one node of several: what they need is moved before it, the rest behind it.

        Args:
            inside: The bindings of the nodes.
            between: What :meth:`between` found.
        """
        needs = self._needs(inside)
        places = [self._places[i] for i in inside]
        first, end = min(places), max(places) + 1
        others = [node for node in self._nodes[first:end] if not node <= inside]
        needed = [node for node in others if node <= between]
        nodes = [*needed, inside, *(node for node in others if not node <= between)]
        nodes += [set() for _ in range(end - first - len(nodes))]
        self._nodes[first:end] = nodes
        for place, node in enumerate(nodes, first):
            for i in node:
                self._places[i] = place
        for i in inside:
            self._inputs[i] = needs

    def _needs(self, inside: set[int]) -> set[int]:
        return set().union(*(self._inputs[i] for i in inside)) - inside


class _Fuser:
    def __init__(
        self, mod: tvm.IRModule, function: relax.Function, settings: GraphKernel, model: CpuModel
    ) -> None:
        self.mod = mod
        self.function = function
        self.settings = settings
        self.model = model
        self.attempts = 0
        self.bindings: list[relax.Binding] = []
        #: What bindings read and define: comparing TVM's variables takes long, numbers do not.
        self.values: list[relax.Expr] = []
        self.numbers: dict[relax.Expr, int] = {}
        self.reads: list[list[int]] = []  # what each binding reads
        self.inputs: list[set[int]] = []  # the bindings that define it
        self.nodes = _Order([])  # bindings, those of a group as one
        self.neighbours: dict[int, list[int]] = {}
        self.kernels: dict[object, _Kernel | None] = {}
        self.buffers: dict[int, Buffer] = {}  # of what calls read and write
        self.fused_shapes: dict[object, Shape | None] = {}  # of groups: layers repeat
        self.users: dict[int, set[int]] = {}
        self.defined: dict[int, int] = {}
        self.group_of: dict[int, _Group] = {}
        self.order: list[list[int]] = []
        body = function.body.body
        self.outputs = set(map(self._number, [body, *relax.analysis.free_vars(body)]))
        #: Parameters that the function replaces: what else reads them would have to wait for the
        #: new value, and a kernel that does more than the update cannot write in their place.
        self.replaced = {self._number(param) for _, param in writes_of(function)}

    def run(self, builder: relax.BlockBuilder) -> relax.Function | None:
        """Returns the function with calls of fused kernels, or None where nothing is fused.

        Args:
            builder: Gets the fused kernels, each as a function that calls its parts.
        """
        blocks = self.function.body.blocks
        if len(blocks) == 1 and isinstance(blocks[0], relax.DataflowBlock):
            self._read(blocks[0])
        groups = self._grouped()
        if all(len(g.units) == 1 for g in groups):
            bindings = [b for block in blocks for b in block.bindings]
            self.order = [[i] for i, b in enumerate(bindings) if _calls_kernel(b.value)]
            return None
        old = self.function
        body = relax.SeqExpr([relax.DataflowBlock(self._rewrite(groups, builder))], old.body.body)
        return relax.Function(old.params, body, old.ret_ty, old.is_pure, old.attrs)

    # ---- reading the function ---------------------------------------------------------------

    def _read(self, block: relax.BindingBlock) -> None:
        self.bindings = list(block.bindings)
        for i, (binding, found) in enumerate(zip(self.bindings, reads_of(self.bindings))):
            self.reads.append(list(map(self._number, found)))
            self.inputs.append({self.defined[n] for n in self.reads[i] if n in self.defined})
            self.defined[result := self._number(binding.var)] = i
            for number in self.reads[i]:
                self.users.setdefault(number, set()).add(i)
            value = binding.value
            if not _calls_kernel(value) or len(value.args) != 2:
                continue
            if isinstance(binding.var.ty, relax.TensorType):
                kernel = self._kernel(value.args[0])
                if kernel is not None:
                    operands = tuple(map(self._number, value.args[1].fields))
                    unit = _Unit(i, kernel, value, operands, result)
                    self.group_of[i] = _Group([unit], kernel.shape)
        self.nodes = _Order(self.inputs)
        self.neighbours = {i: self._neighbours(i) for i in self.group_of}

    def _number(self, value: relax.Expr) -> int:
        number = self.numbers.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number

    def _kernel(self, kernel: tvm.ir.GlobalVar) -> _Kernel | None:
        """A kernel, or None where it stays alone."""
        if kernel not in self.kernels:
            program = read(self.mod[kernel])
            shape = program and shape_of(program, self.model)
            self.kernels[kernel] = _Kernel(kernel, program, shape) if program and shape else None
        return self.kernels[kernel]

    def _inputs(self, indices: Iterable[int]) -> set[int]:
        """Bindings that the given ones read."""
        return set().union(*(self.inputs[i] for i in indices))

    # ---- deciding ---------------------------------------------------------------------------

    def _grouped(self) -> list[_Group]:
        for units in self._neighbourhoods():
            self._try_all(units)
        changed = True
        while changed and self.attempts < _MAX_ATTEMPTS:
            changed = False
            for i in sorted(self.group_of):
                for j in self.neighbours[i]:
                    changed = self._try(self.group_of[i], self.group_of[j]) or changed
        return list({id(g): g for g in self.group_of.values()}.values())

    def _neighbourhoods(self) -> list[list[_Unit]]:
        """Calls that neighbours connect, in order; without those that have none."""
        left = {i: group.units[0] for i, group in self.group_of.items()}
        found: list[list[_Unit]] = []
        while left:
            todo = [next(iter(left))]
            members: list[_Unit] = []
            while todo:
                unit = left.pop(todo.pop(), None)
                if unit is not None:
                    members.append(unit)
                    todo += self.neighbours[unit.index]
            found.append(sorted(members, key=lambda u: u.index))
        return found

    def _try_all(self, units: list[_Unit]) -> None:
        """Joins a neighbourhood at once, which takes one attempt instead of one per call."""
        if 2 < len(units) <= _MAX_UNITS:
            self._try_groups([self.group_of[unit.index] for unit in units])

    def _neighbours(self, i: int) -> list[int]:
        """Calls that read what binding ``i`` writes, then those that share an operand with it."""
        found: list[int] = []
        if self.settings.has("rows"):
            found += sorted(self.users.get(self._number(self.bindings[i].var), ()))
        if self.settings.has("parallel"):
            for number in self.reads[i]:
                if self._is_large(self.values[number]) and number not in self.replaced:
                    found += sorted(self.users[number])
        return [u for u in dict.fromkeys(found) if u in self.group_of and u != i]

    def _is_large(self, var: relax.Expr) -> bool:
        """Whether reading an operand once instead of twice is worth fusing its readers."""
        shape = getattr(getattr(var, "ty", None), "shape", None)
        return shape is not None and len(shape) > 1

    def _try(self, a: _Group, b: _Group) -> bool:
        if a is b or b in a.refused or len(a.units) + len(b.units) > _MAX_UNITS:
            return False
        a.refused.add(b)
        b.refused.add(a)
        return self._try_groups([a, b])

    def _try_groups(self, groups: list[_Group]) -> bool:
        """Makes one group of several, if that is possible."""
        units = sorted((u for g in groups for u in g.units), key=lambda u: u.index)
        if not all(a.shape.may_fuse(b.shape) for a, b in itertools.combinations(groups, 2)):
            return False
        inside = {u.index for u in units}
        before = self.nodes.between(inside)
        shape = None if before is None else self._shape_of_fused(units, groups)
        if before is None or shape is None:
            return False
        self.nodes.join(inside, before)
        self.group_of.update(dict.fromkeys(inside, _Group(units, shape)))
        return True

    def _shape_of_fused(self, units: list[_Unit], groups: list[_Group]) -> Shape | None:
        """What a fused kernel runs over; found once for calls that are wired alike."""
        members = tuple(group.shape for group in groups)
        numbers = [*(u.result for u in units), *self._operands(units)]
        names = {number: i for i, number in enumerate(numbers)}
        key = (
            tuple((u.kernel, *(names[n] for n in u.operands)) for u in units),
            tuple(names[u.result] for u in self._results(units)),
            members,
        )
        if key not in self.fused_shapes:
            self.attempts += 1
            fused = self._merged(units)
            self.fused_shapes[key] = fused and fused_shape(fused, members, self.model)
        return self.fused_shapes[key]

    def _merged(self, units: list[_Unit]) -> Program | None:
        """The stages of some calls as those of one kernel."""
        stages = tuple(stage for unit in units for stage in self._stages(unit))
        numbers = [*self._operands(units), *(unit.result for unit in self._results(units))]
        return merged(Program(tuple(self.buffers[n] for n in numbers), stages))

    def _stages(self, unit: _Unit) -> tuple[Stage, ...]:
        """The stages of a call, which read and store the buffers of its operands and its result."""
        if unit.stages is None:
            numbers, kernel = [*unit.operands, unit.result], unit.kernel.program
            for number, param in zip(numbers, kernel.params, strict=True):
                if number not in self.buffers:
                    self.buffers[number] = another(param)
            unit.stages = instance(kernel, [self.buffers[number] for number in numbers]).stages
        return unit.stages

    # ---- building ---------------------------------------------------------------------------

    def _results(self, units: list[_Unit]) -> list[_Unit]:
        """The units whose result is read outside."""
        inside = {u.index for u in units}
        return [
            u for u in units if u.result in self.outputs
            or self.users.get(u.result, set()) - inside
            or not isinstance(self.values[u.result], relax.DataflowVar)
        ]  # fmt: skip

    def _operands(self, units: list[_Unit]) -> list[int]:
        own = {u.result for u in units}
        return list(dict.fromkeys(n for u in units for n in u.operands if n not in own))

    def _primitive(self, units: list[_Unit]) -> relax.Function:
        """The Relax function that calls the kernels of a group."""
        operands = self._operands(units)
        params = [relax.Var(f"p{i}", self.values[n].ty) for i, n in enumerate(operands)]
        known = dict(zip(operands, params))
        results = self._results(units)
        bindings = []
        for unit in units:
            arguments = relax.Tuple([known[n] for n in unit.operands])
            call, var = unit.call, self.bindings[unit.index].var
            value = relax.Call(call.op, [unit.kernel.var, arguments], call.attrs, call.ty_args)
            known[unit.result] = relax.DataflowVar(var.name, var.ty)
            bindings.append(relax.VarBinding(known[unit.result], value))
        found = [known[u.result] for u in results]
        found = found[0] if len(found) == 1 else relax.Tuple(found)
        types = [self.values[u.result].ty for u in results]
        kind = types[0] if len(types) == 1 else relax.TupleType(types)
        output = relax.Var("output", kind)
        bindings.append(relax.VarBinding(output, found))
        body = relax.SeqExpr([relax.DataflowBlock(bindings)], output)
        return relax.Function(params, body, kind).with_attr("Primitive", True)

    def _rewrite(self, groups: list[_Group], builder: relax.BlockBuilder) -> list[relax.Binding]:
        """The bindings of the function with every group as one call."""
        large = [g for g in groups if len(g.units) > 1]
        member = {u.index: g for g in large for u in g.units}
        done: set[int] = set()
        asked: set[int] = set()
        bindings: list[relax.Binding] = []
        waiting = list(reversed(range(len(self.bindings))))  # no recursion: chains may be long
        while waiting:
            i = waiting[-1]
            group = member.get(i)
            indices = {i} if group is None else {u.index for u in group.units}
            missing = self._inputs(indices) - indices - done
            if missing and i not in done:
                assert i not in asked, "groups of kernels read each other"
                asked.add(i)
                waiting += sorted(missing, reverse=True)
                continue
            waiting.pop()
            if i in done:
                continue
            done.update(indices)
            if group is not None or _calls_kernel(self.bindings[i].value):
                self.order.append(sorted(indices))
            bindings.extend([self.bindings[i]] if group is None else self._call(group, builder))
        return bindings

    def _call(self, group: _Group, builder: relax.BlockBuilder) -> list[relax.VarBinding]:
        """The bindings of a group's results, its kernel added to the builder's module."""
        primitive = self._primitive(group.units)
        gv = builder.add_func(primitive, _name(group.units))
        call = relax.Call(gv, [self.values[n] for n in self._operands(group.units)])
        results = [self.bindings[u.index].var for u in self._results(group.units)]
        if len(results) == 1:
            return [relax.VarBinding(results[0], call)]
        whole = relax.DataflowVar("fusion", primitive.ret_ty)
        members = [
            relax.VarBinding(var, relax.TupleGetItem(whole, i)) for i, var in enumerate(results)
        ]
        return [relax.VarBinding(whole, call), *members]


def _calls_kernel(value: relax.Expr) -> TypeGuard[relax.Call]:
    return isinstance(value, relax.Call) and value.op == tvm.ir.Op.get("relax.call_tir")


def _name(units: list[_Unit]) -> str:
    words = [str(u.kernel.var.name_hint).removeprefix("fused_") for u in units]
    return ("fused_" + "_".join(words))[:100]
