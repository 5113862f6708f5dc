"""Graphs as shared libraries in files."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvmgraph.compiler import remote
from tvmgraph.compiler.build import lowered
from tvmgraph.compiler.compile import CompileOptions, simplify
from tvmgraph.compiler.worker import NoWorker
from tvmgraph.errors import CompileError, TvmgraphError
from tvmgraph.graph import Graph
from tvmgraph.processor import host_features
from tvmgraph.runtime import host
from tvmgraph.runtime.device_image import DeviceImage
from tvmgraph.schedule import make_target
from tvmgraph.targets import resolve, target_table


@dataclass(frozen=True)
class Library:
    """A written library.

    Attributes:
        kernels: Names of its kernels.
        arch: Architecture of its code.
        system: Operating system it is for.
        features: LLVM's names of the processor features it was compiled with.
        images: Code for a GPU, if it is for one.
    """

    kernels: tuple[str, ...]
    arch: str
    system: str
    features: tuple[str, ...]
    images: tuple[DeviceImage, ...] = ()


def write_library(graph: Graph, path: Path, options: CompileOptions, linker: str = "") -> Library:
    """Compiles a graph into a file without loading it.

    Args:
        graph: The graph.
        path: A name that ends in ``.so``, or in ``.tar`` for objects that are to be linked later.
        options: Level, target and graph-kernel settings.
        linker: The compiler driver that links, such as ``aarch64-linux-gnu-g++``; empty for this
            machine's own.

    Raises:
        CompileError: if TVM rejects the graph or the linker fails.
    """
    simplified = simplify(graph, options, lambda _, g: g)
    if remote.why_here(options) is None:
        with contextlib.suppress(NoWorker):
            return remote.call(simplified, options, write_lowered, path.absolute(), linker)
    return write_lowered(simplified, options, path, linker)


def write_lowered(source: Graph | str, options: CompileOptions, path: Path, linker: str) -> Library:
    """Does what :func:`write_library` says in this process.

    Args:
        source: The simplified graph, or the module it was lowered to, as JSON.
        options: Level, target and graph-kernel settings.
        path: Where to write.
        linker: The compiler driver that links.
    """
    from tvm.support import cc

    try:
        executable, kernels, images = _build(lowered(source, options), options)
        extra: dict[str, Any] = {}
        if linker and path.suffix == ".so":
            extra["fcompile"] = cc.cross_compiler(linker)
        executable.export_library(str(path), **extra)
    except TvmgraphError:
        raise
    except Exception as e:
        lines = [line for line in str(e).splitlines() if line.strip()]
        raise CompileError(
            f"no library was made: {lines[-1].strip() if lines else type(e).__name__}",
            op="export", got=f"target={options.target!r}, linker={linker!r}",
            fix="check the linker; `tvmgraph doctor` shows this machine's tools",
        ) from e  # fmt: skip
    return Library(kernels, *describe_target(options.target), images)


def _build(mod: Any, options: CompileOptions) -> tuple[Any, tuple[str, ...], Any]:
    from tvmgraph.compiler import device_build, pipeline

    level = pipeline.level_of(options.level, options.deterministic)
    if options.on_gpu:
        made = device_build.build(
            mod, level, options.target, native=options.native, checked=True,
            fast_math=options.fast_math, host=_portable_host(), tf32=options.tf32,
        )  # fmt: skip
        return made.executable, made.kernels, made.images
    executable, kernels, _ = pipeline.build(
        mod, level, options.target, kernels=options.settings, native=None, checked=True
    )
    return executable, kernels, ()


def _portable_host() -> str:
    """The processor beside a GPU: launching kernels needs nothing that only this one can do."""
    return "x86-64-v2" if host.architecture() == "x86_64" else "host"


def describe_target(name: str) -> tuple[str, str, tuple[str, ...]]:
    """Returns architecture, operating system and processor features of a target."""
    name = resolve(name.split(",")[0])
    row = target_table().get(name, {})
    if row.get("kind") == "cuda":
        return describe_target(_portable_host())
    if row.get("mcpu") == "host":
        used = tuple(sorted(host_features()))
        return host.architecture(), host.system(), used
    triple = str(make_target(name).attrs.get("mtriple", "")).split("-")
    arch = triple[0] or host.architecture()
    system = "linux" if "linux" in triple or triple == [""] else triple[-1]
    return arch, system, tuple(row.get("features", ()))
