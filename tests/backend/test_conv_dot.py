"""Convolutions of bfloat16 by instructions that sum two products per lane."""

import numpy as np
import pytest
from driver import THREADS, check
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te, tirx

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, jit, nn, ops
from tvmgraph.backend.cpu.kernels.gemm.bf16_dot import dot_functions
from tvmgraph.config.options import CompileOptions
from tvmgraph.core.op import OPS
from tvmgraph.machine.processor import cpu_model
from tvmgraph.ops.internal.conv_nchwc import (
    from_nchwc,
    nchwc_sums,
    pack_vnni,
    pack_weight,
    to_nchwc,
)
from tvmgraph.passes.freeze import freeze


def rounded(*shape, seed=0):
    """An array of bfloat16, and the same numbers in float64."""
    x = Tensor(np.random.default_rng(seed).standard_normal(shape).astype("float32"))
    x = x.astype(ms.bfloat16)
    return x, x.astype(ms.float32).asnumpy().astype("float64")


def close(got, want):
    """Compares with sums in float64, but for the rounding of the result to bfloat16."""
    got = got.astype(ms.float32).asnumpy()
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=2**-8, atol=1e-5 * max(1.0, np.abs(want).max()))


def frozen(x, *layers):
    """A network of bfloat16, and the shapes of the weights of its blocked convolutions."""
    net = nn.SequentialCell(*layers).set_train(False)
    for parameter in net.get_parameters():
        parameter.set_dtype(ms.bfloat16)
    options = CompileOptions("O2", target="x86-64-v4")  # with tiles, images stay plain
    nodes = freeze(jit(net).graph(x), options).main.nodes
    return net, [n.inputs[1].type.shape for n in nodes if n.op.name == "conv_nchwc"]


@settings(max_examples=14, deadline=None, derandomize=True)
@given(
    st.integers(1, 2), st.sampled_from([1, 3, 8, 17, 24, 32]), st.sampled_from([8, 16, 40, 48]),
    st.tuples(st.integers(1, 20), st.integers(1, 20)),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.tuples(st.integers(1, 3), st.integers(1, 2)), st.integers(0, 2), st.integers(1, 2),
)  # fmt: skip
def test_blocked_convolution(n, inputs, outputs, size, kernel, stride, pad, dilation):
    dilations = (dilation, dilation if inputs % 8 == 0 else 1)
    size = [max(s, (k - 1) * d + 1) for s, k, d in zip(size, kernel, dilations)]
    block, out = next(b for b in (16, 8, 1) if inputs % b == 0), 16 if outputs % 16 == 0 else 8
    plain = block == 1
    x, x64 = rounded(n, inputs, *size)
    w, w64 = rounded(outputs, inputs, *kernel, seed=1)
    options = dict(stride=stride, padding=((pad, pad), (0, pad)), dilation=dilations)
    longer = dict(options, padding=((pad, pad), (0, pad + plain * (kernel[1] % 2))))
    image = x.asnumpy() if plain else to_nchwc(x.asnumpy(), block)
    pairs = pack_vnni(pack_weight(w.asnumpy(), block, out), 2, plain)
    f = jit(lambda x, w: ops.relu(ops.conv_nchwc(x, w, **longer)))
    got = f(Tensor(image), Tensor(pairs))
    want = OPS["convolution"].eager(x64, w64, groups=1, **options)
    close(Tensor(from_nchwc(got.asnumpy())), np.maximum(want, 0))


