"""Initializers: first values of parameters, reproducible through ``set_seed``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.common._sampling import (
    Window,
    drawing_at,
    fill_normal,
    fill_truncated,
    fill_uniform,
    generator,
)
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.deferred import Deferred
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.random import default_generator, first_values
from tvmgraph.core.state import state
from tvmgraph.core.storage import aligned_empty
from tvmgraph.core.tensor import Tensor, deferred_tensor, tensor_from_numpy
from tvmgraph.core.types import tensor_type
from tvmgraph.distributed import engine
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, reject


class Initializer:
    """Base of all initializers; a subclass fills an array in ``_initialize``.

    Args:
        kwargs: Kept as ``init_kwargs``.

    Example:
        >>> class Ramp(Initializer):
        ...     def _initialize(self, arr):
        ...         arr[...] = np.arange(arr.size).reshape(arr.shape)
        >>> initializer(Ramp(), (3,)).asnumpy().tolist()
        [0.0, 1.0, 2.0]
    """

    def __init__(self, **kwargs: object) -> None:
        self.init_kwargs = kwargs

    @property
    def name(self) -> str:
        """Name of the class."""
        return type(self).__name__

    def __call__(self, arr: np.ndarray) -> Any:
        """Fills a NumPy array in place."""
        return self._initialize(arr)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v!r}' for k, v in self.init_kwargs.items())})"

    def _initialize(self, arr: np.ndarray) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define _initialize(self, arr)")

    def _reject(self, rule: str, arr: np.ndarray, fix: str) -> ShapeError:
        return ShapeError(rule, op=self.name, got=f"shape={arr.shape}", fix=fix)


class Zero(Initializer):
    """Fills with 0."""

    def _initialize(self, arr: np.ndarray) -> None:
        arr[...] = 0


class One(Initializer):
    """Fills with 1."""

    def _initialize(self, arr: np.ndarray) -> None:
        arr[...] = 1


class Constant(Initializer):
    """Fills with one value.

    Args:
        value: A number, or an array of the parameter's shape.
    """

    def __init__(self, value: object) -> None:
        super().__init__(value=value)
        self.value = value

    def _initialize(self, arr: np.ndarray) -> None:
        arr[...] = self.value


class Uniform(Initializer):
    r"""Samples :math:`U(-\text{scale}, \text{scale})`.

    Args:
        scale: Half the width of the interval.
    """

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _initialize(self, arr: np.ndarray) -> None:
        fill_uniform(arr, self.scale)


class Normal(Initializer):
    r"""Samples :math:`N(\text{mean}, \text{sigma}^2)`.

    Args:
        sigma: Standard deviation.
        mean: Mean.
    """

    def __init__(self, sigma: float = 0.01, mean: float = 0.0) -> None:
        super().__init__(sigma=sigma, mean=mean)
        self.sigma, self.mean = sigma, mean

    def _initialize(self, arr: np.ndarray) -> None:
        fill_normal(arr, self.sigma, self.mean)


class TruncatedNormal(Initializer):
    r"""Samples :math:`N(\text{mean}, \text{sigma}^2)` restricted to :math:`[a, b]`.

    Args:
        sigma: Standard deviation before the restriction.
        mean: Mean before the restriction.
        a: Smallest value.
        b: Largest value.

    Raises:
        ArgumentError: if ``sigma`` is not positive or ``a < b`` does not hold.
    """

    def __init__(
        self, sigma: float = 0.01, mean: float = 0.0, a: float = -2.0, b: float = 2.0
    ) -> None:
        super().__init__(sigma=sigma, mean=mean, a=a, b=b)
        if not (sigma > 0 and a < b):
            reject(ArgumentError, self.name, "sigma must be positive and a smaller than b",
                   f"sigma={sigma}, a={a}, b={b}")  # fmt: skip
        self.sigma, self.mean, self.a, self.b = sigma, mean, a, b

    def _initialize(self, arr: np.ndarray) -> None:
        low, high = (self.a - self.mean) / self.sigma, (self.b - self.mean) / self.sigma
        fill_truncated(arr, low, high, self.sigma, self.mean)


class _Xavier(Initializer):
    def __init__(self, gain: float = 1) -> None:
        super().__init__(gain=gain)
        self.gain = gain


class XavierUniform(_Xavier):
    r"""Samples :math:`U(-b, b)` with :math:`b = \text{gain} \sqrt{6 / (n_{in} + n_{out})}`.

    Args:
        gain: Scale that makes up for the activation.
    """

    def _initialize(self, arr: np.ndarray) -> None:
        fill_uniform(arr, self.gain * math.sqrt(6.0 / max(1, sum(_fans(self, arr)))))


class XavierNormal(_Xavier):
    r"""Samples :math:`N(0, s^2)` with :math:`s = \text{gain} \sqrt{2 / (n_{in} + n_{out})}`.

    Args:
        gain: Scale that makes up for the activation.
    """

    def _initialize(self, arr: np.ndarray) -> None:
        fill_normal(arr, self.gain * math.sqrt(2.0 / max(1, sum(_fans(self, arr)))))


class _He(Initializer):
    def __init__(
        self, negative_slope: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
    ) -> None:
        super().__init__(negative_slope=negative_slope, mode=mode, nonlinearity=nonlinearity)
        _one_of(self.name, "mode", mode, ("fan_in", "fan_out"))
        _one_of(self.name, "nonlinearity", nonlinearity, tuple(_GAINS))
        self.negative_slope, self.mode, self.nonlinearity = negative_slope, mode, nonlinearity

    def _std(self, arr: np.ndarray) -> float:
        fan = _fans(self, arr)[("fan_in", "fan_out").index(self.mode)]
        gain = _GAINS[self.nonlinearity]
        if gain is None:
            gain = math.sqrt(2.0 / (1 + self.negative_slope**2))
        return gain / math.sqrt(max(1, fan))


class HeUniform(_He):
    r"""Samples :math:`U(-b, b)` with :math:`b = \text{gain} \sqrt{3 / n}`.

    Args:
        negative_slope: Slope of the leaky ReLU behind the layer.
        mode: ``"fan_in"`` or ``"fan_out"``: which ``n`` keeps its variance.
        nonlinearity: Activation behind the layer; it gives ``gain``.

    Raises:
        ArgumentError: if ``mode`` or ``nonlinearity`` is unknown.
    """

    def _initialize(self, arr: np.ndarray) -> None:
        fill_uniform(arr, math.sqrt(3.0) * self._std(arr))


class HeNormal(_He):
    r"""Samples :math:`N(0, s^2)` with :math:`s = \text{gain} / \sqrt{n}`.

    Args:
        negative_slope: Slope of the leaky ReLU behind the layer.
        mode: ``"fan_in"`` or ``"fan_out"``: which ``n`` keeps its variance.
        nonlinearity: Activation behind the layer; it gives ``gain``.

    Raises:
        ArgumentError: if ``mode`` or ``nonlinearity`` is unknown.
    """

    def _initialize(self, arr: np.ndarray) -> None:
        fill_normal(arr, self._std(arr))


class VarianceScaling(Initializer):
    r"""Samples with standard deviation :math:`\sqrt{\text{scale} / n}`.

    Args:
        scale: Positive factor.
        mode: ``"fan_in"``, ``"fan_out"`` or their average ``"fan_avg"``.
        distribution: ``"truncated_normal"`` (cut at two standard deviations),
            ``"untruncated_normal"`` or ``"uniform"``.

    Raises:
        ArgumentError: if an argument has an unknown value.
    """

    def __init__(
        self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal"
    ) -> None:
        super().__init__(scale=scale, mode=mode, distribution=distribution)
        if not scale > 0:
            raise ArgumentError(f"scale must be positive, not {scale}", op=self.name)
        _one_of(self.name, "mode", mode, ("fan_in", "fan_out", "fan_avg"))
        kinds = ("uniform", "truncated_normal", "untruncated_normal")
        _one_of(self.name, "distribution", distribution, kinds)
        self.scale, self.mode, self.distribution = scale, mode, distribution

    def _initialize(self, arr: np.ndarray) -> None:
        fan_in, fan_out = _fans(self, arr)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        std = math.sqrt(self.scale / max(1, fan))
        if self.distribution == "uniform":
            fill_uniform(arr, math.sqrt(3.0) * std)
        elif self.distribution == "untruncated_normal":
            fill_normal(arr, std)
        else:  # the cut takes variance away, which the divisor gives back
            fill_truncated(arr, -2.0, 2.0, std / 0.87962566103423978)


class Orthogonal(Initializer):
    r"""Fills with a (semi-)orthogonal matrix times ``gain``; trailing axes are flattened.

    Args:
        gain: Factor.

    Raises:
        ShapeError: when the parameter has fewer than two axes.
    """

    def __init__(self, gain: float = 1.0) -> None:
        super().__init__(gain=gain)
        self.gain = gain

    def _initialize(self, arr: np.ndarray) -> None:
        if arr.ndim < 2:
            raise self._reject("at least two axes are needed", arr, "use Normal()")
        if arr.size == 0:
            return
        rows, cols = arr.shape[0], math.prod(arr.shape[1:])
        flat = generator(arr.size).standard_normal((max(rows, cols), min(rows, cols)))
        q, r = np.linalg.qr(flat)
        q *= np.where(np.diag(r) < 0, -1.0, 1.0)  # makes the distribution uniform
        arr[...] = (self.gain * (q.T if rows < cols else q)).reshape(arr.shape)


class Identity(Initializer):
    """Fills a matrix with ones on the diagonal and zeros elsewhere.

    Raises:
        ShapeError: when the parameter is not a matrix.
    """

    def _initialize(self, arr: np.ndarray) -> None:
        if arr.ndim != 2:
            raise self._reject("a matrix is needed", arr, "use Dirac() for a convolution")
        arr[...] = np.eye(*arr.shape)


class Dirac(Initializer):
    """Makes a convolution pass its input channels through, as many as there are.

    Args:
        groups: Groups of the convolution; every group gets the same values.

    Raises:
        ShapeError: when the parameter does not have 3 to 5 axes, or its first axis is no multiple
            of ``groups``.
    """

    def __init__(self, groups: int = 1) -> None:
        super().__init__(groups=groups)
        self.groups = groups

    def _initialize(self, arr: np.ndarray) -> None:
        if not 3 <= arr.ndim <= 5:
            raise self._reject("3 to 5 axes are needed", arr, "use Identity() for a matrix")
        if arr.shape[0] % self.groups:
            raise self._reject(
                f"axis 0 must be a multiple of groups={self.groups}", arr, "change groups"
            )
        arr[...] = 0
        out = arr.shape[0] // self.groups
        center = tuple(k // 2 for k in arr.shape[2:])
        for group in range(self.groups):
            for i in range(min(out, arr.shape[1])):
                arr[(group * out + i, i, *center)] = 1


class Sparse(Initializer):
    r"""Fills a matrix with :math:`N(0, \text{sigma}^2)` and sets a part of every column to zero.

    Args:
        sparsity: Fraction of every column that is zero.
        sigma: Standard deviation of the other elements.

    Raises:
        ShapeError: when the parameter is not a matrix.
    """

    def __init__(self, sparsity: float, sigma: float = 0.01) -> None:
        super().__init__(sparsity=sparsity, sigma=sigma)
        self.sparsity, self.sigma = sparsity, sigma

    def _initialize(self, arr: np.ndarray) -> None:
        if arr.ndim != 2:
            raise self._reject("a matrix is needed", arr, "use Normal()")
        rng = generator(2 * arr.size)
        arr[...] = self.sigma * rng.standard_normal(arr.shape)
        zeros = math.ceil(self.sparsity * arr.shape[0])
        order = np.argsort(rng.random(arr.shape), axis=0)[:zeros]
        np.put_along_axis(arr, order, np.zeros((), arr.dtype), axis=0)


_GAINS: dict[str, float | None] = {
    "linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv1d_transpose": 1.0,
    "conv2d_transpose": 1.0, "conv3d_transpose": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0), "leaky_relu": None,
}  # fmt: skip

_INITIALIZER_ALIAS: dict[str, type[Initializer]] = {
    "zero": Zero, "zeros": Zero, "one": One, "ones": One, "normal": Normal, "uniform": Uniform,
    "truncatednormal": TruncatedNormal, "xavier_uniform": XavierUniform,
    "xavieruniform": XavierUniform, "xavier_normal": XavierNormal, "xaviernormal": XavierNormal,
    "he_uniform": HeUniform, "heuniform": HeUniform, "he_normal": HeNormal, "henormal": HeNormal,
    "orthogonal": Orthogonal, "identity": Identity, "dirac": Dirac,
    "variancescaling": VarianceScaling,
}  # fmt: skip


#: Initializers that can fill a part of a tensor.
_BY_PARTS = (
    Zero, One, Constant, Uniform, Normal, TruncatedNormal, XavierUniform, XavierNormal, HeUniform,
    HeNormal, VarianceScaling,
)  # fmt: skip


def initializer(init: object, shape: object = None, dtype: DTypeLike = dtypes.float32) -> Tensor:
    """Builds the first value of a parameter.

    Args:
        init: A name (case does not matter), a number, an :class:`Initializer` or a Tensor.
        shape: The shape; may be left out for a Tensor.
        dtype: Element type; a Tensor keeps its own.

    Returns:
        A tensor of that shape.

    Raises:
        ArgumentError: if the name is unknown.
        DTypeError: if ``init`` has another class.
        ShapeError: if the shape is negative, or differs from that of a given Tensor.

    Example:
        >>> initializer("ones", (2, 3), ms.float16).shape
        (2, 3)
    """
    if isinstance(init, Tensor):
        return _checked_tensor(init, shape)
    dims = _shape_of(shape)
    fill = _resolve(init)
    wanted = dtypes.dtype_of(dtype)
    if state.interpreter is None:
        if type(fill) in _BY_PARTS and engine.is_joined() and engine.world().size > 1:
            return deferred_tensor(_deferred(fill, dims, wanted), tensor_type(dims, wanted))
        return tensor_from_numpy(_filled(fill, dims, wanted))
    with drawing_at(0, 0) as place:
        array = _filled(fill, dims, wanted)
    if not place[1]:
        return Tensor(array)

    def make(seed: int, offset: int) -> Tensor:
        with drawing_at(seed, offset):
            return tensor_from_numpy(_filled(fill, dims, wanted))

    return first_values(place[1], tensor_type(dims, wanted), make)


def _filled(
    fill: Initializer, dims: tuple[int, ...], dtype: dtypes.DType,
    where: tuple[slice, ...] | None = None,
) -> np.ndarray:  # fmt: skip
    """Returns the elements of a tensor, or those inside of slices."""
    shape = dims
    if where is not None:
        shape = tuple(len(range(n)[s]) for n, s in zip(dims, where, strict=True))
    array = aligned_empty(shape, dtype.numpy)
    narrow = dtype in (dtypes.float16, dtypes.bfloat16)
    into: np.ndarray = np.empty(shape, np.float32) if narrow else array
    fill(into if where is None else Window(dims, where, into))  # pyright: ignore[reportArgumentType]
    if narrow:
        array[...] = into.astype(dtype.numpy)
    return array


def _deferred(fill: Initializer, dims: tuple[int, ...], dtype: dtypes.DType) -> Deferred:
    """Reserves the random numbers of a tensor, which may be split before anybody needs them."""
    with drawing_at(0, 0) as place:
        fill(Window(dims))  # pyright: ignore[reportArgumentType]
    seed, offset = (int(n) for n in default_generator.advance(place[1]).array)

    def make(where: tuple[slice, ...] | None) -> np.ndarray:
        with drawing_at(seed, offset):
            return _filled(fill, dims, dtype, where)

    return Deferred(make)


def _resolve(init: object) -> Initializer:
    if isinstance(init, Initializer):
        return init
    if isinstance(init, str):
        found = _INITIALIZER_ALIAS.get(init.lower())
        if found is not None:
            return found()
        reject(ArgumentError, "initializer", f"there is no initializer {init!r}",
               fix="use one of " + ", ".join(sorted(_INITIALIZER_ALIAS)))  # fmt: skip
    if dtypes.is_number(init):
        return Constant(init)
    reject(DTypeError, "initializer",
           f"init must be a name, number, Initializer or Tensor, not {type(init).__name__}",
           fix="pass 'normal', 0.5, XavierUniform() or a Tensor")  # fmt: skip


def _shape_of(shape: Any) -> tuple[int, ...]:
    dims = (shape,) if isinstance(shape, (int, np.integer)) else shape
    valid = isinstance(dims, (tuple, list)) and all(
        isinstance(d, (int, np.integer)) and not isinstance(d, bool) and d >= 0 for d in dims
    )
    if not valid:
        reject(ShapeError, "initializer", "shape must be non-negative integers", f"shape={shape}",
               "pass a tuple such as (2, 3)")  # fmt: skip
    return tuple(int(d) for d in dims)


def _checked_tensor(init: Tensor, shape: object) -> Tensor:
    if shape is not None and tuple(init.shape) != _shape_of(shape):
        reject(ShapeError, "initializer",
               f"the given tensor must have the parameter's shape {_shape_of(shape)}",
               f"init={init.aval}", "reshape the tensor")  # fmt: skip
    return init


def _one_of(op: str, name: str, value: object, valid: tuple[str, ...]) -> None:
    if value not in valid:
        raise ArgumentError(f"{name} must be one of {', '.join(valid)}, not {value!r}", op=op)


def _fans(init: Initializer, arr: np.ndarray) -> tuple[int, int]:
    """Returns the inputs and outputs that one element of the weight connects."""
    if arr.ndim < 2:
        raise init._reject("at least two axes are needed to count inputs and outputs", arr,
                           "use Normal() or Uniform()")  # fmt: skip
    return _fans_of(arr.shape)


def _fans_of(shape: tuple[int, ...]) -> tuple[int, int]:
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


# ---- what subclasses of Initializer import from here in model zoos -----------------------------


def _calculate_fan_in_and_fan_out(shape: Any) -> tuple[int, int]:
    """Returns inputs and outputs of a weight of a shape."""
    if len(shape) < 2:
        raise ShapeError("at least two axes are needed", op="initializer", got=f"shape={shape}")
    return _fans_of(tuple(shape))


def _calculate_in_and_out(arr: np.ndarray) -> tuple[int, int]:
    """Returns inputs and outputs of a weight."""
    return _calculate_fan_in_and_fan_out(arr.shape)


def _calculate_correct_fan(shape: object, mode: str) -> int:
    """Returns the ``"fan_in"`` or ``"fan_out"`` of a shape."""
    _one_of("initializer", "mode", mode.lower(), ("fan_in", "fan_out"))
    return _calculate_fan_in_and_fan_out(shape)[mode.lower() == "fan_out"]


def _calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Returns the factor on the standard deviation that a nonlinearity asks for."""
    linear = ("linear", *(f"conv{t}{n}d" for t in ("", "_transpose") for n in (1, 2, 3)))
    if nonlinearity in linear:
        return 1.0
    _one_of("initializer", "nonlinearity", nonlinearity, tuple(_GAINS))
    slope = 0.01 if param is None else param
    return _GAINS[nonlinearity] or math.sqrt(2.0 / (1 + slope**2))


