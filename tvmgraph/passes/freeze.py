"""Splitting a graph into what depends on parameters alone, and the rest.

What only parameters decide (the scale and shift of a batch norm, weights with that scale folded in,
weights packed into the panels that matrix-product kernels of the CPU read, or with their channels
last as those of a GPU do) is computed once per version of the parameters, in NumPy, and the
compiled graph takes the results as arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvmgraph.backend.base import backend_of
from tvmgraph.backend.cpu.kernels.gemm.plan import USUAL_ROWS, panel_columns
from tvmgraph.backend.loop_ir.gemm_shape import GemmShape
from tvmgraph.config.options import CompileOptions
from tvmgraph.core.op import Reason, get_op
from tvmgraph.core.storage import aligned_copy, is_ready
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.dtypes import float16, float32, float64, int8
from tvmgraph.graph import Graph
from tvmgraph.graph import simplify as passes
from tvmgraph.graph.ir import Node, Param, Role, Value
from tvmgraph.graph.links import Links
from tvmgraph.machine.processor import CpuModel
from tvmgraph.machine.threads import thread_count
from tvmgraph.ops.internal.matmul_panels import VNNI_SIZES, panel_shape, to_panels
from tvmgraph.passes import table
from tvmgraph.passes.channels_last import ChannelsLast, keeps_images_plain
from tvmgraph.passes.deconvolution import as_convolutions
from tvmgraph.passes.layout import NchwcLayout
from tvmgraph.passes.run import run_pass

_USUAL = CompileOptions()
#: Products with fewer vectors of columns than this read their weights as they are, as fast or
#: faster; so do those of one row with a matrix of fewer elements, and those of few rows of a narrow
#: type.
_MIN_VECTORS, _MIN_ELEMENTS, _MIN_NARROW_ROWS = 4, 1 << 16, 5
#: A result this many times larger than what it is computed from is not kept.
_MAX_GROWTH = 2
#: Parameters with fewer bytes than this are prepared faster than threads are started.
_SMALL = 1 << 20
#: A step whose results take fewer bytes than this is done faster than handed to a thread.
_TINY = 1 << 16


@dataclass(frozen=True)
class Step:
    """One computation in NumPy: ``outputs = compute(*inputs)``."""

    compute: Callable[..., np.ndarray | tuple[np.ndarray, ...]]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


@dataclass(frozen=True)
class Frozen:
    """A graph in two halves.

    Attributes:
        origin: The graph that was split.
        model: The processor whose kernels read the prepared values; None for a GPU.
        main: What runs in every call; its last parameters are the prepared values.
        kept: Positions of the original parameters that ``main`` takes, in order.
        sources: Positions of the original parameters that the prepared values depend on.
        params: Values of those parameters.
        consts: Constants that the steps read.
        steps: How the prepared values are computed.
        prepared: The prepared values, in the order of ``main``'s last parameters.
    """

    origin: Graph
    model: CpuModel | None
    main: Graph
    kept: tuple[int, ...]
    sources: tuple[int, ...]
    params: tuple[Value, ...]
    consts: dict[Value, np.ndarray]
    steps: tuple[Step, ...]
    prepared: tuple[Value, ...]

    def prepare(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Computes the prepared values from the arrays of ``params``.

        Steps run side by side, because most of them move memory, where NumPy lets go of Python's
        lock. A step waits only for earlier ones, which have been started before it.

        Args:
            arrays: The elements of ``params``, in their order.

        Returns:
            Arrays of their own, in memory that compiled code may read.
        """
        known: dict[Value, Any] = dict(self.consts)
        known.update(zip(self.params, arrays))
        if sum(a.nbytes for a in arrays) < _SMALL:
            for step in self.steps:
                known.update(self._run(step, [known[v] for v in step.inputs]))
            return [known[v] for v in self.prepared]
        started: dict[Value, Future[dict[Value, np.ndarray]]] = {}

        def run(step: Step) -> dict[Value, np.ndarray]:
            return self._run(
                step, [started[v].result()[v] if v in started else known[v] for v in step.inputs]
            )

        with ThreadPoolExecutor(thread_count()) as pool:
            for step in self.steps:
                if _bytes(step.outputs) < _TINY and not any(v in started for v in step.inputs):
                    known.update(self._run(step, [known[v] for v in step.inputs]))
                    continue
                task = pool.submit(run, step)
                started.update((v, task) for v in step.outputs)
        return [started[v].result()[v] if v in started else known[v] for v in self.prepared]

    def _run(self, step: Step, inputs: list[np.ndarray]) -> dict[Value, np.ndarray]:
        result = step.compute(*inputs)
        results = result if isinstance(result, tuple) else (result,)
        found = {v: np.asarray(r) for v, r in zip(step.outputs, results)}
        for value in found.keys() & self._kept:
            array = found[value]
            if not is_ready(array) or any(np.may_share_memory(array, i) for i in inputs):
                found[value] = aligned_copy(array)
        return found

    @functools.cached_property
    def _kept(self) -> frozenset[Value]:
        return frozenset(self.prepared)


