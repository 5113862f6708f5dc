"""Convolutions of frozen graphs: blocks of channels, Winograd's method, depthwise, layouts."""

import math
import re
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax, tirx

import tvmgraph as ms
from tests.backend.driver import fused, module
from tvmgraph import Parameter, Tensor, jit, nn, ops
from tvmgraph.backend.cpu.kernels.conv import im2col
from tvmgraph.backend.loop_ir.program import parse
from tvmgraph.config import context
from tvmgraph.core.op import OPS
from tvmgraph.lowering.builder import RelaxBuilder
from tvmgraph.machine.processor import cpu_model
from tvmgraph.numerics.winograd import best_tile, matrices, transform_weight
from tvmgraph.ops.conv import phases as _conv_phases
from tvmgraph.ops.internal.conv_nchwc import from_nchwc, pack_weight, to_nchwc
from tvmgraph.passes.freeze import arrange, freeze


def fill(*shape, seed=0, dtype="float32"):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def convolve(x, w, stride=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1):
    """The sums in float64."""
    return OPS["convolution"].eager(
        x.astype("float64"), w.astype("float64"), stride=stride, padding=padding,
        dilation=dilation, groups=groups,
    )  # fmt: skip


def close(got, want, tolerance=3e-6):
    assert got.shape == want.shape
    scale = max(1.0, np.abs(want).max()) if want.size else 1.0
    np.testing.assert_allclose(got.astype("float64"), want, rtol=0, atol=tolerance * scale)


def alike(got, want):
    """Where something is not finite, too."""
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
    finite = np.isfinite(want)
    np.testing.assert_allclose(got[finite], want[finite], rtol=1e-4, atol=1e-4)


TOLERANCES = {"float32": 3e-6, "float64": 1e-14, "float16": 2e-3, "bfloat16": 2e-2}


@settings(max_examples=14, deadline=None, derandomize=True)
@given(
    st.integers(1, 3), st.sampled_from([1, 3, 8, 24, 32]), st.sampled_from([8, 16, 40, 48]),
    st.tuples(st.integers(1, 20), st.integers(1, 20)),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.tuples(st.integers(1, 3), st.integers(1, 2)), st.integers(0, 2), st.integers(1, 2),
    st.sampled_from(["float32", "float32", "float64", "float16", "bfloat16"]),
)  # fmt: skip
def test_blocked_convolution(n, inputs, outputs, size, kernel, stride, pad, dilation, dtype):
    reach = [(k - 1) * dilation + 1 for k in kernel]
    size = [max(s, r) for s, r in zip(size, reach)]
    block, out = next(b for b in (16, 8, 1) if inputs % b == 0), 16 if outputs % 16 == 0 else 8
    x = Tensor(fill(n, inputs, *size)).astype(dtype).asnumpy()
    wide = "float64" if dtype == "float64" else "float32"
    w = fill(outputs, inputs, *kernel, seed=1, dtype=wide)
    options = dict(stride=stride, padding=((pad, pad), (0, pad)), dilation=(dilation, dilation))
    image = to_nchwc(x, block) if block > 1 else x
    f = jit(lambda x, w: ops.relu(ops.conv_nchwc(x, w, **options)))
    got = f(Tensor(image), Tensor(pack_weight(w, block, out))).asnumpy()
    close(from_nchwc(got), np.maximum(convolve(x, w, **options), 0), TOLERANCES[dtype])


@pytest.mark.parametrize("block", [8, 16])
@pytest.mark.parametrize("size", [(1, 1), (7, 7), (17, 31)])
def test_pointwise_convolution_of_many_channels(size, block, cpu):
    """Positions run on from row to row; with AVX2 a part of the channels at a time."""
    x, bias, w = fill(2, 1280, *size), fill(1, 48, 1, 1), fill(48, 1280, 1, 1, seed=1)

    def f(x, w, bias):
        y = ops.conv_nchwc(x, w, stride=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1))
        return ops.gelu(y * 0.05 + bias)

    args = [Tensor(a) for a in (to_nchwc(x, 16), pack_weight(w, 16, block), to_nchwc(bias, block))]
    function = jit(f)
    y = convolve(x, w) * 0.05 + bias
    close(
        from_nchwc(function(*args).asnumpy()), 0.5 * y * (1 + np.vectorize(math.erf)(y * 0.5**0.5))
    )
    explained = function.explain(kernels=True)
    if size != (1, 1):  # which has no rows
        assert "flat=True" in explained
        assert ("k_blocks=5" in explained) == cpu_model(cpu).has_few_registers


