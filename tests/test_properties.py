"""Properties against NumPy on generated shapes: broadcasting, shape movement, reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import tvmgraph as ms
from tvmgraph import Tensor, dtypes, ops
from tvmgraph.core.types import tensor_type
from tvmgraph.eager import evaluate
from tvmgraph.errors import ShapeError

PROPERTY = settings(max_examples=100, deadline=None, derandomize=True)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


def values(shape: tuple[int, ...]) -> np.ndarray:
    """Small distinct numbers, none of them zero, exactly representable."""
    flat = np.arange(1, int(np.prod(shape)) + 1, dtype=np.float32)
    return (np.where(flat % 3 == 0, -flat, flat) / 4).reshape(shape)


def check(fn: Callable[..., Any], expected: Any, *arrays: np.ndarray, exact: bool = True) -> None:
    """Compares eager and recorded results with NumPy's; also the inferred types."""
    tensors = [Tensor(a) for a in arrays]
    actual = fn(*tensors)
    graph = ms.record(lambda *ts: fn(*map(ops.identity, ts)), *tensors)
    recorded = evaluate(graph, list(arrays))
    expected = expected if isinstance(expected, (tuple, list)) else [expected]
    outputs = actual if isinstance(actual, tuple) else (actual,)
    assert len(outputs) == len(expected) == len(recorded)
    for a, r, e, v in zip(outputs, recorded, expected, graph.outputs):
        assert a.shape == e.shape
        assert a.aval is v.type is tensor_type(r.shape, r.dtype)
        same = np.testing.assert_array_equal if exact else np.testing.assert_allclose
        same(a.asnumpy(), e, **({} if exact else {"rtol": 1e-5, "atol": 1e-6}))
        np.testing.assert_array_equal(r, a.asnumpy())


@st.composite
def broadcast_pairs(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4))
    return shapes.input_shapes


BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "maximum": np.maximum, "minimum": np.minimum, "less": np.less, "equal": np.equal,
    "floor_div": np.floor_divide, "logical_and": np.logical_and,
}  # fmt: skip


@PROPERTY
@given(broadcast_pairs(), st.sampled_from(sorted(BINARY)))
def test_broadcasting(shapes: tuple[Any, Any], name: str) -> None:
    a, b = map(values, shapes)
    check(getattr(ops, name), BINARY[name](a, b), a, b, exact=name != "div")


@PROPERTY
@given(broadcast_pairs())
def test_gradient_of_broadcasting_has_the_operand_shape(shapes: tuple[Any, Any]) -> None:
    a, b = map(values, shapes)
    da, db = ms.grad(lambda x, y: (x * y).sum(), (0, 1))(Tensor(a), Tensor(b))
    ones = np.ones(np.broadcast_shapes(*shapes), np.float32)
    for g, own, other in ((da, a, b), (db, b, a)):
        lead = ones.ndim - own.ndim
        full = (ones * other).sum(tuple(range(lead)))
        axes = tuple(i for i, d in enumerate(own.shape) if d == 1)
        np.testing.assert_allclose(g.asnumpy(), full.sum(axes, keepdims=True), rtol=1e-5)


