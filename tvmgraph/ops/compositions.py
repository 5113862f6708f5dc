"""Functions of MindSpore that are a few other operators."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tvmgraph import dtypes, hooks
from tvmgraph.core.arguments import DTypeLike, PerAxis
from tvmgraph.core.op import F
from tvmgraph.core.random import Generator, Seed
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.unfollowed import by_numpy
from tvmgraph.dtypes import float32
from tvmgraph.errors import ArgumentError
from tvmgraph.ops.common.arguments import bad, countable
from tvmgraph.ops.common.window import ints
from tvmgraph.ops.compositions_regions import fractional_max_pool
from tvmgraph.ops.compositions_sequences import candidates, ctc_greedy_decoder
from tvmgraph.ops.compositions_sequences import poisson as _poisson
from tvmgraph.ops.math.complex_columns import parts_of


def view_as_real(input: Tensor) -> Tensor:
    """Returns a complex tensor as a real one whose last axis holds both parts.

    Args:
        input: complex64 or complex128 tensor of shape :math:`(*)`.

    Returns:
        float32 or float64 tensor of shape :math:`(*, 2)`.
    """
    found = by_numpy(parts_of, input) if input.dtype in dtypes.COMPLEX else None
    return F.stack((F.real(input), F.imag(input)), -1) if found is None else found


def reshape_(input: Tensor, shape: object) -> Tensor:
    """Returns ``input`` in another shape; see :func:`reshape`.

    Args:
        input: Tensor of any shape.
        shape: The shape; one size may be -1.
    """
    return F.reshape(input, shape)


def add_flags(fn: Any = None, **flags: object) -> Any:
    """Gives a Cell or a function flags that can be read back.

    Args:
        fn: What gets the flags; without it, a decorator is returned.
        **flags: The flags.
    """
    if fn is None:
        return lambda function: add_flags(function, **flags)
    if hasattr(fn, "add_flags"):
        return fn.add_flags(**flags)
    fn._func_graph_flags = getattr(fn, "_func_graph_flags", {}) | flags
    return fn


def diff_ext(input: Tensor, n: int = 1, dim: int = -1, prepend: object = None,
             append: object = None) -> Tensor:  # fmt: skip
    """Returns the ``n``-th differences of neighbours; see :func:`diff`.

    Args:
        input: Tensor of any shape.
        n: How often neighbours are subtracted.
        dim: The axis.
        prepend: Tensor that comes before ``input`` along the axis.
        append: Tensor that comes after it.
    """
    return F.diff(input, n, dim, prepend, append)


def rotary_position_embedding(x: Tensor, cos: Tensor, sin: Tensor, mode: int = 0) -> Tensor:
    """Turns pairs of elements by angles.

    Args:
        x: Tensor [..., D].
        cos: Cosines of the angles, broadcast to ``x``.
        sin: Their sines.
        mode: 0 pairs element i with i + D/2, 1 pairs neighbours.

    Raises:
        ArgumentError: for another mode.
    """
    if mode not in (0, 1):
        raise bad(ArgumentError, "mode must be 0 or 1", "rotary_position_embedding", f"mode={mode}")
    half = x.shape[-1] // 2
    if mode == 0:
        rotated = F.concat((F.neg(F.narrow(x, -1, half, half)), F.narrow(x, -1, 0, half)), -1)
    else:
        pairs = F.reshape(x, (*x.shape[:-1], half, 2))
        first, second = F.narrow(pairs, -1, 0, 1), F.narrow(pairs, -1, 1, 1)
        rotated = F.reshape(F.concat((F.neg(second), first), -1), x.shape)
    return x * cos + rotated * sin


def add_layer_norm(x1: Tensor, x2: Tensor, gamma: Tensor, beta: Tensor, epsilon: float = 1e-5,
                   additional_output: bool = False) -> tuple[Tensor, ...]:  # fmt: skip
    """Returns the layer norm of a sum, its mean and reciprocal deviation, and the sum.

    Args:
        x1: Tensor [..., D].
        x2: Tensor of that shape.
        gamma: Factors [D].
        beta: Offsets [D].
        epsilon: Added to the variance.
        additional_output: Whether the sum is wanted; zeros stand for it otherwise.
    """
    total = x1 + x2
    wide = F.cast(total, dtypes.float32)
    mean = F.mean(wide, -1, True)
    rate = F.rsqrt(F.mean(F.square(wide - mean), -1, True) + epsilon)
    found = F.cast((wide - mean) * rate, total.dtype) * gamma + beta
    return found, mean, rate, total if additional_output else F.zeros_like(total)


def add_rms_norm(x1: Tensor, x2: Tensor, gamma: Tensor,
                 epsilon: float = 1e-6) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    r"""Normalizes a sum: :math:`y = \gamma x / \sqrt{mean(x^2) + \epsilon}` with :math:`x = x_1 +
    x_2`.

    Args:
        x1: Tensor of shape :math:`(*, D)`.
        x2: Tensor of the same shape.
        gamma: Factors of shape :math:`(D)`, or of more of the last axes, over which the mean is
            taken.
        epsilon: What is added to the mean square.

    Returns:
        The normalized sum, the reciprocal root, and the sum.
    """
    total = x1 + x2
    found, rate = F.rms_norm(total, gamma, epsilon)
    return found, rate, total


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True,
              unpack_pivots: bool = True) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Returns permutation, lower and upper matrix of a packed factorization.

    Args:
        LU_data: Both triangles [..., M, N].
        LU_pivots: Row swapped with each row, from 1, [..., min(M, N)].
        unpack_data: Whether the triangles are wanted; empty tensors stand for them otherwise.
        unpack_pivots: Whether the permutation is wanted.
    """
    rows, columns = LU_data.shape[-2:]
    size = min(rows, columns)
    none = F.zeros((0,), LU_data.dtype)
    lower = upper = permutation = none
    if unpack_data:
        eye = F.eye(rows, size, LU_data.dtype)
        lower = F.tril(F.narrow(LU_data, -1, 0, size), -1) + eye
        upper = F.triu(F.narrow(LU_data, -2, 0, size))
    if unpack_pivots:
        permutation = _swapped(LU_pivots, rows, LU_data.dtype)
    return permutation, lower, upper


