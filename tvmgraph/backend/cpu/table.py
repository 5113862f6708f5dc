"""The kernels for processors, in the order in which a loop nest is offered to them."""

from __future__ import annotations

from tvmgraph.backend.cpu.kernels import whole
from tvmgraph.backend.cpu.kernels.conv import (
    depthwise,
    direct,
    im2col,
    nchwc,
    weight_gradient,
    winograd,
)
from tvmgraph.backend.cpu.kernels.elementwise import injective
from tvmgraph.backend.cpu.kernels.gemm import amx, gemm, vnni
from tvmgraph.backend.cpu.kernels.reduce import kernel as reduce
from tvmgraph.backend.table import KernelTable
from tvmgraph.machine.processor import CpuModel

KERNELS: KernelTable[CpuModel] = KernelTable([
    # whole functions
    whole.IN_PLACE_KERNEL,
    whole.NAMED_KERNEL,
    whole.SYMBOLIC,
    whole.EMPTY,
    # convolutions, which may take in the padding of their image
    depthwise.KERNEL,
    depthwise.CONVOLUTION,
    depthwise.WEIGHT_GRADIENT,
    weight_gradient.TILES,
    weight_gradient.IM2COL_DOT,
    weight_gradient.IM2COL,
    weight_gradient.CHANNELS,
    weight_gradient.ROWS,
    nchwc.DOT,
    direct.TILES,
    direct.IM2COL_DOT,
    direct.IM2COL,
    direct.DIRECT_VNNI,
    direct.DIRECT,
    # sums of products with nothing left to do before them
    whole.UNFUSED_PROLOGUE,
    winograd.KERNEL,
    nchwc.KERNEL,
    im2col.SWAPPED,
    amx.KERNEL,
    vnni.KERNEL,
    gemm.PANELS,
    gemm.DOT,
    gemm.STREAMED,
    gemm.GEMM,
    whole.UNFUSED_EPILOGUE,
    # everything else
    reduce.SPLIT,
    reduce.ROWS,
    injective.FUSED,
    injective.KERNEL,
    whole.STAGES,
    whole.FALLBACK,
])  # fmt: skip