def freeze(graph: Graph, options: CompileOptions = _USUAL) -> Frozen | None:
    """Splits a graph, or returns None when there is nothing to prepare.

    Args:
        graph: The graph.
        options: How it is compiled: what is prepared, and in which order its elements lie, is up
            to the kernels of the target.

    Raises:
        TvmgraphError: There is no such target.
    """
    if graph.writes or any(node.regions for node in graph.nodes):
        return None
    graph = passes.simplify(graph)
    for row in table.chosen(table.Stage.PREPARE, options):
        if row.name == "freeze":
            break
        graph = run_pass(row, graph, options)
    return _Splitter(graph, options).split()


def prepares(graph: Graph, options: CompileOptions) -> bool:
    """Whether anything is prepared; what has an effect happens as often as it is called.

    Args:
        graph: The captured graph, the ones inside of it included.
        options: Level and flags, which may leave the pass ``freeze`` out.
    """
    effects = any(n.op.traits.effect or n.op.traits.collective for n in graph.walk())
    return table.runs("freeze", options) and not effects


def arrange(graph: Graph, options: CompileOptions = _USUAL) -> Graph:
    """Returns a graph that is compiled unfrozen with what pays to be rearranged in every call.

    Those are weights of convolutions, see :mod:`.layout`. Graphs that hold derivatives of
    convolutions, which read images as they are, stay as they are.

    Args:
        graph: A graph for the CPU.
        options: How it is compiled.
    """
    names = {node.op.name for node in graph.nodes}
    if graph.writes or "convolution" not in names or "conv_weight_grad" in names:
        return graph
    if any(node.regions for node in graph.nodes) or not table.runs("layout", options):
        return graph
    consts = dict(graph.consts)

    def derive(
        compute: Callable[..., np.ndarray], inputs: tuple[Value, ...], kind: TensorType
    ) -> Value:
        value = Value(f"arranged{len(consts)}", kind)
        consts[value] = np.ascontiguousarray(compute(*(consts[v] for v in inputs)))
        return value

    layout = NchwcLayout(set(), consts, derive, backend_of(options.target).layout_model(options))
    nodes = layout.rewrite(graph.nodes, graph.outputs)
    return Graph(graph.name, graph.params, consts, tuple(nodes), graph.outputs)


