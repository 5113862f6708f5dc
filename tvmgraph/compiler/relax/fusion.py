"""Fusion beyond TVM's: kernels that treat every row alike, and siblings, become one kernel.

TVM's FuseOps stops at every reduction that is read more than once and never fuses kernels that
only share their operands. Here the schedule decides: two kernels are fused whenever the result is
still something it runs row by row (or element by element) in one pass over memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

import tvm
from tvm import ir, relax

from tvmgraph.backend.base import backend_of
from tvmgraph.backend.fusion import Shape, fused_shape, shape_of
from tvmgraph.compiler.relax.in_place import reads_of, writes_of
from tvmgraph.config.graph_kernel import GraphKernel
from tvmgraph.config.options import CompileOptions
from tvmgraph.machine.processor import CpuModel

_T = relax.transform
_MAX_UNITS = 24  # kernels fused into one: bounds its size and the time to compile it
_MAX_ATTEMPTS = 400  # trial fusions per graph: bounds the time on very large graphs


@dataclass(eq=False)
class _Unit:
    """A call of a kernel."""

    index: int
    var: relax.Var
    call: relax.Call
    shape: Shape

    @property
    def args(self) -> list[relax.Expr]:
        return list(self.call.args[1].fields)


@dataclass(eq=False)
class _Group:
    """Calls that become one kernel, in order."""

    units: list[_Unit]
    shape: Shape | None
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
        self.reads: list[list[relax.Var]] = []  # what each binding reads
        self.shapes: dict[object, Shape | None] = {}  # of kernels
        self.fused_shapes: dict[ir.GlobalVar, Shape | None] = {}  # of groups: layers repeat
        self.users: dict[object, set[int]] = {}
        self.defined: dict[object, int] = {}
        self.group_of: dict[int, _Group] = {}
        self.order: list[list[int]] = []
        self.outputs = {function.body.body, *_reads(function.body.body)}
        #: Parameters that the function replaces: what else reads them would have to wait for the
        #: new value, and a kernel that does more than the update cannot write in their place.
        self.replaced = {param for _, param in writes_of(function)}

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
        self.reads = reads_of(self.bindings)
        for i, binding in enumerate(self.bindings):
            self.defined[binding.var] = i
            value = binding.value
            for var in self.reads[i]:
                self.users.setdefault(var, set()).add(i)
            if not _calls_kernel(value) or len(value.args) != 2:
                continue
            if isinstance(binding.var.ty, relax.TensorType):
                shape = self._shape(value.args[0])
                if shape is not None:
                    unit = _Unit(i, binding.var, value, shape)
                    self.group_of[i] = _Group([unit], shape)

    def _shape(self, kernel: tvm.ir.GlobalVar) -> Shape | None:
        if kernel not in self.shapes:
            self.shapes[kernel] = shape_of(self.mod[kernel], self.model)
        return self.shapes[kernel]

    def _inputs(self, indices: Iterable[int]) -> set[int]:
        """Bindings that the given ones read."""
        found = (self.defined.get(v) for i in indices for v in self.reads[i])
        return {i for i in found if i is not None}

    # ---- deciding ---------------------------------------------------------------------------

    def _grouped(self) -> list[_Group]:
        for units in self._neighbourhoods():
            self._try_all(units)
        changed = True
        while changed and self.attempts < _MAX_ATTEMPTS:
            changed = False
            for i in sorted(self.group_of):
                for j in self._neighbours(i):
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
                    todo += self._neighbours(unit.index)
            found.append(sorted(members, key=lambda u: u.index))
        return found

    def _try_all(self, units: list[_Unit]) -> None:
        """Joins a neighbourhood at once, which takes one attempt instead of one per call."""
        if 2 < len(units) <= _MAX_UNITS:
            self._try_units(units, [unit.shape for unit in units])

    def _neighbours(self, i: int) -> list[int]:
        """Calls that read what binding ``i`` writes, then those that share an operand with it."""
        found: list[int] = []
        if self.settings.has("rows"):
            found += sorted(self.users.get(self.bindings[i].var, ()))
        if self.settings.has("parallel"):
            for var in self.reads[i]:
                if self._is_large(var) and var not in self.replaced:
                    found += sorted(self.users.get(var, ()))
        return [u for u in dict.fromkeys(found) if u in self.group_of and u != i]

    def _is_large(self, var: relax.Var) -> bool:
        """Whether reading an operand once instead of twice is worth fusing its readers."""
        shape = getattr(getattr(var, "ty", None), "shape", None)
        return shape is not None and len(shape) > 1

    def _try(self, a: _Group, b: _Group) -> bool:
        if a is b or b in a.refused or len(a.units) + len(b.units) > _MAX_UNITS:
            return False
        assert a.shape is not None and b.shape is not None
        a.refused.add(b)
        b.refused.add(a)
        units = sorted([*a.units, *b.units], key=lambda u: u.index)
        return self._try_units(units, [a.shape, b.shape])

    def _try_units(self, units: list[_Unit], members: Sequence[Shape]) -> bool:
        """Makes a group of calls whose present groups run over ``members``, if that is possible."""
        alike = all(a.may_fuse(b) for a, b in itertools.combinations(members, 2))
        if not alike or self._has_detour({u.index for u in units}):
            return False
        shape = self._shape_of_fused(units, tuple(members))
        if shape is None:
            return False
        merged = _Group(units, shape)
        self.group_of.update((u.index, merged) for u in units)
        return True

    def _shape_of_fused(self, units: list[_Unit], members: tuple[Shape, ...]) -> Shape | None:
        """What a fused kernel runs over; found once for calls that are wired alike."""
        names = {v: i for i, v in enumerate([*(u.var for u in units), *self._operands(units)])}
        key = (
            tuple((u.call.args[0], *(names[a] for a in u.args)) for u in units),
            tuple(names[u.var] for u in self._results(units)),
            members,
        )
        if key not in self.fused_shapes:
            self.attempts += 1
            self.fused_shapes[key] = fused_shape(self._fused(units), members, self.model)
        return self.fused_shapes[key]

    def _has_detour(self, inside: set[int]) -> bool:
        """Whether a path between some calls leaves them: fusing would make a cycle."""
        seen: set[int] = set()
        todo = list(self._inputs(inside) - inside)
        while todo:
            i = todo.pop()
            if i in seen:
                continue
            group = self.group_of.get(i)
            whole = {i} if group is None else {u.index for u in group.units}
            seen |= whole
            reads = self._inputs(whole)
            if reads & inside:
                return True
            todo += reads - seen  # earlier ones, too: they may read a group that has later calls
        return False

    # ---- building ---------------------------------------------------------------------------

    def _results(self, units: list[_Unit]) -> list[_Unit]:
        """The units whose result is read outside."""
        inside = {u.index for u in units}
        return [
            u for u in units if u.var in self.outputs or self.users.get(u.var, set()) - inside
            or not isinstance(u.var, relax.DataflowVar)
        ]  # fmt: skip

    def _operands(self, units: list[_Unit]) -> list[relax.Expr]:
        own = {u.var for u in units}
        return list(dict.fromkeys(a for u in units for a in u.args if a not in own))

    def _primitive(self, units: list[_Unit], names: Mapping[object, object]) -> relax.Function:
        """The Relax function that calls the kernels of a group."""
        operands = self._operands(units)
        params = [relax.Var(f"p{i}", a.ty) for i, a in enumerate(operands)]
        known = dict(zip(operands, params))
        results = self._results(units)
        bindings = []
        for unit in units:
            arguments = relax.Tuple([known[a] for a in unit.args])
            call = unit.call
            value = relax.Call(call.op, [names[call.args[0]], arguments], call.attrs, call.ty_args)
            known[unit.var] = relax.DataflowVar(unit.var.name, unit.var.ty)
            bindings.append(relax.VarBinding(known[unit.var], value))
        found = [known[u.var] for u in results]
        found = found[0] if len(found) == 1 else relax.Tuple(found)
        kind = results[0].var.ty if len(results) == 1 else relax.TupleType(
            [u.var.ty for u in results]
        )  # fmt: skip
        output = relax.Var("output", kind)
        bindings.append(relax.VarBinding(output, found))
        body = relax.SeqExpr([relax.DataflowBlock(bindings)], output)
        return relax.Function(params, body, kind).with_attr("Primitive", True)

    def _fused(self, units: list[_Unit]) -> relax.Call:
        """The loops of the fused kernel."""
        names = {u.call.args[0]: u.call.args[0] for u in units}
        primitive = self._primitive(units, names)
        trial = tvm.IRModule({gv: self.mod[gv] for gv in names})
        builder = relax.BlockBuilder(trial)
        gv = builder.add_func(primitive, "fusion")
        params = [relax.Var(p.name, p.ty) for p in primitive.params]
        with builder.function("main", params):
            with builder.dataflow():
                result = builder.emit_output(relax.Call(gv, params))
            builder.emit_func_output(result)
        fused = _T.FuseTIR()(builder.get())
        return next(f for v, f in fused.functions.items() if str(v.name_hint).startswith("fusion"))

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
        names = {u.call.args[0]: u.call.args[0] for u in group.units}
        primitive = self._primitive(group.units, names)
        gv = builder.add_func(primitive, _name(group.units))
        call = relax.Call(gv, self._operands(group.units))
        results = self._results(group.units)
        if len(results) == 1:
            return [relax.VarBinding(results[0].var, call)]
        whole = relax.DataflowVar("fusion", primitive.ret_ty)
        members = [
            relax.VarBinding(u.var, relax.TupleGetItem(whole, i)) for i, u in enumerate(results)
        ]
        return [relax.VarBinding(whole, call), *members]


def _calls_kernel(value: relax.Expr) -> TypeGuard[relax.Call]:
    return isinstance(value, relax.Call) and value.op == tvm.ir.Op.get("relax.call_tir")


def _reads(value: relax.Expr) -> list[relax.Var]:
    """Variables that an expression reads."""
    return list(relax.analysis.free_vars(value))


def _name(units: list[_Unit]) -> str:
    words = [str(u.call.args[0].name_hint).removeprefix("fused_") for u in units]
    return ("fused_" + "_".join(words))[:100]
