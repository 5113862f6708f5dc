"""Sorts and scatters on the processor with kernels of the backend instead of TVM's serial loops."""

from __future__ import annotations

import json
from typing import Any

import tvm
from tvm import relax, tirx

from tvmgraph.backend.loop_ir.program import product
from tvmgraph.backend.named import named_function

#: Types of keys that the kernel for sorts takes.
_KEYS = ("int32", "int64")
#: Extents: numbers where they are known, else expressions.
_Shape = list[Any]


@tvm.transform.module_pass(opt_level=0, name="NamedKernels")
def write_named(mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
    """Replaces sorts of integers of a known shape, and scatters into tensors of one.

    Args:
        mod: A Relax module for the processor.
    """
    writer = _Writer(mod)
    for name, function in mod.functions.items():
        if isinstance(function, relax.Function):
            writer.builder_.update_func(name, writer.visit_expr(function))
    return writer.builder_.get()


@relax.expr_functor.mutator
class _Writer(relax.PyExprMutator):
    def visit_call_(self, op: relax.Call) -> relax.Expr:
        """Replaces a call if it is such a sort or scatter."""
        call = super().visit_call_(op)
        assert isinstance(call, relax.Call)
        if call.op == tvm.ir.Op.get("relax.argsort"):
            return self._sort(call)
        return self._scatter(call) if call.op == tvm.ir.Op.get("relax.scatter_nd") else call

    def _sort(self, call: relax.Call) -> relax.Expr:
        kind = call.args[0].ty
        static = all(isinstance(extent, tirx.IntImm) for extent in kind.shape)
        if not static or str(kind.dtype) not in _KEYS or str(call.ty.dtype) != "int32":
            return call
        return self._sorted(call, [int(extent) for extent in kind.shape])

    def _scatter(self, call: relax.Call) -> relax.Expr:
        sizes, batch, row = _shapes(*call.args)
        known = all(map(_is_known, [*sizes, *row]))
        if not known or any(extent == 0 for extent in [*sizes, *batch, *row] if _is_known(extent)):
            return call
        return self._scattered(call, sizes, batch, row)

    def _sorted(self, call: relax.Call, shape: list[int]) -> relax.Expr:
        keys, ndim, attrs = call.args[0], len(shape), call.attrs
        assert attrs is not None
        axis = int(attrs.axis) % ndim
        last = [*(i for i in range(ndim) if i != axis), axis]
        is_transposed = axis != ndim - 1
        if is_transposed:
            keys = self.builder_.emit(relax.op.permute_dims(keys, last))
        transposed_shape = [shape[i] for i in last]
        sizes = [product(transposed_shape[:-1]), shape[axis]]
        keys = self.builder_.emit(relax.op.reshape(keys, sizes))
        dtype = str(call.args[0].ty.dtype)
        kernel = named_function(
            "sort", str(int(attrs.descending)), [(sizes, dtype), (sizes, "int32")]
        )
        name = self.builder_.add_func(kernel, "sort")
        order = relax.call_tir(name, [keys], relax.TensorType(sizes, "int32"))
        order = relax.op.reshape(self.builder_.emit(order), transposed_shape)
        if is_transposed:
            back = [last.index(i) for i in range(ndim)]
            order = relax.op.permute_dims(self.builder_.emit(order), back)
        return self.builder_.normalize(order)

    def _scattered(self, call: relax.Call, sizes: _Shape, batch: _Shape, row: _Shape) -> relax.Expr:
        base, indices, updates = call.args
        assert call.attrs is not None
        fill, axes = self._constant(base), len(sizes) - len(row)
        indices = self.builder_.emit(relax.op.astype(indices, "int64"))
        settings = {"mode": str(call.attrs.reduction), "axes": axes, "fill": fill}
        dtype = str(base.ty.dtype)
        # a kernel has variables of its own for extents that are not known
        batch = [n if _is_known(n) else tirx.Var(f"n{i}", "int64") for i, n in enumerate(batch)]
        inputs = [([*batch, axes], "int64"), ([*batch, *row], dtype)]
        operands = [indices, updates]
        if fill is None:
            inputs, operands = [(sizes, dtype), *inputs], [base, *operands]
        kernel = named_function("scatter", json.dumps(settings), [*inputs, (sizes, dtype)])
        name = self.builder_.add_func(kernel, "scatter")
        return self.builder_.normalize(relax.call_tir(name, operands, call.ty))

    def _constant(self, base: object) -> int | float | None:
        """The number that a tensor consists of, if that is known."""
        value = self.lookup_binding(base) if isinstance(base, relax.Var) else base
        if not isinstance(value, relax.Call):
            return None
        if value.op == tvm.ir.Op.get("relax.zeros"):
            return 0
        position = {"relax.full": 1, "relax.broadcast_to": 0}.get(getattr(value.op, "name", ""))
        number = None if position is None else value.args[position]
        if isinstance(number, relax.Var):
            number = self.lookup_binding(number)
        if not isinstance(number, tvm.ir.GenericConst):
            return None
        array = number.value
        return None if array.shape else array.numpy().item()


def _shapes(*args: relax.Expr) -> tuple[_Shape, _Shape, _Shape]:
    """Shapes of the tensor, of the batch of updates, and of one of them."""
    base, indices, updates = (
        [int(n) if isinstance(n, tirx.IntImm) else n for n in arg.ty.shape] for arg in args
    )
    return base, indices[:-1], updates[len(indices) - 1 :]


def _is_known(extent: object) -> bool:
    return isinstance(extent, int)