@pytest.mark.parametrize(
    "inputs, outputs, size, kernel, options",
    [
        (3, 16, 17, 7, dict(stride=2, padding=3)),
        (64, 32, 14, 1, {}),
        (17, 8, 9, 3, dict(padding=2, dilation=2)),
        (24, 48, 7, 3, dict(padding=1, group=3)),
        (35, 33, 12, 3, dict(padding=1)),
    ],
)
def test_frozen_convolutions(inputs, outputs, size, kernel, options):
    group = options.get("group", 1)
    layers = nn.Conv2d(
        inputs, outputs, kernel, pad_mode="pad" if options else "valid", has_bias=True, **options
    )
    x, x64 = rounded(2, inputs, size, size + 3)
    w, w64 = rounded(outputs, inputs // group, kernel, kernel, seed=1)
    b, b64 = rounded(outputs, seed=2)
    layers.weight, layers.bias = Parameter(w, name="w"), Parameter(b, name="b")
    net = nn.SequentialCell(layers, nn.ReLU(), nn.MaxPool2d(1)).set_train(False)
    stride, pad, dilation = (
        options.get(k, d) for k, d in (("stride", 1), ("padding", 0), ("dilation", 1))
    )
    want = OPS["convolution"].eager(
        x64, w64, stride=(stride,) * 2, padding=((pad, pad),) * 2, dilation=(dilation,) * 2,
        groups=group,
    )  # fmt: skip
    # the convolution's own result is rounded before the bias is added
    want = (
        Tensor(want.astype("float32")).astype(ms.bfloat16).astype(ms.float32).asnumpy()
        + b64[:, None, None]
    )
    got = jit(net)(x).astype(ms.float32).asnumpy()
    np.testing.assert_allclose(got, np.maximum(want, 0), rtol=2**-6, atol=2**-6)


class _Builder:
    """What a lowering rule needs to write tensor expressions."""

    te, tir = te, tirx


@pytest.mark.parametrize("target", ["host", "x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize("outputs, padding", [(16, ((1, 1), (1, 1))), (8, ((0, 0), (0, 0)))])
def test_processors_without_the_instruction(target, outputs, padding):
    def build(bb, x, w):
        size = [s + sum(p) - 2 for s, p in zip((9, 11), padding)]

        def sums(x, w):
            return nchwc_sums(_Builder, x, w, (1, 2, *size, outputs), padding, (1, 1), (1, 1))

        return bb.emit_te(sums, x, w)

    def reference(x, w):
        whole = w.transpose(0, 5, 1, 4, 6, 2, 3).reshape(2 * outputs, 32, 3, 3)
        y = OPS["convolution"].eager(
            from_nchwc(x), whole, stride=(1, 1), padding=padding, dilation=(1, 1), groups=1
        )
        return to_nchwc(y, outputs)

    shapes = (1, 2, 9, 11, 16), (2, 2, 3, 3, 8, outputs, 2)
    check(build, reference, *((s, "bfloat16") for s in shapes), tolerance=1e-6, target=target)


def test_the_instruction_is_used_where_the_processor_has_it():
    assert ("llvm.x86.avx512bf16" in dot_functions(16, cpu_model("host", THREADS))) == (
        "bfloat16" in cpu_model("host", THREADS).dot_types
    )


def test_windows_of_an_image_that_is_no_number_of_pairs():
    layers = nn.Conv2d(3, 16, 3, pad_mode="pad", padding=1), nn.Conv2d(16, 16, 3)
    x, _ = rounded(1, 3, 9, 8)
    _, weights = frozen(x, *layers)
    assert weights == [(1, 3, 3, 2, 1, 16, 2), (1, 1, 3, 3, 8, 16, 2)]


def test_groups_smaller_than_a_block_are_joined():
    layers = nn.Conv2d(32, 64, 3, group=8, has_bias=True), nn.Conv2d(64, 64, 3, group=16)
    x, _ = rounded(2, 32, 9, 6)
    net, weights = frozen(x, *layers)
    assert weights == [(4, 1, 3, 3, 8, 16, 2)] * 2
    got, want = (y.astype(ms.float32).asnumpy() for y in (jit(net)(x), net(x)))
    np.testing.assert_allclose(got, want, atol=2**-6 * np.abs(want).max())  # of two layers


@settings(max_examples=8, deadline=None, derandomize=True)
@given(
    st.integers(1, 3), st.sampled_from([8, 17, 40]), st.sampled_from([8, 9, 33]),
    st.tuples(st.integers(3, 9), st.integers(4, 23)),
)  # fmt: skip
def test_windows_of_one_tap_are_products_of_pairs(n, inputs, outputs, size):
    x, x64 = rounded(n, inputs, *size)
    w, w64 = rounded(outputs, inputs, 1, 1, seed=1)
    got = jit(lambda x, w: ops.relu(ops.conv2d(x, w)))(x, w)
    close(got, np.maximum(np.einsum("nchw,oc->nohw", x64, w64[:, :, 0, 0]), 0))


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    st.integers(1, 2), st.sampled_from([2, 3, 17]), st.sampled_from([1, 5, 16]),
    st.tuples(st.integers(5, 9), st.integers(6, 40)),
    st.tuples(st.integers(1, 3), st.integers(2, 4)),
    st.integers(1, 2), st.integers(0, 2), st.integers(1, 2), st.integers(1, 2),
    st.sampled_from(["bfloat16", "bfloat16", "float16"]),
)  # fmt: skip
def test_given_weights(n, inputs, outputs, size, kernel, stride, pad, dilation, groups, dtype):
    rng = np.random.default_rng(0)
    shapes = (n, groups * inputs, *size), (groups * outputs, inputs, *kernel)
    x, w = (Tensor(rng.standard_normal(s).astype("float32")).astype(dtype) for s in shapes)
    options = dict(stride=(stride, 1), dilation=(dilation, 1), groups=groups)
    f = jit(lambda x, w: ops.conv2d(x, w, pad_mode="pad", padding=pad, **options))
    wide = (v.astype(ms.float32).asnumpy().astype("float64") for v in (x, w))
    want = OPS["convolution"].eager(*wide, padding=((pad, pad),) * 2, **options)
    close(f(x, w), want)


@pytest.mark.parametrize("kernel", [(1, 7), (3, 7)])
def test_small_copies_of_operands_are_written_before_they_are_read(kernel):
    """A copy of 3,520 bytes lies on the stack, where LLVM knows all that is read of it."""
    (x, exact), (weight, _) = rounded(2, 16, 27, 36), rounded(8, 16, *kernel, seed=1)

    def run(x, weight):
        return ops.conv2d(x, weight, stride=3, pad_mode="pad", padding=1)

    g, exact_g = rounded(*run(x, weight).shape, seed=2)
    got = jit(lambda x, weight, g: ops.vjp(run, x, weight)[1](g)[1])(x, weight, g)
    how = {"stride": (3, 3), "dilation": (1, 1), "groups": 1, "padding": ((1, 1), (1, 1))}
    close(got, OPS["conv_weight_grad"].eager(exact, exact_g, kernel=kernel, **how))


@pytest.mark.parametrize(
    "size, inputs, kernel, stride, pad, dilation",
    [
        ((7, 7), 24, (3, 3), 1, 1, 1),  # windows of a narrow image are copied
        ((9, 35), 17, (3, 2), 1, 1, 1),  # rows of a wide one are not
        ((12, 70), 5, (3, 5), 2, 2, 1),
        ((14, 30), 9, (3, 3), 1, 2, 2),
        ((3, 500), 3, (2, 3), 1, 0, 1),
    ],
)
@pytest.mark.parametrize("images", [1, 3])
def test_derivatives(images, size, inputs, kernel, stride, pad, dilation):
    x, x64 = rounded(images, inputs, *size)
    w, w64 = rounded(19, inputs, *kernel, seed=1)
    steps = dict(stride=(stride,) * 2, dilation=(dilation,) * 2, groups=1)
    steps["padding"] = ((pad, pad),) * 2

    def sums(x, w):
        options = dict(stride=stride, dilation=dilation, pad_mode="pad", padding=pad)
        return ops.conv2d(x, w, **options)

    y = sums(x, w)
    g, g64 = rounded(*y.shape, seed=2)
    gx, gw = jit(lambda x, w, g: ops.vjp(sums, x, w)[1](g))(x, w, g)
    extra = [
        n + 2 * pad - dilation * (k - 1) - 1 - (o - 1) * stride
        for n, k, o in zip(size, kernel, y.shape[2:])
    ]
    close(gx, OPS["conv_transpose"].eager(g64, w64, output_padding=tuple(extra), **steps))
    close(gw, OPS["conv_weight_grad"].eager(x64, g64, kernel=kernel, **steps))
