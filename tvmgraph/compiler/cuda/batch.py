"""Compiles many graphs for a GPU as one module: one compiler run, one entry on disk."""

from __future__ import annotations

from pathlib import Path

from tvmgraph.backend.cuda import nvcc
from tvmgraph.backend.cuda.backend import BACKEND
from tvmgraph.compiler.build import Built, generate
from tvmgraph.compiler.cache import disk
from tvmgraph.config.options import CompileOptions
from tvmgraph.debug import Phases
from tvmgraph.graph import Graph
from tvmgraph.runtime.executable import Executable


def compile_batch(graphs: dict[str, Graph], options: CompileOptions) -> Executable:
    """Compiles graphs into one executable with one function per name.

    Args:
        graphs: The graphs by the names of their functions.
        options: How they are compiled; the target is a GPU.

    Raises:
        CompileError: if an operator has no lowering or TVM rejects it.
    """
    from tvmgraph.lowering import lower_many

    def build(folder: Path | None) -> Built:
        return generate(lower_many(graphs), options, Phases("operators", quiet=True), folder)

    if disk.why_not() is not None:
        return BACKEND.executable(*build(None), options)
    hashes = "\n".join(f"{name} {g.structural_hash()}" for name, g in graphs.items())
    key = disk.key_of_text(hashes, options, nvcc.fingerprint())
    found = disk.load(key)
    if found is None:
        with disk.store().workspace() as folder:
            module, facts, payload = build(folder)
            objects = sorted(folder.glob("*.o"))
            if objects:
                module = disk.native.load(disk.save(key, objects, facts, folder, payload))
            found = module, facts, payload
    return BACKEND.executable(*found, options)
