"""Matrix products by NVIDIA's library, where it is measurably faster than the generated kernel.

With ``library_dispatch`` every product of a graph, with a bias and an activation behind it, is run
both ways on the GPU at hand when it is compiled for the first time. What was faster is remembered
in the tuning database by problem and device.

cuBLASLt's own GELU is the one by tanh; one by the error function stays a kernel of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NoReturn

from tvm import relax

from tvmgraph import dtypes
from tvmgraph.compiler.compile import build_aside
from tvmgraph.compiler.tuning import database as tuning
from tvmgraph.config.options import CompileOptions
from tvmgraph.core.op import Op, Reason
from tvmgraph.core.traits import INTERNAL
from tvmgraph.core.types import TensorType
from tvmgraph.debug import Phases
from tvmgraph.graph import Graph, GraphBuilder
from tvmgraph.graph.ir import Node, Value
from tvmgraph.graph.links import Links
from tvmgraph.runtime import cublaslt, cuda
from tvmgraph.runtime.device_copy import allocate
from tvmgraph.runtime.executable import Executable

_FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32)
_RUNS, _ROUNDS = 20, 5


@dataclass(frozen=True)
class _Product:
    """A product and what follows it, up to the value that everything else reads."""

    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    epilogue: str

    @property
    def output(self) -> Value:
        return self.nodes[-1].outputs[0]


def use_library(graph: Graph, options: CompileOptions) -> Graph:
    """Returns the graph with products handed to the library where that is faster.

    Args:
        graph: A simplified graph.
        options: Has the target and the number of the GPU that measures.

    Raises:
        DeviceError: if the library is not installed.
    """
    products = {p.nodes[-1]: p for p in _products(graph)}
    if not products:
        return graph
    cublaslt.library()
    chosen = {last: p for last, p in products.items() if _is_faster(p, options)}
    gone = {node for p in chosen.values() for node in p.nodes[:-1]}
    nodes = [
        _call(chosen[n], options) if n in chosen else n for n in graph.nodes if n not in gone
    ]  # fmt: skip
    return Graph(graph.name, graph.params, graph.consts, tuple(nodes), graph.outputs, graph.writes)


# ---- what the library can do --------------------------------------------------------------------


def _products(graph: Graph) -> list[_Product]:
    links = Links(graph)

    def only_reader(value: Value) -> Node | None:
        found = links.readers(value)
        return found[0] if len(found) == 1 else None

    return [_with_epilogue(n, only_reader) for n in graph.nodes if _is_product(n)]


def _is_product(node: Node) -> bool:
    if node.op.name != "matmul":
        return False
    a, b = (v.type for v in node.inputs)
    if not (a.is_static and b.is_static) or a.ndim < 2 or b.ndim < 2 or a.dtype not in _FLOATS:
        return False
    if 0 in (*a.static_shape, *b.static_shape):
        return False
    if b.ndim == 2:
        return a.ndim == 2 or not node.attrs["transpose_a"]
    return a.shape[:-2] == b.shape[:-2]


def _with_epilogue(node: Node, only_reader: Callable[[Value], Node | None]) -> _Product:
    nodes, inputs, words = [node], [*node.inputs], []
    after = only_reader(node.outputs[0])
    if after is not None and after.op.name == "add":
        bias = next((v for v in after.inputs if v is not node.outputs[0]), None)
        result = after.outputs[0].type
        if bias is not None and result is node.outputs[0].type and (
            bias.type.shape == result.shape[-1:] and bias.type.dtype is result.dtype
        ):  # fmt: skip
            nodes.append(after)
            inputs.append(bias)
            words.append("bias")
            after = only_reader(after.outputs[0])
    if after is not None and _activation(after):
        nodes.append(after)
        words.append(after.op.name)
    return _Product(tuple(nodes), tuple(inputs), "_".join(words) or "plain")


def _activation(node: Node) -> bool:
    by_tanh = node.op.name == "gelu" and node.attrs["approximate"] == "tanh"
    return node.op.name == "relu" or by_tanh


def _call(product: _Product, options: CompileOptions) -> Node:
    """The node that calls the library."""
    first, last = product.nodes[0], product.nodes[-1]
    kind, tf32 = product.output.type, options.tf32 and first.inputs[0].type.dtype is dtypes.float32
    transposes = first.attrs["transpose_a"], first.attrs["transpose_b"]
    name = cublaslt.name_of(*transposes, product.epilogue, tf32)

    def lower(builder: Any, *inputs: relax.Expr) -> relax.Expr:
        return relax.op.call_dps_packed(name, relax.Tuple(inputs), builder.relax_type(kind))

    def infer(*_: TensorType) -> TensorType:
        return kind

    absent = Reason("only compiled graphs hold it")
    op = Op(
        "library_matmul", infer, _not_in_numpy, lower, absent, absent, (), INTERNAL, None,
        ("inputs",), (), True, __name__, f"The library's {name}.",
    )  # fmt: skip
    return Node(op, product.inputs, {}, last.outputs, first.source, first.scope)


def _not_in_numpy(*_: object) -> NoReturn:
    raise AssertionError("a call of the library is compiled, never run in NumPy")


# ---- which is faster ----------------------------------------------------------------------------


def _is_faster(product: _Product, options: CompileOptions) -> bool:
    device = cuda.device(options.device_id)
    text = f"{_alone(product).structural_hash()} {options.tf32} {options.fast_math}"
    number = int(hashlib.sha256(text.encode()).hexdigest()[:15], 16)
    key = tuning.key_of(number, f"cublaslt {options.target} {device.name}", 1)
    record = tuning.find(key)
    if record is None:
        record = _measured(product, options)
        tuning.keep(key, record)
    return bool(record.decisions.get("library"))


def _measured(product: _Product, options: CompileOptions) -> tuning.Record:
    plain = replace(options, library=False, replay=False, native=False)
    alone = _alone(product)
    call = _call(replace(product, inputs=tuple(p.value for p in alone.params)), options)
    called = Graph(
        alone.name, alone.params, {}, (replace(call, outputs=alone.outputs),), alone.outputs
    )
    seconds = []
    for graph in (alone, called):
        executable, _ = build_aside(graph, plain, Phases("product", quiet=True))
        seconds.append(_seconds(executable, graph, options.device_id))
    own, theirs = (s * 1e6 for s in seconds)
    return tuning.Record(
        f"{product.epilogue} product", 1, {"library": theirs < own}, own, min(own, theirs), 2
    )


def _alone(product: _Product) -> Graph:
    """The product as a graph of its own."""
    builder = GraphBuilder("product")
    known = {v: builder.param(v.type) for v in product.inputs}
    for node in product.nodes:
        inputs = [known[v] for v in node.inputs]
        made = builder.node(node.op, inputs, node.attrs, [v.type for v in node.outputs])
        known.update(zip(node.outputs, made))
    return builder.build([known[product.output]])


def _seconds(executable: Executable, graph: Graph, index: int) -> float:
    """The shortest time of a call, launches included, over a few rounds."""
    function = executable.function()
    args = [
        allocate(p.value.type.static_shape, p.value.type.dtype.name, index) for p in graph.params
    ]
    best = float("inf")
    for _ in range(_ROUNDS):
        cuda.call("cudaDeviceSynchronize")
        start = perf_counter()
        for _ in range(_RUNS):
            function(*args)
        cuda.call("cudaDeviceSynchronize")
        best = min(best, (perf_counter() - start) / _RUNS)
    return best
