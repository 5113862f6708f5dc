"""One block of memory for all intermediate tensors of a function.

A tensor needs its bytes from the kernel that writes it to the last one that reads it. Knowing all
of them before the first call, each gets an offset into one block, such that no two that live at the
same time overlap: the largest first, each at the lowest place that is free while it lives. The
block is then hardly larger than the largest sum of bytes that live at one time, where reusing
whole buffers for other tensors (TVM's plan) wastes what does not fit.

Source: Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference (2020),
"greedy by size" for offsets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import ir, relax, tirx

from tvmgraph import dtypes
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.storage import ALIGNMENT

_ALLOC = ir.Op.get("relax.builtin.alloc_tensor")
_VIEWS = (ir.Op.get("relax.reshape"), ir.Op.get("relax.memory.view"))
_FIELD, _ADD = (ir.Op.get(f"tirx.{name}") for name in ("tvm_struct_get", "handle_add_byte_offset"))
_DATA, _OFFSET = 1, 8  # codes of the fields of a DLTensor, see TVMStructFieldKind


@dataclass(frozen=True)
class Interval:
    """A tensor that needs ``size`` bytes from step ``first`` to step ``last``, both included."""

    size: int
    first: int
    last: int


def place(intervals: Sequence[Interval]) -> tuple[list[int], int]:
    """Finds offsets such that tensors that live at the same time do not overlap.

    Args:
        intervals: The tensors.

    Returns:
        An offset per tensor in bytes, each a multiple of ``ALIGNMENT``, and the bytes in all.
    """
    sizes = np.array([-(-i.size // ALIGNMENT) * ALIGNMENT for i in intervals], np.int64)
    first = np.array([i.first for i in intervals], np.int64)
    last = np.array([i.last for i in intervals], np.int64)
    offsets = np.zeros(len(intervals), np.int64)
    order = np.lexsort((first, -sizes))
    for n, i in enumerate(order):
        placed = order[:n]
        beside = placed[(first[placed] <= last[i]) & (last[placed] >= first[i])]
        offsets[i] = _lowest_gap(offsets[beside], sizes[beside], int(sizes[i]))
    return offsets.tolist(), int((offsets + sizes).max(initial=0))


def _lowest_gap(starts: np.ndarray, sizes: np.ndarray, size: int) -> int:
    """The lowest offset with ``size`` free bytes between the given stretches."""
    order = np.argsort(starts, kind="stable")
    starts = starts[order]
    ends = np.maximum.accumulate(np.concatenate(([0], (starts + sizes[order]))))
    gaps = np.append(starts, np.iinfo(np.int64).max) - ends
    return int(ends[int(np.argmax(gaps >= size))])


@tvm.transform.module_pass(opt_level=0, name="PlanMemory")
class PlanMemory:
    """Gives the intermediate tensors of every function their places in one block each.

    Tensors of unknown size, and those that the function returns or hands to something else than a
    kernel, are left to TVM's own planning.
    """

    def transform_module(self, mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
        """Plans every function of a module whose calls of kernels are explicit.

        Args:
            mod: A module after its tensors got their ``alloc_tensor``; it is changed in place.
        """
        for var, function in mod.functions.items():
            if isinstance(function, relax.Function) and isinstance(function.body, relax.SeqExpr):
                mod[var] = _planned(function)
        return mod


def _planned(function: relax.Function) -> relax.Function:
    """The function with its intermediate tensors in one block."""
    life = _Lives(function)
    tensors = life.tensors()
    if not tensors:
        return function
    offsets, total = place([t for _, t in tensors])
    shape = relax.ShapeExpr([tirx.IntImm("int64", total)])
    block = relax.Var("memory", relax.ObjectType())
    made = relax.op.memory.alloc_storage(shape, 0, "global", "uint8")
    places = dict(zip((v for v, _ in tensors), offsets))
    blocks = [_rewritten(b, places, block) for b in function.body.blocks]
    blocks.insert(0, relax.BindingBlock([relax.VarBinding(block, made)]))
    return relax.Function(
        function.params, relax.SeqExpr(blocks, function.body.body),
        function.ret_ty, function.is_pure, function.attrs,
    )  # fmt: skip


def _rewritten(
    block: relax.BindingBlock, places: Mapping[object, int], memory: object
) -> relax.BindingBlock:
    bindings = [
        relax.VarBinding(b.var, _at(b.value, places[b.var], memory)) if b.var in places else b
        for b in block.bindings
    ]
    return relax.BindingBlock(bindings)


def _at(alloc: relax.Call, offset: int, memory: object) -> relax.Call:
    shape, dtype = alloc.args[0], alloc.args[1]
    return relax.op.memory.alloc_tensor(memory, offset, shape, dtype)


class _Lives:
    """From where to where every tensor of a function lives."""

    def __init__(self, function: relax.Function) -> None:
        self.sizes: dict[relax.Var, int] = {}
        self.first: dict[relax.Var, int] = {}
        self.last: dict[relax.Var, int] = {}
        self.escaped: set[relax.Var] = set()
        #: The tensors whose memory a variable may stand for, per field of a tuple.
        self.roots: dict[relax.Var, list[frozenset[relax.Var]]] = {}
        bindings = [b for block in function.body.blocks for b in block.bindings]
        for step, binding in enumerate(bindings):
            self._visit(step, binding)
        self.escaped |= self._all(function.body.body)

    def tensors(self) -> list[tuple[relax.Var, Interval]]:
        """Returns the tensors whose memory can be planned."""
        return [
            (v, Interval(size, self.first.get(v, 0), self.last.get(v, 0)))
            for v, size in self.sizes.items() if v not in self.escaped
        ]  # fmt: skip

    def _visit(self, step: int, binding: relax.Binding) -> None:
        value = binding.value
        if isinstance(value, relax.Call) and value.op == _ALLOC:
            size = _bytes(value)
            if size is not None:
                self.sizes[binding.var] = size
                self.roots[binding.var] = [frozenset([binding.var])]
            return
        used = self._all(value)
        for root in used:
            self.first.setdefault(root, step)
            self.last[root] = step
        self._alias(binding.var, value, used)

    def _alias(self, var: relax.Var, value: relax.Expr, used: frozenset[relax.Var]) -> None:
        """Notes whose memory a new variable stands for."""
        if isinstance(value, relax.Var):
            self.roots[var] = self.roots.get(value, [])
        elif isinstance(value, relax.Tuple):
            self.roots[var] = [self._all(f) for f in value.fields]
        elif isinstance(value, relax.TupleGetItem):
            given: Any = value.tuple_value
            fields = self.roots.get(given, [])
            index = int(value.index)
            self.roots[var] = [fields[index]] if index < len(fields) else [used]
        elif isinstance(value, relax.Call) and value.op in _VIEWS:
            self.roots[var] = [used]
        elif not _is_kernel(value):
            self.escaped |= used

    def _all(self, value: relax.Expr) -> frozenset[relax.Var]:
        found: set[relax.Var] = set()
        for var in relax.analysis.free_vars(value):
            for part in self.roots.get(var, ()):
                found |= part
        return frozenset(found)


def _is_kernel(value: relax.Expr) -> bool:
    """Whether an expression calls a kernel, which keeps none of its operands."""
    return isinstance(value, relax.Call) and isinstance(value.op, ir.GlobalVar) and (
        isinstance(value.ty, relax.TupleType) and not value.ty.fields
    )  # fmt: skip


def _bytes(alloc: relax.Call) -> int | None:
    """The size of a tensor; None unless it is known and on the device itself."""
    shape, dtype, device, scope = alloc.args
    if int(device.value) != 0 or scope.value != "global":
        return None
    return size_of(shape, dtype.value)


def size_of(shape: object, dtype: DTypeLike) -> int | None:
    """Returns the bytes of a tensor; None unless its sizes are known.

    Args:
        shape: A shape of Relax.
        dtype: TVM's name of the element type.
    """
    if not isinstance(shape, relax.ShapeExpr):
        return None
    if not all(isinstance(d, tirx.IntImm) for d in shape.values):
        return None
    count = math.prod(int(d) for d in shape.values)
    return count * dtypes.dtype_of(str(dtype)).numpy.itemsize


# ---- the places in kernels ----------------------------------------------------------------------


@tirx.transform.prim_func_pass(opt_level=0, name="tvmgraph.ApplyOffsets")
def apply_offsets(
    func: tirx.PrimFunc, _mod: tvm.IRModule, _context: tvm.transform.PassContext
) -> tirx.PrimFunc:
    """Lets a kernel begin at the byte offset of its tensors, after ``MakePackedAPI``.

    TVM's kernels take tensors only from the start of their memory, and check that if at all. What
    runs on a device gets addresses from the function that launches it.

    Args:
        func: A function whose parameters are packed.
    """
    if func.attrs.get("calling_conv") != ir.CallingConv.C_PACKED_FUNC:
        return func

    def moved(call: ir.Call) -> ir.Expr:
        if not call.op.same_as(_FIELD):
            return call
        field = int(call.args[2])
        if field == _OFFSET:
            return tirx.IntImm("uint64", 0)  # the address holds it already
        if field != _DATA:
            return call
        offset = ir.Call(_FIELD, [*call.args[:2], _int(_OFFSET)], ret_ty="uint64")
        return ir.Call(_ADD, [call, tirx.Cast("int64", offset)], ret_ty=call.ty)

    return func.with_body(tvm_ffi.structural_map(func.body, (ir.Call, moved)))


def _int(value: int) -> tirx.IntImm:
    return tirx.IntImm("int32", value)
