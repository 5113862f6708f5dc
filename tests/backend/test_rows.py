"""Reductions and row kernels."""

import numpy as np
import pytest
from driver import check, fused, module
from tvm import tirx
from tvm.relax import op

from tvmgraph import Tensor, jit, ops
from tvmgraph.backend.loop_ir.addresses import straighten
from tvmgraph.backend.loop_ir.program import parse


def _softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize(
    "shape, axis",
    [
        ((5, 33), 1),
        ((5, 33), 0),
        ((4, 7, 19), 1),
        ((3, 37, 5), (0, 2)),
        ((6, 4, 7, 7), (2, 3)),
        ((17,), None),
    ],
)
def test_reductions(name, shape, axis):
    axes = axis if axis is None or isinstance(axis, int) else list(axis)
    check(
        lambda _, x: getattr(op, name)(x, axes),
        lambda x: getattr(np, name)(x, axis),
        (shape, "float32"),
    )


@pytest.mark.parametrize(
    "shape, rows",
    [((2, 17, 33), (2, 561)), ((6, 5, 7), (10, 21)), ((3, 50), (2, 75)), ((11, 1, 13), (13, 11))],
)
def test_rows_are_read_through_a_reshape_without_divisions(shape, rows):
    mod = fused(module(lambda _, x: op.reshape(x, rows), (shape, "float32")))
    program = parse(next(f for f in mod.functions.values() if isinstance(f, tirx.PrimFunc)))  # pyright: ignore[reportAttributeAccessIssue]
    assert program is not None
    (load,) = straighten(program).stages[0].loads
    assert "//" in str(program.stages[0].loads[0]) and "//" not in str(load)
    x = np.random.default_rng(3).standard_normal(shape).astype("float32")
    got = jit(lambda x: ops.softmax(ops.reshape(x, rows)))(Tensor(x)).asnumpy()
    np.testing.assert_allclose(got, _softmax(x.reshape(rows)), rtol=1e-5)


@pytest.mark.parametrize(
    "shape, axis",
    [
        ((401, 1001), None),  # everything: the reduced axis is divided
        ((100_003, 3), 0),
        ((1, 200_000), 1),
        ((64, 50, 50), (1, 2)),
        ((512, 700), 0),
        ((2, 3, 40_000), (0, 2)),
    ],
)
def test_large_sums_are_divided(shape, axis):
    axes = list(axis) if isinstance(axis, tuple) else axis
    check(
        lambda _, x: op.mean(x, axes, keepdims=True),
        lambda x: x.mean(axis, keepdims=True),
        (shape, "float32"),
        tolerance=1e-6,
    )


def test_float16_sums_are_accumulated_in_float32():
    x = np.ones((3, 8192), "float16")
    check(lambda _, v: op.mean(v, 1), lambda v: v.mean(1), (x.shape, "float16"), inputs=[x])


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64", "float16", "bfloat16"])
def test_reductions_of_other_types(dtype):
    check(lambda _, x: op.max(x, 1), lambda x: x.max(1), ((9, 45), dtype), tolerance=1e-12)
    check(lambda _, x: op.sum(x, 0), lambda x: x.sum(0), ((9, 45), dtype), tolerance=2e-2)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize(
    "shape, axis", [((7, 100), 1), ((7, 100), 0), ((3, 4, 50), 1), ((9, 3), 1)]
)
def test_arg_reductions(name, shape, axis):
    check(
        lambda _, x: getattr(op, name)(x, axis),
        lambda x: getattr(np, name)(x, axis),
        (shape, "float32"),
    )


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_arg_reductions_return_the_first_of_equals(name):
    x = np.random.default_rng(0).integers(0, 3, (20, 100)).astype("float32")
    check(
        lambda _, v: getattr(op, name)(v, 1),
        lambda v: getattr(np, name)(v, 1),
        (x.shape, "float32"),
        inputs=[x],
    )


@pytest.mark.parametrize(
    "shape, axis",
    [
        ((64, 10), 1),
        ((5, 1000), 1),
        ((4, 21, 5, 9), 1),
        ((600, 129), 1),
        ((3,), 0),
        ((2, 30000), 1),
    ],
)
def test_softmax(shape, axis):
    check(lambda _, x: op.nn.softmax(x, axis), lambda x: _softmax(x, axis), (shape, "float32"))
    check(
        lambda _, x: op.nn.log_softmax(x, axis),
        lambda x: np.log(_softmax(x, axis)),
        (shape, "float32"),
    )


