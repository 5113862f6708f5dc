"""Attention in one kernel: any extents, masks and layouts against float64 NumPy, and its memory."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvmgraph as ms
from tests.backend import driver
from tvmgraph import Tensor, jit, nn, ops
from tvmgraph.core.op import get_op
from tvmgraph.lowering import lower

_LENGTHS = st.sampled_from([1, 2, 3, 7, 16, 33, 64, 130])
_SIZES = st.sampled_from([1, 5, 8, 16, 24, 64])
_LAYOUTS = st.sampled_from(["BNSD", "BSND", "SBND", "BNDS"])


def _array(rng, layout, dtype="float32", **extents):
    return rng.standard_normal([extents[axis] for axis in layout]).astype(dtype)


def _check(inputs, tolerance=2e-6, **attrs):
    fused = get_op("fused_attention")
    got = jit(lambda *xs: ops.fused_attention(*xs, **attrs))(*map(Tensor, inputs)).asnumpy()
    wide = [x if x.dtype == bool else x.astype("float64") for x in inputs]
    want = fused.eager(*wide, **attrs)
    assert got.dtype == inputs[0].dtype
    np.testing.assert_allclose(got.astype("float64"), want, rtol=tolerance, atol=tolerance)


@settings(max_examples=16, deadline=None, derandomize=True)
@given(_LENGTHS, _LENGTHS, _SIZES, _SIZES, _LAYOUTS, st.sampled_from([None, -3, 0, 40]),
       st.sampled_from(["none", "add", "hide"]))  # fmt: skip
def test_any_extents(queries, keys, depth, size, layout, diagonal, kind):
    rng = np.random.default_rng(queries + keys)
    inputs = [
        _array(rng, layout, B=2, N=4, S=queries, D=depth),
        _array(rng, layout, B=2, N=2, S=keys, D=depth),
        _array(rng, layout, B=2, N=2, S=keys, D=size),
    ]
    if kind == "add":
        inputs.append(rng.standard_normal((1, 4, 1, keys)).astype("float32"))
    if kind == "hide":
        inputs.append(rng.integers(0, 2, (2, 1, queries, keys)).astype(bool))
    fill = -math.inf if kind == "hide" else None
    _check(inputs, scale=1.5 / math.sqrt(depth), diagonal=diagonal, fill=fill,
           layouts=(layout,) * 4)  # fmt: skip


@pytest.mark.parametrize(
    "dtype, tolerance", [("float16", 2e-3), ("bfloat16", 2e-2), ("float64", 1e-13)]
)
@pytest.mark.parametrize("queries", [1, 40])
def test_other_types(dtype, tolerance, queries):
    rng = np.random.default_rng(0)
    kind = ms.dtypes.dtype_of(dtype).numpy
    extents = {"B": 1, "N": 2, "S": queries, "D": 32}
    q, k, v = (_array(rng, "BNSD", kind, **extents | {"S": s}) for s in (queries, 70, 70))
    _check([q, k, v], tolerance, scale=0.2, diagonal=None, fill=None, layouts=("BNSD",) * 4)


def test_values_that_are_not_finite():
    rng = np.random.default_rng(0)
    q, k, v = (_array(rng, "BNSD", B=1, N=1, S=20, D=16) for _ in "qkv")
    q[0, 0, 3] = np.nan
    k[0, 0, 5] *= 1e30
    v[0, 0, 7, 2] = np.inf
    mask = np.zeros((1, 1, 20, 20), bool)
    mask[0, 0, 9] = True  # a query that sees nothing
    _check([q, k, v, mask], scale=1.0, diagonal=None, fill=-math.inf, layouts=("BNSD",) * 4)


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


def _tensors(*shape):
    rng = np.random.default_rng(0)
    return [Tensor(rng.standard_normal(shape).astype(np.float32)) for _ in "qkv"]


@pytest.mark.parametrize("function", [_attend, _causal, _kept])
def test_written_by_hand(function):
    compiled = jit(function)
    args = _tensors(2, 3, 40, 16)
    np.testing.assert_allclose(compiled(*args).asnumpy(), function(*args).asnumpy(), atol=2e-6)
    assert compiled.kernels() == ("attention",)


def test_fewer_axes():
    for shape in ((6, 20, 16), (20, 16)):
        compiled, args = jit(_attend), _tensors(*shape)
        np.testing.assert_allclose(compiled(*args).asnumpy(), _attend(*args).asnumpy(), atol=2e-6)
        assert "attention" in compiled.kernels()


def _repeated(x, axis):
    return ops.repeat_interleave(x, 4, axis)


def _shared_heads(q, k, v):
    return _attend(q, _repeated(k, 1), _repeated(v, 1))


def _shared_heads_last(q, k, v):
    q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
    k, v = (_repeated(x, 2) for x in (k, v))
    return _attend(*(ops.transpose(x, (0, 2, 1, 3)) for x in (q, k, v)))


def _spread_head(q, k, v):
    return _attend(q, k[:, :1], v[:, :1])


@pytest.mark.parametrize("function", [_shared_heads, _shared_heads_last, _spread_head])
@pytest.mark.parametrize("queries", [1, 20])
def test_heads_that_share_keys_are_not_copied(function, queries):
    rng = np.random.default_rng(0)
    shapes = (2, 8, queries, 16), (2, 2, 70, 16), (2, 2, 70, 16)
    args = [Tensor(rng.standard_normal(shape).astype(np.float32)) for shape in shapes]
    compiled = jit(function)
    np.testing.assert_allclose(compiled(*args).asnumpy(), function(*args).asnumpy(), atol=2e-6)
    kernels = compiled.kernels()
    assert "attention" in kernels and not any("broadcast" in name for name in kernels)

    def derivative(*args):
        return ms.grad(lambda *xs: (function(*xs) ** 2).sum(), (0, 1, 2))(*args)

    for got, want in zip(jit(derivative)(*args), derivative(*args)):
        np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), atol=1e-5)


def test_weights_that_are_read_stay():
    def with_weights(q, k, v):
        weights = ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)), -1)
        return ops.matmul(weights, v), weights

    compiled = jit(with_weights)
    compiled(*_tensors(1, 2, 20, 16))
    assert "attention" not in compiled.kernels()


@pytest.mark.parametrize("layer", [
    lambda: nn.TransformerEncoderLayer(32, 4), lambda: nn.TransformerDecoderLayer(32, 4),
])  # fmt: skip
def test_layers(layer):
    net = layer()
    net.set_train(False)
    rng = np.random.default_rng(0)
    x = Tensor(rng.standard_normal((10, 2, 32)).astype(np.float32))
    args = (x,) if isinstance(net, nn.TransformerEncoderLayer) else (x, x)
    compiled = jit(net)
    np.testing.assert_allclose(compiled(*args).asnumpy(), net(*args).asnumpy(), atol=1e-5)
    assert any("attention" in name for name in compiled.kernels())


def test_lengths_known_only_at_run_time():
    def masked(q, k, v, mask):
        scores = ops.matmul(q, k.swapaxes(-1, -2)) * 0.25 + mask
        return ops.matmul(ops.softmax(scores, -1), v)

    compiled = jit(masked)  # the second length makes it symbolic
    rng = np.random.default_rng(0)
    for length in (50, 3, 129, 1):
        args = [Tensor(rng.standard_normal((2, 3, length, 16)).astype(np.float32)) for _ in "qkv"]
        mask = Tensor(rng.standard_normal((2, 1, 1, length)).astype(np.float32))
        got, want = compiled(*args, mask), masked(*args, mask)
        np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), atol=2e-6)
    assert "attention" in compiled.kernels()


@pytest.mark.parametrize("hidden", [-np.inf, float(np.finfo("f4").min), -1e9])
def test_queries_that_see_no_key(hidden):
    """Minus infinity leaves NaN, the least finite number the mean of all values, as in softmax."""

    def masked(q, k, v, mask):
        scores = ops.matmul(q, k.swapaxes(-1, -2)) * 0.25 + mask
        return ops.matmul(ops.softmax(scores, -1), v)

    mask = np.zeros((2, 1, 20, 20), np.float32)
    mask[0, :, 3], mask[1, :, :, 5:] = hidden, hidden
    args = [*_tensors(2, 3, 20, 16), Tensor(mask)]
    compiled, slopes = jit(masked), jit(ms.grad(masked, (0, 1, 2)))
    np.testing.assert_allclose(compiled(*args).asnumpy(), masked(*args).asnumpy(), atol=2e-6)
    assert "attention" in compiled.kernels()
    if np.isfinite(hidden):
        for got, want in zip(slopes(*args), ms.grad(masked, (0, 1, 2))(*args)):
            np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), atol=1e-5)


@pytest.mark.parametrize("layout", ["BNSD", "BSND"])
def test_weights_that_are_nan_are_replaced_by_zero(layout):
    """How PyTorch exports its attention: a query that sees no key gives zeros."""

    def guarded(q, k, v, mask):
        if layout == "BSND":
            q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
        weights = ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)) * 0.25 + mask, -1)
        y = ops.matmul(ops.where(ops.isnan(weights), Tensor(0.0, ms.float32), weights), v)
        return y.swapaxes(1, 2) if layout == "BSND" else y

    compiled = jit(guarded)
    for length in (24, 40, 7):  # the second length makes it symbolic
        shape = (2, 3, length, 16) if layout == "BNSD" else (2, length, 3, 16)
        mask = np.zeros((2, 1, length, length), np.float32)
        mask[0, :, 3], mask[1, :, :, 5:] = -np.inf, -np.inf
        args = [*_tensors(*shape), Tensor(mask)]
        want = guarded(*args).asnumpy()
        np.testing.assert_allclose(compiled(*args).asnumpy(), want, atol=2e-6)
        row = want[0, :, 3] if layout == "BNSD" else want[0, 3]
        assert np.isfinite(want).all() and not row.any()
    assert "attention" in compiled.kernels()


_PEAK = """
import resource, sys
import numpy as np
from tvmgraph import Tensor, jit, ops
length = int(sys.argv[1])
x = Tensor(np.ones((1, 2, length, 16), np.float32))
f = jit(lambda q, k, v: ops.matmul(ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)), -1), v))
small = Tensor(np.ones((1, 2, 64, 16), np.float32))
f(small, small, small)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
f(x, x, x)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_is_linear_in_the_length():
    length = 8192
    out = subprocess.run(
        [sys.executable, "-c", _PEAK, str(length)], capture_output=True, text=True, check=True
    )
    scores = 2 * length * length * 4 // 1024
    assert int(out.stdout) < scores // 8


