"""What the check on a GPU runs: operators of the table, models, and rows that are timed.

Every item is one graph whose weights are inputs, with a recipe for its inputs. The recipe is data:
the machine with the GPU makes the same arrays with NumPy, so that no weights travel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import tvmgraph as ms
from benchmarks.gpu_inputs import Recipe
from tvmgraph import Tensor, nn, ops
from tvmgraph.config.options import CompileOptions
from tvmgraph.export.capture import Program, capture_program
from tvmgraph.graph import Graph, GraphBuilder, Role
from tvmgraph.passes.freeze import freeze
from tvmgraph.testing.samples import Case, all_cases, has_column, tolerance


@dataclass(frozen=True)
class Item:
    """One graph to run.

    Attributes:
        name: Its name, also that of the peers' version.
        program: The graph; all parameters are inputs.
        inputs: How to make each input.
        labels: The names of the inputs.
        outputs: Names of the outputs, such as of the operators checked.
        expected: The outputs, or ``None`` when only a peer can compute them in time.
        rtol: Relative tolerance of every output.
        flops: Floating-point operations of a run, where they bound its time.
        bytes: Memory traffic of a run, where it bounds its time.
        timed: Whether it is timed.
    """

    name: str
    program: Program
    inputs: tuple[Recipe, ...]
    outputs: tuple[str, ...]
    expected: tuple[np.ndarray, ...] | None
    rtol: tuple[float, ...]
    flops: float = 0.0
    bytes: float = 0.0
    timed: bool = False
    labels: tuple[str, ...] = ()


# ---- operators ----------------------------------------------------------------------------------


def operator_items(samples: int, size: int) -> Iterator[Item]:
    """Yields the operator table: several operators per graph, by family.

    Args:
        samples: Samples of an operator that are used.
        size: Operators of one graph.
    """
    families: dict[str, list[Case]] = {}
    for case in all_cases():
        if has_column(case.op, "lower") and case.index < samples and _is_plain(case):
            families.setdefault(case.op.module.rsplit(".", 1)[-1], []).append(case)
    for family, cases in families.items():
        for start in range(0, len(cases), size):
            yield item_of(f"{family}-{start // size}", cases[start : start + size])


def item_of(name: str, cases: list[Case]) -> Item:
    """Returns one graph that applies several operators, each to inputs of its own."""
    builder = GraphBuilder(name.replace("-", "_"))
    outputs: list[Any] = []
    recipes: list[Recipe] = []
    names: list[str] = []
    expected: list[np.ndarray] = []
    rtol: list[float] = []
    for case in cases:
        graph, arrays = case.graph(), case.cast_arrays()
        known: dict[Any, Any] = {p.value: builder.param(p.value.type) for p in graph.params}
        for node in graph.nodes:
            made = builder.node(
                node.op, [known[v] for v in node.inputs], node.attrs,
                [v.type for v in node.outputs], regions=node.regions,
            )  # fmt: skip
            known.update(zip(node.outputs, made))
        results = [r.asnumpy() for r in case.call([Tensor(a) for a in arrays])]
        outputs += [known[v] for v in graph.outputs]
        names += [f"{case.name}.{i}" for i in range(len(results))]
        rtol += [max(tolerance(case, r.type.dtype), 1e-6) for r in _types(graph)]
        expected += results
        recipes += [Recipe.of(a) for a in arrays]
    graph = builder.build(outputs)
    return Item(
        name, Program(graph, {}, tuple(names)), tuple(recipes), tuple(names), tuple(expected),
        tuple(rtol),
    )  # fmt: skip


def _types(graph: Graph) -> Any:
    return graph.outputs


def _is_plain(case: Case) -> bool:
    """Whether inputs and outputs are arrays of fixed shapes that can be shipped."""
    try:
        graph = case.graph()
    except ms.errors.TvmgraphError:
        return False
    types = [v.type for v in (*[p.value for p in graph.params], *graph.outputs)]
    return all(t.is_static and t.dtype.kind != "c" for t in types) and not graph.consts


# ---- networks -----------------------------------------------------------------------------------


def network_item(
    name: str, net: Any, inputs: list[Recipe], rtol: float, *, dtype: Any = None,
    training: bool = False, check: bool = True, **cost: float,
) -> Item:  # fmt: skip
    """Returns a network whose weights are inputs.

    Args:
        name: Its name.
        net: A Cell or a function.
        inputs: How to make its arguments.
        rtol: Relative tolerance.
        dtype: What its weights are converted to.
        training: Whether it is captured in training mode.
        check: Whether the expected outputs are computed here, in float32.
        cost: ``flops`` or ``bytes`` of a run; with either it is timed.
    """
    arguments = [Tensor(r.make()) for r in inputs]
    if dtype is not None:
        for p in net.get_parameters():
            if p.dtype.is_float:
                p.set_dtype(dtype)
    program = capture_program(net, tuple(arguments), training=training)
    graph, labels = (program.graph, {}) if training else _frozen(program.graph)
    given = iter(inputs)
    recipes = [
        next(given) if p.role is Role.INPUT else _weight(i, p, labels.get(p.value, p.label))
        for i, p in enumerate(graph.params)
    ]
    params = tuple(replace(p, role=Role.INPUT) for p in graph.params)
    plain = Graph(graph.name, params, graph.consts, graph.nodes, graph.outputs)
    expected = _on_cpu(plain, recipes) if check else None
    count = len(graph.outputs)  # with the new values of parameters, which have no names there
    names = (*program.outputs, *(f"new{i}" for i in range(len(program.outputs), count)))
    return Item(
        name, Program(plain, {}, names), tuple(recipes), names, expected,
        (rtol,) * count, timed=bool(cost),
        labels=tuple(labels.get(p.value, p.label) for p in graph.params), **cost,
    )  # fmt: skip


def _frozen(graph: Graph) -> tuple[Graph, dict[Any, str]]:
    """Returns what runs in every call of a network in inference, and names for prepared weights.

    A prepared value is named after the first weight that it is computed from: the weight of a
    convolution after that, the offset of a batch norm after one of its parameters.
    """
    split = freeze(graph, CompileOptions(target="sm_90"))
    if split is None:
        return graph, {}
    names = {p.value: p.label for p in graph.params}
    for step in split.steps:
        first = max((v for v in step.inputs if v in names), key=lambda v: v.type.ndim)
        names.update((v, names[first]) for v in step.outputs)
    return split.main, {v: f"{names[v]}.prepared" for v in split.prepared}


def _weight(number: int, param: Any, label: str) -> Recipe:
    kind = param.value.type
    shape = kind.static_shape
    if label.endswith(".prepared") and len(shape) == 6:  # of a convolution, outputs last
        fan = math.prod(shape[:5])
        return Recipe("normal", shape, kind.dtype.name, 1000 + number, 1 / math.sqrt(fan))
    return Recipe.weight(number, label, shape, kind.dtype.name)


def _on_cpu(graph: Graph, recipes: list[Recipe]) -> tuple[np.ndarray, ...]:
    from tvmgraph.compiler import compile_graph

    executable, _ = compile_graph(graph)
    found = executable.run([Tensor(r.make()) for r in recipes], [v.type for v in graph.outputs])
    return tuple(np.asarray(t.asnumpy(), np.float32) for t in found)


@dataclass
class _Rows:
    """The networks and timed rows by name, made when they are wanted."""

    makers: dict[str, Callable[[], Item]] = field(default_factory=dict)

    def row(self, maker: Callable[[], Item]) -> Callable[[], Item]:
        """Adds the row that a function makes, under the function's name."""
        self.makers[maker.__name__] = maker
        return maker


