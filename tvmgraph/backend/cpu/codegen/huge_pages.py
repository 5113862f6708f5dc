"""Asks the system for large pages under large results.

A kernel that sweeps through memory in pages of 4 KiB looks an address up every few hundred cycles,
and the processor prefetches no further than to the end of a page; in pages of 2 MiB a pass over
memory is up to a third faster. Linux gives such pages to whoever asks before it touches the memory,
as NumPy does for its arrays. TVM allocates results without asking, so the kernel that writes a
result does; asking again costs next to nothing.

Source: Linux kernel documentation, "Transparent Hugepage Support"; madvise(2).
"""

from __future__ import annotations

import sys

import tvm_ffi
from tvm import ir, tirx
from tvm.tirx import op

from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.program import product, static_shape

_ADVICE = 14  # MADV_HUGEPAGE
_PAGE = 2 << 20
#: Results from this size on, as NumPy does: smaller ones need not hold a whole page.
_MIN_BYTES = 2 * _PAGE
_ZERO = tirx.IntImm("int32", 0)
_NAME = "tvmgraph_advise_huge_pages"
#: Asks for the whole pages within so many bytes from an address on.
_FUNCTION = f"""
declare i32 @madvise(ptr, i64, i32)
define internal void @{_NAME}(ptr %at, i64 %size) {{
  %begin = ptrtoint ptr %at to i64
  %stop = add i64 %begin, %size
  %up = add i64 %begin, {_PAGE - 1}
  %first = and i64 %up, {-_PAGE}
  %last = and i64 %stop, {-_PAGE}
  %length = sub i64 %last, %first
  %from = inttoptr i64 %first to ptr
  %status = call i32 @madvise(ptr %from, i64 %length, i32 {_ADVICE})
  ret void
}}"""


@tirx.transform.prim_func_pass(opt_level=0, name="tvmgraph.AskForPages")
def advise_huge_pages(
    func: tirx.PrimFunc, _mod: ir.IRModule, _context: ir.transform.PassContext
) -> tirx.PrimFunc:
    """Lets a kernel begin by asking for large pages under all large tensors that it writes.

    Args:
        func: A function of loops; it is returned as it is if it writes no large tensor, or not on
            Linux.
    """
    large = [p for p in func.params if tirx.is_buffer_var(p) and _bytes(p) >= _MIN_BYTES]
    if not large or not _is_linux(func):
        return func
    written = _written(func.body)
    calls = [_advice(p) for p in large if any(p.same_as(w) for w in written)]
    if not calls:
        return func
    body = tirx.SeqStmt([*calls, func.body])
    text = ir.StringImm(_FUNCTION)
    return func.with_body(tirx.AttrStmt(_ZERO, "pragma_import_llvm", text, body))


def _bytes(buffer: tirx.Buffer) -> int:
    return product(static_shape(buffer) or (0,)) * dtype_bytes(str(buffer.dtype))


def _is_linux(func: tirx.PrimFunc) -> bool:
    """Whether the kernel is for a processor under Linux."""
    target = (func.attrs or {}).get("target")
    if target is None or str(target.kind.name) != "llvm":
        return False
    triple = str(target.attrs.get("mtriple", ""))
    return "linux" in triple if triple else sys.platform == "linux"


def _written(body: object) -> list[tirx.Buffer]:
    """The buffers that are stored to, or whose address is given away."""
    found: list[tirx.Buffer] = []

    def visit(call: ir.Call) -> None:
        if str(getattr(call.op, "name", "")) == "tirx.call_extern":
            for argument in call.args:
                if isinstance(argument, ir.Call) and argument.op.name == "tirx.address_of":
                    found.append(argument.args[0].source)

    def store(node: tirx.BufferStore) -> None:
        found.append(node.buffer)

    tvm_ffi.structural_walk(body, [(ir.Call, visit), (tirx.BufferStore, store)])
    return found


def _advice(buffer: tirx.Buffer) -> tirx.Stmt:
    first = buffer[tuple(tirx.IntImm("int64", 0) for _ in buffer.shape)]
    size = tirx.IntImm("int64", _bytes(buffer))
    return tirx.Evaluate(op.call_extern("void", _NAME, op.address_of(first), size))