def _register(*aliases: str) -> Callable[[type[Initializer]], type[Initializer]]:
    """Decorates a class that :func:`initializer` finds by its own name and by others."""

    def named(cls: type[Initializer]) -> type[Initializer]:
        for name in (cls.__name__.lower(), *aliases):
            _INITIALIZER_ALIAS.setdefault(name, cls)
        return cls

    return named


def _init_random_normal(mean: float, sigma: float, shape: Sequence[int]) -> np.ndarray:
    """Returns an array of normally distributed numbers."""
    return _drawn(Normal(sigma, mean), shape)


def _init_random_uniform(a: float, b: float, shape: Sequence[int]) -> np.ndarray:
    """Returns an array of numbers between two limits."""
    return _drawn(Uniform((b - a) / 2), shape) + np.float32((a + b) / 2)


def _drawn(fill: Initializer, shape: Sequence[int]) -> np.ndarray:
    array = np.empty(tuple(shape), np.float32)
    fill(array)
    return array


def _assignment(arr: np.ndarray, num: object) -> np.ndarray:
    """Fills an array, in place."""
    arr[...] = num
    return arr


__all__ = [
    "Constant", "Dirac", "HeNormal", "HeUniform", "Identity", "Initializer", "Normal", "One",
    "Orthogonal", "Sparse", "TruncatedNormal", "Uniform", "VarianceScaling", "XavierNormal",
    "XavierUniform", "Zero", "initializer",
]  # fmt: skip

_guard_module(globals(), "common.initializer")


def __dir__() -> list[str]:
    return list(__all__)
