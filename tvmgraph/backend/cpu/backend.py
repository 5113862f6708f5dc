"""Processors as the rest of the package sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tvmgraph.backend.base import Backend
from tvmgraph.config import context
from tvmgraph.machine.processor import CpuModel, cpu_model
from tvmgraph.machine.threads import configure_threads

if TYPE_CHECKING:
    from tvmgraph.config.options import CompileOptions
    from tvmgraph.runtime.executable import Executable


def _executable(
    module: object, facts: Mapping[str, object], _images: bytes, _options: CompileOptions
) -> Executable:
    from tvmgraph.runtime.executable import Executable, cpu

    return Executable(module, cpu(), tuple(facts["kernels"]))


def model_of(options: CompileOptions) -> CpuModel:
    """The processor that kernels are shaped for.

    Args:
        options: Has the target, and the number of threads where it is planned for other than this
            process.
    """
    threads = options.planned_threads or configure_threads(context.thread_num or None)
    return cpu_model(options.target, threads)


BACKEND = Backend("cpu", "tvmgraph.compiler.cpu:CpuBuilder", _executable, model_of, model_of)
