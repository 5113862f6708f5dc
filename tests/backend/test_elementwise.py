"""Elementwise, broadcast, layout and gathering functions."""

import math

import numpy as np
import pytest
from driver import check, kernels, module
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm.relax import op

from tvmgraph import Parameter, Tensor, jit, ops
from tvmgraph.backend.cpu.kernels.elementwise import injective
from tvmgraph.machine.processor import cpu_model

_erf = np.vectorize(math.erf, otypes=[float])


@pytest.mark.parametrize(
    "shape", [(), (1,), (7,), (3, 5, 2), (33, 77), (200, 401), (0,), (3, 0, 2)]
)
def test_fused_chain(shape):
    check(
        lambda bb, x, y: op.nn.relu(bb.emit(op.add(bb.emit(op.multiply(x, y)), y))),
        lambda x, y: np.maximum(x * y + y, 0),
        (shape, "float32"),
        (shape, "float32"),
    )


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from([1, 2, 3, 5, 17, 40]), min_size=1, max_size=4), st.integers(0, 15))
def test_broadcasting(shape, mask):
    other = tuple(1 if mask >> i & 1 else extent for i, extent in enumerate(shape))
    check(
        lambda _, x, y: op.subtract(x, y),
        np.subtract,
        (tuple(shape), "float32"),
        (other, "float32"),
    )


@pytest.mark.parametrize("shape", [(33, 77), (4096, 20)])
def test_values_used_twice(shape):
    def build(bb, x):
        for _ in range(4):
            x = bb.emit(op.multiply(x, bb.emit(op.sigmoid(x))))
        return op.add(x, bb.emit(op.nn.gelu(x)))

    def reference(x):
        for _ in range(4):
            x = x / (1 + np.exp(-x))
        return x + 0.5 * x * (1 + _erf(x / np.sqrt(2)))

    check(build, reference, (shape, "float32"))


@pytest.mark.parametrize("source", ["float32", "float16", "bfloat16", "float64", "int32", "bool"])
@pytest.mark.parametrize("to", ["float32", "float16", "int64", "int8", "bool"])
def test_casts(source, to):
    check(
        lambda _, x: op.astype(x, to),
        lambda x: x.astype(bool) if to == "bool" else x.astype(source).astype(to)
        if source != "bfloat16" else np.trunc(x) if "int" in to else x,
        ((13, 21), source),
        tolerance=1e-2 if to == "float16" or source == "bfloat16" else 1e-6,
    )  # fmt: skip


def test_comparison_and_selection():
    check(
        lambda bb, x, y: op.where(bb.emit(op.less(x, y)), x, y),
        np.minimum,
        ((31, 19), "float32"),
        ((31, 19), "float32"),
    )
    check(
        lambda bb, x, y: op.logical_not(bb.emit(op.equal(x, y))),
        lambda x, y: x != y,
        ((31, 19), "int32"),
        ((19,), "int32"),
    )


