"""Indexing and assignment against NumPy: eagerly, recorded and differentiated."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import tvmgraph as ms
from tvmgraph import Tensor, ops
from tvmgraph.eager import evaluate
from tvmgraph.errors import DTypeError, OutOfRangeError, ShapeError

PROPERTY = settings(max_examples=200, deadline=None, derandomize=True)
SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4)


def values(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


@st.composite
def basic_cases(draw: Any) -> tuple[np.ndarray, Any]:
    shape = draw(SHAPES)
    index = draw(hnp.basic_indices(shape, allow_newaxis=True, max_dims=6))
    return values(shape), index


@st.composite
def advanced_cases(draw: Any, bools: bool = True) -> tuple[np.ndarray, Any]:
    """Index arrays on some axes, mixed with slices, integers and new axes."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    common = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=3))
    entries: list[Any] = []
    for size in shape[: draw(st.integers(1, len(shape)))]:
        kind = draw(st.sampled_from(["slice", "int", "array", "array", "list"]))
        position = st.integers(-size, size - 1)
        if kind == "slice":
            entries.append(draw(st.slices(size)))
        elif kind == "int":
            entries.append(draw(position))
        else:
            array = draw(hnp.arrays(np.int64, common, elements=position))
            entries.append(array.tolist() if kind == "list" and array.ndim else array)
    if draw(st.booleans()):
        entries.insert(draw(st.integers(0, len(entries))), None)
    if len(entries) < len(shape) and draw(st.booleans()):
        entries.append(...)
    return values(shape), tuple(entries)


def as_tensors(index: Any) -> Any:
    """Replaces NumPy arrays by tensors."""
    if isinstance(index, tuple):
        return tuple(as_tensors(i) for i in index)
    return Tensor(index) if isinstance(index, np.ndarray) else index


def check_get(x: np.ndarray, index: Any) -> None:
    expected = x[index]
    actual = Tensor(x)[as_tensors(index)]
    assert actual.shape == expected.shape
    np.testing.assert_array_equal(actual.asnumpy(), expected)


@PROPERTY
@given(basic_cases())
def test_basic_get(case: tuple[np.ndarray, Any]) -> None:
    check_get(*case)


@PROPERTY
@given(advanced_cases())
def test_advanced_get(case: tuple[np.ndarray, Any]) -> None:
    check_get(*case)


@PROPERTY
@given(st.data())
def test_bool_get(data: Any) -> None:
    shape = data.draw(SHAPES)
    depth = data.draw(st.integers(1, len(shape)))
    start = data.draw(st.integers(0, len(shape) - depth))
    mask = data.draw(hnp.arrays(np.bool_, shape[start : start + depth]))
    check_get(values(shape), (*(slice(None),) * start, mask))


@PROPERTY
@given(st.one_of(basic_cases(), advanced_cases()))
def test_recorded_get(case: tuple[np.ndarray, Any]) -> None:
    x, index = case
    graph = ms.record(lambda t: t[index], Tensor(x))
    np.testing.assert_array_equal(evaluate(graph, [x])[0], x[index])


@PROPERTY
@given(st.one_of(basic_cases(), advanced_cases()))
def test_derivative_of_get(case: tuple[np.ndarray, Any]) -> None:
    x, index = case
    weights = 1 + values(x[index].shape)
    expected = np.zeros_like(x)
    np.add.at(expected, index, weights)
    actual = ms.grad(lambda t: (t[as_tensors(index)] * Tensor(weights)).sum())(Tensor(x))
    np.testing.assert_array_equal(actual.asnumpy(), expected)


@st.composite
def set_cases(draw: Any) -> tuple[np.ndarray, Any, Any]:
    x, index = draw(st.one_of(basic_cases(), advanced_cases()))
    shape = x[index].shape
    first = draw(st.integers(0, len(shape)))
    cut = tuple(draw(st.sampled_from([d, 1])) for d in shape[first:])
    value = draw(st.one_of(st.just(-7.0), st.just(3), st.just(-1 - values(cut))))
    return x, index, value


def is_repeated(x: np.ndarray, index: Any) -> bool:
    """Whether some element is written more than once (then NumPy keeps the last)."""
    picked = np.arange(x.size).reshape(x.shape)[index]
    return np.unique(picked).size != picked.size


@PROPERTY
@given(set_cases())
def test_set(case: tuple[np.ndarray, Any, Any]) -> None:
    x, index, value = case
    if is_repeated(x, index):
        value = -7.0
    expected = x.copy()
    expected[index] = value
    t = Tensor(x)
    view = t[...]
    t[as_tensors(index)] = Tensor(value) if isinstance(value, np.ndarray) else value
    np.testing.assert_array_equal(t.asnumpy(), expected)
    np.testing.assert_array_equal(view.asnumpy(), x, "an assignment changed another tensor")


