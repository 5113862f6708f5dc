"""Random operators: known answers, distributions, and the same numbers in every mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, dtypes, ops
from tvmgraph.core.op import get_op
from tvmgraph.core.random import default_generator
from tvmgraph.errors import DTypeError


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    default_generator.manual_seed(11)


def test_philox_known_answer() -> None:
    """The published answer for a counter and a key of zeros (Random123, philox4x32_10)."""
    words = get_op("random_bits").fn(Tensor(np.array([0, 0])), 0, 4)
    assert words.asnumpy().tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def test_blocks_do_not_depend_on_how_many_are_drawn() -> None:
    bits = get_op("random_bits").fn
    state = Tensor(np.array([5, 100]))
    many = bits(state, 0, 4 * 5000).asnumpy().reshape(4, 5000)
    few = bits(state, 4990, 4 * 10).asnumpy().reshape(4, 10)
    np.testing.assert_array_equal(many[:, 4990:], few)


X = Tensor(np.arange(24, dtype=np.float32).reshape(4, 6))
DRAWS: dict[str, Callable[[], Tensor]] = {
    "rand": lambda: ops.rand(1000),
    "rand float64": lambda: ops.rand(50, dtype=ms.float64),
    "randint": lambda: ops.randint(-5, 100, (50,)),
    "randperm": lambda: ops.randperm(50),
    "bernoulli": lambda: ops.bernoulli(X, 0.3),
    "dropout": lambda: ops.dropout(X, 0.5),
    "two draws": lambda: ops.dropout(X, 0.5) + ops.rand(4, 6),
    "shuffle": lambda: ops.shuffle(X),
    "multinomial": lambda: ops.multinomial(Tensor([0.1, 0.2, 0.7]), 8),
    "uniform": lambda: ops.uniform((3, 4), 1.0, Tensor([2.0, 3.0, 4.0, 5.0])),
}
ROUNDED: dict[str, Callable[[], Tensor]] = {
    "randn": lambda: ops.randn(1001),
    "laplace": lambda: ops.standard_laplace((40,)),
    "gumbel_softmax": lambda: ops.gumbel_softmax(X),
}


def _twice(f: Callable[[], Tensor]) -> list[np.ndarray]:
    default_generator.manual_seed(7)
    return [f().asnumpy().copy() for _ in range(2)]


@pytest.mark.parametrize("name", [*DRAWS, *ROUNDED])
def test_compiled_draws_are_eager_draws(name: str) -> None:
    f = DRAWS.get(name) or ROUNDED[name]
    tolerance = 0.0 if name in DRAWS else 1e-5
    eager, compiled = _twice(f), _twice(ms.jit(f))
    for a, b in zip(eager, compiled):
        np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)
    assert not np.array_equal(eager[0], eager[1])


def test_a_seed_of_its_own_repeats() -> None:
    first, second = ops.rand(10, seed=3), ops.rand(10, seed=3)
    np.testing.assert_array_equal(first.asnumpy(), second.asnumpy())
    assert not np.array_equal(first.asnumpy(), ops.rand(10, seed=4).asnumpy())


def test_normal_moments() -> None:
    x = ops.randn(200001).asnumpy()
    assert x.shape == (200001,)
    assert abs(x.mean()) < 0.01
    assert abs(x.std() - 1) < 0.01
    assert abs((np.abs(x) < 1).mean() - 0.6827) < 0.005
    assert abs(np.corrcoef(x[:100000], x[100000:200000])[0, 1]) < 0.01


def test_integers_cover_the_range_evenly() -> None:
    values, counts = np.unique(ops.randint(-3, 4, (100000,)).asnumpy(), return_counts=True)
    assert values.tolist() == list(range(-3, 4))
    assert counts.std() / counts.mean() < 0.02


def test_a_permutation_of_floats() -> None:
    found = ops.randperm(50, seed=3, dtype=ms.float16)
    assert found.dtype == ms.float16
    assert found.tolist() == ops.randperm(50, seed=3).tolist()
    with pytest.raises(DTypeError):
        ops.randperm(3, dtype=ms.bool_)


def test_permutations_are_even() -> None:
    orders = np.array([ops.randperm(3).asnumpy() for _ in range(3000)])
    values, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(values) == 6
    assert counts.min() > 400


def test_multinomial() -> None:
    x = ops.multinomial(Tensor([0.0, 0.2, 0.8, 0.0]), 100000)
    values, counts = np.unique(x.asnumpy(), return_counts=True)
    assert x.dtype == dtypes.int32
    assert values.tolist() == [1, 2]
    assert abs(counts[0] / 1e5 - 0.2) < 0.01
    pairs = np.array(
        [ops.multinomial(Tensor([0.1, 0.2, 0.7]), 2, False).asnumpy() for _ in range(2000)]
    )
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert abs((pairs[:, 0] == 2).mean() - 0.7) < 0.05


def test_dropout() -> None:
    y = ops.dropout(ops.ones((1000, 100)), 0.3).asnumpy()
    assert abs((y == 0).mean() - 0.3) < 0.01
    np.testing.assert_allclose(y[y != 0], 1 / 0.7, rtol=1e-6)
    x = Tensor([1.0, np.nan])
    assert ops.dropout(x, 0.5, training=False) is x
    np.testing.assert_array_equal(ops.dropout(x, 1.0).asnumpy(), [0, 0])
    channels = ops.dropout2d(ops.ones((10, 100, 3, 3)), 0.5).asnumpy()
    assert ((channels == 0).all((2, 3)) | (channels == 2).all((2, 3))).all()


def test_dropout_gradient_uses_the_same_mask() -> None:
    x = ops.ones(1000)

    def loss(x: Tensor) -> Any:
        y = ops.dropout(x, 0.5)
        return y.sum(), y

    gradient, (y,) = ms.grad(loss, has_aux=True)(x)
    np.testing.assert_array_equal(gradient.asnumpy(), y.asnumpy())


@pytest.mark.parametrize("first", [0, 2047, 5000, 2**33 - 2])
def test_small_draws_are_parts_of_large_ones(first):
    """Words of few blocks are computed in groups, those of many at once."""
    whole = ops.random_bits(Tensor([11, first], ms.int64), 0, 4 * 600).asnumpy().reshape(4, 600)
    for offset, blocks in ((0, 1), (3, 500), (590, 10)):
        part = ops.random_bits(Tensor([11, first], ms.int64), offset, 4 * blocks).asnumpy()
        np.testing.assert_array_equal(part.reshape(4, -1), whole[:, offset : offset + blocks])


@pytest.mark.parametrize("count", [255, 257, 1023, 4099, 40001])
def test_compiled_words_are_those_of_numpy(count):
    for state, offset in (([0, 0], 0), ([2**62 + 5, 2**33 - 2], 1), ([3, 2**32 - 7], 3)):
        given = Tensor(state, ms.int64)
        draw = ms.jit(lambda s, offset=offset: ops.random_bits(s, offset, count))
        want = ops.random_bits(given, offset, count).asnumpy()
        np.testing.assert_array_equal(draw(given).asnumpy(), want)
