"""The kernels for CUDA devices, in the order in which a loop nest is offered to them."""

from __future__ import annotations

from tvmgraph.backend.cuda.kernels import (
    elementwise,
    flash,
    flash_grad,
    gemm_kernels,
    reduce_columns,
    reduce_rows,
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
    reduce_rows.LONG,
    reduce_rows.KERNEL,
    reduce_rows.TOGETHER,
    reduce_rows.STRIDED,
    whole.FUSED,
    transposed.KERNEL,
    elementwise.KERNEL,
    reduce_columns.KERNEL,
    whole.STAGES,
    whole.DLIGHT,
])  # fmt: skip
