"""The derivative of attention: one kernel, the derivative of the parts, and linear memory."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvmgraph as ms
from tvmgraph import Tensor, jit, nn, ops
from tvmgraph.core.op import get_op

_LENGTHS = st.sampled_from([1, 2, 7, 33, 64, 100, 150])
_LAYOUTS = st.sampled_from(["BNSD", "BSND", "SBND", "BNDS"])


def _array(rng, layout, dtype="float32", **extents):
    return rng.standard_normal([extents[axis] for axis in layout]).astype(dtype)


def _check(operands, out, tolerance=1e-5, **attrs):
    """Compares the kernel with float64 NumPy; ``out`` is the shape of the result."""
    layouts = attrs.pop("layouts")
    wide = [x if x.dtype == bool else x.astype("float64") for x in operands]
    forward, gradient = get_op("attention_with_statistics"), get_op("attention_gradient")
    cotangent = np.random.default_rng(1).standard_normal(out).astype(operands[0].dtype)
    result, statistics = forward.eager(*wide, **attrs, layouts=layouts[:4])
    want = gradient.eager(*wide, result, statistics, cotangent.astype("float64"), **attrs,
                          layouts=layouts)  # fmt: skip

    def both(*tensors):
        *xs, g = tensors
        y, s = ops.attention_with_statistics(*xs, **attrs, layouts=layouts[:4])
        return ops.attention_gradient(*xs, y, s, g, **attrs, layouts=layouts)

    for got, expected in zip(jit(both)(*map(Tensor, (*operands, cotangent))), want):
        assert got.dtype.numpy == operands[0].dtype
        scale = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(
            got.asnumpy().astype("float64"), expected, rtol=tolerance, atol=tolerance * scale
        )


@settings(max_examples=5, deadline=None, derandomize=True)
@given(_LENGTHS, _LENGTHS, st.sampled_from([5, 16, 40]), st.sampled_from([8, 17]), _LAYOUTS,
       st.sampled_from([None, 0, 40]), st.sampled_from(["none", "add", "hide"]))  # fmt: skip
def test_any_extents(queries, keys, depth, size, layout, diagonal, kind):
    rng = np.random.default_rng(queries + keys)
    operands = [
        _array(rng, layout, B=1, N=4, S=queries, D=depth),
        _array(rng, layout, B=1, N=2, S=keys, D=depth),
        _array(rng, layout, B=1, N=2, S=keys, D=size),
    ]
    if kind == "add":
        operands.append(rng.standard_normal((1, 4, 1, keys)).astype("float32"))
    if kind == "hide":
        operands.append(rng.integers(0, 2, (1, 1, queries, keys)).astype(bool))
    extents = {"B": 1, "N": 4, "S": queries, "D": size}
    _check(operands, [extents[a] for a in layout], scale=1 / math.sqrt(depth), diagonal=diagonal,
           fill=-1e9 if kind == "hide" else None, layouts=(layout,) * 8)  # fmt: skip


@pytest.mark.parametrize("dtype, tolerance", [("float16", 4e-3), ("bfloat16", 3e-2),
                                              ("float64", 1e-13)])  # fmt: skip
def test_other_types(dtype, tolerance):
    rng = np.random.default_rng(0)
    kind = ms.dtypes.dtype_of(dtype).numpy
    operands = [_array(rng, "BNSD", kind, B=1, N=1, S=70, D=32) for _ in "qkv"]  # divided by keys
    _check(operands, (1, 1, 70, 32), tolerance, scale=0.2, diagonal=0, fill=None,
           layouts=("BNSD",) * 8)  # fmt: skip


# ---- graphs --------------------------------------------------------------------------------------


def _attend(q, k, v):
    scores = ops.matmul(q, k.swapaxes(-1, -2)) / math.sqrt(q.shape[-1])
    return ops.matmul(ops.softmax(scores, -1), v)


def _causal(q, k, v):
    scores = ops.matmul(q, k.swapaxes(-1, -2)) * 0.25
    hidden = ops.triu(ops.ones((q.shape[-2], k.shape[-2])), 1).astype(ms.bool_)
    return ops.matmul(ops.softmax(ops.masked_fill(scores, hidden, -1e9), -1), v)


def _kept(q, k, v):
    scores = ops.matmul(q * 0.25, ops.transpose(k, (0, 1, 3, 2)))
    seen = ops.tril(ops.ones((q.shape[-2], k.shape[-2]))).astype(ms.bool_)
    scores = ops.where(seen, scores, Tensor(-1e9, ms.float32))
    return ops.transpose(ops.matmul(ops.softmax(scores, 3), v), (0, 2, 1, 3))


def _padded(q, k, v):
    scores = ops.matmul(q, k.swapaxes(-1, -2)) * 0.25
    bias = ops.where(ops.arange(k.shape[-2]) < 3, Tensor(-1e4, ms.float32), Tensor(0.5, ms.float32))
    return ops.matmul(ops.softmax(scores + bias.reshape((1, 1, 1, -1)), -1), v)


def _tensors(*shape):
    rng = np.random.default_rng(0)
    return [Tensor(rng.standard_normal(shape).astype(np.float32)) for _ in "qkv"]


def _compare(eager, *args):
    compiled = jit(eager)
    found, want = compiled(*args), eager(*args)
    for got, expected in zip(found, want):
        np.testing.assert_allclose(got.asnumpy(), expected.asnumpy(), atol=1e-5)
    return compiled.kernels()


@pytest.mark.parametrize("function", [_attend, _causal, _kept, _padded])
def test_written_by_hand(function):
    def loss(*xs):
        return ops.sin(function(*xs)).sum()

    names = _compare(ms.grad(loss, (0, 1, 2)), *_tensors(2, 3, 40, 16))
    assert {"attention", "attention_gradient"} <= set(names)
    assert not any("softmax" in name or "matmul" in name for name in names)


@pytest.mark.parametrize("shape", [(6, 20, 16), (20, 16)])
def test_fewer_axes(shape):
    names = _compare(ms.grad(lambda *xs: ops.sin(_attend(*xs)).sum(), (0, 1, 2)), *_tensors(*shape))
    assert "attention_gradient" in names


@pytest.mark.parametrize("positions", [(0,), (1,), (2,), (0, 2)])
def test_some_of_the_gradients(positions):
    def gradients(*xs):
        found = ms.grad(lambda *ys: (_causal(*ys) * 2).sum(), positions)(*xs)
        return found if isinstance(found, tuple) else (found,)

    _compare(gradients, *_tensors(1, 2, 20, 16))


def test_a_bias_that_is_trained_keeps_the_weights():
    def loss(q, k, v, bias):
        scores = ops.matmul(q, k.swapaxes(-1, -2)) + bias
        return ops.sin(ops.matmul(ops.softmax(scores, -1), v)).sum()

    bias = Tensor(np.random.default_rng(1).standard_normal((2, 20, 20)).astype(np.float32))
    names = _compare(ms.grad(loss, (0, 1, 2, 3)), *_tensors(1, 2, 20, 16), bias)
    assert "attention_gradient" not in names


def test_weights_that_are_returned_stay():
    def loss(q, k, v):
        weights = ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)), -1)
        return ops.sin(ops.matmul(weights, v)).sum() + ops.cos(weights).sum()

    assert "attention_gradient" not in _compare(ms.grad(loss, (0, 1, 2)), *_tensors(1, 2, 20, 16))


def test_layer():
    ms.set_seed(0)  # the bound is for gradients of this size
    layer = nn.TransformerEncoderLayer(32, 4, dropout=0.0)
    x = Tensor(np.random.default_rng(0).standard_normal((10, 2, 32)).astype(np.float32))
    step = ms.grad(lambda x: ops.sin(layer(x)).sum(), 0, layer.trainable_params())

    def flat(x):
        dx, dw = step(x)
        return (dx, *dw)

    assert "attention_gradient" in _compare(flat, x)


_PEAK = """
import resource, sys
import numpy as np
import tvmgraph as ms
from tvmgraph import Tensor, jit, ops
length = int(sys.argv[1])
def loss(q, k, v):
    return ops.matmul(ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)), -1), v).sum()
step = jit(ms.value_and_grad(loss, (0, 1, 2)))
x = Tensor(np.ones((1, 2, length, 16), np.float32))
small = Tensor(np.ones((1, 2, 64, 16), np.float32))
step(small, small, small)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
step(x, x, x)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_of_a_step_is_linear_in_the_length():
    length = 4096
    out = subprocess.run(
        [sys.executable, "-c", _PEAK, str(length)], capture_output=True, text=True, check=True
    )
    scores = 2 * length * length * 4 // 1024
    assert int(out.stdout) < scores // 8


def test_lengths_known_only_at_run_time():
    step = ms.grad(lambda *xs: ops.sin(_attend(*xs)).sum(), (0, 1, 2))
    compiled = jit(step)  # the second length makes it symbolic
    for length in (50, 3, 129, 1, 200):
        args = _tensors(2, 3, length, 16)
        for got, want in zip(compiled(*args), step(*args)):
            np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), atol=1e-5)
    assert "attention_gradient" in compiled.kernels()
    assert compiled.compile_count <= 3