class _Splitter:
    def __init__(self, graph: Graph, options: CompileOptions) -> None:
        self.graph = graph
        self.model = backend_of(options.target).layout_model(options)
        self.runs = {row.name for row in table.passes() if row.within and table.is_on(row, options)}
        parameters = [p.value for p in graph.params if p.role is Role.PARAMETER]
        self.stable = set(parameters)
        self.steps: list[Step] = []
        self.nodes: list[Node] = []
        self.renamed: dict[Value, Value] = {}
        self.consts = dict(graph.consts)
        self.uses = Links(graph).uses
        self.count = 0

    def split(self) -> Frozen | None:
        for node in self.graph.nodes:
            if self._is_hoistable(node):
                compute = functools.partial(node.op.eager, **node.attrs)
                self.steps.append(Step(compute, node.inputs, node.outputs))
                self.stable.update(node.outputs)
            else:
                self._keep(node)
        plain = self.model is None and keeps_images_plain(self.graph)
        if "layout" in self.runs and not plain:
            kind = ChannelsLast if self.model is None else NchwcLayout
            layout = kind(self.stable, self.consts, self._derive, self.model)
            self.nodes = layout.rewrite(self.nodes, self.graph.outputs)
        return self._halves() if self.steps else None

    def _is_hoistable(self, node: Node) -> bool:
        if isinstance(node.op.lower, Reason) or not self.stable:
            return False  # large constants alone are computed once, too, where parameters are
        if not all(v in self.stable or v in self.graph.consts for v in node.inputs):
            return False
        if any(v in self.graph.outputs or not v.type.is_static for v in node.outputs):
            return False
        grown = sum(v.type.size for v in node.outputs)
        return grown <= _MAX_GROWTH * sum(v.type.size for v in node.inputs)

    def _keep(self, node: Node) -> None:
        inputs = tuple(self.renamed.get(v, v) for v in node.inputs)
        node = Node(node.op, inputs, node.attrs, node.outputs, node.source, node.scope)
        if node.op.name == "mul" and "fold_scale" in self.runs and self._fold_scale(node):
            return
        split = node.op.name == "conv_transpose" and "split_transposed" in self.runs
        if split and node.inputs[1] in self.stable:
            nodes = as_convolutions(node, self._derive, self._fresh)
            if nodes:
                self.nodes += nodes
                return
        packs = "panels" in self.runs and node.op.reads_transposed
        if self.model is not None and packs:
            node = self._with_panels(node, self.model)
        self.nodes.append(node)

    def _fold_scale(self, node: Node) -> bool:
        """Folds a scale per channel of a convolution into its weight."""
        for value, scale in (node.inputs, node.inputs[::-1]):
            position = next((i for i, n in enumerate(self.nodes) if n.outputs[0] is value), None)
            if position is None or scale not in self.stable or self.uses[value] != 1:
                continue
            conv = self.nodes[position]
            if conv.op.name != "convolution" or conv.inputs[1] not in self.stable:
                continue
            weight = conv.inputs[1]
            if not _is_per_channel(scale.type.shape, value.type, node.outputs[0].type):
                continue
            scaled = self._derive(_scale_channels, (weight, scale), weight.type)
            self.nodes[position] = Node(
                conv.op, (conv.inputs[0], scaled), conv.attrs, node.outputs, conv.source, conv.scope
            )
            return True
        return False

    def _with_panels(self, node: Node, model: CpuModel) -> Node:
        """Gives a product with a matrix of weights the panels of that matrix."""
        value, weight = node.inputs
        if weight not in self.stable or weight.type.ndim != 2:
            return node
        if (node.op.name == "matmul_integer") != (weight.type.dtype is int8):
            return node  # the panels of bytes are summed as int32
        if value.type.ndim < 2 or node.attrs["transpose_a"] or not _has_panels(value.type, model):
            return node
        transposed = node.attrs["transpose_b"]
        depth, columns = weight.type.static_shape[:: -1 if transposed else 1]
        if not depth or _has_few_rows(value.type, weight.type):
            return node
        shape = _product(value.type, depth, columns)
        if columns < _MIN_VECTORS * model.lanes_of(shape.itemsize):
            return node
        dtype = weight.type.dtype
        width = panel_columns(shape, model, dtype.name if dtype in VNNI_SIZES else None)
        kind = tensor_type(panel_shape(depth, columns, width, dtype), dtype)

        def pack(array: np.ndarray) -> np.ndarray:
            return to_panels(array.T if transposed else array, width)

        panels = self._derive(pack, (weight,), kind)
        return Node(
            get_op("matmul_panels"), (value, panels), {"columns": columns}, node.outputs,
            node.source, node.scope,
        )  # fmt: skip

    def _derive(
        self, compute: Callable[..., np.ndarray], inputs: tuple[Value, ...], kind: TensorType
    ) -> Value:
        value = self._fresh(kind, "prepared")
        self.steps.append(Step(compute, inputs, (value,)))
        self.stable.add(value)
        return value

    def _fresh(self, kind: TensorType, name: str = "part") -> Value:
        self.count += 1
        return Value(f"{name}{self.count}", kind)

    def _halves(self) -> Frozen:
        graph = self.graph
        read = {v for node in self.nodes for v in node.inputs} | set(graph.outputs)
        made = [v for step in self.steps for v in step.outputs]
        prepared = tuple(v for v in made if v in read)
        needed = _needed(self.steps, prepared)
        kept = tuple(
            i for i, p in enumerate(graph.params) if p.role is not Role.PARAMETER or p.value in read
        )
        sources = tuple(i for i, p in enumerate(graph.params) if p.value in needed)
        params = [graph.params[i] for i in kept]
        params += [Param(v, Role.PARAMETER, f"prepared{i}") for i, v in enumerate(prepared)]
        consts = {v: a for v, a in self.consts.items() if v in read}
        main = Graph(graph.name, tuple(params), consts, tuple(self.nodes), graph.outputs)
        return Frozen(
            graph, self.model, main, kept, sources, tuple(graph.params[i].value for i in sources),
            {v: a for v, a in graph.consts.items() if v in needed},
            tuple(s for s in self.steps if any(v in needed for v in s.outputs)), prepared,
        )  # fmt: skip


