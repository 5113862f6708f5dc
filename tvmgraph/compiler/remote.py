"""Asks the compiler's process for a graph's code, and says what it was at if that process ends.

A worker that ends is asked once more to translate one kernel after the other: code generation that
failed for want of memory then succeeds, and what ends it again is known by its kernel, whose
operators are found as the profiler finds them. If it ends earlier, in TVM's own passes, the nodes
are compiled one at a time.
"""

from __future__ import annotations

import errno
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tvmgraph.backend.base import backend_of
from tvmgraph.backend.table import registered
from tvmgraph.compiler import worker
from tvmgraph.compiler.build import blame, isolate, lowered, write_entry
from tvmgraph.compiler.cache import disk
from tvmgraph.compiler.worker import CompilerEnded
from tvmgraph.config.options import CompileOptions
from tvmgraph.core.op import CUSTOM
from tvmgraph.debug import Phases
from tvmgraph.debug.announce import KERNEL
from tvmgraph.errors import CompileError, TvmgraphError
from tvmgraph.graph import Graph, Node
from tvmgraph.interruption import raise_noticed
from tvmgraph.machine.processor import described_target

_MOST_NAMED = 4  # operators in a message
_DISK_FULL = "IO failure on output stream"  # with which LLVM ends its process
_PATIENCE = 60.0  # seconds that are spent on finding a node


class Origin(NamedTuple):
    """An operator of the user: its name, the types of its operands, and where it stands."""

    op: str
    got: str
    at: str


def why_here(options: CompileOptions) -> str | None:
    """Returns why a graph is compiled in this process, or None when the worker does it.

    Args:
        options: Has the target.
    """
    if registered():
        return "its kernels are known in this process only"
    return backend_of(options.target).why_here or worker.why_here()


def ask(
    graph: Graph, options: CompileOptions, phases: Phases, folder: Path, portable: bool
) -> Path | None:
    """Lets the worker compile a simplified graph; see :func:`.build.write_entry`.

    Args:
        graph: A simplified graph.
        options: What the compile may depend on.
        phases: Gets the time of every step.
        folder: Where the entry goes.
        portable: Whether the entry may be used by other processes.

    Returns:
        The entry in ``folder``, or None if this process has to compile the graph.

    Raises:
        CompileError: if the graph cannot be compiled, or the worker ended or hung.
        OSError: if the disk is full.
    """
    try:
        source = _source(graph, options, phases)
        if not worker.is_ready():
            with phases.time("start worker"):
                worker.call(os.getpid)
        try:
            return _ask(source, graph.name, options, phases, folder, portable)
        except CompilerEnded as e:
            if e.hung:
                raise
            return _ask(source, graph.name, options, phases, folder, portable, singly=True)
    except CompilerEnded as e:
        if _DISK_FULL in str(e):
            raise OSError(errno.ENOSPC, "the disk is full") from None
        raise _ending(graph, options, e) from None
    except worker.NoWorker:
        return None
    except (TvmgraphError, OSError):
        raise
    except Exception as e:
        raise_noticed()
        raise blame(graph, e, lambda g: _attempt(g, options)) from e


def call(
    graph: Graph, options: CompileOptions, function: Callable[..., object], *args: object
) -> Any:
    """Lets the worker call ``function(source, options, *args)`` for a simplified graph.

    ``source`` is the graph, or the module it was lowered to, as JSON.

    Args:
        graph: A simplified graph.
        options: What the compile may depend on.
        function: A function of a module, which the worker finds by name.
        *args: Further arguments, which can be pickled.

    Raises:
        CompileError: if the worker ended or hung.
        NoWorker: if there is none.
    """
    try:
        source = _source(graph, options, Phases("module", quiet=True))
        return worker.call(function, source, options, *args)
    except CompilerEnded as e:
        raise _ending(graph, options, e) from None