@PROPERTY
@given(set_cases())
def test_recorded_set_and_its_derivative(case: tuple[np.ndarray, Any, Any]) -> None:
    x, index, value = case
    if is_repeated(x, index) or not isinstance(value, np.ndarray):
        value = np.float32(-7.0)
    expected = x.copy()
    expected[index] = value

    def store(t: Tensor, v: Tensor) -> Tensor:
        t = t * 1
        t[index] = v
        return t

    v = np.asarray(value, np.float32)
    np.testing.assert_array_equal(
        evaluate(ms.record(store, Tensor(x), Tensor(v)), [x, v])[0], expected
    )
    dx, dv = ms.grad(store, (0, 1))(Tensor(x), Tensor(v))
    kept = np.ones_like(x)
    kept[index] = 0
    np.testing.assert_array_equal(dx.asnumpy(), kept)
    assert dv.shape == v.shape
    if not is_repeated(x, index):
        assert float(dv.sum()) == x[index].size


# ---- special forms -------------------------------------------------------------------------------

A = values((2, 3))


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (True, A[None]),
        ((0, True), A[0][None]),
        (([1, 0], True), A[[1, 0]]),
        ((True, Tensor([1, 0])), A[[1, 0]]),
        ((True, slice(None), [2, 0]), A.T[[2, 0]]),
        (Tensor(1), A[1]),
        (slice(0, Tensor(1)), A[:1]),
        (Tensor([True, False]), A[:1]),
        ([True, False], A[:1]),
        (([[1, 0], [0, 1]],), A[np.array([[1, 0], [0, 1]])]),
        (np.array([[1, 0], [0, 1]]), A[np.array([[1, 0], [0, 1]])]),
        (([1, 0], [0, 2]), A[[1, 0], [0, 2]]),
        (np.array([1, 0]), A[[1, 0]]),
        (np.int64(1), A[1]),
        (Tensor(np.zeros(0, np.int64)), A[:0]),
    ],
    ids=str,
)
def test_special_get(index: Any, expected: np.ndarray) -> None:
    actual = Tensor(A)[index]
    np.testing.assert_array_equal(actual.asnumpy(), expected)


@pytest.mark.parametrize(
    ("index", "error"),
    [
        ((0, False), OutOfRangeError),
        (([1, 0], False), OutOfRangeError),
        (2, OutOfRangeError),
        (-3, OutOfRangeError),
        ((0, 3), OutOfRangeError),
        ((0, 0, 0), OutOfRangeError),
        ((..., ...), OutOfRangeError),
        (Tensor([5]), OutOfRangeError),
        (1.0, DTypeError),
        ("a", DTypeError),
        (Tensor([1.0]), DTypeError),
    ],
    ids=str,
)
def test_wrong_index(index: Any, error: type[Exception]) -> None:
    for act in (lambda: Tensor(A)[index], lambda: Tensor(A).__setitem__(index, 0)):
        with pytest.raises(error) as info:
            act()
        assert "\n  got: " in str(info.value)
        assert "\n  at:  test_indexing.py:" in str(info.value)


def test_false_addresses_nothing() -> None:
    t = Tensor(A)
    t[False] = 9.0
    assert t.asnumpy().tolist() == A.tolist()
    for index in (False, np.array(False)):
        with pytest.raises(IndexError, match="False is no index"):
            _ = t[index]


@pytest.mark.parametrize("truth", [True, False])
def test_one_truth_is_a_mask_of_a_new_axis(truth: bool) -> None:
    def look(x: Tensor, t: Tensor) -> tuple[Tensor, ...]:
        y, z = x * 1, x * 1
        y[0, t] = 5
        z[t] += 3
        return x[t], x[0, t], x[:, t, None], y, z

    y, z = A.copy(), A.copy()
    y[0, truth] = 5
    z[truth] += 3
    expected = A[truth], A[0, truth], A[:, truth, None], y, z
    for call in (look, ms.jit(look, fullgraph=True)):
        for found, e in zip(call(Tensor(A), Tensor(truth)), expected):
            assert found.shape == e.shape
            assert (found.asnumpy() == e).all()


def test_wrong_mask_and_value() -> None:
    t = Tensor(A)
    with pytest.raises((ShapeError, OutOfRangeError)):
        _ = t[Tensor([True, False, True])]
    with pytest.raises(ShapeError):
        t[0] = Tensor([1.0, 2.0])
    for value in (None, "a"):
        with pytest.raises(DTypeError):
            t[0] = value
    with pytest.raises(AttributeError):
        del t[0]  # pyright: ignore[reportIndexIssue]
    assert t.asnumpy().tolist() == A.tolist()