def _swapped(pivots: Tensor, rows: int, dtype: dtypes.DType) -> Tensor:
    """Returns the matrices that undo swaps of rows."""
    lead = tuple(pivots.shape[:-1])
    order = F.broadcast_to(F.arange(rows), (*lead, rows))
    places = F.arange(rows)
    for i in range(pivots.shape[-1]):
        other = F.cast(F.narrow(pivots, -1, i, 1), order.dtype) - 1
        here, there = F.narrow(order, -1, i, 1), F.gather_elements(order, -1, other)
        order = F.where(F.equal(places, i), there, F.where(F.equal(places, other), here, order))
    return F.swapaxes(F.cast(F.one_hot(order, rows), dtype), -1, -2)


def derivative(fn: Callable[..., Tensor], primals: Any, order: int) -> tuple[Any, Any]:
    """Returns a function's value and its derivative of some order as all inputs grow alike.

    Args:
        fn: Function of tensors.
        primals: The tensor, or a tuple of several.
        order: Order of the derivative, at least 1.

    Raises:
        ArgumentError: if ``order`` is below 1 or there is no input.
    """
    inputs = primals if isinstance(primals, tuple) else (primals,)
    if order < 1 or not inputs:
        raise bad(ArgumentError, "an input and an order of at least 1 are needed", "derivative",
                  f"order={order}, {len(inputs)} inputs")  # fmt: skip

    change: Any = lambda t: fn(*(x + t for x in inputs))  # noqa: E731
    for _ in range(countable(order, "derivative", "order")):
        change = functools.partial(_slope, change)
    return fn(*inputs), change(Tensor(0, inputs[0].dtype))


