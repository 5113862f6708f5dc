"""CUDA devices as the rest of the package sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tvmgraph.backend.base import Backend
from tvmgraph.dtypes import bfloat16, float16

if TYPE_CHECKING:
    from tvmgraph.config.options import CompileOptions
    from tvmgraph.core.types import TensorType
    from tvmgraph.machine.processor import CpuModel
    from tvmgraph.runtime.executable import Executable


#: Sizes of a head that kernels for attention take at most, and those of the derivative.
_LARGEST, _LARGEST_DERIVED = 256, 128


def _executable(
    module: object, facts: Mapping[str, object], images: bytes, options: CompileOptions
) -> Executable:
    from tvmgraph.runtime.device_executable import DeviceExecutable
    from tvmgraph.runtime.device_image import assemble

    code, kernels = assemble(facts["images"], images), tuple(facts["kernels"])
    return DeviceExecutable(module, code, options.target, kernels, options.device_id)


def _fusion_model(_options: CompileOptions) -> CpuModel:
    from tvmgraph.backend.cuda.kernels.reduce_rows import fusion_model

    return fusion_model()


def takes_attention(
    kind: TensorType, operands: Sequence[TensorType], layouts: Sequence[str], derivative: bool
) -> bool:
    """Whether there is a kernel for an attention: f16 and bf16, of known sizes.

    Args:
        kind: Type of the result.
        operands: Types of query, key and value, and of what a derivative reads besides.
        layouts: Order of the axes of each, letters of ``BNSD``.
        derivative: Whether it is the derivative, whose heads may be shorter.
    """
    if kind.dtype not in (float16, bfloat16) or not all(t.is_static for t in operands):
        return False
    if not all(layout[-1] == "D" for layout in layouts):
        return False
    largest = _LARGEST_DERIVED if derivative else _LARGEST
    sizes = [t.static_shape[-1] for t in operands]
    return all(size % 8 == 0 and size <= largest for size in sizes)


def _nvcc() -> str:
    from tvmgraph.backend.cuda import nvcc

    return nvcc.fingerprint()


BACKEND = Backend(
    "cuda",
    "tvmgraph.compiler.cuda.build:CudaBuilder",
    _executable,
    layout_model=lambda _options: None,
    fusion_model=_fusion_model,
    takes_attention=takes_attention,
    compiler=_nvcc,
    why_here="code for a GPU is made in this process",
    runs_numpy=False,
    shares_memory=False,
    replays=True,
    has_host=True,
)
