"""The kernels for CUDA devices, in the order in which a loop nest is offered to them."""

from __future__ import annotations

from tvmgraph.backend.cuda.kernels import (
    columns,
    elementwise,
    flash,
    flash_grad,
    gemm_kernels,
    long_rows,
    rows,
    transposed,
    whole,
)
from tvmgraph.backend.table import KernelTable
from tvmgraph.backend.target import GpuModel

KERNELS: KernelTable[GpuModel] = KernelTable([
    flash.KERNEL,
    flash_grad.KERNEL,
    gemm_kernels.GEMV,
    gemm_kernels.GEMM,
    gemm_kernels.UNFUSED_EPILOGUE,
    whole.IN_PLACE_KERNEL,
    whole.NAMED_KERNEL,
    whole.NOTHING,
    long_rows.KERNEL,
    rows.KERNEL,
    rows.TOGETHER,
    rows.STRIDED,
    whole.FUSED,
    transposed.KERNEL,
    elementwise.KERNEL,
    columns.KERNEL,
    whole.STAGES,
    whole.DLIGHT,
])  # fmt: skip