def test_assignment_converts_to_the_tensor_dtype() -> None:
    integers = Tensor([1, 2, 3])
    integers[0] = 2.7
    integers[1] = Tensor(5.9)
    bools = Tensor([True, False])
    bools[1] = 5
    assert (integers.tolist(), integers.dtype) == ([2, 5, 3], ms.int64)
    assert (bools.tolist(), bools.dtype) == ([True, True], ms.bool_)


def test_augmented_assignment() -> None:
    t = Tensor(A)
    t[0] += 1
    t[:, 0] *= 2
    assert t.tolist() == [[2.0, 2.0, 3.0], [6.0, 4.0, 5.0]]


def test_masked_assignment() -> None:
    t = Tensor(A)
    t[t > 3] = 0
    t[t == 0] = Tensor([7.0, 8.0, 9.0])
    assert t.tolist() == [[7.0, 1.0, 2.0], [3.0, 8.0, 9.0]]


def test_loops_and_membership() -> None:
    t = Tensor(A)
    assert [row.tolist() for row in t] == A.tolist()
    assert len(t) == 2
    assert 4.0 in t and 9.0 not in t
    assert max(Tensor([1.0, 3.0, 2.0])).item() == 3.0
    assert [r.item() for r in sorted(Tensor([3, 1, 2]))] == [1, 2, 3]
    assert range(3)[Tensor(1)] == 1


def test_compiled_assignment() -> None:
    @ms.jit
    def run(x: Tensor, i: Tensor) -> Tensor:
        y = ops.zeros_like(x)
        y[:, 1:] = x[:, :2]
        y[i] = 5.0
        y[y > 4] = 9.0
        return y

    expected = np.zeros_like(A)
    expected[:, 1:] = A[:, :2]
    expected[[1]] = 5
    expected[expected > 4] = 9
    np.testing.assert_array_equal(run(Tensor(A), Tensor([1])).asnumpy(), expected)


@pytest.mark.parametrize("kind", ["int64", "int32", "uint8", "uint64"])
def test_positions_outside_are_named_with_their_axis(kind: str) -> None:
    x, inside = Tensor(np.zeros((3, 4), np.float32)), Tensor(np.zeros(2, kind))
    outside = Tensor(np.array([1, 4], kind))
    with pytest.raises(OutOfRangeError, match="index 4 is out of range for axis 1 of size 4"):
        x[inside, outside]
    with pytest.raises(OutOfRangeError, match="index 4 is out of range for axis 0 of size 3"):
        x[outside]


def test_the_largest_position_is_not_the_last() -> None:
    x, zeros = Tensor(np.zeros((3, 4), np.float32)), Tensor(np.zeros(1, np.int64))
    with pytest.raises(OutOfRangeError, match="index 18446744073709551615 is out of range"):
        x[zeros, Tensor(np.array([2**64 - 1], np.uint64))]


#: What MindSpore takes by lists of lists: one list per axis, beside other entries too.
BY_LISTS = [
    ([[0, 1]], ([0, 1],)), ([[0, 1], [1, 0]], ([0, 1], [1, 0])),
    ([(0, 1), [2, 0]], ([0, 1], [2, 0])),
    ([[0, 1], 1], ([0, 1], 1)), ([[0, 1], [1, 0], [2, 3]], ([0, 1], [1, 0], [2, 3])),
    ([[[0, 1], [1, 0]]], ([[0, 1], [1, 0]],)), ([[True, False], [0]], ([True, False], [0])),
    ([...], (...,)), ([..., 0], (..., 0)),
]  # fmt: skip


@pytest.mark.parametrize(("lists", "entries"), BY_LISTS, ids=str)
def test_a_list_of_lists_has_one_per_axis(lists: Any, entries: Any) -> None:
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    wanted = array[entries]
    np.testing.assert_array_equal(Tensor(array)[lists].asnumpy(), wanted)
    compiled = ms.jit(lambda x: x[lists], fullgraph=True)
    np.testing.assert_array_equal(compiled(Tensor(array)).asnumpy(), wanted)


def test_what_is_stored_at_a_list_of_lists_of_one_length_goes_to_one_axis() -> None:
    x = Tensor(np.zeros((3, 2), np.float32))
    x[[[0, 1], [1, 2]]] = 5.0
    assert x.asnumpy().tolist() == [[5, 5]] * 3
    x[[[0, 2], 1]] = 7.0  # no array: one entry per axis
    assert x.asnumpy().tolist() == [[5, 7], [5, 5], [5, 7]]
