"""Kernels that operators ask for by name, and who writes each of them.

Loops derived from the definition of a sort, a scan or an attention would be slow, or there are
none. Such an operator names a kernel, and gives it settings and operands. A backend writes the
kernel itself where this table says how; else it schedules the loops of the operator as any others,
where it has loops. Nothing is fused with such a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

from tvm import tirx

from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.types import NAMED, Func, Index
from tvmgraph.machine.processor import CpuModel

#: Writes a kernel, given its function, its settings and the model of the machine.
Emit = Callable[[Func, Any, Any], None]

#: What kernels are written for until the processor is known.
_ANY = CpuModel(16, 16, 32 << 10, 512 << 10, 8 << 20, threads=1)


@dataclass(frozen=True)
class NamedKernel:
    """A kernel that operators ask for by name.

    Attributes:
        cpu: Where what writes it for a processor is found, as ``module:function``.
        cuda: The same for CUDA devices; None where there is none. ``module:KERNEL`` is an entry of
            the table of kernels, which may refuse.
        loops: Whether operators give loops too, for backends that do not write it.
    """

    cpu: str
    cuda: str | None = None
    loops: bool = False


_CPU, _CUDA = "tvmgraph.backend.cpu.kernels.", "tvmgraph.backend.cuda.kernels."
#: Every named kernel.
NAMED_KERNELS = {
    "attention": NamedKernel(
        f"{_CPU}attention.forward:emit_attention", f"{_CUDA}flash:KERNEL", loops=True
    ),
    "attention_gradient": NamedKernel(
        f"{_CPU}attention.gradient:emit_attention_gradient", f"{_CUDA}flash_grad:KERNEL"
    ),
    "cached_attention": NamedKernel(
        f"{_CPU}attention.cached:emit_cached_attention", loops=True
    ),
    "fourier": NamedKernel(f"{_CPU}fourier:emit_fourier"),
    "max_pool_grad": NamedKernel(
        f"{_CPU}elementwise.pool_grad:emit_max_pool_grad", loops=True
    ),
    "quantized_dense": NamedKernel(f"{_CPU}gemm.quantized:emit_quantized_dense", loops=True),
    "random_bits": NamedKernel(
        f"{_CPU}elementwise.random_words:emit_random_words", loops=True
    ),
    "recurrent": NamedKernel(
        f"{_CPU}gemm.recurrent:emit_recurrent", f"{_CUDA}recurrent:emit_recurrent"
    ),
    "recurrent_gradient": NamedKernel(
        f"{_CPU}gemm.recurrent:emit_recurrent_gradient",
        f"{_CUDA}recurrent:emit_recurrent_gradient",
    ),
    "repeated": NamedKernel(
        f"{_CPU}elementwise.repeated:emit_repeated", f"{_CUDA}elementwise:emit_repeated"
    ),
    "scan": NamedKernel(f"{_CPU}reduce.scan:emit_scan", f"{_CUDA}scan:emit_scan"),
    "scatter": NamedKernel(f"{_CPU}reduce.scatter:emit_scatter"),
    "search": NamedKernel(f"{_CPU}reduce.search:emit_search", f"{_CUDA}elementwise:emit_search"),
    "sort": NamedKernel(f"{_CPU}reduce.sort:emit_sort"),
    "topk": NamedKernel(f"{_CPU}reduce.sort:emit_topk", f"{_CUDA}topk:emit_topk"),
}  # fmt: skip


def named_function(
    name: str, settings: str, operands: Sequence[tuple[Sequence[Index], str]]
) -> Func:
    """A function that is a named kernel from the start, correct on any processor.

    A backend writes it again for the machine at hand.

    Args:
        name: A key of :data:`NAMED_KERNELS`.
        settings: What the kernel takes besides its operands.
        operands: Shape and type of the inputs and of the results.
    """
    params = [
        tirx.decl_buffer([emit.index(extent) for extent in shape], dtype, f"p{i}")
        for i, (shape, dtype) in enumerate(operands)
    ]
    func = tirx.PrimFunc(params, tirx.Evaluate(0))
    write = resolve_name(NAMED_KERNELS[name].cpu)
    kernel = emit.kernel(func, lambda: write(func, settings, _ANY))
    attrs = {NAMED: (name, settings), "op_pattern": 8, "tirx.noalias": True}
    for key, value in attrs.items():
        kernel = kernel.with_attr(key, value)
    return kernel


def name_of(nest: Nest) -> tuple[str, object]:
    """The kernel that a nest asks for, and its settings; empty if it asks for none.

    Args:
        nest: The loops of a function, or a part of them; a part asks for nothing.
    """
    attrs = nest.func.attrs if nest.is_whole else None
    if not attrs or NAMED not in attrs:
        return "", ""
    name, settings = attrs[NAMED]
    return str(name), settings


def emitter_of(name: str, backend: str) -> Emit | None:
    """What writes a named kernel for ``"cpu"`` or ``"cuda"``, apart from entries of a table.

    Args:
        name: The kernel's.
        backend: Whose form of it.

    Returns:
        None where the backend has no such kernel, or has it as an entry of its table.
    """
    kernel = NAMED_KERNELS.get(name)
    path = None if kernel is None else getattr(kernel, backend)
    return None if path is None or path.endswith(":KERNEL") else resolve_name(path)