@pytest.mark.parametrize(
    "shape, axes",
    [
        ((33, 20), (1, 0)),
        ((64, 48), (1, 0)),
        ((2, 16, 7, 9), (0, 2, 3, 1)),
        ((3, 17, 2, 32), (0, 2, 1, 3)),
        ((130, 260), (1, 0)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_transposes(shape, axes, dtype):
    check(lambda _, x: op.permute_dims(x, axes), lambda x: x.transpose(axes), (shape, dtype))


def test_transpose_fused_with_arithmetic():
    check(
        lambda bb, x, y: op.add(bb.emit(op.permute_dims(x)), y),
        lambda x, y: x.T + y,
        ((40, 50), "float32"),
        ((50, 40), "float32"),
    )


def test_reshape_split_concat_pad_slice_flip():
    check(
        lambda bb, x, y: op.add(bb.emit(op.reshape(x, (7, 30))), y),
        lambda x, y: x.reshape(7, 30) + y,
        ((10, 21), "float32"),
        ((7, 30), "float32"),
    )
    check(lambda _, x: op.split(x, 3, 1), lambda x: np.split(x, 3, 1), ((10, 21), "float32"))
    check(
        lambda _, x, y: op.concat([x, y], 1),
        lambda x, y: np.concatenate([x, y], 1),
        ((200, 300), "float32"),
        ((200, 5), "float32"),
    )
    check(
        lambda _, x: op.nn.pad(x, [1, 1, 2, 3]),
        lambda x: np.pad(x, ((1, 1), (2, 3))),
        ((10, 77), "float32"),
    )
    check(
        lambda _, x: op.strided_slice(x, [0, 1], [1, 3], [9, 20], [2, 3]),
        lambda x: x[1:9:2, 3:20:3],
        ((10, 21), "float32"),
    )
    check(lambda _, x: op.flip(x, 1), lambda x: x[:, ::-1], ((10, 21), "float32"))


@pytest.mark.parametrize("shape", [(33, 65), (40, 17)])
def test_turned_and_repeated_tensors(shape):
    def turned(bb, x):
        return op.permute_dims(bb.emit(op.flip(x, 1)))

    check(turned, lambda x: x[:, ::-1].T, (shape, "float32"))
    check(
        lambda bb, x: op.flip(bb.emit(turned(bb, x)), 1), lambda x: x[::-1, ::-1].T, (shape, "int8")
    )
    check(lambda _, x: op.tile(x, (2, 3)), lambda x: np.tile(x, (2, 3)), (shape, "float32"))
    check(
        lambda bb, x: op.tile(bb.emit(op.flip(x, 0)), (1, 9)),
        lambda x: np.tile(x[::-1], (1, 9)),
        (shape, "float64"),
    )


def test_gathering():
    indices = np.array([3, 0, 9, 9, 1], "int64")
    x = np.random.default_rng(0).standard_normal((10, 33)).astype("float32")
    check(
        lambda _, x, i: op.take(x, i, 0, mode="clip"),
        lambda x, i: x[i],
        (x.shape, "float32"),
        ((5,), "int64"),
        inputs=[x, indices],
    )


@pytest.mark.parametrize("level", [0, 1, 2])
def test_every_level_is_correct(level):
    check(
        lambda bb, x, y: op.nn.softmax(bb.emit(op.matmul(x, y))),
        lambda x, y: (e := np.exp(x @ y)) / e.sum(-1, keepdims=True),
        ((20, 30), "float32"),
        ((30, 40), "float32"),
        level=level,
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
@pytest.mark.parametrize("shape", [(7, 33), (3, 64), (2, 5, 17)])
def test_elements_repeated_along_the_last_axis(shape, dtype):
    x = (np.random.default_rng(0).normal(size=shape) * 100).astype(dtype)
    for times in (2, 3, 8, 16):
        got = jit(lambda x, times=times: ops.repeat_interleave(x, times, -1)[..., 1:])(Tensor(x))
        np.testing.assert_array_equal(got.asnumpy(), np.repeat(x, times, -1)[..., 1:])


def test_elementary_functions_are_computed_several_vectors_at_a_time():
    lanes = cpu_model("host").lanes
    spec, row = ((3, 16 * lanes + 5), "float32"), ((16 * lanes + 5,), "float32")
    wide = f"T.vectorized(T.int64({4 * lanes}))"
    assert wide in kernels(module(lambda _, x, y: op.sigmoid(op.add(x, y)), spec, row))
    assert wide not in kernels(module(lambda _, x, y: op.add(x, y), spec, row))
    for columns in (1, lanes - 1, 4 * lanes, 4 * lanes + 3, 16 * lanes + 5):
        x = np.random.default_rng(0).standard_normal((3, columns)).astype("float32")
        got = jit(lambda x: ops.tanh(x) * ops.exp(x[:, :1]))(Tensor(x)).asnumpy()
        np.testing.assert_allclose(got, np.tanh(x) * np.exp(x[:, :1]), rtol=1e-5)


def test_a_long_formula_is_written_once(monkeypatch):
    monkeypatch.setattr(injective, "_LONG_FORMULA", 8)
    lanes = cpu_model("host").lanes

    def build(bb, x):
        for _ in range(4):
            x = bb.emit(op.maximum(bb.emit(op.multiply(x, x)), bb.emit(op.negative(x))))
        return x

    def reference(x):
        for _ in range(4):
            x = np.maximum(x * x, -x)
        return x

    assert "T.min(" in kernels(module(build, ((4 * lanes + 5,), "float32")))
    assert "T.min(" not in kernels(module(build, ((4 * lanes,), "float32")))
    for count in (1, lanes, lanes + 1, 4 * lanes + 5):
        check(build, reference, ((count,), "float32"))


@pytest.mark.parametrize("shape", [(51,), (17, 3), (2, 3)])
def test_a_long_formula_between_temporaries(shape):
    x = np.random.default_rng(0).uniform(-3, 5, shape).astype("float32")
    got, want = jit(lambda x: ops.lgamma(x))(Tensor(x)), ops.lgamma(Tensor(x))
    np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-5)


def test_a_long_formula_may_overwrite_what_it_reads(monkeypatch, compiled_here):
    monkeypatch.setattr(injective, "_LONG_FORMULA", 8)
    x = np.linspace(-1, 1, 4 * cpu_model("host").lanes + 5, dtype=np.float32)
    held = Parameter(Tensor(x), name="held")
    jit(lambda: ops.assign(held, (held * 3 - 1) * (held + 2) * 0.25 - held))()
    np.testing.assert_allclose(held.asnumpy(), (x * 3 - 1) * (x + 2) * 0.25 - x, atol=1e-6)
