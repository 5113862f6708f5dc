"""Parameters that a graph replaces are overwritten where the kernel that does it allows it.

A graph says which of its outputs replace which parameters. Where the kernel that computes such an
output is elementwise, and nothing reads the parameter after it, the result goes into the
parameter's own memory: a training step then needs no second copy of weights and moments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeGuard

import tvm
from tvm import ir, relax, tirx

from tvmgraph.backend.loop_ir.in_place import Pair, merged, overwritable
from tvmgraph.backend.loop_ir.types import IN_PLACE
from tvmgraph.lowering import WRITES

_CALL = tvm.ir.Op.get("relax.call_tir")
_VIEW = tvm.ir.Op.get("relax.reshape")


def mark_updates(mod: tvm.IRModule) -> tvm.IRModule:
    """Gives kernels that may overwrite parameters the attribute ``IN_PLACE``.

    Args:
        mod: A fused module that is not scheduled yet. Its ``main`` may carry the attribute
            ``WRITES``: pairs of an output and the parameter that it replaces.
    """

    def mark(function: relax.Function, pairs: list[Pair]) -> ir.BaseFunc | None:
        allowed = overwritable(function, pairs)
        return function.with_attr(IN_PLACE, [list(p) for p in allowed]) if allowed else None

    return _replaced(mod, mark)


def _replaced(
    mod: tvm.IRModule, change: Callable[[relax.Function, list[Pair]], ir.BaseFunc | None]
) -> tvm.IRModule:
    """Gives the kernels that compute new parameters another form.

    Args:
        mod: A fused module.
        change: Makes the new form from a kernel and the positions of old and new parameters among
            the kernel's own; None leaves it.
    """
    main = main_block(mod)
    writes = writes_of(main)
    if not writes:
        return mod
    reader = Reader(main)
    found: dict[int, list[Pair]] = {}
    for output, param in writes:
        site = reader.update(output, param)
        if site is not None:
            position, operand, result = site
            found.setdefault(position, []).append((operand, result))
    builder, replaced = relax.BlockBuilder(mod), {}
    renewed: dict[object, object] = {}  # layers repeat
    for position, pairs in found.items():
        call = reader.bindings[position].value
        assert isinstance(call, relax.Call)
        inputs = len(call.args[1].fields)
        key = (call.args[0], tuple((i, inputs + o) for i, o in pairs))
        if key not in renewed:
            changed = change(mod[key[0]], list(key[1]))
            name = f"{key[0].name_hint}_in_place"
            renewed[key] = None if changed is None else builder.add_func(changed, name)
        var = renewed[key]
        if var is not None:
            replaced[position] = relax.Call(
                call.op, [var, *call.args[1:]], call.attrs, call.ty_args
            )
    return _rebound(builder.get(), main, reader, replaced)


def bind_updates(mod: tvm.IRModule) -> tvm.IRModule:
    """Makes calls of the marked kernels, scheduled by now, calls that overwrite their operands.

    So do those of other kernels, such as a product with the update as its epilogue, that turned out
    to read every element of a parameter just before they write its new value.

    Args:
        mod: A module of scheduled kernels.
    """
    mod = _replaced(mod, merged)
    main = main_block(mod)
    if main is None:
        return mod
    marked = {
        v: f for v, f in mod.functions.items()
        if isinstance(f, tvm.tirx.PrimFunc) and f.attrs and IN_PLACE in f.attrs
    }  # fmt: skip
    if not marked:
        return mod
    others = {v: f for v, f in mod.functions.items() if v not in marked}
    builder = relax.BlockBuilder(tvm.IRModule(others, attrs=mod.attrs))
    # the kernels have fewer parameters than the functions they were made of
    renewed = {v: builder.add_func(f, v.name_hint) for v, f in marked.items()}
    reader, replaced = Reader(main), {}
    for position, binding in enumerate(reader.bindings):
        call = binding.value
        if not _is_kernel_call(call) or call.args[0] not in marked:
            continue
        inputs = len(call.args[1].fields)
        made = call.ty_args[0]
        types = list(made.fields) if isinstance(made, relax.TupleType) else [made]
        places = [-1] * len(types)
        for i, o in marked[call.args[0]].attrs[IN_PLACE]:
            places[int(o) - inputs] = int(i)
        var = renewed[call.args[0]]
        replaced[position] = relax.op.call_tir_inplace(var, call.args[1], places, types)
    return _rebound(builder.get(), main, reader, replaced)


def main_block(mod: tvm.IRModule) -> relax.Function | None:
    """The function ``main`` if it is a single dataflow block.

    Args:
        mod: A module.
    """
    names = [v for v in mod.get_global_vars() if v.name_hint == "main"]
    function = mod[names[0]] if names else None
    if not isinstance(function, relax.Function) or len(function.body.blocks) != 1:
        return None
    return function if isinstance(function.body.blocks[0], relax.DataflowBlock) else None


def writes_of(function: relax.Function | None) -> list[tuple[int, relax.Var]]:
    """Returns the outputs of a function that replace parameters, each with its parameter.

    Args:
        function: A Relax function, or None.
    """
    if function is None or not function.attrs or WRITES not in function.attrs:
        return []
    return [(int(o), function.params[int(p)]) for o, p in function.attrs[WRITES]]


def _is_kernel_call(value: relax.Expr) -> TypeGuard[relax.Call]:
    return isinstance(value, relax.Call) and value.op == _CALL and len(value.args) == 2


def is_view(value: relax.Expr) -> TypeGuard[relax.Call]:
    """Whether an expression is a tensor's memory in another shape.

    Args:
        value: A bound expression.
    """
    return isinstance(value, relax.Call) and value.op == _VIEW


def _rebound(
    mod: tvm.IRModule, main: relax.Function, reader: Reader, replaced: Mapping[int, object]
) -> tvm.IRModule:
    if not replaced:
        return mod
    bindings = [
        relax.VarBinding(b.var, replaced[i]) if i in replaced else b
        for i, b in enumerate(reader.bindings)
    ]
    body = relax.SeqExpr([relax.DataflowBlock(bindings)], main.body.body)
    var = mod.get_global_var("main")
    mod[var] = relax.Function(main.params, body, main.ret_ty, main.is_pure, main.attrs)
    return relax.transform.DeadCodeElimination()(mod)


def reads_of(bindings: Sequence[relax.Binding]) -> list[list[relax.Var]]:
    """Returns the variables that every binding reads, with those that bind its symbolic sizes.

    Args:
        bindings: Bindings of one dataflow block, in order.
    """
    sizes = {
        size: b.var
        for b in bindings if isinstance(b, relax.MatchCast)
        for size in relax.analysis.definable_tir_vars_in_type(b.var.ty)
    }  # fmt: skip
    found = [list(relax.analysis.free_vars(b.value)) for b in bindings]
    if sizes:
        for b, read in zip(bindings, found):
            needed = [*relax.analysis.tir_vars_in_type(b.var.ty), *_sizes_given(b.value)]
            used = {sizes.get(size) for size in needed}
            read += [var for var in used if var is not None and not var.same_as(b.var)]
    return found


def _sizes_given(value: relax.Expr) -> list[tirx.Var]:
    """Returns the symbolic sizes that a call is given, of which its result may have none."""
    given = value.args if isinstance(value, relax.Call) else ()
    return [
        size for arg in given if isinstance(arg, relax.ShapeExpr)
        for size in relax.analysis.tir_vars_in_type(arg.ty)
    ]  # fmt: skip


class Reader:
    """Who computes and who reads what in a function of one block.

    What reads a tensor in another shape reads the tensor.
    """

    def __init__(self, function: relax.Function) -> None:
        self.bindings: Sequence[relax.Binding] = list(function.body.blocks[0].bindings)
        self.defined = {b.var: i for i, b in enumerate(self.bindings)}
        self.readers: dict[object, list[int]] = {}
        self._viewed: dict[
            object, object
        ] = {}  # what a name for a tensor in another shape is a name for
        for i, (binding, read) in enumerate(zip(self.bindings, reads_of(self.bindings))):
            if is_view(binding.value):
                self._viewed[binding.var] = binding.value.args[0]
            for var in read:
                for name in self._names(var):
                    self.readers.setdefault(name, []).append(i)
        result = function.body.body
        position = self.defined.get(result)
        value = result if position is None else self.bindings[position].value
        self.outputs = list(value.fields) if isinstance(value, relax.Tuple) else [result]

    def _names(self, var: relax.Var) -> list[relax.Var]:
        """A variable, and those whose memory it is a name for."""
        names = [var]
        while names[-1] in self._viewed:
            names.append(self._viewed[names[-1]])
        return names

    def update(self, output: int, param: relax.Var) -> tuple[int, int, int] | None:
        """Finds the kernel that may overwrite ``param`` with an output.

        Args:
            output: Which output of the function it is.
            param: The parameter whose new value that output is.

        Returns:
            The position of its call, and those of operand and result of the kernel; None if
            something else reads the parameter later, or there is no such kernel.
        """
        var = self.outputs[output]
        if sum(o.same_as(var) for o in self.outputs) > 1:
            return None
        if any(o.same_as(param) for o in self.outputs):
            return None  # its old value is a result, too
        result, position = 0, self.defined.get(var)
        value = self.bindings[position].value if position is not None else None
        if isinstance(value, relax.TupleGetItem):
            result, position = int(value.index), self.defined.get(value.tuple_value)
            value = self.bindings[position].value if position is not None else None
        if position is None or not isinstance(value, relax.Call) or not _is_kernel_call(value):
            return None
        operands = list(value.args[1].fields)
        uses = [i for i, operand in enumerate(operands) if param in self._names(operand)]
        if len(uses) != 1 or max(self.readers[param]) > position:
            return None
        if not operands[uses[0]].same_as(param):
            return None
        return position, uses[0], result
