"""Distributions, shapes and errors of the initializers."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, nn
from tvmgraph.common import _sampling, get_seed, set_seed
from tvmgraph.common import initializer as module
from tvmgraph.common.initializer import (
    Constant,
    Dirac,
    HeNormal,
    HeUniform,
    Initializer,
    Normal,
    Orthogonal,
    Sparse,
    TruncatedNormal,
    Uniform,
    VarianceScaling,
    XavierNormal,
    XavierUniform,
    initializer,
)
from tvmgraph.core.deferred import Deferred
from tvmgraph.distributed import engine
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError

SHAPE = (200, 300)


def values(init: Any, shape: Any = SHAPE, dtype: Any = ms.float32) -> np.ndarray:
    set_seed(1)
    return initializer(init, shape, dtype).asnumpy()


def _name(value: Any) -> str:
    """Names a case the same in every process."""
    return type(value).__name__ if isinstance(value, Initializer) else str(value)


@pytest.mark.parametrize(
    ("init", "bound"),
    [
        ("uniform", 0.07),
        ("xavier_uniform", math.sqrt(6 / 500)),
        (XavierUniform(2), 2 * math.sqrt(6 / 500)),
        ("he_uniform", math.sqrt(6 / 300)),
        (HeUniform(math.sqrt(5)), 1 / math.sqrt(300)),
        (HeUniform(mode="fan_out", nonlinearity="tanh"), 5 / 3 * math.sqrt(3 / 200)),
        (VarianceScaling(2.0, "fan_avg", "uniform"), math.sqrt(6 / 250)),
    ],
    ids=_name,
)
def test_uniform_bounds(init: Any, bound: float) -> None:
    x = values(init)
    assert np.abs(x).max() <= bound
    assert np.abs(x).max() > 0.999 * bound
    assert abs(x.mean()) < 0.01 * bound
    assert x.std() == pytest.approx(bound / math.sqrt(3), rel=0.01)


@pytest.mark.parametrize(
    ("init", "mean", "std"),
    [
        ("normal", 0, 0.01),
        (Normal(0.5, 2.0), 2, 0.5),
        ("xavier_normal", 0, math.sqrt(2 / 500)),
        (XavierNormal(3), 0, 3 * math.sqrt(2 / 500)),
        ("he_normal", 0, math.sqrt(2 / 300)),
        (HeNormal(1.0), 0, math.sqrt(1 / 300)),
        (HeNormal(nonlinearity="relu"), 0, math.sqrt(2 / 300)),
        (VarianceScaling(), 0, math.sqrt(1 / 300)),
        (VarianceScaling(4.0, "fan_out", "untruncated_normal"), 0, math.sqrt(4 / 200)),
    ],
    ids=_name,
)
def test_normal_moments(init: Any, mean: float, std: float) -> None:
    x = values(init)
    assert x.mean() == pytest.approx(mean, abs=0.02 * std)
    assert x.std() == pytest.approx(std, rel=0.01)


@pytest.mark.parametrize(("a", "b"), [(-1.0, 1.0), (0.5, 3.0), (5.0, 6.0), (-0.1, 0.1)])
def test_truncated_normal(a: float, b: float) -> None:
    x = values(TruncatedNormal(1.0, 0.0, a, b))
    assert x.min() >= a
    assert x.max() <= b
    grid = np.linspace(a, b, 20001)
    density = np.exp(-(grid**2) / 2)
    assert x.mean() == pytest.approx((grid * density).sum() / density.sum(), abs=0.01)


def test_convolution_fans_count_the_window() -> None:
    x = values("he_uniform", (8, 4, 3, 5))
    assert np.abs(x).max() <= math.sqrt(6 / (4 * 15))
    assert np.abs(x).max() > 0.98 * math.sqrt(6 / (4 * 15))


def test_fixed_values() -> None:
    np.testing.assert_array_equal(values("zeros", (2, 3)), np.zeros((2, 3)))
    np.testing.assert_array_equal(values("One", (2,)), np.ones(2))
    np.testing.assert_array_equal(values(Constant([1, 2]), (3, 2)), [[1, 2]] * 3)
    np.testing.assert_array_equal(values(3, (2,), ms.int32), np.array([3, 3], np.int32))
    np.testing.assert_array_equal(values("identity", (2, 3)), np.eye(2, 3))


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (4, 2, 3), (5, 5)])
def test_orthogonal(shape: tuple[int, ...]) -> None:
    m = values(Orthogonal(2.0), shape).reshape(shape[0], -1) / 2
    small = m @ m.T if m.shape[0] <= m.shape[1] else m.T @ m
    np.testing.assert_allclose(small, np.eye(len(small)), atol=1e-5)


def test_dirac_passes_channels_through() -> None:
    w = values(Dirac(2), (4, 2, 3, 3))
    expected = np.zeros((4, 2, 3, 3))
    for i in range(4):
        expected[i, i % 2, 1, 1] = 1
    np.testing.assert_array_equal(w, expected)


def test_sparse_zeroes_a_part_of_every_column() -> None:
    x = values(Sparse(0.3, 2.0), (10, 50))
    np.testing.assert_array_equal((x == 0).sum(axis=0), 3)
    assert x[x != 0].std() == pytest.approx(2.0, rel=0.1)


def test_seed_restarts_the_sequence() -> None:
    set_seed(5)
    assert get_seed() == 5
    first = [initializer("normal", (3,)).asnumpy() for _ in range(2)]
    layer = ms.nn.Dense(2, 2).weight.asnumpy()
    set_seed(5)
    again = [initializer("normal", (3,)).asnumpy() for _ in range(2)]
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(ms.nn.Dense(2, 2).weight.asnumpy(), layer)
    assert not np.array_equal(first[0], first[1])
    set_seed(6)
    assert not np.array_equal(first[0], initializer("normal", (3,)).asnumpy())


def test_seed_restarts_numpy_too() -> None:
    set_seed(5)
    first = np.random.rand()
    set_seed(5)
    assert np.random.rand() == first


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.float32, ms.float64])
@pytest.mark.parametrize("name", ["normal", "xavier_uniform", "orthogonal", "truncatedNormal"])
def test_dtypes_and_empty(name: str, dtype: Any) -> None:
    assert initializer(name, (3, 4), dtype).dtype is dtype
    assert initializer(name, (0, 4), dtype).shape == (0, 4)


def test_own_initializer_and_tensor() -> None:
    class Ramp(Initializer):
        def _initialize(self, arr: np.ndarray) -> None:
            arr[...] = np.arange(arr.size).reshape(arr.shape)

    np.testing.assert_array_equal(values(Ramp(), (2, 2), ms.float16), [[0, 1], [2, 3]])
    given = Tensor([1.0, 2.0])
    assert initializer(given) is given
    assert Tensor(shape=(2, 2), dtype=ms.float32, init="ones").asnumpy().tolist() == [[1, 1]] * 2


def test_parameter_clone_refills() -> None:
    p = ms.Parameter(Tensor([1.0, 2.0]), name="w")
    assert p.clone("zeros").asnumpy().tolist() == [0, 0]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: initializer("foo", (2,)), ArgumentError, "there is no initializer 'foo'"),
        (lambda: initializer("foo", (2,)), ArgumentError, "xavier_uniform"),  # lists the names
        (lambda: initializer([1], (2,)), DTypeError, "not list"),
        (lambda: initializer("ones", (-1,)), ShapeError, "non-negative"),
        (lambda: initializer(Tensor([1.0]), (2,)), ShapeError, "(2,)"),
        (lambda: initializer("xavier_normal", (2,)), ShapeError, "two axes"),
        (lambda: initializer("orthogonal", (2,)), ShapeError, "two axes"),
        (lambda: initializer("identity", (2,)), ShapeError, "matrix"),
        (lambda: initializer("dirac", (2, 2)), ShapeError, "3 to 5"),
        (lambda: initializer(Dirac(2), (3, 2, 1)), ShapeError, "multiple of groups=2"),
        (lambda: HeUniform(mode="foo"), ArgumentError, "fan_in, fan_out"),
        (lambda: HeUniform(nonlinearity="foo"), ArgumentError, "leaky_relu"),
        (lambda: VarianceScaling(0.0), ArgumentError, "positive"),
        (lambda: VarianceScaling(distribution="foo"), ArgumentError, "uniform"),
        (lambda: TruncatedNormal(a=1.0, b=0.0), ArgumentError, "a smaller than b"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as e:
        call()
    assert text in str(e.value)
    assert "test_initializers.py" in str(e.value)  # the user's line


def test_common_import_paths() -> None:
    from tvmgraph.common import dtype as mstype
    from tvmgraph.common.api import jit
    from tvmgraph.common.parameter import Parameter, ParameterTuple
    from tvmgraph.common.tensor import Tensor as OtherTensor

    assert OtherTensor is Tensor
    assert Parameter is ms.Parameter
    assert ParameterTuple is ms.ParameterTuple
    assert jit is ms.jit
    assert mstype.float32 is ms.float32
    assert mstype.dtype_to_nptype(mstype.float16) is np.float16
    assert mstype.dtype_to_pytype(mstype.uint8) is int
    assert mstype.pytype_to_dtype(float) is ms.float64
    assert mstype.pytype_to_dtype(bool) is ms.bool_
    assert mstype.type_size_in_bytes(mstype.float64) == 8
    assert all(hasattr(module, name) for name in module.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = ms.common.api.nothing


def test_layers_print_initializers_with_their_arguments() -> None:
    assert repr(Normal(0.1)) == "Normal(sigma=0.1, mean=0.0)"
    assert "weight_init=HeUniform(" in repr(nn.Conv2d(1, 2, 3))
    assert " at 0x" not in repr(nn.Conv2d(1, 2, 3))


BY_PARTS = [
    Constant(3.0), Uniform(0.3), Normal(0.2, 1.0), TruncatedNormal(0.02),
    TruncatedNormal(1.0, 0.0, 4.0, 5.0), HeNormal(), XavierUniform(), VarianceScaling(),
]  # fmt: skip


@pytest.mark.parametrize("fill", BY_PARTS, ids=lambda fill: fill.name)
@pytest.mark.parametrize("dtype", [ms.float32, ms.float16])
def test_a_part_has_the_numbers_of_the_whole(
    fill: Initializer, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ms.set_seed(3)
    whole = [initializer(fill, (12, 8, 5), dtype).asnumpy() for _ in range(2)]
    monkeypatch.setattr(_sampling, "_CHUNK", 70)
    monkeypatch.setattr(engine, "is_joined", lambda: True)
    monkeypatch.setattr(engine, "world", lambda: SimpleNamespace(size=2))
    ms.set_seed(3)
    tensors = [initializer(fill, (12, 8, 5), dtype) for _ in range(2)]
    for where in (np.s_[0:6, 0:8, 0:5], np.s_[6:12, 2:4, 0:5], np.s_[5:9, 0:8, 4:5]):
        for tensor, expected in zip(tensors, whole):
            np.testing.assert_array_equal(tensor._device.part(where), expected[where])
    held = Parameter(tensors[0])
    assert isinstance(held._device, Deferred)
    np.testing.assert_array_equal(held.asnumpy(), whole[0])
    np.testing.assert_array_equal((tensors[1] * 1).asnumpy(), whole[1])
    assert held._device is None and tensors[1]._device is None