ROWS = _Rows()
_LOSS_SCALE = 1024.0


def _normal(
    seed: int, shape: tuple[int, ...], dtype: str = "float32", scale: float = 1.0
) -> Recipe:
    return Recipe("normal", shape, dtype, seed, scale)


class _LeNet(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.SequentialCell(
            nn.Conv2d(1, 6, 5, pad_mode="valid"), nn.ReLU(), nn.MaxPool2d(2, 2),
            nn.Conv2d(6, 16, 5, pad_mode="valid"), nn.ReLU(), nn.MaxPool2d(2, 2),
            nn.Flatten(), nn.Dense(256, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(),
            nn.Dense(84, 10),
        )  # fmt: skip

    def construct(self, x: Tensor) -> Tensor:
        return self.body(x)


@ROWS.row
def lenet() -> Item:
    """LeNet on 32 images."""
    return network_item("lenet", _LeNet(), [_normal(1, (32, 1, 28, 28))], 1e-3)


@ROWS.row
def training_step() -> Item:
    """Loss, gradients and the update of Adam for LeNet, as one graph."""
    net = _LeNet()
    optimizer = nn.Adam(net.trainable_params(), 0.001)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)
    labels = Recipe("labels", (32,), "int32", 2, 10)
    images = _normal(1, (32, 1, 28, 28))
    return network_item("training_step", step, [images, labels], 5e-3, training=True)


@ROWS.row
def residual_training() -> Item:
    """A step of SGD for a residual network of ten layers in f16.

    The rate is so large that the new weights are mostly gradients, which a loss scale keeps out of
    the numbers of f16 that have few bits. Rounding to f16 at other places is another result: every
    output may be twice as far off as f16 is from float32 on the processor.
    """
    halves, exact = (_residual_step(dtype) for dtype in (ms.float16, ms.float32))
    pairs = zip(halves.expected or (), exact.expected or ())
    apart = [float(np.abs(h - e).max() / max(np.abs(e).max(), 1e-9)) for h, e in pairs]
    return replace(halves, rtol=tuple(5e-2 + 2 * share for share in apart))


def _residual_step(dtype: Any) -> Item:
    from tests.models.resnet import ResNet, basic

    net = ResNet(basic, (1, 1, 1, 1), 1, 10).to_float(dtype)
    optimizer = nn.SGD(net.trainable_params(), 10.0 / _LOSS_SCALE)
    loss = nn.WithLossCell(net, nn.CrossEntropyLoss())
    step = nn.TrainOneStepCell(loss, optimizer, sens=_LOSS_SCALE)
    labels = Recipe("labels", (16,), "int32", 2, 10)
    images = _normal(1, (16, 3, 64, 64))
    return network_item("residual_training", step, [images, labels], 5e-2, training=True)


@ROWS.row
def elementwise() -> Item:
    """``relu(x * y + x)`` on 64 Mi float32 elements."""
    shape = (8192, 8192)
    return network_item(
        "elementwise", lambda x, y: ops.relu(x * y + x), [_normal(1, shape), _normal(2, shape)],
        1e-6, bytes=3 * 4 * 8192 * 8192,
    )  # fmt: skip


@ROWS.row
def reduce_all() -> Item:
    """The sum of 64 Mi float32 elements."""
    return network_item(
        "reduce_all", lambda x: x.sum(), [_normal(1, (8192, 8192))], 1e-3,
        bytes=4 * 8192 * 8192,
    )  # fmt: skip


@ROWS.row
def reduce_columns() -> Item:
    """Sums over the first axis."""
    return network_item(
        "reduce_columns", lambda x: x.sum(axis=0), [_normal(1, (8192, 8192))], 1e-3,
        bytes=4 * 8192 * 8192,
    )  # fmt: skip


@ROWS.row
def softmax() -> Item:
    """Softmax of 8192 rows of 8192."""
    return network_item(
        "softmax", lambda x: ops.softmax(x, axis=-1), [_normal(1, (8192, 8192))], 1e-4,
        bytes=2 * 4 * 8192 * 8192,
    )  # fmt: skip


@ROWS.row
def transpose() -> Item:
    """A transposed copy."""
    return network_item(
        "transpose", lambda x: ops.transpose(x, (1, 0)) * 2.0, [_normal(1, (8192, 8192))], 1e-6,
        bytes=2 * 4 * 8192 * 8192,
    )  # fmt: skip


@ROWS.row
def gemm_bf16() -> Item:
    """A bf16 product of 8192 x 8192 matrices."""
    shape = (8192, 8192)
    return network_item(
        "gemm_bf16", ops.matmul, [_normal(1, shape, "bfloat16"), _normal(2, shape, "bfloat16")],
        2e-2, check=False, flops=2 * 8192.0**3,
    )  # fmt: skip


@ROWS.row
def attention() -> Item:
    """Attention of 16 heads, 2048 queries and keys of 64 numbers, f16."""
    shape = (1, 16, 2048, 64)
    return network_item(
        "attention", lambda q, k, v: ops.softmax((q @ k.swapaxes(-1, -2)) * 0.125, axis=-1) @ v,
        [_normal(i, shape, "float16") for i in (1, 2, 3)], 1e-2,
        flops=4 * 16 * 2048.0**2 * 64,
    )  # fmt: skip


@ROWS.row
def mlp() -> Item:
    """A perceptron of 784, 512, 512, 10 on 64 rows: a call's overhead."""
    net = nn.SequentialCell(
        nn.Dense(784, 512), nn.ReLU(), nn.Dense(512, 512), nn.ReLU(), nn.Dense(512, 10)
    )
    return network_item("mlp", net, [_normal(1, (64, 784))], 1e-3, flops=2 * 64.0 * 668_672)


@ROWS.row
def bert_layer() -> Item:
    """One encoder layer of BERT-base, 32 x 128 tokens, bf16."""
    layer = _encoder_layer().set_train(False)
    return network_item(
        "bert_layer", layer, [_normal(1, (32, 128, 768), "bfloat16")], 5e-2, dtype=ms.bfloat16,
        flops=_LAYER_FLOPS,
    )  # fmt: skip


def _encoder_layer() -> nn.Cell:
    return nn.TransformerEncoderLayer(
        768, 12, 3072, dropout=0.0, activation="gelu", batch_first=True
    )


#: Operations of a layer for 32 x 128 tokens.
_LAYER_FLOPS = 32 * 128 * (8 * 768.0**2 + 4 * 768.0 * 3072 + 4 * 128 * 768.0)


@ROWS.row
def bert_base() -> Item:
    """The twelve encoder layers of BERT-base, 32 x 128 tokens, bf16."""
    net = nn.SequentialCell(*[_encoder_layer() for _ in range(12)]).set_train(False)
    return network_item(
        "bert_base", net, [_normal(1, (32, 128, 768), "bfloat16")], 5e-2, dtype=ms.bfloat16,
        check=False, flops=12 * _LAYER_FLOPS,
    )  # fmt: skip


@ROWS.row
def bert_training() -> Item:
    """A step of Adam for one encoder layer of BERT-base, 32 x 128 tokens, bf16 products."""
    layer = _encoder_layer().to_float(ms.bfloat16)
    optimizer = nn.Adam(layer.trainable_params(), 1e-4)
    step = nn.TrainOneStepCell(nn.WithLossCell(layer, nn.MSELoss()), optimizer)
    batch = [_normal(seed, (32, 128, 768)) for seed in (1, 2)]
    return network_item(
        "bert_training", step, batch, 2e-2, training=True, check=False, flops=3 * _LAYER_FLOPS
    )


@ROWS.row
def resnet18_training() -> Item:
    """A step of SGD with momentum for ResNet-18 on 64 images, f16 convolutions."""
    from tests.models.resnet import resnet18 as make

    net = make().to_float(ms.float16)
    optimizer = nn.Momentum(net.trainable_params(), 1e-3, 0.9)
    loss = nn.WithLossCell(net, nn.CrossEntropyLoss())
    step = nn.TrainOneStepCell(loss, optimizer, sens=_LOSS_SCALE)
    batch = [_normal(1, (64, 3, 224, 224)), Recipe("labels", (64,), "int32", 2, 1000)]
    return network_item(
        "resnet18_training", step, batch, 2e-2, training=True, check=False, flops=64 * 3 * 3.6e9
    )


@ROWS.row
def resnet50() -> Item:
    """ResNet-50 on 64 images, f16."""
    from tests.models.resnet import resnet50 as make

    net = make()
    net.set_train(False)
    return network_item(
        "resnet50", net, [_normal(1, (64, 3, 224, 224), "float16")], 5e-2, dtype=ms.float16,
        flops=64 * 8.2e9,
    )  # fmt: skip