def _slope(of: Callable[[Tensor], object], t: Tensor) -> Any:
    return hooks.jvp(of, t, F.ones_like(t))[1]


class ReduceOp:
    """Names of what operators of several devices do with values."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"


# ---- samples, sequences and Taylor series --------------------------------------------------------


def uniform_candidate_sampler(
    true_classes: Tensor, num_true: int, num_sampled: int, unique: bool, range_max: int,
    seed: int = 0, remove_accidental_hits: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Draws classes of equal probability.

    Args:
        true_classes: Tensor [N, num_true] of the classes that are right.
        num_true: Their number per row.
        num_sampled: How many classes are drawn.
        unique: Whether they differ.
        range_max: Number of classes.
        seed: 0 continues the package's random numbers.
        remove_accidental_hits: Whether right classes are not drawn.

    Returns:
        The drawn classes, and how often the right and the drawn ones are expected.
    """
    return candidates(true_classes, num_sampled, unique, range_max, seed, False,
                      "uniform_candidate_sampler", remove_accidental_hits)  # fmt: skip


def log_uniform_candidate_sampler(
    true_classes: Tensor, num_true: int = 1, num_sampled: int = 5, unique: bool = True,
    range_max: int = 5, seed: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Draws classes of probability :math:`\\log((k + 2) / (k + 1)) / \\log(range\\_max + 1)`.

    Args:
        true_classes: See :func:`uniform_candidate_sampler`, as for the other arguments.
        num_true: Classes per row.
        num_sampled: How many are drawn.
        unique: Whether they differ.
        range_max: Number of classes.
        seed: 0 continues the package's random numbers.
    """
    return candidates(true_classes, num_sampled, unique, range_max, seed, True,
                      "log_uniform_candidate_sampler")  # fmt: skip


def _fractional(
    op: str, count: int, input: Tensor, kernel_size: PerAxis, output_size: Any, output_ratio: Any,
    return_indices: bool, samples: Tensor | None,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    if (output_size is None) == (output_ratio is None):
        raise bad(ArgumentError, "give output_size or output_ratio, one of them", op)
    if output_size is None:
        ratios = (output_ratio,) * count if isinstance(output_ratio, float) else output_ratio
        output_size = tuple(int(n * r) for n, r in zip(input.shape[-count:], ratios))
    size = ints(output_size, count, "output_size", op)
    x = input if input.ndim == count + 2 else F.expand_dims(input, 0)
    places: Any = F.rand(*x.shape[:2], count) if samples is None else samples
    found = fractional_max_pool(x, places, ints(kernel_size, count, "kernel_size", op), size)
    values, where = found if x is input else (f[0] for f in found)
    return (values, where) if return_indices else values


def fractional_max_pool2d(
    input: Tensor, kernel_size: PerAxis, output_size: object = None, output_ratio: object = None,
    return_indices: bool = False, _random_samples: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    """Returns the largest elements of windows that random steps place.

    Args:
        input: Tensor [N, C, H, W] or [C, H, W].
        kernel_size: Height and width of the windows.
        output_size: Height and width of the result.
        output_ratio: Their shares of those of ``input`` instead.
        return_indices: Whether places in the image come, too.
        _random_samples: The numbers of [0, 1) that place the windows, [N, C, 2].
    """
    return _fractional("fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio,
                       return_indices, _random_samples)  # fmt: skip


def fractional_max_pool3d(
    input: Tensor, kernel_size: PerAxis, output_size: object = None, output_ratio: object = None,
    return_indices: bool = False, _random_samples: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    """Returns the largest elements of windows of volumes; see :func:`fractional_max_pool2d`.

    Args:
        input: Tensor [N, C, D, H, W] or [C, D, H, W].
        kernel_size: Depth, height and width of the windows.
        output_size: Those of the result.
        output_ratio: Their shares of those of ``input`` instead.
        return_indices: Whether places in the volume come, too.
        _random_samples: The numbers of [0, 1) that place the windows, [N, C, 3].
    """
    return _fractional("fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio,
                       return_indices, _random_samples)  # fmt: skip


def poisson(shape: object, mean: object, seed: Seed = None) -> Tensor:
    """Draws float32 numbers of Poisson distributions, of shape ``(*shape, *mean.shape)``.

    Args:
        shape: Sizes.
        mean: Their means.
        seed: None continues the package's random numbers.
    """
    return _poisson(shape, mean, float32, seed)


def random_poisson(
    shape: object, rate: object, seed: Seed = None, dtype: DTypeLike = float32
) -> Tensor:
    """Draws numbers of Poisson distributions, of shape ``(*shape, *rate.shape)``.

    Args:
        shape: Sizes.
        rate: Their means.
        seed: None continues the package's random numbers.
        dtype: dtype of the numbers.
    """
    return _poisson(shape, rate, dtype, seed)


def bernoulli_ext(input: Tensor, *, generator: Generator | None = None) -> Tensor:
    """Draws ones with the probabilities ``input``, else zeros.

    Args:
        input: Probabilities in :math:`[0, 1]`, of any shape.
        generator: Where the numbers come from; by default the global stream.
    """
    return F.cast(F.bernoulli(F.ones_like(input), input, generator), input.dtype)


def linearize(fn: Callable[..., object], inputs: object) -> tuple[object, Callable[..., object]]:
    """Returns a function's value and the linear function of changes of its inputs there.

    Args:
        fn: A function of tensors.
        inputs: Where it is linearized: a tensor, or a tuple of them.
    """
    primals = inputs if isinstance(inputs, tuple) else (inputs,)

    def change(*tangents: object) -> object:
        given = tangents if len(primals) > 1 else tangents[0]
        return hooks.jvp(fn, inputs, given)[1]

    return fn(*primals), change


def jet(fn: Callable[..., Any], primals: Any, series: Any) -> tuple[Any, Any]:
    """Returns a function's value and the derivatives of a curve through it.

    The curve of an input is its value and its derivatives by a parameter; that of the result has
    as many derivatives.

    Args:
        fn: A function of tensors.
        primals: The value of the input, or a tuple of those of several.
        series: Its derivatives, stacked along the first axis; a tuple of them for several.

    Raises:
        ArgumentError: if inputs have different numbers of derivatives.
    """
    several = isinstance(primals, tuple)
    points, curves = (primals, series) if several else ((primals,), (series,))
    orders = {len(c) for c in curves}
    if len(orders) != 1 or len(points) != len(curves):
        raise bad(
            ArgumentError, "every input needs as many derivatives", "jet", f"{sorted(orders)}"
        )

    def along(t: Tensor) -> Any:
        return fn(*(_taylor(p, c, t) for p, c in zip(points, curves)))

    zero, found, step = Tensor(0.0, float32), [], along
    for _ in range(orders.pop()):
        step = functools.partial(_slope, step)
        found.append(step(zero))
    return fn(*points), F.stack(found, 0)


def _taylor(point: Tensor, curve: Tensor, t: Tensor) -> Tensor:
    total, factor = point, t
    for k in range(len(curve)):
        total = total + curve[k] * factor
        factor = factor * t / (k + 2)
    return total


__all__ = [
    "ReduceOp", "add_flags", "add_layer_norm", "add_rms_norm", "bernoulli_ext",
    "ctc_greedy_decoder", "derivative", "diff_ext", "fractional_max_pool2d",
    "fractional_max_pool3d", "jet", "linearize", "log_uniform_candidate_sampler", "lu_unpack",
    "poisson", "random_poisson", "reshape_", "rotary_position_embedding",
    "uniform_candidate_sampler", "view_as_real",
]  # fmt: skip
