"""Scatters on the processor with a kernel of the schedule instead of TVM's serial loops."""

from __future__ import annotations

import json
from typing import Any

import tvm
from tvm import relax, tirx

from tvmgraph.compiler.rewriting import rewrite_on_processor
from tvmgraph.schedule.cpu import written

#: Extents: numbers where they are known, else expressions.
_Shape = list[Any]


@tvm.transform.module_pass(opt_level=0, name="WriteScatters")
def write_scatters(mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
    """Replaces scatters into tensors of a known shape, unless the target is a GPU.

    Args:
        mod: A Relax module.
    """
    return rewrite_on_processor(mod, _Writer)


@relax.expr_functor.mutator
class _Writer(relax.PyExprMutator):
    def visit_call_(self, op: Any) -> Any:
        """Replaces a call if it is such a scatter."""
        call: Any = super().visit_call_(op)
        if call.op != tvm.ir.Op.get("relax.scatter_nd"):
            return call
        sizes, batch, row = _shapes(*call.args)
        known = all(map(_is_known, [*sizes, *row]))
        if not known or any(extent == 0 for extent in [*sizes, *batch, *row] if _is_known(extent)):
            return call
        return self._written(call, sizes, batch, row)

    def _written(self, call: Any, sizes: _Shape, batch: _Shape, row: _Shape) -> Any:
        base, places, updates = call.args
        fill, axes = self._constant(base), len(sizes) - len(row)
        places = self.builder_.emit(relax.op.astype(places, "int64"))
        settings = {"mode": str(call.attrs.reduction), "axes": axes, "fill": fill}
        dtype = str(base.ty.dtype)
        # a kernel has variables of its own for extents that are not known
        batch = [n if _is_known(n) else tirx.Var(f"n{i}", "int64") for i, n in enumerate(batch)]
        inputs = [([*batch, axes], "int64"), ([*batch, *row], dtype)]
        operands = [places, updates]
        if fill is None:
            inputs, operands = [(sizes, dtype), *inputs], [base, *operands]
        kernel = written("scatter", json.dumps(settings), [*inputs, (sizes, dtype)])
        name = self.builder_.add_func(kernel, "scatter")
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


def _shapes(*args: Any) -> tuple[_Shape, _Shape, _Shape]:
    """Shapes of the tensor, of the batch of updates, and of one of them."""
    base, places, updates = (
        [int(n) if isinstance(n, tirx.IntImm) else n for n in arg.ty.shape] for arg in args
    )
    return base, places[:-1], updates[len(places) - 1 :]


def _is_known(extent: Any) -> bool:
    return isinstance(extent, int)