@pytest.mark.parametrize("shape", [(5, 7, 13), (700, 96), (3, 5000)])
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float16", 1e-2)])
def test_layer_norm(shape, dtype, tolerance):
    def reference(x, gain, bias):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) / np.sqrt(variance + 1e-5) * gain + bias

    check(
        lambda _, x, gain, bias: op.nn.layer_norm(x, gain, bias, axes=[-1]),
        reference,
        (shape, dtype),
        (shape[-1:], dtype),
        (shape[-1:], dtype),
        tolerance=tolerance,
    )


def test_group_norm_and_variance():
    def reference(x, gain, bias):
        y = x.reshape(2, 4, -1)
        y = (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5)
        return y.reshape(x.shape) * gain[:, None, None] + bias[:, None, None]

    check(
        lambda _, x, gain, bias: op.nn.group_norm(x, gain, bias, 4, 1, [2, 3]),
        reference,
        ((2, 16, 7, 7), "float32"),
        ((16,), "float32"),
        ((16,), "float32"),
    )
    check(lambda _, x: op.variance(x, [0, 2]), lambda x: x.var((0, 2)), ((6, 5, 70), "float32"))


def test_batch_norm_in_training():
    def reference(x, gain, bias, mean, variance):
        shape = (1, -1, 1, 1)
        m, v = x.mean((0, 2, 3)), x.var((0, 2, 3))
        y = (x - m.reshape(shape)) / np.sqrt(v.reshape(shape) + 1e-5)
        y = y * gain.reshape(shape) + bias.reshape(shape)
        return y, 0.9 * mean + 0.1 * m, 0.9 * variance + 0.1 * v

    channels = [((16,), "float32")] * 4
    check(
        lambda _, *args: op.nn.batch_norm(*args, 1, training=True),
        reference,
        ((8, 16, 14, 14), "float32"),
        *channels,
    )


def test_reduction_of_a_fused_input():
    check(
        lambda bb, x, y: op.sum(bb.emit(op.exp(bb.emit(op.multiply(x, y)))), 1),
        lambda x, y: np.exp(x * y).sum(1),
        ((40, 100), "float32"),
        ((40, 100), "float32"),
    )


def test_scans_and_sorts_fall_back():
    check(lambda _, x: op.cumsum(x, 1), lambda x: x.cumsum(1), ((20, 50), "float32"))


@pytest.mark.parametrize("name", ["sum", "prod"])
def test_reductions_over_nothing(name):
    check(
        lambda _, x: getattr(op, name)(x, 0),
        lambda x: getattr(np, name)(x, 0),
        ((0, 33), "float32"),
    )
    check(
        lambda _, x: getattr(op, name)(x, 1, keepdims=True),
        lambda x: getattr(np, name)(x, 1, keepdims=True),
        ((4, 0, 3), "float32"),
    )


def test_product_over_nothing():
    check(lambda _, x, w: op.matmul(x, w), np.matmul, ((4, 0), "float32"), ((0, 5), "float32"))


def test_rounding_errors_of_long_sums_stay_small():
    x = np.random.default_rng(0).uniform(0, 1, (2_000_000,)).astype("float32")
    check(lambda _, v: op.mean(v), np.mean, (x.shape, "float32"), inputs=[x], tolerance=2e-7)


def test_a_named_value_that_says_which_element_is_read():
    x = np.random.default_rng(0).standard_normal((64, 100)).astype("float32")
    got = jit(lambda x: ops.median(x, 1)[0])(Tensor(x))
    np.testing.assert_array_equal(got.asnumpy(), np.sort(x, 1)[:, 49])


@pytest.mark.parametrize("shape", [(9, 64), (7, 37)])
def test_rows_that_indices_name_are_read_where_they_lie(shape):
    x = np.random.default_rng(7).standard_normal(shape).astype("float32")
    distances = jit(lambda x: ops.pdist(x))
    first, second = np.triu_indices(len(x), 1)
    expected = np.sqrt(((x[first] - x[second]) ** 2).sum(-1))
    np.testing.assert_allclose(distances(Tensor(x)).asnumpy(), expected, rtol=1e-5)
    assert len(distances.kernels()) == 1


def test_corners_of_a_sampled_image_are_not_written():
    draw = np.random.default_rng(8)
    x = Tensor(draw.standard_normal((2, 3, 8, 8)).astype("float32"))
    grid = Tensor(draw.uniform(-1.2, 1.2, (2, 8, 8, 2)).astype("float32"))
    sample = jit(lambda x, grid: ops.grid_sample(x, grid))
    np.testing.assert_allclose(
        sample(x, grid).asnumpy(), ops.grid_sample(x, grid).asnumpy(), rtol=1e-5, atol=1e-6
    )
    assert len(sample.kernels()) == 2
