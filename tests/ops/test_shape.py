"""Shape, creation and padding functions that are built on rows, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, errors, ops

N = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
X = Tensor(N)
INTS = [Tensor([1, 2, 3]), Tensor([4, 5]), Tensor([6])]

CASES: dict[str, tuple[Callable[[], Any], Any]] = {
    "rot90": (lambda: ops.rot90(X, 1, (0, 1)), np.rot90(N, 1, (0, 1))),
    "rot90 thrice": (lambda: ops.rot90(X, 3, (1, 2)), np.rot90(N, 3, (1, 2))),
    "rot90 back": (lambda: ops.rot90(X, -2, (0, 2)), np.rot90(N, -2, (0, 2))),
    "moveaxis": (lambda: ops.moveaxis(X, (0, 1), (2, 0)), np.moveaxis(N, (0, 1), (2, 0))),
    "swapaxes": (lambda: ops.swapaxes(X, -1, 0), np.swapaxes(N, -1, 0)),
    "flatten": (lambda: ops.flatten(X), N.reshape(2, 12)),
    "flatten front": (lambda: ops.flatten(X, start_dim=0, end_dim=1), N.reshape(6, 4)),
    "flatten F": (lambda: ops.flatten(X, "F"), N.transpose(2, 1, 0).reshape(4, 6)),
    "flatten 0-d": (lambda: ops.flatten(Tensor(1.0)), np.array([1.0], np.float32)),
    "reshape by tensor": (lambda: ops.reshape(X, Tensor([4, 6])), N.reshape(4, 6)),
    "reshape by mix": (lambda: ops.reshape(X, (Tensor(4), -1)), N.reshape(4, 6)),
    "tensor_split": (lambda: ops.tensor_split(X, 3, 2), np.array_split(N, 3, 2)),
    "tensor_split unsorted": (
        lambda: ops.tensor_split(X, (1, 5, 2), 2),
        np.array_split(N, (1, 5, 2), 2),
    ),
    "chunk": (lambda: ops.chunk(X, 3, -1), np.split(N, [2], 2)),
    "split": (lambda: ops.split(X, [1, 0, 3], -1), np.split(N, [1, 1], 2)),
    "split by size": (lambda: ops.split(X, 3, -1), np.split(N, [3], 2)),
    "stack": (lambda: ops.stack([X, X], -1), np.stack([N, N], -1)),
    "hstack": (lambda: ops.hstack([X, X]), np.hstack([N, N])),
    "dstack": (lambda: ops.dstack(INTS[:1] * 2), np.dstack([[1, 2, 3]] * 2)),
    "column_stack": (lambda: ops.column_stack(INTS[:1] * 2), np.column_stack([[1, 2, 3]] * 2)),
    "unstack": (lambda: ops.unstack(X, 1), [N[:, i] for i in range(3)]),
    "repeat": (lambda: ops.repeat_interleave(X, 2, 1), np.repeat(N, 2, 1)),
    "repeat flat": (lambda: ops.repeat_interleave(X, 2), np.repeat(N, 2)),
    "repeat each": (lambda: ops.repeat_interleave(X, (1, 0, 2), 1), np.repeat(N, [1, 0, 2], 1)),
    "repeat by tensor": (
        lambda: ops.repeat_interleave(X, Tensor([1, 0, 2]), 1),
        np.repeat(N, [1, 0, 2], 1),
    ),
    "roll flat": (lambda: ops.roll(X, 5), np.roll(N, 5)),
    "roll": (lambda: ops.roll(X, (1, 2), (0, -1)), np.roll(N, (1, 2), (0, -1))),
    "meshgrid": (lambda: ops.meshgrid(*INTS), np.meshgrid([1, 2, 3], [4, 5], [6])),
    "cartesian_prod": (lambda: ops.cartesian_prod(*INTS[1:]), np.array([[4, 6], [5, 6]])),
    "combinations": (lambda: ops.combinations(INTS[0]), np.array([[1, 2], [1, 3], [2, 3]])),
    "block_diag": (
        lambda: ops.block_diag(Tensor([[1, 2]]), Tensor([3]), Tensor(4)),
        np.array([[1, 2, 0, 0], [0, 0, 3, 0], [0, 0, 0, 4]]),
    ),
    "diag": (lambda: ops.diag(Tensor([[1, 2], [3, 4]])), np.diag([1, 2, 3, 4]).reshape(2, 2, 2, 2)),
    "diagflat": (lambda: ops.diagflat(Tensor([[1, 2]]), 1), np.diagflat([[1, 2]], 1)),
    "diagonal_scatter": (
        lambda: ops.diagonal_scatter(ops.zeros((2, 3)), ops.ones(2), 1),
        np.eye(2, 3, 1, dtype=np.float32),
    ),
    "matrix_diag": (
        lambda: ops.matrix_diag(Tensor([1, 2]), 1, padding_value=9),
        np.array([[9, 1, 9], [9, 9, 2], [9, 9, 9]]),
    ),
    "trace": (lambda: ops.trace(Tensor([[1.0, 2.0], [3.0, 4.0]])), np.array(5.0, np.float32)),
    "pad": (lambda: ops.pad(X, (1, 2, 0, 1)), np.pad(N, ((0, 0), (0, 1), (1, 2)))),
    "pad of flags": (lambda: ops.pad(Tensor([True]), (1, 1), value=0.5), np.ones(3, bool)),
    "pad and crop": (lambda: ops.pad(X, (-1, 2)), np.pad(N[:, :, 1:], ((0, 0), (0, 0), (0, 2)))),
    "pad reflect": (
        lambda: ops.pad(X, [1, 2], "reflect"),
        np.pad(N, ((0, 0), (0, 0), (1, 2)), "reflect"),
    ),
    "mirror_pad": (
        lambda: ops.mirror_pad(INTS[0], Tensor([[2, 1]]), "SYMMETRIC"),
        np.array([2, 1, 1, 2, 3, 3]),
    ),
    "tril_indices": (lambda: ops.tril_indices(3, 4, 1), np.stack(np.tril_indices(3, 1, 4))),
    "linspace": (lambda: ops.linspace(0, 1, 5), np.linspace(0, 1, 5, dtype=np.float32)),
    "arange": (lambda: ops.arange(5, 1, -2), np.arange(5, 1, -2)),
    "matrix_band_part": (lambda: ops.matrix_band_part(X, 1, 0), np.tril(np.triu(N, -1), 0)),
    "hann_window": (lambda: ops.hann_window(6, False), np.hanning(6)),
    "kaiser_window": (lambda: ops.kaiser_window(6, False), np.kaiser(6, 12.0)),
    "blackman_window": (lambda: ops.blackman_window(6, False), np.blackman(6).astype(np.float32)),
    "bartlett_window": (lambda: ops.bartlett_window(6, False), np.bartlett(6).astype(np.float32)),
}


def _same(actual: Any, expected: Any) -> None:
    if isinstance(actual, tuple):
        for a, e in zip(actual, expected, strict=True):
            _same(a, e)
        return
    assert actual.shape == expected.shape
    assert actual.asnumpy().dtype == expected.dtype
    np.testing.assert_allclose(actual.asnumpy(), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_function_is_numpy(name: str) -> None:
    function, expected = CASES[name]
    _same(function(), expected)


def test_blocks_of_pixels_are_undone() -> None:
    x = Tensor(np.random.default_rng(0).standard_normal((2, 8, 4, 6)).astype(np.float32))
    shuffled = ops.pixel_shuffle(x, 2)
    assert shuffled.shape == (2, 2, 8, 12)
    assert shuffled.asnumpy()[0, 0, 0, 1] == x.asnumpy()[0, 1, 0, 0]
    _same(ops.pixel_unshuffle(shuffled, 2), x.asnumpy())
    _same(ops.space_to_depth(ops.depth_to_space(x, 2), 2), x.asnumpy())
    packed = ops.space_to_batch_nd(x, (2, 3), ((0, 2), (1, 2)))
    assert packed.shape == (12, 8, 3, 3)
    _same(ops.batch_to_space_nd(packed, (2, 3), ((0, 2), (1, 2))), x.asnumpy())
    mixed = ops.channel_shuffle(x, 4)
    _same(ops.channel_shuffle(mixed, 2), x.asnumpy())


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: ops.pad(X, (1,)), errors.ArgumentError),
        (lambda: ops.pad(X, (-3, -3)), errors.ArgumentError),
        (lambda: ops.split(X, (1, 2)), errors.ArgumentError),
        (lambda: ops.concat(X), errors.DTypeError),
        (lambda: ops.flatten(X, start_dim=5), errors.OutOfRangeError),
        (lambda: ops.rot90(X, 1, (0, 0)), errors.ArgumentError),
        (lambda: ops.arange(1, 5, -1), errors.ArgumentError),
        (lambda: ops.pixel_shuffle(X, 2), errors.ShapeError),
        (lambda: ops.repeat_interleave(X, (1, 2), 2), errors.ArgumentError),
        (lambda: ops.stack([X, INTS[0]]), errors.ShapeError),
    ],
)
def test_bad_arguments_say_what_to_do(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as info:
        call()
    assert "\n  got: " in str(info.value)
    assert "test_shape.py:" in str(info.value)


def test_gradient_of_padding_compiles() -> None:
    def loss(x: Tensor) -> Tensor:
        return (ops.pad(x, (1, 2), "reflect") ** 2).sum()

    eager = ms.grad(loss)(X).asnumpy()
    compiled = ms.jit(ms.grad(loss))(X).asnumpy()
    np.testing.assert_allclose(compiled, eager, rtol=1e-6)
    weights = np.zeros(4, np.float32)
    for i in np.pad(np.arange(4), (1, 2), "reflect"):
        weights[i] += 1
    np.testing.assert_allclose(eager, 2 * N * weights, rtol=1e-6)


@pytest.mark.parametrize("align", ["RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"])
@pytest.mark.parametrize("k", [(-1, 1), (0, 2), (-2, -1)])
def test_bands_of_diagonals(align: str, k: tuple[int, int]) -> None:
    x = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4)
    above, below = align.split("_")
    rows = [np.diagonal(x, d, 1, 2) for d in range(k[1], k[0] - 1, -1)]
    longest = max(r.shape[-1] for r in rows)
    packed = []
    for d, r in zip(range(k[1], k[0] - 1, -1), rows):
        left = (d >= 0 and above == "LEFT") or (d <= 0 and below == "LEFT")
        gap = (0, longest - r.shape[-1])
        packed.append(np.pad(r, ((0, 0), gap if left else gap[::-1]), constant_values=9))
    part = ops.matrix_diag_part(Tensor(x), k, 9.0, align)
    np.testing.assert_array_equal(part.asnumpy(), np.stack(packed, 1))
    inside = np.triu(np.tril(np.ones_like(x[0], bool), k[1]), k[0])
    y = ms.jit(lambda p: ops.matrix_diag(p, k, 3, 4, 7, align))(part)
    np.testing.assert_array_equal(y.asnumpy(), np.where(inside, x, 7))
    y = ops.matrix_set_diag(ops.zeros_like(Tensor(x)), part, k, align)
    np.testing.assert_array_equal(y.asnumpy(), np.where(inside, x, 0))


def test_tuples_and_ranges_become_arrays() -> None:
    assert ops.tuple_to_array(range(1, 7, 2)).asnumpy().tolist() == [1, 3, 5]
    assert ops.tuple_to_array((1.5, 2)).dtype is ms.float32
    limits = (Tensor([1.0, 2.0]), Tensor([3, 4]))
    for made in (ops.tuple_to_array(limits), ms.jit(lambda *x: ops.tuple_to_array(x))(*limits)):
        assert (made.dtype, made.asnumpy().tolist()) == (ms.float32, [[1, 2], [3, 4]])
    mixed = ops.tuple_to_array((1, Tensor(2.5)))
    assert (mixed.dtype, mixed.asnumpy().tolist()) == (ms.int32, [1, 2])


@pytest.mark.parametrize("dtype", [ms.float16, ms.float32, ms.float64])
def test_ranges_of_tensors_are_counted_in_their_dtype(dtype: object) -> None:
    """A hundredth in float32 is below 0.01, but fits a hundred times into 1."""
    ends = [Tensor(v, dtype) for v in (0.0, 1.0, 0.5)]
    assert ops.range(*ends).shape == (2,)
    steps = [Tensor(v, ms.float32 if dtype == ms.float16 else dtype) for v in (0.0, 1.0, 0.01)]
    assert ops.arange(*steps).shape == ops.range(*steps).shape == (100,)
    assert ms.jit(ops.range)(*steps).shape == (100,)
