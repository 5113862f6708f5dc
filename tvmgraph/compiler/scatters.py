"""Scatters on the processor with a kernel of the schedule instead of TVM's serial loops."""

from __future__ import annotations

import json
from typing import Any

import tvm
from tvm import relax, tirx

from tvmgraph.schedule.cpu import written


@tvm.transform.module_pass(opt_level=0, name="WriteScatters")
def write_scatters(mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
    """Replaces scatters of rows of a known shape, unless the target is a GPU.

    Args:
        mod: A Relax module.
    """
    target = tvm.target.Target.current(allow_none=True)
    if target is not None and target.kind.name != "llvm":
        return mod
    writer = _Writer(mod)
    for name, function in mod.functions.items():
        if isinstance(function, relax.Function):
            writer.builder_.update_func(name, writer.visit_expr(function))
    return writer.builder_.get()


@relax.expr_functor.mutator
class _Writer(relax.PyExprMutator):
    def visit_call_(self, op: Any) -> Any:
        """Replaces a call if it is such a scatter."""
        call: Any = super().visit_call_(op)
        if call.op != tvm.ir.Op.get("relax.scatter_nd"):
            return call
        shapes = [_static_shape(arg) for arg in call.args]
        if any(shape is None or 0 in shape for shape in shapes):
            return call
        return self._written(call, shapes)

    def _written(self, call: Any, shapes: Any) -> Any:
        base, places, updates = call.args
        fill = self._constant(base)
        places = self.builder_.emit(relax.op.astype(places, "int64"))
        operands = [places, updates] if fill is not None else [base, places, updates]
        settings = {"mode": str(call.attrs.reduction), "axes": shapes[1][-1], "fill": fill}
        params = [(_static_shape(x), str(x.ty.dtype)) for x in [*operands, call]]
        name = self.builder_.add_func(written("scatter", json.dumps(settings), params), "scatter")
        return self.builder_.normalize(relax.call_tir(name, operands, call.ty))

    def _constant(self, base: Any) -> int | float | None:
        """The number that a tensor consists of, if that is known."""
        value: Any = self.lookup_binding(base) if isinstance(base, relax.Var) else base
        if not isinstance(value, relax.Call):
            return None
        if value.op == tvm.ir.Op.get("relax.zeros"):
            return 0
        position = {"relax.full": 1, "relax.broadcast_to": 0}.get(getattr(value.op, "name", ""))
        number: Any = None if position is None else value.args[position]
        if isinstance(number, relax.Var):
            number = self.lookup_binding(number)
        if not isinstance(number, tvm.ir.GenericConst):
            return None
        array: Any = number.value
        return None if array.shape else array.numpy().item()


def _static_shape(x: Any) -> list[int] | None:
    shape = x.ty.shape
    if not all(isinstance(extent, tirx.IntImm) for extent in shape):
        return None
    return [int(extent) for extent in shape]
