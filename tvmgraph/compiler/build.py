"""From a simplified graph to machine code: what takes TVM's compiler, in whichever process.

:func:`write_entry` is what the compiler's process is asked for, see :mod:`.remote`.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvmgraph import forking
from tvmgraph.compiler.cache import disk
from tvmgraph.config.options import CompileOptions
from tvmgraph.debug import Phases
from tvmgraph.errors import CompileError, TvmgraphError
from tvmgraph.graph import Graph, Node
from tvmgraph.graph.builder import one_node
from tvmgraph.interruption import held_back, raise_noticed
from tvmgraph.runtime.device_image import describe

if TYPE_CHECKING:
    from tvm import relax

#: What TVM made, what is to be remembered of it, and code for a device.
Built = tuple["relax.VMExecutable", dict[str, object], bytes]
#: Held while TVM and LLVM are in the middle of something in this process: one thread at a time.
in_tvm = forking.whole()


def build(
    graph: Graph,
    options: CompileOptions,
    phases: Phases,
    folder: Path | None = None,
    portable: bool = True,
    singly: bool = False,
) -> Built:
    """Compiles a simplified graph in this process.

    Args:
        graph: The graph.
        options: How.
        phases: Who watches.
        folder: Where object files are written, instead of code in memory.
        portable: Whether they are wanted only if they are of use in any process.
        singly: Whether one kernel after the other is translated, so that it is known which.

    Raises:
        CompileError: if an operator has no lowering or TVM rejects it.
        OSError: if the disk is full.
    """
    try:
        with in_tvm:
            import_compiler(phases)
            with phases.time("lower"):
                mod = lowered(graph, options)
            return generate(mod, options, phases, folder, portable, singly)
    except (TvmgraphError, OSError):
        raise
    except Exception as e:
        raise_noticed()
        raise blame(graph, e, lambda g: build_alone(g, options)) from e


def import_compiler(phases: Phases) -> None:
    """Imports TVM as late as possible: it takes most of a second.

    It cannot be imported again where Ctrl-C breaks that off.

    Args:
        phases: Gets the time it took.
    """
    if "tvm" not in sys.modules:
        with held_back(), phases.time("import TVM"), _names_listed_once():
            import tvmgraph.compiler.pipeline
            import tvmgraph.lowering  # noqa: F401


@contextlib.contextmanager
def _names_listed_once() -> Iterator[None]:
    """While TVM is imported: 60 modules list all functions of its libraries, one by one.

    The list is made again only where there are more than before, which takes a fifth of the time
    of the import away.
    """
    registry = vars(importlib.import_module("tvm_ffi.registry"))
    make, name = registry["list_global_func_names"], "ffi.FunctionListGlobalNamesFunctor"
    counter = registry["get_global_func"](name, allow_missing=True)
    listed: list[str] = []

    def names() -> list[str]:
        if counter is None or counter()(-1) != len(listed):
            listed[:] = make()
        return listed

    registry["list_global_func_names"] = names
    try:
        yield
    finally:
        registry["list_global_func_names"] = make


def generate(
    mod: object, options: CompileOptions, phases: Phases, folder: Path | None,
    portable: bool = True, singly: bool = False,
) -> Built:  # fmt: skip
    """Generates code for the CPU or a GPU from a lowered graph; see :func:`build`.

    Args:
        mod: The Relax module.
        options: What the compile may depend on.
        phases: Gets the time of every step, and the texts that somebody asked for.
        folder: Where object files go; None keeps the code in this process.
        portable: Whether the executable may be linked into a file.
        singly: Whether kernels are translated one after the other, for want of memory or to find
            the one that ends the compiler.

    Returns:
        TVM's executable, what the entry on disk says of it, and the code for a GPU.
    """
    from tvmgraph.compiler import pipeline

    made = pipeline.build(
        mod, options, phases, pipeline.Request(folder, singly=singly, portable=portable)
    )
    facts: dict[str, object] = {
        "kernels": made.kernels, "native": made.native, "images": describe(made.images),
    }  # fmt: skip
    return made.executable, facts, b"".join(i.code for i in made.images)


def write_entry(
    source: Graph | str, name: str, options: CompileOptions, phases: Phases, folder: Path,
    portable: bool = True, singly: bool = False,
) -> tuple[Path | None, Phases]:  # fmt: skip
    """Compiles a graph into an entry of the store.

    Args:
        source: The simplified graph, or the module it was lowered to, as JSON.
        name: Name of the graph.
        options: How it is compiled.
        phases: Who watches.
        folder: Where the entry and what it is made of are written.
        portable: Whether an entry is wanted only if it is of use in any process.
        singly: Whether one kernel after the other is translated.

    Returns:
        The entry, or None if it would be of no use, and what was seen by who watches.
    """
    if isinstance(source, Graph):
        built = build(source, options, phases, folder, portable, singly)
    else:
        built = generate(lowered(source, options), options, phases, folder, portable, singly)
    return link(built, name, phases, folder), phases


def lowered(source: Graph | str, options: CompileOptions) -> Any:
    """The module of a graph, or of the JSON that one was written as.

    Args:
        source: A simplified graph, or the JSON of a module.
        options: What the compile may depend on.
    """
    import tvm

    from tvmgraph.lowering import lower

    if not isinstance(source, Graph):
        return tvm.ir.load_json(source)
    with in_tvm:
        return lower(source, marks_casts=options.settings.fast_rounding)


def link(built: Built, name: str, phases: Phases, folder: Path) -> Path | None:
    """Links what :func:`build` wrote into ``folder``; None if it wrote nothing.

    Args:
        built: What :func:`generate` returned.
        name: The graph's.
        phases: Gets the time it took.
        folder: Where the object files are.

    Returns:
        The shared library.
    """
    objects = sorted(folder.glob("*.o"))
    if not objects:
        return None
    _, facts, payload = built
    with phases.time("link"):
        return disk.link(objects, {**facts, "graph": name}, folder, payload)


def blame(graph: Graph, cause: Exception, attempt: Callable[[Graph], object]) -> TvmgraphError:
    """Finds the node that TVM cannot compile by compiling the nodes one at a time.

    A kind of node (operator, types and attributes) is compiled once: networks repeat theirs.

    Args:
        graph: The graph.
        cause: Why it cannot be compiled.
        attempt: Compiles a graph of one node.
    """
    from tvmgraph.lowering.relax import lowering_error

    tried: set[str] = set()
    for node in graph.nodes:
        alone = isolate(node)
        if (kind := alone.structural_hash()) in tried:
            continue
        tried.add(kind)
        try:
            attempt(alone)
        except Exception as e:
            return lowering_error(node, e)
    first = next((line for line in str(cause).splitlines()[::-1] if line.strip()), "unknown")
    return CompileError(
        f"TVM rejected the graph: {first.strip()}", op=graph.name,
        fix="every operator compiles alone; try jit_level='O0' and please report it",
    )  # fmt: skip


def build_alone(graph: Graph, options: CompileOptions) -> None:
    """Compiles a graph to see whether that is possible.

    Args:
        graph: A simplified graph.
        options: What the compile may depend on.

    Raises:
        CompileError: if it is not.
    """
    generate(lowered(graph, options), options, Phases("node", quiet=True), None)


def isolate(node: Node) -> Graph:
    """Returns a graph that holds only ``node``.

    Args:
        node: A node of any graph.
    """
    inputs, outputs = ([v.type for v in vs] for vs in (node.inputs, node.outputs))
    return one_node(node.op, inputs, node.attrs, outputs, node.regions)
