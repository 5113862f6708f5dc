"""Eager operators on a GPU: every operator is a compiled graph of one node.

An operator runs on the GPU when one of its operands is there, or when the context says so. It is
compiled once for its operands' types and kept on disk like any other graph; :func:`warm_up`
compiles many at once. An operator that has no code for GPUs is an error, never run elsewhere.

Many graphs are compiled as one module: one compiler run, one entry on disk.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from tvmgraph.backend.cuda import nvcc
from tvmgraph.backend.cuda.backend import BACKEND
from tvmgraph.compiler.build import Built, generate, isolate
from tvmgraph.compiler.cache import disk
from tvmgraph.compiler.compile import compile_graph
from tvmgraph.config import context
from tvmgraph.config.flag_registry import active
from tvmgraph.config.options import CompileOptions
from tvmgraph.core import dispatch
from tvmgraph.core.op import Op, Reason
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType
from tvmgraph.debug import Phases
from tvmgraph.errors import DeviceError, TvmgraphError
from tvmgraph.graph import Graph
from tvmgraph.graph.builder import one_node
from tvmgraph.runtime import cuda, device_tensor
from tvmgraph.runtime.executable import Executable

_LIMIT = 4096  # executables remembered by operator and types, beside the compiler's own memory
#: An executable, the types of its outputs, and the name of its function.
_Compiled = tuple[Executable, tuple[TensorType, ...], str]
_known: OrderedDict[object, _Compiled] = OrderedDict()


def activate() -> None:
    """Lets operators whose operands are on a GPU run there."""
    dispatch.set_eager(run)


def use(index: int) -> None:
    """Looks for a GPU and lets operators run there.

    Args:
        index: Number of the GPU.

    Raises:
        DeviceError: if there is none of that number.
    """
    cuda.device(index)
    activate()


def to_gpu(tensor: Tensor, index: int) -> Tensor:
    """Returns a tensor of the same elements on a GPU, and lets operators run there.

    Args:
        tensor: A tensor in any memory.
        index: Number of the GPU.
    """
    activate()
    storage = device_tensor.to_device(tensor, index, implicit=False)
    return device_tensor.wrap(storage.handle, storage.type)


def adopt(capsule: object) -> Tensor:
    """Returns a tensor over another library's memory; see :func:`device_tensor.adopt`.

    Args:
        capsule: A DLPack capsule, which may be used once.
    """
    activate()
    return device_tensor.adopt(capsule)


def run(
    op: Op, args: tuple[Tensor, ...], attrs: Mapping[str, object], plan: Any
) -> tuple[Tensor, ...]:
    """Applies an operator where its operands are; arguments as :func:`dispatch.run_on_host`.

    Args:
        op: The operator.
        args: Its operands.
        attrs: Its attributes by name.
        plan: What the dispatch point found out of them: types of the results.

    Raises:
        DeviceError: if the operator has no code for GPUs, or the operands are on several.
    """
    index = _place(op, args)
    if index is None:
        return dispatch.run_on_host(op, args, attrs, plan)
    start = perf_counter()
    try:
        executable, outputs, name = _executable(op, args, attrs, plan.static_types, index)
        results = tuple(executable.run(args, outputs, name))
    except TvmgraphError as e:
        raise e.locate(*dispatch.call_context(op, args, attrs)) from e.__cause__
    for listener in active.listeners:
        listener(op, args, attrs, results, start, perf_counter())
    return results


def _place(op: Op, args: tuple[Tensor, ...]) -> int | None:
    """Returns the GPU that an operator runs on, ``None`` for the CPU."""
    found = {a._device.index for a in args if a.on_gpu}
    if len(found) > 1:
        names = " and ".join(f"GPU:{i}" for i in sorted(found))
        raise DeviceError(
            f"operands are on {names}", fix=f"move one of them with .to('GPU:{min(found)}')"
        ).locate(*dispatch.call_context(op, args, {}))
    if found:
        return found.pop()
    return context.device_id if context.device_target != "CPU" else None


def _executable(
    op: Op,
    args: tuple[Tensor, ...],
    attrs: Mapping[str, object],
    types: tuple[TensorType | None, ...],
    index: int,
) -> _Compiled:
    key = (op.name, tuple([a.aval for a in args]), tuple(attrs.items()), index)
    found = None if op.regions else _known.get(key)
    if found is None:
        if isinstance(op.lower, Reason):
            raise DeviceError(f"it has no code for GPUs: {op.lower}", fix=_ELSEWHERE)
        known = [t for t in types if t is not None]
        if len(known) < len(types):
            raise DeviceError(
                "the shape of its result depends on values, which stay on the GPU", fix=_ELSEWHERE
            )
        graph = one_node(op, [a.aval for a in args], attrs, known)
        executable, _ = compile_graph(graph, options=_options(index))
        found = executable, tuple([v.type for v in graph.outputs]), "main"
        if not op.regions:
            _remember(key, found)
    return found


def _remember(key: Any, compiled: _Compiled) -> None:
    _known[key] = compiled
    if len(_known) > _LIMIT:
        _known.popitem(last=False)


_ELSEWHERE = "move the operands with .to('CPU'), or use set_context(device_target='CPU')"


def _options(index: int) -> CompileOptions:
    return CompileOptions("O2", cuda.target_of(index), native=False, device_id=index)


def warm_up(graphs: Iterable[Graph], index: int | None = None) -> int:
    """Compiles every operator of some graphs for eager use, all of them as one module.

    Args:
        graphs: Captured graphs, such as ``jit(net).graph(x)``.
        index: The device, by default the context's.

    Returns:
        The number of operators that were compiled.
    """
    from tvmgraph.compiler.cuda.eager import compile_batch

    where = context.device_id if index is None else index
    wanted: dict[object, Graph] = {}
    for node in (n for g in graphs for n in g.nodes if not n.regions):
        inputs, attrs = tuple([v.type for v in node.inputs]), dict(node.attrs)
        key = (node.op.name, inputs, tuple(attrs.items()), where)
        if key not in _known and not isinstance(node.op.lower, Reason):
            wanted[key] = isolate(node)
    if not wanted:
        return 0
    named = {f"operator{i}": graph for i, graph in enumerate(wanted.values())}
    batch = compile_batch(named, _options(where))
    for key, (name, graph) in zip(wanted, named.items()):
        _remember(key, (batch, tuple([v.type for v in graph.outputs]), name))
    return len(wanted)


# ---- batches ------------------------------------------------------------------------------------


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
