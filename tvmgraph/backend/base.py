"""What a backend is to the rest of the package: everything that differs between machines.

A backend is found by the target of a compile, :func:`backend_of`. Importing one imports neither TVM
nor what another one needs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tvmgraph.machine.targets import backend_name

if TYPE_CHECKING:
    import tvm

    from tvmgraph.config.options import CompileOptions
    from tvmgraph.core.types import TensorType
    from tvmgraph.machine.processor import CpuModel
    from tvmgraph.runtime.executable import Executable


#: Whether there is a kernel for an attention, by the type of its result, its operands, their
#: layouts, and whether it is the derivative.
TakesAttention = Callable[["TensorType", Sequence["TensorType"], Sequence[str], bool], bool]


@dataclass(frozen=True)
class Backend:
    """A kind of machine that graphs are compiled for.

    Attributes:
        name: ``"cpu"`` or ``"cuda"``, as the pass table and the registry of kernels say.
        builder: What makes machine code of fused loop nests, as ``module:class``, see
            :class:`tvmgraph.compiler.pipeline.Builder`.
        executable: Makes what was compiled callable, given TVM's module, what is remembered of it,
            code for the device, and the options.
        layout_model: The machine whose kernels decide the layout of prepared weights, None where
            they are prepared channels last.
        fusion_model: The machine that decides which kernels are fused.
        takes_attention: Whether there is a kernel for an attention, None where there always is.
        compiler: The version of a compiler beside TVM's that the code depends on.
        why_here: Why code is made in this process and by no worker; empty if workers do.
        runs_numpy: Whether operators without code run in NumPy between compiled ones.
        shares_memory: Whether others may write to the elements of results.
        replays: Whether the launches of a call can be given to the device at once.
        has_host: Whether a processor beside the device calls the kernels.
    """

    name: str
    builder: str
    executable: Callable[
        [tvm.runtime.Module, Mapping[str, object], bytes, CompileOptions], Executable
    ]
    layout_model: Callable[[CompileOptions], CpuModel | None]
    fusion_model: Callable[[CompileOptions], CpuModel]
    takes_attention: TakesAttention | None = None
    compiler: Callable[[], str] = str
    why_here: str = ""
    runs_numpy: bool = True
    shares_memory: bool = True
    replays: bool = False
    has_host: bool = False


def backend_of(target: str) -> Backend:
    """The backend of a target.

    Args:
        target: A name from ``configs/targets.toml``, ``"host"``, or several GPUs with commas.
    """
    return importlib.import_module(f"tvmgraph.backend.{backend_name(target)}.backend").BACKEND