@PROPERTY
@given(SHAPES, SHAPES)
def test_broadcast_errors_agree_with_numpy(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(ShapeError, match="do not broadcast"):
            ops.add(Tensor(values(a)), Tensor(values(b)))
    else:
        assert ops.add(Tensor(values(a)), Tensor(values(b))).shape == expected


@st.composite
def reshapes(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes of one size, one entry of the second possibly -1."""
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=4))
    factors = [f for d in shape for f in ({4: [2, 2]}.get(d, [d]))]
    factors = draw(st.permutations(factors))
    new: list[int] = [1] * draw(st.integers(1, 4))
    for f in factors:
        new[draw(st.integers(0, len(new) - 1))] *= f
    if draw(st.booleans()):
        new[draw(st.integers(0, len(new) - 1))] = -1
    return shape, tuple(new)


@PROPERTY
@given(reshapes())
def test_reshape(case: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    x, shape = values(case[0]), case[1]
    check(lambda t: t.reshape(shape), x.reshape(shape), x)
    check(lambda t: t.reshape(*shape), x.reshape(shape), x)


@PROPERTY
@given(st.data())
def test_transposes(data: Any) -> None:
    x = values(data.draw(SHAPES))
    order = tuple(data.draw(st.permutations(range(x.ndim))))
    wrapped = tuple(a - x.ndim if data.draw(st.booleans()) else a for a in order)
    check(lambda t: t.permute(wrapped), x.transpose(order), x)
    check(lambda t: t.T, x.T, x)
    if x.ndim >= 2:
        i, j = data.draw(st.tuples(*[st.integers(-x.ndim, x.ndim - 1)] * 2))
        check(lambda t: t.swapaxes(i, j), x.swapaxes(i, j), x)
        check(lambda t: ops.moveaxis(t, i, j), np.moveaxis(x, i, j), x)


@PROPERTY
@given(st.data())
def test_axes_come_and_go(data: Any) -> None:
    x = values(data.draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=3)))
    axis = data.draw(st.integers(-x.ndim - 1, x.ndim))
    check(lambda t: t.expand_dims(axis), np.expand_dims(x, axis), x)
    check(lambda t: t.squeeze(), x.squeeze(), x)
    start = data.draw(st.integers(0, max(x.ndim - 1, 0)))
    flat = x.reshape(*x.shape[:start], -1) if x.ndim else x.reshape(1)
    check(lambda t: t.flatten(start_dim=start), flat, x)


@PROPERTY
@given(st.data())
def test_joining_and_cutting(data: Any) -> None:
    x = values(data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    size = x.shape[axis]
    cuts = sorted(data.draw(st.lists(st.integers(1, size), max_size=3)))
    bounds = [0, *cuts, size]
    sizes = np.diff(bounds).tolist()
    parts = np.split(x, cuts, axis)
    if all(sizes):
        check(lambda t: t.split(sizes, axis), parts, x)
    check(lambda *p: ops.concat(p, axis), x, *parts)
    check(lambda *p: ops.stack(p, axis), np.stack([x, -x], axis), x, -x)
    check(lambda t: ops.unbind(t, axis), [np.take(x, i, axis) for i in range(size)], x)
    reps = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    check(lambda t: t.tile(tuple(reps)), np.tile(x, reps), x)
    shift = data.draw(st.integers(-5, 5))
    check(lambda t: ops.roll(t, shift, axis), np.roll(x, shift, axis), x)
    check(lambda t: ops.flip(t, (axis,)), np.flip(x, axis), x)


REDUCTIONS: dict[str, Any] = {
    "sum": np.sum, "mean": np.mean, "prod": np.prod, "amax": np.max, "amin": np.min,
    "var": np.var, "std": np.std, "all": np.all, "any": np.any,
}  # fmt: skip


@st.composite
def reductions(draw: Any) -> tuple[np.ndarray, Any, bool]:
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=4))
    ndim = len(shape)
    axes: Any = None
    if ndim and draw(st.booleans()):
        picked = draw(st.sets(st.integers(0, ndim - 1), min_size=1))
        axes = tuple(a - ndim if draw(st.booleans()) else a for a in sorted(picked))
        axes = axes[0] if len(axes) == 1 and draw(st.booleans()) else axes
    return values(shape), axes, draw(st.booleans())


@PROPERTY
@given(reductions(), st.sampled_from(sorted(REDUCTIONS)))
def test_reductions(case: tuple[np.ndarray, Any, bool], name: str) -> None:
    x, axis, keep = case
    expected = np.asarray(REDUCTIONS[name](x.astype(np.float64), axis=axis, keepdims=keep))
    keys = dict.fromkeys(("mean", "prod", "all", "any"), "keep_dims") | {"sum": "keepdim"}
    key = keys.get(name, "keepdims")
    function = getattr(ops, name)
    over = {"dim" if name == "sum" else "axis": axis}
    check(lambda t: function(t, **over, **{key: keep}), expected, x, exact=False)
    check(lambda t: getattr(t, name)(axis=axis, keepdims=keep), expected, x, exact=False)


@PROPERTY
@given(st.data())
def test_positions_and_order(data: Any) -> None:
    x = values(data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)))
    x = data.draw(st.sampled_from([x, -x, np.round(x)]))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    check(lambda t: t.argmax(axis), np.argmax(x, axis), x)
    check(lambda t: t.argmin(axis), np.argmin(x, axis), x)
    check(lambda t: t.sort(axis)[0], np.sort(x, axis), x)
    order = np.argsort(x, axis, kind="stable")
    check(lambda t: ops.argsort(t, axis), order, x)
    check(lambda t: ops.gather_elements(t, axis, ops.argsort(t, axis)), np.sort(x, axis), x)
    check(lambda t: t.cumsum(axis), np.cumsum(x, axis), x)


@st.composite
def products(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shapes = draw(hnp.mutually_broadcastable_shapes(signature=np.matmul.signature, max_dims=2,
                                                    min_side=0, max_side=4))  # fmt: skip
    return shapes.input_shapes


@PROPERTY
@given(products())
def test_matrix_products(shapes: tuple[Any, Any]) -> None:
    a, b = map(values, shapes)
    check(lambda x, y: x @ y, np.matmul(a, b), a, b, exact=False)


@PROPERTY
@given(SHAPES, st.sampled_from([d for d in dtypes.ALL if d.name != "bfloat16"]))
def test_casting(shape: tuple[int, ...], dtype: Any) -> None:
    x = np.abs(values(shape))
    check(lambda t: t.astype(dtype), x.astype(dtype.numpy), x)


@PROPERTY
@given(SHAPES)
def test_storage_is_never_shared_observably(shape: tuple[int, ...]) -> None:
    x = Tensor(values(shape))
    for y in (x.copy(), x.reshape(-1), x.T, x.astype(x.dtype), ops.identity(x)):
        y.fill_(0)
        np.testing.assert_array_equal(x.asnumpy(), values(shape))
