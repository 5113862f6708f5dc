"""Reductions, sorting, gathers and scatters that are written with other operators.

Every case runs eagerly and compiled, is compared with NumPy, and, where it is differentiable, with
central differences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, ops
from tvmgraph.config.flag_registry import active
from tvmgraph.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 5))
Y = RNG.standard_normal((2, 3, 4))
V = RNG.standard_normal(7)
NAN = np.where(RNG.random((4, 5)) < 0.3, np.nan, X)
I3 = np.array([2, -1, 0])
ROWS = np.array([[0, 4, 2], [1, 1, 3], [4, 0, 0], [2, 3, 4]])
INTS = np.array([[3, -1, 2], [0, 2, 2]])


@dataclass(frozen=True)
class Case:
    """A call, the arrays it gets and what NumPy says."""

    name: str
    call: Callable[..., Any]
    arrays: tuple[np.ndarray, ...]
    expected: Callable[..., Any]
    differentiable: bool = True


def case(name: str, call: Any, *arrays: Any, np_: Any, grad: bool = True) -> Case:
    return Case(name, call, tuple(np.asarray(a) for a in arrays), np_, grad)


def updated(x: np.ndarray, key: Any, value: Any, how: Any = None) -> np.ndarray:
    out = x.copy()
    if how is None:
        out[key] = value
    else:
        how.at(out, key, value)
    return out


def segments(x: np.ndarray, ids: list[int], n: int, how: Any, start: float) -> np.ndarray:
    out = np.full((n, *x.shape[1:]), start, x.dtype)
    for row, s in zip(x, ids, strict=True):
        if s >= 0:
            out[s] = how(out[s], row)
    return out


def lse(x: np.ndarray, axis: Any) -> np.ndarray:
    return np.log(np.exp(x).sum(axis))


def nuclear(x: np.ndarray) -> Any:
    return np.linalg.norm(x, "nuc")


IDS = [1, 0, -1, 1]
FMAX = float(np.finfo(np.float64).max)

CASES = [
    case("var", lambda x: ops.var(x, 1, ddof=1), X, np_=lambda x: x.var(1, ddof=1)),
    case("std", lambda x: ops.std(x, (0, 2), keepdims=True), Y,
         np_=lambda x: x.std((0, 2), keepdims=True)),
    case("std_mean", lambda x: ops.std_mean(x, 0), X, np_=lambda x: (x.std(0), x.mean(0))),
    case("var_mean", ops.var_mean, X, np_=lambda x: (x.var(), x.mean())),
    case("logsumexp", lambda x: ops.logsumexp(x, 1), X, np_=lambda x: lse(x, 1)),
    case("logsumexp-large", lambda x: ops.logsumexp(x, ()), X + 800,
         np_=lambda x: lse(x - 800, (0, 1)) + 800),
    case("logsumexp-inf", lambda x: ops.logsumexp(x, 0), [-np.inf, -np.inf],
         np_=lambda x: -np.inf, grad=False),
    case("logsumexp-empty", lambda x: ops.logsumexp(x, 0), np.zeros((0, 3)),
         np_=lambda x: np.full(3, -np.inf), grad=False),
    case("nansum", lambda x: ops.nansum(x, 1), NAN, np_=lambda x: np.nansum(x, 1), grad=False),
    case("nanmean", lambda x: ops.nanmean(x, 1), NAN, np_=lambda x: np.nanmean(x, 1), grad=False),
    case("amax", lambda x: ops.amax(x, (0, 2)), Y, np_=lambda x: x.max((0, 2))),
    case("amax-nan", lambda x: ops.amax(x, 1), NAN, np_=lambda x: x.max(1), grad=False),
    case("amin-initial", lambda x: ops.amin(x, 1, initial=-0.5), X,
         np_=lambda x: np.minimum(x.min(1), -0.5)),
    case("max", lambda x: ops.max(x, 1), X, np_=lambda x: (x.max(1), x.argmax(1))),
    case("min-keep", lambda x: ops.min(x, 0, True), X,
         np_=lambda x: (x.min(0, keepdims=True), x.argmin(0, keepdims=True))),
    case("max-all", ops.max, X, np_=lambda x: (x.max(), 0)),
    case("argmax-nan", lambda x: ops.argmax(x, 1), NAN, np_=lambda x: x.argmax(1), grad=False),
    case("argmin-flat", ops.argmin, X, np_=lambda x: np.int32(x.argmin()), grad=False),
    case("aminmax", lambda x: ops.aminmax(x, axis=1), X, np_=lambda x: (x.min(1), x.max(1))),
    case("count_nonzero", lambda x: ops.count_nonzero(x, 1), INTS,
         np_=lambda x: np.int32((x != 0).sum(1)), grad=False),
    case("all", lambda x: ops.all(x, 1), INTS, np_=lambda x: x.all(1), grad=False),
    case("any-nan", lambda x: ops.any(x), [np.nan, 0.0], np_=lambda x: x.any(), grad=False),
    case("mean-int", lambda x: ops.mean(x, 1), INTS - 3,
         np_=lambda x: np.trunc(x.mean(1)).astype(np.int64), grad=False),
    case("cummax", lambda x: ops.cummax(x, 1), X,
         np_=lambda x: (np.maximum.accumulate(x, 1), None)),
    case("cummin-nan", lambda x: ops.cummin(x, 1), NAN,
         np_=lambda x: (np.minimum.accumulate(x, 1), None), grad=False),
    case("cumprod", lambda x: ops.cumprod(x, 0), X, np_=lambda x: x.cumprod(0)),
    case("cumprod-zero", lambda x: ops.cumprod(x, 0), [2.0, 0, 3, 0, 4],
         np_=lambda x: x.cumprod(0)),
    case("logcumsumexp", lambda x: ops.logcumsumexp(x, 1), X,
         np_=lambda x: np.logaddexp.accumulate(x, 1)),
    case("median", lambda x: ops.median(x, 0), X,
         np_=lambda x: (np.sort(x, 0)[1], np.argsort(x, 0)[1])),
    case("median-nan", lambda x: ops.median(x, 1)[0], NAN, np_=lambda x: np.median(x, 1),
         grad=False),
    case("nanmedian", lambda x: ops.nanmedian(x)[0], [1.0, np.nan, 5.0, np.nan, 2.0],
         np_=np.nanmedian, grad=False),
    case("quantile", lambda x: ops.quantile(x, 0.3, 1), X, np_=lambda x: np.quantile(x, 0.3, 1)),
    case("quantiles", lambda x, q: ops.quantile(x, q, 0, True), X, np.array([0.0, 0.5, 1.0]),
         np_=lambda x, q: np.quantile(x, q, 0, keepdims=True), grad=False),
    case("nanquantile", lambda x: ops.nanquantile(x, 0.4, 1), NAN,
         np_=lambda x: np.nanquantile(x, 0.4, 1), grad=False),
    case("norm", ops.norm, X, np_=np.linalg.norm),
    case("norm-axis", lambda x: ops.norm(x, dim=1, keepdim=True), X,
         np_=lambda x: np.linalg.norm(x, axis=1, keepdims=True)),
    *[case(f"norm-vector-{o}", lambda x, o=o: ops.norm(x, o), V,
           np_=lambda x, o=o: np.linalg.norm(x, o), grad=o != 0)
      for o in (0, 1, -1, 2, 3, 2.5, np.inf, -np.inf)],
    *[case(f"norm-matrix-{o}", lambda x, o=o: ops.norm(x, o), X,
           np_=lambda x, o=o: np.linalg.norm(x, o)) for o in ("fro", 1, -1, np.inf, -np.inf)],
    case("matrix_norm", lambda x: ops.matrix_norm(x, 1, (2, 0), True), Y,
         np_=lambda x: np.linalg.norm(x, 1, (2, 0), True)),
    case("renorm", lambda x: ops.renorm(x, 2, 0, 1.5), X,
         np_=lambda x: x * np.minimum(1, 1.5 / np.linalg.norm(x, axis=1, keepdims=True))),
    case("histc", lambda x: ops.histc(x, 4, -1.0, 1.0), V,
         np_=lambda x: np.histogram(x, 4, (-1, 1))[0].astype(float), grad=False),
    case("histc-auto", lambda x: ops.histc(x, 3), V,
         np_=lambda x: np.histogram(x, 3)[0].astype(float), grad=False),
    case("sort", lambda x: ops.sort(x, 0, True), X,
         np_=lambda x: (-np.sort(-x, 0), np.argsort(-x, 0).astype(np.int32))),
    case("sort-nan", lambda x: ops.sort(x, 1)[0], NAN, np_=lambda x: np.sort(x, 1), grad=False),
    case("topk", lambda x: ops.topk(x, 2), X,
         np_=lambda x: (-np.sort(-x, 1)[:, :2], np.argsort(-x, 1).astype(np.int32)[:, :2])),
    case("topk-smallest", lambda x: ops.topk(x, 3, 0, False)[0], X,
         np_=lambda x: np.sort(x, 0)[:3]),
    case("kthvalue", lambda x: ops.kthvalue(x, 2, 1), X,
         np_=lambda x: (np.sort(x, 1)[:, 1], np.argsort(x, 1)[:, 1])),
    case("msort", ops.msort, X, np_=lambda x: np.sort(x, 0)),
    case("bucketize", lambda x: ops.bucketize(x, [-1.0, 0.0, 1.0], right=True), V,
         np_=lambda x: np.digitize(x, [-1, 0, 1]).astype(np.int32), grad=False),
    case("intopk", lambda x, c: ops.intopk(x, c, 2), X, np.array([0, 4, 9, 2]),
         np_=lambda x, c: np.array([k in np.argsort(-r)[:2] for r, k in zip(x, c, strict=True)]),
         grad=False),
    case("unique_with_pad", lambda x: ops.unique_with_pad(x, -9), [5, 2, 5, 7, 2],
         np_=lambda x: (np.array([5, 2, 7, -9, -9]), np.array([0, 1, 0, 2, 1])), grad=False),
    case("unique_with_pad-floats", lambda x: ops.unique_with_pad(x, -0.5), [5.5, 2.0, 5.5],
         np_=lambda x: (np.array([5.5, 2.0, -0.5]), np.array([0, 1, 0], np.int32)), grad=False),
    case("gather", lambda x, i: ops.gather(x, i, 1), X, I3, np_=lambda x, i: x[:, i]),
    case("gather-batch", lambda x, i: ops.gather(x, i, 1, 1), X, ROWS,
         np_=lambda x, i: np.take_along_axis(x, i, 1)),
    case("gather-batch-2", lambda x, i: ops.gather(x, i, 2, 1), Y, np.array([[3, 1], [0, 0]]),
         np_=lambda x, i: np.stack([a[:, k] for a, k in zip(x, i, strict=True)])),
    case("gather_nd", ops.gather_nd, Y, np.array([[0, 2], [1, 0], [1, 1]]),
         np_=lambda x, i: x[i[:, 0], i[:, 1]]),
    case("gather_elements", lambda x, i: ops.gather_elements(x, 1, i), X, ROWS,
         np_=lambda x, i: np.take_along_axis(x, i, 1)),
    case("take", ops.take, X, ROWS, np_=np.take),
    case("index_select", lambda x, i: ops.index_select(x, -1, i), X, I3,
         np_=lambda x, i: x[:, i]),
    case("choose", lambda a, b: ops.choose(Tensor([0, 1, 5]), [a, b]), V[:3], V[3:6],
         np_=lambda a, b: np.array([a[0], b[1], b[2]])),
    case("reverse_sequence", lambda x, n: ops.reverse_sequence(x, n, 1), X, np.array([0, 2, 5, 3]),
         np_=lambda x, n: np.stack([np.r_[r[:k][::-1], r[k:]] for r, k in zip(x, n, strict=True)])),
    case("reverse_sequence-apart", lambda x, n: ops.reverse_sequence(x, n, 0, 2), Y,
         np.array([0, 2, 1, 2]),
         np_=lambda x, n: np.where(n == 2, x[::-1], x)),
    case("embedding", ops.embedding, ROWS, RNG.standard_normal((5, 3)), np_=lambda i, w: w[i]),
    case("one_hot", lambda i: ops.one_hot(i, 4, axis=0), np.array([0, 3, 9]),
         np_=lambda i: (np.arange(4)[:, None] == i).astype(np.int64), grad=False),
    case("sequence_mask", lambda n: ops.sequence_mask(n, 3), np.array([1, 3, 0]),
         np_=lambda n: np.arange(3) < n[:, None], grad=False),
    case("masked_fill", lambda x, m: ops.masked_fill(x, m, 2.5), X, X > 0,
         np_=lambda x, m: np.where(m, 2.5, x)),
    case("masked_scatter", lambda x, m, s: ops.masked_scatter(x, m, s), X, X > 0, X.ravel() * 2,
         np_=lambda x, m, s: updated(x, m, s[: m.sum()])),
    case("scatter", lambda x, i, s: ops.scatter(x, 1, i, s), X, ROWS[:, :1], X,
         np_=lambda x, i, s: updated(x, (np.arange(4)[:, None], i), s[:, :1])),
    case("scatter-number", lambda x, i: ops.scatter(x, 1, i, 3.0), X, ROWS,
         np_=lambda x, i: updated(x, (np.arange(4)[:, None], i), 3.0)),
    case("tensor_scatter_elements",
         lambda x, s: ops.tensor_scatter_elements(x, Tensor([6, 9, -1, 6]), s, 0, "add"),
         V, V[:4], np_=lambda x, s: updated(x, [6, 6, 6], s[[0, 2, 3]], np.add)),
    *[case(f"tensor_scatter_{n}",
           lambda x, s, n=n: getattr(ops, f"tensor_scatter_{n}")(x, Tensor([[1], [3], [1]]), s),
           X, RNG.standard_normal((3, 5)),
           np_=lambda x, s, u=u: updated(x, [1, 3, 1], s, u))
      for n, u in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply),
                   ("div", np.divide), ("max", np.maximum), ("min", np.minimum))],
    case("tensor_scatter_update",
         lambda x, s: ops.tensor_scatter_update(x, Tensor([[0, 1], [3, 4]]), s), X, V[:2],
         np_=lambda x, s: updated(x, ([0, 3], [1, 4]), s)),
    case("scatter_nd", lambda s: ops.scatter_nd(Tensor([[1], [1], [0]]), s, (4, 2)), Y[:, :, 0].T,
         np_=lambda s: updated(np.zeros((4, 2)), [1, 1, 0], s, np.add)),
    case("index_fill", lambda x: ops.index_fill(x, 1, Tensor([0, -1]), 9), X,
         np_=lambda x: updated(x, (slice(None), [0, -1]), 9)),
    case("index_put", lambda x, s: ops.index_put(x, (Tensor([1, 1]), Tensor([0, 0])), s, True),
         X, V[:2], np_=lambda x, s: updated(x, ([1, 1], [0, 0]), s, np.add)),
    case("inplace_sub", lambda x, v: ops.inplace_sub(x, v, (1, 3)), X, X[:2],
         np_=lambda x, v: updated(x, [1, 3], v, np.subtract)),
    case("unsorted_segment_sum", lambda x: ops.unsorted_segment_sum(x, Tensor(IDS), 3), X,
         np_=lambda x: segments(x, IDS, 3, np.add, 0)),
    case("unsorted_segment_prod", lambda x: ops.unsorted_segment_prod(x, Tensor(IDS), 3), X,
         np_=lambda x: segments(x, IDS, 3, np.multiply, 1)),
    case("unsorted_segment_max", lambda x: ops.unsorted_segment_max(x, Tensor(IDS), 2), X,
         np_=lambda x: segments(x, IDS, 2, np.maximum, -FMAX)),
    case("unsorted_segment_min", lambda x: ops.unsorted_segment_min(x, Tensor(IDS), 2), X,
         np_=lambda x: segments(x, IDS, 2, np.minimum, FMAX)),
    case("strided_slice", lambda x: ops.strided_slice(x, (3, 0), (0, 5), (-1, 2)), X,
         np_=lambda x: x[3:0:-1, 0:5:2]),
    case("slice", lambda x: ops.slice(x, (1, 2), (2, -1)), X, np_=lambda x: x[1:3, 2:]),
    case("narrow", lambda x: ops.narrow(x, 1, 1, 3), X, np_=lambda x: x[:, 1:4]),
    case("slice_scatter", lambda x, s: ops.slice_scatter(x, s, 1, 1, 4, 2), X, X[:, :2],
         np_=lambda x, s: updated(x, (slice(None), slice(1, 4, 2)), s)),
]  # fmt: skip


def as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def assert_equal(actual: Any, expected: Any, rtol: float = 1e-10) -> None:
    for a, e in zip(as_tuple(actual), as_tuple(expected), strict=True):
        if e is None:
            continue
        e = np.asarray(e)
        assert a.asnumpy().dtype == e.dtype
        np.testing.assert_allclose(a.asnumpy(), e, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("c", CASES, ids=lambda c: c.name)
def test_eager_is_numpy(c: Case) -> None:
    assert_equal(c.call(*map(Tensor, c.arrays)), c.expected(*c.arrays))


@pytest.mark.parametrize("c", CASES, ids=lambda c: c.name)
def test_compiled_is_eager(c: Case) -> None:
    inputs = [Tensor(a) for a in c.arrays]
    expected = tuple(t.asnumpy() for t in as_tuple(c.call(*inputs)))
    assert_equal(ms.jit(c.call)(*inputs), expected, 1e-9)


@pytest.mark.parametrize("c", [c for c in CASES if c.differentiable], ids=lambda c: c.name)
def test_gradient_is_central_difference(c: Case) -> None:
    weights = [
        np.random.default_rng(i).standard_normal(t.shape)
        for i, t in enumerate(as_tuple(c.call(*map(Tensor, c.arrays))))
    ]

    def loss(*inputs: Tensor) -> Tensor:
        total = Tensor(np.float64(0))
        for t, w in zip(as_tuple(c.call(*inputs)), weights, strict=True):
            if t.dtype.is_float:
                total = total + ops.sum(t * Tensor(w))
        return total

    floats = tuple(i for i, a in enumerate(c.arrays) if a.dtype.kind == "f")
    found = ms.grad(loss, grad_position=floats)(*map(Tensor, c.arrays))
    for i, g in zip(floats, as_tuple(found), strict=True):
        numeric = np.zeros(c.arrays[i].shape)
        for at in np.ndindex(numeric.shape):
            sides = []
            for step in (1e-6, -1e-6):
                moved = [a.copy() for a in c.arrays]
                moved[i][at] += step
                sides.append(float(loss(*map(Tensor, moved)).asnumpy()))
            numeric[at] = (sides[0] - sides[1]) / 2e-6
        np.testing.assert_allclose(g.asnumpy(), numeric, rtol=1e-4, atol=2e-5)


# ---- what depends on the values, changes in place, or must fail ---------------------------------


def test_singular_value_norms() -> None:
    for order in ("nuc", 2, -2):
        expected = np.linalg.norm(X, order)
        np.testing.assert_allclose(ops.norm(Tensor(X), order).asnumpy(), expected)


def test_zero_vector_has_norm_gradient_zero() -> None:
    g = ms.grad(lambda x: ops.norm(x))(Tensor(np.zeros(3, np.float32)))
    np.testing.assert_array_equal(g.asnumpy(), np.zeros(3))


def test_the_angle_of_the_origin_has_slope_zero() -> None:
    x = Tensor([[0.0, -0.0], [1.0, 2.0]])
    both = ms.grad(ops.atan2, (0, 1))
    for gradient in (both, ms.jit(both)):
        by_y, by_x = (g.tolist() for g in gradient(x, x))
        assert by_y == [[0.0, 0.0], [0.5, 0.25]]
        assert by_x == [[0.0, 0.0], [-0.5, -0.25]]


def test_empty_segments_hold_the_limits_of_the_dtype() -> None:
    for dtype in (np.float32, np.float64):
        x = Tensor(np.ones(2, dtype))
        for call, limit in ((ops.unsorted_segment_max, np.finfo(dtype).min),
                            (ops.unsorted_segment_min, np.finfo(dtype).max)):  # fmt: skip
            run = ms.jit(lambda t, call=call: call(t, Tensor([0, 0]), 2))
            assert run(x).tolist() == call(x, Tensor([0, 0]), 2).tolist() == [1, limit]


def test_distinct_elements() -> None:
    values, inverse = ops.unique(Tensor([[2, 1], [2, 3]]))
    assert values.tolist() == [2, 1, 3]
    assert inverse.tolist() == [[0, 1], [0, 2]]
    values, inverse, counts = ops.unique_consecutive(Tensor([1, 1, 2, 1]), True, True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == (
        [1, 2, 1], [0, 0, 1, 2], [2, 1, 1],
    )  # fmt: skip
    rows = ops.unique_consecutive(Tensor([[1, 1], [1, 1], [2, 3]]), dim=0)
    assert rows.tolist() == [[1, 1], [2, 3]]


def test_positions_and_masks() -> None:
    x = Tensor([[0, 3], [4, 0]])
    assert ops.nonzero(x).tolist() == [[0, 1], [1, 0]]
    assert [t.tolist() for t in ops.nonzero(x, as_tuple=True)] == [[0, 1], [1, 0]]
    assert ops.nonzero(Tensor(2)).shape == (1, 0)
    assert ops.masked_select(x, x > 0).tolist() == [3, 4]
    assert str(ops.bincount(Tensor([0, 1, 1]), minlength=4)) == "[1. 2. 0. 0.]"
    assert ops.bincount(Tensor([0, 1, 1]), Tensor([0.5, 1.0, 2.0])).tolist() == [0.5, 3.0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("add", [6.0, 2.0]), ("sub", [-4.0, 2.0]), ("mul", [6.0, 2.0]), ("div", [1 / 6, 2.0]),
     ("max", [3.0, 2.0]), ("min", [1.0, 2.0]), ("update", [2.0, 2.0])],
)  # fmt: skip
def test_scatter_changes_the_parameter(name: str, expected: list[float]) -> None:
    for prefix, indices in (("scatter_", [0, 0]), ("scatter_nd_", [[0], [0]])):
        p = ms.Parameter(Tensor([1.0, 2.0]))
        y = getattr(ops, prefix + name)(p, Tensor(indices), Tensor([3.0, 2.0]))
        np.testing.assert_allclose(p.asnumpy(), expected, rtol=1e-6)
        np.testing.assert_allclose(y.asnumpy(), expected, rtol=1e-6)


def test_index_add_changes_the_parameter() -> None:
    p = ms.Parameter(Tensor([[1.0, 2.0], [3.0, 4.0]]))
    ops.index_add(p, Tensor([1, 1]), Tensor([[1.0, 1.0], [2.0, 2.0]]), 1)
    assert p.asnumpy().tolist() == [[1.0, 4.0], [3.0, 8.0]]


def test_embedding_options() -> None:
    table = np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 2.0]])
    ids = Tensor([0, 1, 1])

    def gradient(**options: object) -> list[list[float]]:
        loss = ms.grad(lambda w: ops.sum(ops.embedding(ids, w, **options)))
        return loss(Tensor(table)).asnumpy().tolist()

    assert gradient() == [[1, 1], [2, 2], [0, 0]]
    assert gradient(padding_idx=-3) == [[0, 0], [2, 2], [0, 0]]
    assert gradient(scale_grad_by_freq=True) == [[1, 1], [1, 1], [0, 0]]
    weight = ms.Parameter(Tensor(table))
    ops.embedding(ids, weight, max_norm=2.0)
    np.testing.assert_allclose(weight.asnumpy(), [[1.2, 1.6], [1, 0], [0, 2]], rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_whole_axis_that_is_not_to_be_sorted_stays_as_it_is(axis: int) -> None:
    x = Tensor([[3.0, 1.0, 7.0], [2.0, 9.0, 4.0]])
    for run in (ops.topk, ms.jit(ops.topk)):
        values, places = run(x, x.shape[axis], axis, True, False)
        np.testing.assert_array_equal(values, x)
        np.testing.assert_array_equal(places, np.indices(x.shape)[axis])
        assert places.dtype == ms.int32


def test_scans_and_extremes_of_half_precision() -> None:
    x = Tensor(np.ones(4096, np.float16))
    assert ops.cumsum(x, 0)[-1].item() == 4096
    assert ops.sum(x).item() == 4096
    assert ms.jit(lambda t: ops.cumsum(t, 0))(x)[-1].item() == 4096
    assert ops.amax(x).dtype == ms.float16


BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ops.sum(Tensor([1.0]), 1), OutOfRangeError, "ops.sum"),
    (lambda: ops.amax(Tensor(np.zeros((2, 0))), 1), ShapeError, "of no elements"),
    (lambda: ops.amax(Tensor([1.0]), where=Tensor([True])), ArgumentError, "ops.amax"),
    (lambda: ops.argmax([1.0]), DTypeError, "ops.argmax"),
    (lambda: ops.topk(Tensor([1.0]), 2), ArgumentError, "ops.topk"),
    (lambda: ops.quantile(Tensor([1.0]), 1.5), ArgumentError, "ops.quantile"),
    (lambda: ops.norm(Tensor(np.zeros((1, 1, 1))), 2), ArgumentError, "ops.norm"),
    (lambda: ops.gather(Tensor([1.0]), Tensor([1]), 0), OutOfRangeError, "out of range"),
    (lambda: ops.gather_nd(Tensor([1.0]), Tensor([[0, 0]])), ShapeError, "ops.gather_nd"),
    (lambda: ops.one_hot(Tensor([0]), -1), ArgumentError, "ops.one_hot"),
    (lambda: ops.masked_fill(Tensor([1.0]), Tensor([1]), 0.0), DTypeError, "mask must be bool"),
    (lambda: ops.slice(Tensor([1.0]), (0,), (2,)), OutOfRangeError, "ops.slice"),
    (lambda: ops.narrow(Tensor([1.0]), 0, 1, 1), OutOfRangeError, "ops.narrow"),
    (lambda: ops.strided_slice(Tensor([1.0]), (0,), (1,), (0,)), ArgumentError, "stride"),
    (lambda: ops.scatter_add(Tensor([1.0]), Tensor([0]), Tensor([1.0, 2])), ShapeError, "updates"),
    (lambda: ops.searchsorted(Tensor([1.0]), Tensor([1.0]), side="up"), ArgumentError, "side"),
    (lambda: ops.std(Tensor([1.0]), ddof=0.5), DTypeError, "ddof"),
    (lambda: ops.embedding(Tensor([0]), Tensor([1.0])), ShapeError, "weight must be 2-d"),
]


def test_marks_may_be_tensors_that_a_compiled_function_is_given() -> None:
    def marked(i: Tensor, on: Tensor, off: Tensor) -> Any:
        return ops.one_hot(i, 3, on, off), ops.OneHot(0)(i, 3, on, off)

    given = Tensor([2, 0]), Tensor(5.0), Tensor(-1.0)
    rows, columns = ms.jit(marked, fullgraph=True)(*given)
    assert rows.tolist() == columns.T.tolist() == [[-1, -1, 5], [5, -1, -1]]
    by_marks = ms.grad(ms.jit(lambda *a: marked(*a)[0].sum(), fullgraph=True), (1, 2))(*given)
    assert [g.item() for g in by_marks] == [2.0, 4.0]


@pytest.mark.parametrize("bad", BAD, ids=lambda b: b[2])
def test_errors_say_what_where_and_how(bad: Any) -> None:
    call, kind, text = bad
    with pytest.raises(kind) as info:
        call()
    message = str(info.value)
    assert text in message
    assert message.startswith("ops.")
    assert "\n  got: " in message
    assert "\n  at:  test_composites.py" in message


def test_a_mask_of_several_axes_is_one_index() -> None:
    x, mask = np.arange(24).reshape(2, 3, 4), np.arange(6).reshape(2, 3) % 2 == 0
    heard: list[tuple[str, int]] = []
    active.listen("test", lambda op, args, *_: heard.append((op.name, len(args))))
    try:
        found = Tensor(x)[Tensor(mask)]
    finally:
        active.ignore("test")
    np.testing.assert_array_equal(found.asnumpy(), x[mask])
    assert ("index_get", 2) in heard