@pytest.mark.parametrize("size", [(2, 3), (9, 11), (40, 67)])
def test_strided_convolution_of_many_channels(size, cpu):
    """Rows do not follow one another; with AVX2 a part of the channels at a time all the same."""
    x, w = fill(1, 512, *size), fill(48, 512, 3, 3, seed=1)
    options = dict(stride=(2, 2), padding=((1, 1), (1, 1)), dilation=(1, 1))
    function = jit(lambda x, w: ops.relu(ops.conv_nchwc(x, w, **options)))
    got = function(Tensor(to_nchwc(x, 16)), Tensor(pack_weight(w, 16, 16)))
    close(from_nchwc(got.asnumpy()), np.maximum(convolve(x, w, **options), 0))
    explained = function.explain(kernels=True)
    assert ("k_blocks=1," in explained or "k_blocks=1)" in explained) != (
        cpu_model(cpu).has_few_registers
    )


@pytest.mark.parametrize("width", [2601, 2643])
def test_rows_that_no_cache_holds(width, cpu):
    """A row is gone through in parts, each with all channels, where L2 does not hold its pixels."""
    x, w = fill(1, 128, 1, width), fill(32, 128, 1, 3, seed=1)
    options = dict(stride=(1, 2), padding=((0, 0), (1, 1)), dilation=(1, 1))
    function = jit(lambda x, w: ops.relu(ops.conv_nchwc(x, w, **options)))
    got = function(Tensor(to_nchwc(x, 16)), Tensor(pack_weight(w, 16, 16)))
    close(from_nchwc(got.asnumpy()), np.maximum(convolve(x, w, **options), 0))
    columns = re.search(r"columns=Split\(extent=(\d+), item=(\d+)", function.explain(kernels=True))
    assert columns is not None
    extent, item = map(int, columns.groups())
    assert (item < extent) == (x.nbytes > cpu_model(cpu).l2_bytes)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    st.integers(1, 2), st.sampled_from([8, 24, 32]),
    st.tuples(st.integers(1, 33), st.integers(1, 33)),
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)), st.integers(0, 2), st.integers(1, 2),
    st.sampled_from(["float32", "float64", "float16"]),
)  # fmt: skip
def test_depthwise_convolution(n, channels, size, kernel, stride, pad, dilation, dtype):
    size = [max(s, (k - 1) * dilation + 1) for s, k in zip(size, kernel)]
    block = 16 if channels % 16 == 0 else 8
    x = fill(n, channels, *size, dtype=dtype)
    w = fill(channels, 1, *kernel, seed=1, dtype="float64" if dtype == "float64" else "float32")
    options = dict(stride=stride, padding=((pad, 0), (pad, pad)), dilation=(dilation, dilation))
    f = jit(lambda x, w: ops.depthwise_nchwc(x, w, **options) * 2)
    cut = to_nchwc(w[:, 0][None], block)[0]
    got = from_nchwc(f(Tensor(to_nchwc(x, block)), Tensor(cut)).asnumpy())
    close(got, 2 * convolve(x, w, groups=channels, **options), TOLERANCES[dtype])


@settings(max_examples=6, deadline=None, derandomize=True)
@given(
    st.integers(1, 2), st.integers(2, 5), st.sampled_from([(16, 16), (16, 32), (32, 16), (8, 24)]),
    st.tuples(st.integers(1, 19), st.integers(1, 19)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)), st.integers(1, 2), st.integers(1, 2),
    st.sampled_from(["float32", "float64", "float16"]),
)  # fmt: skip
def test_groups_of_whole_blocks(n, groups, channels, size, kernel, stride, dilation, dtype):
    inputs, outputs = channels
    block = 16 if inputs % 16 == outputs % 16 == 0 else 8
    x = fill(n, groups * inputs, *size, dtype=dtype)
    wide = "float64" if dtype == "float64" else "float32"
    w = fill(groups * outputs, inputs, *kernel, seed=1, dtype=wide)
    options = dict(stride=(stride, 1), padding=((2, 2), (2, 1)), dilation=(dilation, 1))
    f = jit(lambda x, w: ops.relu(ops.conv_nchwc(x, w, **options)))
    got = f(Tensor(to_nchwc(x, block)), Tensor(pack_weight(w, block, block))).asnumpy()
    want = np.maximum(convolve(x, w, groups=groups, **options), 0)
    close(from_nchwc(got), want, TOLERANCES[dtype])