def _has_panels(value: TensorType, model: CpuModel) -> bool:
    """Whether kernels read panels; of narrow types those that sum groups of them do."""
    summed = value.dtype.name in model.dot_types | model.tile_types
    return summed if value.dtype in VNNI_SIZES else value.dtype in (float16, float32, float64)


def _product(value: TensorType, depth: int, columns: int) -> GemmShape:
    """The extents of a product, as its kernel is planned by."""
    rows = value.size // depth if value.is_static else USUAL_ROWS
    itemsize = value.dtype.numpy.itemsize
    return GemmShape(rows, columns, depth, 1, max(4, itemsize), depth * itemsize)


def _has_few_rows(value: TensorType, weight: TensorType) -> bool:
    """Whether panels would make a product slower, since each of their elements is read once."""
    if not value.is_static:
        return False
    rows = value.size // max(1, value.static_shape[-1])
    if weight.dtype not in (float32, float64):
        return rows < _MIN_NARROW_ROWS
    return not rows or (rows < 2 and weight.size < _MIN_ELEMENTS)


def _needed(steps: Sequence[Step], wanted: Sequence[Value]) -> set[Value]:
    needed = set(wanted)
    for step in reversed(steps):
        if any(v in needed for v in step.outputs):
            needed.update(step.inputs)
    return needed


def _bytes(values: Sequence[Value]) -> int:
    return sum(v.type.size * v.type.dtype.numpy.itemsize for v in values)


def _is_per_channel(scale: Sequence[object], value: TensorType, result: TensorType) -> bool:
    """Whether a scale of this shape has one number per channel (axis 1) of ``value``."""
    wide = (1,) * (value.ndim - len(scale)) + tuple(scale)
    others = (extent == 1 for axis, extent in enumerate(wide) if axis != 1)
    return value is result and len(wide) == value.ndim and wide[1] == value.shape[1] and all(others)


def _scale_channels(weight: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return weight * scale.reshape(-1, *(1,) * (weight.ndim - 1))
