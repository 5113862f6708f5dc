"""Graphs as shared libraries in files."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tvmgraph.backend.base import backend_of
from tvmgraph.backend.target import make_target
from tvmgraph.compiler import remote
from tvmgraph.compiler.build import lowered
from tvmgraph.compiler.cache import disk
from tvmgraph.compiler.worker import NoWorker
from tvmgraph.config.options import CompileOptions
from tvmgraph.errors import CompileError, DeviceError, ExportError, TvmgraphError, reject
from tvmgraph.graph import Graph
from tvmgraph.machine.processor import host_features
from tvmgraph.machine.targets import resolve, target_table
from tvmgraph.passes.run import run_graph_passes
from tvmgraph.runtime import callback, host
from tvmgraph.runtime.device_image import DeviceImage

if TYPE_CHECKING:
    from tvm import IRModule


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
    simplified = run_graph_passes(graph, options)
    if remote.why_here(options) is None:
        with contextlib.suppress(NoWorker):
            return remote.call(simplified, options, write_lowered, path.absolute(), linker)
    return write_lowered(simplified, options, path, linker)


def _require_no_python(module: IRModule) -> None:
    """Checks that the code calls no function of this process, which others have not.

    Raises:
        ExportError: if it prints, or asks for operators that NumPy runs.
    """
    from tvm import relax

    why = {
        callback.NAME: "it prints",
        callback.COLUMN: "it runs an operator in NumPy: one of several processes, or of sizes",
    }
    found: list[str] = []

    def visit(node: object) -> None:
        if isinstance(node, relax.ExternFunc) and str(node.global_symbol) in why:
            found.append(why[str(node.global_symbol)])

    for function in module.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function.body, visit)
    if found:
        reject(ExportError, "export", f"a module runs without Python, and {found[0]}",
               fix="take the print, or the operator, out of what is exported")  # fmt: skip


def write_lowered(source: Graph | str, options: CompileOptions, path: Path, linker: str) -> Library:
    """Does what :func:`write_library` says in this process.

    Args:
        source: The simplified graph, or the module it was lowered to, as JSON.
        options: Level, target and graph-kernel settings.
        path: Where to write.
        linker: The compiler driver that links.
    """
    from tvm.support import cc

    from tvmgraph.compiler import pipeline

    driver = linker or cc.get_cc()
    if path.suffix == ".so" and not (driver or disk.linker()):
        raise CompileError(
            f"{disk.why_no_linker()}, and CXX is not set", op="export",
            fix="install binutils, or `pip install 'tvmgraph[linker]'`, or give linker=...",
        )  # fmt: skip
    backend = backend_of(options.target)
    request = pipeline.Request(checked=True, host=_portable_host() if backend.has_host else "")
    native = options.native if backend.has_host else None
    module = lowered(source, options)
    _require_no_python(module)
    try:
        made = pipeline.build(module, replace(options, native=native, trials=0), None, request)
        extra: dict[str, object] = {}
        if linker and path.suffix == ".so":
            extra["fcompile"] = cc.cross_compiler(linker)
        elif not driver and path.suffix == ".so":
            extra["fcompile"] = lambda library, objects, **_: disk.join(objects, library)
        made.executable.export_library(str(path), **extra)
    except TvmgraphError:
        raise
    except NotImplementedError as e:
        raise DeviceError(
            f"no library was made: {e}", op="export", got=f"target={options.target!r}",
            fix="take the operator out of what is exported, or export for a CPU",
        ) from e  # fmt: skip
    except Exception as e:
        lines = [line for line in str(e).splitlines() if line.strip()]
        raise CompileError(
            f"no library was made: {lines[-1].strip() if lines else type(e).__name__}",
            op="export", got=f"target={options.target!r}, linker={linker!r}",
            fix="check the linker; `tvmgraph doctor` shows this machine's tools",
        ) from e  # fmt: skip
    return Library(made.kernels, *describe_target(options.target), made.images)


def _portable_host() -> str:
    """The processor beside a GPU: launching kernels needs nothing that only this one can do."""
    return "x86-64-v2" if host.architecture() == "x86_64" else "host"


def describe_target(name: str) -> tuple[str, str, tuple[str, ...]]:
    """Returns architecture, operating system and processor features of a target.

    Args:
        name: A name in ``configs/targets.toml``; of several with commas the first.
    """
    name = resolve(name.split(",")[0])
    if backend_of(name).has_host:
        return describe_target(_portable_host())
    row = target_table().get(name, {})
    if row.get("mcpu") == "host":
        used = tuple(sorted(host_features()))
        return host.architecture(), host.system(), used
    attrs = make_target(name).attrs
    triple = str(attrs.get("mtriple", "")).split("-")  # pyright: ignore[reportAttributeAccessIssue] - a field of the FFI
    arch = triple[0] or host.architecture()
    system = "linux" if "linux" in triple or triple == [""] else triple[-1]
    return arch, system, tuple(row.get("features", ()))