def test_grouped_convolutions_keep_blocks():
    layers = [nn.Conv2d(24, 64, 1), nn.Conv2d(64, 64, 3, group=4), nn.Conv2d(64, 96, 3, group=2)]
    net = nn.SequentialCell(*layers, nn.Conv2d(96, 32, 3, group=8), nn.Conv2d(32, 16, 1))
    x, net = Tensor(fill(2, 24, 12, 7)), net.set_train(False)  # rows that fill no vector
    names = [node.op.name for node in freeze(jit(net).graph(x)).main.nodes]
    assert names.count("conv_nchwc") + names.count("conv_winograd") == 4
    assert (
        "conv_winograd" in names and names.count("convolution") == 1
    )  # groups of 12 and 4 channels are no blocks
    close(jit(net)(x).asnumpy(), net(x).asnumpy().astype("float64"), 1e-5)


def winograd(x, w, tile, padding, block=16, groups=1):
    """The kernel, with a bias and ReLU as its epilogue."""
    bias = Tensor(fill(w.shape[0] // block, 1, 1, block, seed=5, dtype=w.dtype))
    f = jit(lambda x, w, u, b: ops.relu(ops.conv_winograd(x, w, u, padding) + b))
    weights = pack_weight(w, block, block), transform_weight(w, tile, block)
    got = f(Tensor(to_nchwc(x, block)), *map(Tensor, weights), bias).asnumpy()
    want = convolve(x, w, padding=padding, groups=groups)
    want += from_nchwc(bias.asnumpy()[None]).reshape(1, -1, 1, 1)
    return from_nchwc(got), np.maximum(want, 0)


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize(
    "n, inputs, outputs, height, width, padding",
    [
        (1, 16, 16, 2, 2, ((1, 1), (1, 1))),
        (2, 32, 48, 7, 9, ((1, 1), (1, 1))),
        (1, 48, 16, 13, 5, ((0, 0), (2, 1))),
        (3, 16, 32, 20, 18, ((1, 0), (0, 1))),
    ],
)
def test_winograd(tile, n, inputs, outputs, height, width, padding):
    x, w = fill(n, inputs, height, width), fill(outputs, inputs, 3, 3, seed=1)
    close(*winograd(x, w, tile, padding))
    close(*winograd(x.astype("f8"), w.astype("f8"), tile, padding), tolerance=1e-14)


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize(
    "groups, inputs, outputs, size",
    [(3, 16, 16, (7, 9)), (2, 32, 48, (2, 13)), (4, 16, 32, (6, 5))],
)
def test_winograd_of_groups(tile, groups, inputs, outputs, size):
    x, w = fill(2, groups * inputs, *size), fill(groups * outputs, inputs, 3, 3, seed=1)
    close(*winograd(x, w, tile, ((1, 1), (1, 1)), groups=groups))
    x[1, -1, 0, 0] = np.inf
    alike(*winograd(x, w, tile, ((1, 1), (1, 1)), groups=groups))


@pytest.mark.parametrize("tile", [2, 4])
def test_winograd_keeps_what_is_not_finite_where_it_belongs(tile):
    x, w = fill(2, 16, 11, 14), fill(32, 16, 3, 3, seed=1)
    x[0, 3, 5, 4], x[1, 0, 0, 0], x[1, 7, 10, 13] = np.inf, np.nan, -np.inf
    x[0, 1, 10, 0] = 3e38  # finite, and no sum overflows but that of the transform
    w[:, 1] *= 1e-3
    alike(*winograd(x, w, tile, ((1, 1), (1, 1))))


def test_the_block_of_a_winograd_convolution_names_its_transformed_weight():
    """Among operands of one shape, which fusion renames."""

    def build(block, x, w, u, other):
        builder = RelaxBuilder(block)
        padding = ((0, 0), (0, 0))
        y = OPS["conv_winograd"].lower(builder, x, w, u, padding=padding)
        spread = block.emit(relax.op.sum(other, axis=[0, 1, 2], keepdims=False))
        return block.emit(relax.op.add(y, spread))

    weights = [(s, "float32") for s in [(1, 1, 3, 3, 8, 8), (16, 1, 8, 8), (16, 1, 8, 8)]]
    mod = fused(module(build, ((1, 1, 4, 4, 8), "float32"), *weights))
    found = {
        str(buffer.name)
        for func in mod.functions.values()
        if isinstance(func, tirx.PrimFunc)
        for stage in parse(func).stages
        for buffer in stage.declared
    }
    assert found == {"x2"}


@pytest.mark.parametrize("tile", [2, 4])
def test_matrices_of_winograd_are_exact(tile):
    maths, rng = matrices(tile), np.random.default_rng(0)
    g, d = rng.standard_normal((3, 3)), rng.standard_normal((tile + 2, tile + 2))
    products = (maths.weight @ g @ maths.weight.T) * (maths.input @ d @ maths.input.T)
    got = maths.output @ products @ maths.output.T
    want = [[(d[i : i + 3, j : j + 3] * g).sum() for j in range(tile)] for i in range(tile)]
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("per_byte", [3.6, 7.1])  # operations, with AVX2 and with AVX-512
def test_winograd_is_chosen_where_its_weights_are_worth_reading(per_byte):
    def tiles(side):
        return lambda tile: (-(-side // tile)) ** 2

    assert best_tile(tiles(56), 64, 64, 56**2, per_byte) == 4
    assert best_tile(tiles(7), 512, 512, 49, per_byte) == 2  # 4 would read four times the weights
    assert best_tile(tiles(2), 512, 512, 4, per_byte) is None


# ---- whole graphs ------------------------------------------------------------------------------


class Residual(nn.Cell):
    """Everything that keeps blocks: residual, scale per channel, pooling, concatenation, mean."""

    def __init__(self):
        super().__init__()
        self.stem = nn.SequentialCell(
            nn.Conv2d(3, 32, 3, 2, pad_mode="pad", padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.MaxPool2d(3, 2, pad_mode="same"),
        )  # fmt: skip
        self.one = nn.Conv2d(32, 32, 3, pad_mode="pad", padding=1, has_bias=True)
        self.deep = nn.Conv2d(32, 32, 3, 1, pad_mode="pad", padding=1, group=32)
        self.squeeze = nn.Conv2d(32, 8, 1, has_bias=True)
        self.excite = nn.Conv2d(8, 32, 1, has_bias=True)
        self.odd = nn.Conv2d(64, 21, 1, has_bias=True)
        self.scale = Parameter(Tensor(fill(1, 1, 10, 1)), name="scale")

    def construct(self, x):
        x = self.stem(x)
        y = ops.relu(self.one(x)) + x
        gate = ops.sigmoid(self.excite(ops.relu(self.squeeze(y.mean((2, 3), keep_dims=True)))))
        y = self.deep(y) * gate * self.scale
        y = ops.concat([y, ops.avg_pool2d(ops.gelu(x), 3, 1, padding=1)], 1)
        return self.odd(y), y.mean((2, 3)), y


def test_layout_of_a_whole_graph():
    net = Residual().set_train(False)
    x = Tensor(fill(2, 3, 40, 40))
    function = jit(net)
    names = [node.op.name for node in freeze(function.graph(x)).main.nodes]
    assert names.count("transpose") == 1  # only the result that is returned as an image
    assert "convolution" in names  # 21 channels make no blocks
    assert {"conv_nchwc", "depthwise_nchwc", "conv_winograd"} <= set(names)
    for got, want in zip(function(x), net(x)):
        close(got.asnumpy(), want.asnumpy().astype("float64"), 1e-5)


def test_a_convolution_alone_stays_plain():
    net = nn.SequentialCell(nn.Conv2d(24, 32, 1), nn.ReLU()).set_train(False)
    main = freeze(jit(net).graph(Tensor(fill(1, 24, 20, 20))))
    names = [node.op.name for node in main.main.nodes] if main else ["convolution"]
    assert "convolution" in names and "transpose" not in names


#: Inputs, outputs, kernel, stride and padding of transposed convolutions.
TRANSPOSED: dict[tuple[Any, ...], bool] = {
    (16, 16, 4, 2, 1): True,
    (16, 8, 6, 2, 2): True,
    (24, 16, 2, 2, 0): True,
    (16, 32, 3, 1, 1): True,
    (8, 16, 5, (3, 1), 1): True,
    (8, 8, (3, 4), (1, 2), (1, 1, 1, 1)): True,
    (16, 16, 3, 2, 1): False,  # an odd number of rows
    (16, 12, 4, 2, 1): False,  # no blocks
    (16, 16, 3, 3, 2): False,  # cut where the parts would need less than no padding
}


class Transposed(nn.Cell):
    """Transposed convolutions of one image, each before another convolution."""

    def __init__(self):
        super().__init__()
        self.layers = nn.CellList([
            nn.SequentialCell(
                nn.Conv2dTranspose(i, o, k, s, "pad", p, has_bias=True), nn.BatchNorm2d(o),
                nn.ReLU(), nn.Conv2d(o, 8, 1),
            )
            for i, o, k, s, p in TRANSPOSED
        ])  # fmt: skip

    def construct(self, x):
        return [layer(x[:, : layer[0].in_channels]) for layer in self.layers]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_transposed_convolutions_become_plain_ones(dtype):
    net = Transposed().set_train(False).to_float(getattr(ms, dtype))
    x = Tensor(fill(2, 24, 5, 6, dtype=dtype))
    function = jit(net)
    names = [node.op.name for node in freeze(function.graph(x)).main.nodes]
    assert names.count("conv_transpose") == list(TRANSPOSED.values()).count(False)
    for got, want in zip(function(x), net(x)):
        close(got.asnumpy(), want.asnumpy().astype("float64"), max(1e-5, TOLERANCES[dtype]))


@pytest.mark.parametrize("threads", [1, 2])
def test_any_number_of_threads(threads, monkeypatch):
    monkeypatch.setattr(context, "thread_num", threads)
    net = Residual().set_train(False)
    x = Tensor(fill(1, 3, 39, 40, seed=3))
    for got, want in zip(jit(net)(x), net(x)):
        close(got.asnumpy(), want.asnumpy().astype("float64"), 1e-5)


# ---- graphs that are not frozen ----------------------------------------------------------------

PLAIN = dict(stride=(1, 1), padding=((1, 1), (1, 1)), dilation=(1, 1), groups=1)
USES = {
    "slice": lambda y: y[:, :3, 1:-1],
    "step": lambda y: (y * 2)[:, ::2],
    "pad": lambda y: ops.pad(ops.relu(y), (1, 0, 2, 1)),
    "softmax": lambda y: ops.softmax(y, 1),
    "two results": lambda y: ops.concat([ops.relu(y), y[:, :, ::2].repeat((1, 1, 2, 1))], 1),
    "turned": lambda y: y.transpose(0, 2, 3, 1) + 1,
}


@pytest.mark.parametrize("use", USES)
def test_what_no_epilogue_can_be(use):
    x, w = fill(2, 5, 12, 12), fill(8, 5, 3, 3, seed=1)
    body = USES[use]
    got = jit(lambda x, w: body(ops.convolution(x, w, **PLAIN)))(Tensor(x), Tensor(w))
    want = body(Tensor(convolve(x, w, **PLAIN)))
    close(got.asnumpy(), want.asnumpy())


@pytest.mark.parametrize(
    "n, c, size, o, k, stride, pad, groups",
    [
        (8, 64, (4, 4), 40, 3, 1, 1, 1),
        (8, 32, (2, 2), 40, 3, 1, 1, 1),
        (3, 5, (5, 6), 9, 3, 1, 1, 1),
        (2, 33, (1, 1), 20, 1, 1, 0, 1),
        (5, 9, (9, 3), 12, 3, 2, 1, 1),
        (2, 8, (8, 8), 16, 5, 1, 2, 1),
        (2, 8, (11, 20), 14, 3, 2, 1, 2),
        (1, 12, (20, 37), 9, 3, 1, 1, 3),
    ],
)
def test_small_images_and_their_gradients(n, c, size, o, k, stride, pad, groups):
    options = PLAIN | dict(stride=(stride, stride), padding=((pad, pad), (pad, pad)), groups=groups)
    x, w = fill(n, c, *size), fill(o, c // groups, k, k, seed=1)
    want = convolve(x, w, **options)
    g = fill(*want.shape, seed=2)
    extra = tuple(m + 2 * pad - k - (q - 1) * stride for m, q in zip(size, want.shape[2:]))
    wide = [a.astype("float64") for a in (x, w, g)]
    close(jit(lambda x, w: ops.convolution(x, w, **options))(Tensor(x), Tensor(w)).asnumpy(), want)
    turned = dict(output_padding=extra, **options)
    got = jit(lambda g, w: ops.conv_transpose(g, w, **turned))(Tensor(g), Tensor(w))
    close(got.asnumpy(), OPS["conv_transpose"].eager(wide[2], wide[1], **turned))
    taps = dict(kernel=(k, k), **options)
    got = jit(lambda x, g: ops.conv_weight_grad(x, g, **taps))(Tensor(x), Tensor(g))
    close(got.asnumpy(), OPS["conv_weight_grad"].eager(wide[0], wide[2], **taps))


@pytest.mark.parametrize(
    "n, c, size, o, kernel, stride, pad, groups, dtype",
    [
        (2, 5, (12, 13), 16, (3, 3), (1, 1), 1, 1, "float32"),
        (1, 2, (70, 75), 64, (3, 2), (1, 2), 0, 1, "float32"),  # bands of rows
        (3, 4, (10, 37), 40, (2, 3), (2, 1), 1, 1, "float64"),
        (1, 8, (11, 30), 48, (3, 3), (1, 1), 1, 2, "float32"),
        (2, 6, (9, 41), 30, (5, 5), (2, 2), 2, 1, "float32"),  # lanes of no channel
        (2, 20, (33,), 13, (3,), (2,), 1, 1, "float16"),
        (1, 3, (5, 6, 19), 24, (2, 3, 3), (1, 2, 1), 1, 1, "float32"),
        (1, 40, (1, 17), 16, (1, 3), (1, 1), 0, 1, "float64"),
    ],
)
def test_gradient_of_weights_by_channels(n, c, size, o, kernel, stride, pad, groups, dtype):
    taps = dict(kernel=kernel, stride=stride, padding=((pad, pad),) * len(size),
                dilation=(1,) * len(size), groups=groups)  # fmt: skip
    out = [(m + 2 * pad - k) // s + 1 for m, k, s in zip(size, kernel, stride)]
    x, g = fill(n, c, *size, dtype=dtype), fill(n, o, *out, seed=2, dtype=dtype)
    old = fill(o, c // groups, *kernel, seed=3, dtype=dtype)
    step = jit(lambda w, x, g: w - 0.5 * ops.conv_weight_grad(x, g, **taps))
    wide = [a.astype("float64") for a in (old, x, g)]
    want = wide[0] - 0.5 * OPS["conv_weight_grad"].eager(*wide[1:], **taps)
    close(step(*map(Tensor, (old, x, g))).asnumpy(), want, TOLERANCES[dtype])


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.data())
def test_strided_transposed_convolution(data):
    axes = data.draw(st.integers(1, 3))
    drawn = [
        data.draw(st.tuples(*[st.integers(low, high)] * axes))
        for low, high in ((1, 6), (1, 5), (1, 3), (0, 2), (0, 2))
    ]
    size, kernel, stride, cut, extra = drawn
    groups = data.draw(st.sampled_from([1, 1, 2]))
    full = [(n - 1) * s + k for n, s, k in zip(size, stride, kernel)]
    padding = tuple((min(c, f - 1), 0) for c, f in zip(cut, full))
    options = dict(
        stride=stride, padding=padding, dilation=(1,) * axes, groups=groups,
        output_padding=tuple(min(e, s - 1) for e, s in zip(extra, stride)),
    )  # fmt: skip
    least = data.draw(st.sampled_from([0, 1 << 40]))  # residues with more taps apart, or not
    with mock.patch.multiple(_conv_phases, _MIN_APART=least, _MIN_CHANNELS=1):
        _check_transposed(fill(2, 2 * groups, *size), (3, *kernel), options)


@pytest.mark.parametrize("cut, extra, groups", [(0, 0, 1), (1, 0, 2), (0, 1, 1)])
def test_transposed_convolution_of_one_pixel(cut, extra, groups):
    options = dict(stride=(2, 3), padding=((cut, 0), (0, cut)), output_padding=(0, extra),
                   dilation=(1, 1), groups=groups)  # fmt: skip
    _check_transposed(fill(5, 6, 1, 1), (7, 4, 3), options)


def _check_transposed(x, weight, options):
    w = fill(x.shape[1], *weight, seed=1)
    want = OPS["conv_transpose"].eager(x.astype("float64"), w.astype("float64"), **options)
    got = jit(lambda x, w: ops.conv_transpose(x, w, **options))(Tensor(x), Tensor(w))
    close(got.asnumpy(), want)


@pytest.mark.parametrize("size, kernel", [(28, 2), (30, 3), (13, 3), (5, 2), (64, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_pooling_with_stride_two(size, kernel, dtype):
    x = fill(2, 3, size, size, dtype=dtype)
    x[0, 0, 1, 1], x[1, 2, 2, 0] = np.nan, np.inf
    got = jit(lambda x: ops.max_pool2d(x, kernel, 2))(Tensor(x)).asnumpy()
    view = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), (2, 3))[:, :, ::2, ::2]
    np.testing.assert_array_equal(got, view.max((4, 5)))


@settings(max_examples=6, deadline=None, derandomize=True)
@given(
    st.integers(1, 2), st.sampled_from([8, 24, 32]), st.sampled_from([16, 24]),
    st.tuples(st.integers(19, 40), st.integers(17, 40)), st.integers(0, 2),
    st.sampled_from(["float32", "float64"]),
)  # fmt: skip
def test_winograd_with_a_weight_of_the_call(n, inputs, outputs, size, pad, dtype):
    x, w = fill(n, inputs, *size, dtype=dtype), fill(outputs, inputs, 3, 3, seed=1, dtype=dtype)
    f = jit(lambda x, w: ops.relu(ops.conv2d(x, w, None, 1, "pad", pad)) * 2)
    got = f(Tensor(x), Tensor(w)).asnumpy()
    want = 2 * np.maximum(convolve(x, w, padding=((pad, pad), (pad, pad))), 0)
    close(got, want, {"float32": 4e-6, "float64": 1e-13}[dtype])


def test_weights_of_a_call_are_transformed_where_the_image_is_large():
    def names(channels, size, **options):
        x, w = Tensor(fill(1, channels, size, size)), Tensor(fill(channels, channels, 3, 3))
        graph = jit(lambda x, w: ops.conv2d(x, w, None, **options)).graph(x, w)
        return [node.op.name for node in arrange(graph).nodes]

    assert "conv_winograd" in names(64, 56, stride=1)
    assert names(256, 14, stride=1) == ["convolution"]  # as much work as the products
    assert names(64, 56, stride=2) == ["convolution"]
    weights = [Tensor(fill(64, 64, 3, 3))]
    step = ms.grad(lambda x, w: ops.conv2d(x, w).sum(), 1)
    graph = jit(step).graph(Tensor(fill(1, 64, 56, 56)), *weights)
    assert arrange(graph) is graph  # derivatives read plain images


@pytest.mark.parametrize("blocks, kernel", [(16, 3), (17, 5), (4, 1)])
@pytest.mark.usefixtures("compiled_here")
def test_image_gradient_of_weights_that_no_cache_holds(blocks, kernel, monkeypatch):
    """They are copied to where the rows of the product lie along memory."""
    monkeypatch.setattr(im2col, "_fits", lambda *_: False)
    pad = kernel // 2
    g, w = fill(2, 40, 5, 4), fill(40, 12 * blocks, kernel, kernel, seed=blocks)
    turned = PLAIN | dict(output_padding=(0, 0), padding=((pad, pad),) * 2)
    want = OPS["conv_transpose"].eager(g.astype("float64"), w.astype("float64"), **turned)
    transposed = jit(lambda g, w: ops.conv_transpose(g, w, **turned))
    close(transposed(Tensor(g), Tensor(w)).asnumpy(), want)