def _ask(
    source: Graph | str, name: str, options: CompileOptions, phases: Phases, folder: Path,
    portable: bool, singly: bool = False,
) -> Path | None:  # fmt: skip
    for left in folder.glob("*.o"):
        left.unlink()
    library, seen = worker.call(
        write_entry, source, name, options, phases, folder, portable, singly
    )
    phases.__dict__.update(seen.__dict__)
    return library


def _source(graph: Graph, options: CompileOptions, phases: Phases) -> Graph | str:
    """What is sent: the graph, or, with kernels or functions of the user, what it is lowered to."""
    if disk.why_bound(graph) is None:
        return graph
    import tvm

    with phases.time("lower"):
        return tvm.ir.save_json(lowered(graph, options))


def _attempt(graph: Graph, options: CompileOptions) -> None:
    """Compiles a graph to see whether that is possible."""
    quiet = Phases("node", quiet=True)
    with tempfile.TemporaryDirectory() as folder:
        source = _source(graph, options, quiet)
        _ask(source, graph.name, options, quiet, Path(folder), portable=False)


def _ending(graph: Graph, options: CompileOptions, ended: CompilerEnded) -> CompileError:
    """Describes how the worker ended, and the operators that it was at."""
    at = ended.at[-1] if ended.at else "start"
    kernel = at.removeprefix(KERNEL) if at.startswith(KERNEL) else ""
    origins = _origins_of(graph, options, kernel) if kernel else _culprits(graph, options)
    ops, got, where = (_listed(part) for part in zip(*origins)) if origins else ("", "", "")
    target = described_target(options.target)
    fix = ended.fix
    if any(node.op.name in CUSTOM for node in graph.walk()):
        fix = f"ops.Custom: use intrinsics and instructions that {target} has in your kernel"
    return CompileError(
        f"the compiler failed at {at} for {target}: {ended}",
        op=ops or graph.name, got=got, at=where, fix=fix,
    )  # fmt: skip


def _listed(parts: Iterable[str]) -> str:
    """The different ones of some words, the first few of them."""
    different = list(dict.fromkeys(p for p in parts if p))
    more = ["..."] if len(different) > _MOST_NAMED else []
    return ", ".join([*different[:_MOST_NAMED], *more])


def _origins_of(graph: Graph, options: CompileOptions, kernels: str) -> list[Origin]:
    """The operators behind kernels, none if they cannot be found."""
    try:
        if disk.why_bound(graph) is not None:
            return origins_of(graph, options, kernels)
        return worker.call(origins_of, graph, options, kernels)
    except Exception:  # what the compiler cannot do may be in the way here, too
        return []


def origins_of(graph: Graph, options: CompileOptions, kernels: str) -> list[Origin]:
    """The operators behind kernels, whose names are listed with commas between them.

    Args:
        graph: A simplified graph.
        options: What the compile may depend on.
        kernels: Names of kernels.
    """
    from tvmgraph.compiler.provenance import trace_kernels

    lowered, sites = trace_kernels(graph, options)
    nodes, wanted = list(lowered.walk()), kernels.split(", ")
    numbers = dict.fromkeys(n for s in sites if s.kernel in wanted for n in s.nodes)
    return [_origin(nodes[n]) for n in numbers]


def _origin(node: Node) -> Origin:
    return Origin(f"ops.{node.op.name}", ", ".join(str(v.type) for v in node.inputs), node.source)


def _culprits(graph: Graph, options: CompileOptions) -> list[Origin]:
    """The first node that ends the worker alone, if one is found before patience ends."""
    end, seen = time.monotonic() + _PATIENCE, set[str]()
    for node in graph.nodes:
        alone = isolate(node)
        if alone.structural_hash() in seen or time.monotonic() > end:
            continue
        seen.add(alone.structural_hash())
        try:
            _attempt(alone, options)
        except CompilerEnded:
            return [_origin(node)]
        except Exception:  # fails for another reason
            continue
    return []
