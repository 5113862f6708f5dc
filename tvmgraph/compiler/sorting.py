"""Sorting on the processor with a kernel of the schedule instead of TVM's comparison sort."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax, tirx

from tvmgraph.compiler.rewriting import rewrite_on_processor
from tvmgraph.schedule.analysis.program import product
from tvmgraph.schedule.cpu import written

#: Types of keys that the kernel takes.
_KEYS = ("int32", "int64")


@tvm.transform.module_pass(opt_level=0, name="WriteSorts")
def write_sorts(mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
    """Replaces sorts of integer keys of a known shape, unless the target is a GPU.

    Args:
        mod: A Relax module.
    """
    return rewrite_on_processor(mod, _Writer)


@relax.expr_functor.mutator
class _Writer(relax.PyExprMutator):
    def visit_call_(self, op: Any) -> Any:
        """Replaces a call if it is such a sort."""
        call: Any = super().visit_call_(op)
        if call.op != tvm.ir.Op.get("relax.argsort"):
            return call
        kind = call.args[0].ty
        static = all(isinstance(extent, tirx.IntImm) for extent in kind.shape)
        if not static or str(kind.dtype) not in _KEYS or str(call.ty.dtype) != "int32":
            return call
        return self._written(call, [int(extent) for extent in kind.shape])

    def _written(self, call: Any, shape: list[int]) -> Any:
        keys, ndim = call.args[0], len(shape)
        axis = int(call.attrs.axis) % ndim
        last = [*(i for i in range(ndim) if i != axis), axis]
        turned = axis != ndim - 1
        if turned:
            keys = self.builder_.emit(relax.op.permute_dims(keys, last))
        turned_shape = [shape[i] for i in last]
        sizes = [product(turned_shape[:-1]), shape[axis]]
        keys = self.builder_.emit(relax.op.reshape(keys, sizes))
        dtype = str(call.args[0].ty.dtype)
        kernel = written(
            "sort", str(int(call.attrs.descending)), [(sizes, dtype), (sizes, "int32")]
        )
        name = self.builder_.add_func(kernel, "sort")
        order = relax.call_tir(name, [keys], relax.TensorType(sizes, "int32"))
        order = relax.op.reshape(self.builder_.emit(order), turned_shape)
        if turned:
            back = [last.index(i) for i in range(ndim)]
            order = relax.op.permute_dims(self.builder_.emit(order), back)
        return self.builder_.normalize(order)