def test_code_does_not_grow_with_the_head():
    sizes = []
    attrs = {"scale": 1.0, "diagonal": None, "fill": None, "layouts": ("BNSD",) * 4}
    attend = jit(lambda *qkv: ops.fused_attention(*qkv, **attrs))
    for depth in (1024, 3871):
        graph = attend.graph(*_tensors(1, 1, 17, depth))
        sizes.append(len(driver.kernels(lower(graph))))
    assert sizes[1] < 1.5 * sizes[0], f"{sizes} characters"


@pytest.mark.parametrize("layout", ["BSH", "SBH", "BSND", "BNSD"])
@pytest.mark.parametrize("mode", [0, 2, 3])
def test_flash_attention_score(layout, mode):
    rng = np.random.default_rng(0)
    extents = {"B": 2, "N": 4, "D": 8, "H": 32}
    q, k, v = (
        Tensor(rng.standard_normal([extents.get(a, s) for a in layout]).astype(np.float32))
        for s in (5, 9, 9)
    )
    mask = Tensor(rng.integers(0, 2, (2, 1, 5, 9)).astype(bool)) if mode == 0 else None

    def score(q, k, v):
        return ops.flash_attention_score(
            q, k, v, 4, attn_mask=mask, scalar_value=0.3, input_layout=layout, sparse_mode=mode,
            next_tokens=6,
        )  # fmt: skip

    def plain(x):
        x = x.asnumpy().astype("float64")
        x = x.reshape(*x.shape[:2], 4, 8) if layout[-1] == "H" else x
        return x.transpose({"S": (1, 2, 0, 3), "B": (0, 2, 1, 3)}[layout[0]]
                           if layout != "BNSD" else (0, 1, 2, 3))  # fmt: skip

    column, row = np.arange(9), np.arange(5)[:, None]
    hidden = column > row + {0: 6, 2: 0, 3: 4}[mode]
    hidden = hidden | mask.asnumpy() if mask is not None else hidden
    scores = np.where(hidden, -np.inf, plain(q) @ plain(k).swapaxes(-1, -2) * 0.3)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ plain(v)
    compiled = jit(score)
    for got in (score(q, k, v), compiled(q, k, v)):
        assert got.shape == q.shape
        np.testing.assert_allclose(plain(got), want, atol=2e-6)
    assert any("attention" in name for name in compiled.kernels())


def test_flash_attention_score_refuses():
    x = ops.ones((1, 3, 8))
    with pytest.raises(ms.errors.ArgumentError, match="keep_prob must be 1"):
        ops.flash_attention_score(x, x, x, 2, keep_prob=0.5)
    with pytest.raises(ms.errors.ShapeError, match="3 heads do not divide"):
        ops.flash_attention_score(x, x, x, 3)
