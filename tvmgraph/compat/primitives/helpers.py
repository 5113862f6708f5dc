"""What operator classes compute where it is more than one expression."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes, hooks
from tvmgraph.core import rules
from tvmgraph.core.arguments import AxisLike, DTypeLike
from tvmgraph.core.op import F
from tvmgraph.core.sizes import Dim
from tvmgraph.core.state import call_user
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.dtypes import int32
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, either, reject
from tvmgraph.ops.common.arguments import has_unknown, split_up


def ints(value: object) -> Any:
    """Returns sizes given as a tensor, a list or a tuple as a tuple of ints; an int as it is.

    Args:
        value: The sizes; tensors that a graph computes stay what they are.
    """
    value = split_up(value)
    if has_unknown(value):
        return value
    if isinstance(value, Tensor):
        value = value.tolist()
    if not isinstance(value, (tuple, list)):
        return value
    return tuple(v if isinstance(v, Dim) else int(v) for v in value)


# ---- elementwise and reductions ------------------------------------------------------------------


def call(
    fn: Callable[..., object], bprop: Callable[..., object] | None, args: tuple[object, ...],
    kwargs: dict[str, object],
) -> object:  # fmt: skip
    """Calls a function that may have a derivative of its own, then by position.

    Args:
        fn: The function.
        bprop: Its derivative ``bprop(*inputs, out, dout)``, or None.
        args: Arguments by position.
        kwargs: Arguments by name, which only a function without a derivative of its own takes.
    """
    return fn(*args, **kwargs) if bprop is None else hooks.custom_vjp(bprop)(fn)(*args)


def cast(x: object, dtype: DTypeLike) -> Tensor:
    """Converts a tensor or a number.

    Args:
        x: The tensor or number.
        dtype: dtype of the result.
    """
    return F.cast(x if isinstance(x, Tensor) else Tensor(x), dtypes.dtype_of(dtype))


def div_no_nan(x1: object, x2: object) -> Tensor:
    """Divides, with 0 wherever the divisor is 0 (also for the gradient).

    Args:
        x1: Dividend, a tensor or a number.
        x2: Divisor, a tensor or a number.
    """
    if not isinstance(x2, Tensor):
        y = F.div(x1, x2 or 1)
        return y if x2 else F.zeros_like(y)
    zero = F.equal(x2, 0)
    y = F.div(x1, F.where(zero, F.ones_like(x2), x2))
    return F.where(zero, F.zeros_like(y), y)


def real_div(x: object, y: object) -> Tensor:
    """Divides; two integers give the integer next to their quotient on the side of 0.

    Args:
        x: Dividend, a tensor or a number.
        y: Divisor, a tensor or a number.
    """
    dtypes = [v.dtype for v in (x, y) if isinstance(v, Tensor)]
    numbers = [v for v in (x, y) if not isinstance(v, Tensor)]
    whole = all(d.is_integer for d in dtypes) and all(type(v) is int for v in numbers)
    return F.truncate_div(x, y) if whole else F.div(x, y)


def softmax(x: Tensor, axis: object) -> Tensor:
    """Softmax over one axis, or over several together.

    Args:
        x: Tensor of any shape.
        axis: An axis, or a tuple of axes.
    """
    if isinstance(axis, tuple) and len(axis) != 1:
        return F.exp(F.sub(x, F.logsumexp(x, axis, True)))
    return F.softmax(x, axis[0] if isinstance(axis, tuple) else axis)


def scan(
    fn: Callable[..., Tensor], x: Tensor, axis: int, exclusive: bool, reverse: bool, start: object
) -> Tensor:
    """Running reduction along an axis, optionally without the element itself or from the end.

    Args:
        fn: The running reduction ``fn(x, axis)``, such as ``ops.cumsum``.
        x: Tensor of any shape.
        axis: The axis.
        exclusive: Whether an element itself does not count.
        reverse: Whether it runs from the end.
        start: What the first element is where it does not count itself.
    """
    axis = rules.normalize_axis(axis, x.ndim)
    y = F.flip(x, (axis,)) if reverse else x
    if exclusive and y.shape[axis]:
        first = F.full((*y.shape[:axis], 1, *y.shape[axis + 1 :]), start, dtype=y.dtype)
        y = F.concat((first, F.narrow(y, axis, 0, y.shape[axis] - 1)), axis)
    y = fn(y, axis)
    y = F.cast(y, x.dtype) if x.dtype.is_integer else y
    return F.flip(y, (axis,)) if reverse else y


def reduce_sum(x: Tensor, axis: object, keep_dims: bool, skip_mode: bool) -> Tensor:
    """Sum in the input's dtype; with ``skip_mode`` no axes means no reduction.

    Args:
        x: Tensor of any shape.
        axis: Axis or axes; ``()`` for all of them.
        keep_dims: Whether reduced axes stay with size 1.
        skip_mode: Whether ``()`` stands for no axis instead.
    """
    if skip_mode and isinstance(axis, (tuple, list)) and not axis:
        return x
    y = F.sum(x, axis if isinstance(axis, int) else ints(axis), keep_dims)
    return F.cast(y, x.dtype)


def bincount(array: Tensor, size: int, weights: Tensor) -> Tensor:
    """Sums the weights (or counts, when there are none) of every value below ``size``.

    Args:
        array: Values [N], not negative.
        size: Length of the result.
        weights: What each value adds [N]; an empty tensor counts.
    """
    count = int(size)
    if weights.size == 0:
        weights = F.ones(array.shape, weights.dtype)
    # values beyond the end land in an extra slot that is cut off
    slots = F.minimum(array, F.full_like(array, count))
    return F.unsorted_segment_sum(weights, slots, count + 1)[:count]


def median(
    x: Tensor, global_median: bool, axis: int, keep_dims: bool, ignore_nan: bool
) -> tuple[Tensor, Tensor]:
    """Median and its index, over one axis or all elements; that of no elements is NaN, or 0.

    Args:
        x: Tensor of any shape.
        global_median: Whether it is that of all elements.
        axis: The axis otherwise.
        keep_dims: Whether reduced axes stay with size 1.
        ignore_nan: Whether NaN do not count.
    """
    fn = F.nanmedian if ignore_nan else F.median
    if global_median and not x.size:
        nothing = math.nan if x.dtype.is_float else 0
        return F.full((), nothing, dtype=x.dtype), F.zeros((), dtypes.int64)
    return fn(F.reshape(x, (-1,)), 0) if global_median else fn(x, axis, keep_dims)


# ---- shape ---------------------------------------------------------------------------------------


def depth_to_space(x: Tensor, block: int) -> Tensor:
    """Moves blocks of channels into space: ``[N, C, H, W]`` to ``[N, C/b², H·b, W·b]``.

    Args:
        x: Images [N, C, H, W].
        block: Size b of a block.
    """
    n, c, h, w = _image(x, "DepthToSpace")
    if c % block**2:
        raise _shape_error(f"{c} channels are no multiple of {block**2}", "DepthToSpace", x)
    y = F.reshape(x, (n, block, block, c // block**2, h, w))
    y = F.transpose(y, (0, 3, 4, 1, 5, 2))
    return F.reshape(y, (n, c // block**2, h * block, w * block))


def space_to_depth(x: Tensor, block: int) -> Tensor:
    """Moves blocks of space into channels: ``[N, C, H, W]`` to ``[N, C·b², H/b, W/b]``.

    Args:
        x: Images [N, C, H, W].
        block: Size b of a block.
    """
    n, c, h, w = _image(x, "SpaceToDepth")
    if h % block or w % block:
        raise _shape_error(f"{h} x {w} is no multiple of the block {block}", "SpaceToDepth", x)
    y = F.reshape(x, (n, c, h // block, block, w // block, block))
    y = F.transpose(y, (0, 3, 5, 1, 2, 4))
    return F.reshape(y, (n, c * block**2, h // block, w // block))


def _image(x: Tensor, op: str) -> tuple[int, ...]:
    if x.ndim != 4:
        raise _shape_error(f"the input must have 4 axes, not {x.ndim}", op, x)
    return x.shape


def _shape_error(message: str, op: str, x: Tensor) -> ShapeError:
    return ShapeError(message, op=f"ops.{op}", got=f"x={x.aval}")


def diag_part(x: Tensor) -> Tensor:
    """Takes the diagonal of ``[d1, .., dk, d1, .., dk]`` as ``[d1, .., dk]``.

    Args:
        x: Tensor of an even number of axes, of which the second half has the sizes of the first.
    """
    half = x.shape[: x.ndim // 2]
    if half + half != x.shape:
        raise _shape_error("the two halves of the shape differ", "DiagPart", x)
    size = math.prod(half)
    return F.reshape(F.diagonal(F.reshape(x, (size, size))), half)


def pad(x: Tensor, paddings: object) -> Tensor:
    """Pads with zeros: one (before, after) pair per axis.

    Args:
        x: Tensor of any shape.
        paddings: The pairs, a tensor [axes, 2] or nested tuples.
    """
    return F.pad(x, tuple(int(p) for pair in reversed(ints_nested(paddings)) for p in pair))


def ints_nested(value: Any) -> Any:
    """Returns nested sizes given as a tensor or lists as nested tuples.

    Args:
        value: The sizes.
    """
    value = value.tolist() if isinstance(value, Tensor) else value
    return tuple(map(ints_nested, value)) if isinstance(value, (tuple, list)) else int(value)


def pad_v3(x: Tensor, paddings: object, value: object, mode: str, contiguous: bool) -> Tensor:
    """Pads the last axes; not contiguous means all paddings before, then all after.

    Args:
        x: Tensor of any shape.
        paddings: Numbers of elements for the last axes, the last one first.
        value: The constant.
        mode: ``"constant"``, ``"reflect"``, ``"edge"`` or ``"circular"``.
        contiguous: Whether (before, after) of an axis stand side by side.
    """
    flat = ints(paddings)
    if not contiguous:
        half = len(flat) // 2
        flat = tuple(p for pair in zip(flat[:half], flat[half:]) for p in pair)
    mode = "replicate" if mode == "edge" else mode
    return F.pad(x, flat, mode, value if mode == "constant" else None)


def split(x: Tensor, axis: int, count: int) -> tuple[Tensor, ...]:
    """Cuts an axis into ``count`` equal parts.

    Args:
        x: Tensor of any shape.
        axis: The axis.
        count: Number of parts.
    """
    size = x.shape[rules.normalize_axis(axis, x.ndim)]
    if size % count:
        raise _shape_error(f"axis {axis} of size {size} has no {count} equal parts", "Split", x)
    return F.split(x, size // count, axis) if size else (x,) * count


def shape_tensor(x: Tensor) -> Tensor:
    """Returns the shape as an int64 tensor.

    Args:
        x: Tensor of any shape.
    """
    return tensor_from_numpy(np.array(x.shape, np.int64))


def fill_v2(shape: object, value: object) -> Tensor:
    """Repeats a 0-d tensor in a new shape.

    Args:
        shape: The new shape, a tensor or a tuple.
        value: Tensor of one element, or a number.
    """
    value = value if isinstance(value, Tensor) else Tensor(value)
    return F.broadcast_to(F.reshape(value, ()), ints(shape))


def scalar_cast(x: Any, dtype: DTypeLike) -> bool | int | float:
    """Converts a number to the Python type of ``dtype``.

    Args:
        x: A number or a tensor of one element.
        dtype: The dtype.
    """
    kind = dtypes.dtype_of(dtype).kind
    value = x.item() if isinstance(x, Tensor) else x
    return bool(value) if kind == "b" else float(value) if kind == "f" else int(value)


# ---- indexing ------------------------------------------------------------------------------------


def embedding_lookup(params: Tensor, indices: Tensor, offset: object) -> Tensor:
    """Takes rows ``indices - offset``; rows outside the table are zero.

    Args:
        params: The table [N, ...].
        indices: Numbers of rows, of any shape.
        offset: The number of the table's first row.
    """
    where = F.sub(indices, offset)
    rows = params.shape[0]
    inside = F.logical_and(F.greater_equal(where, 0), F.less(where, rows))
    taken = F.gather(params, F.clip(where, 0, rows - 1), 0)
    mask = F.reshape(inside, (*inside.shape, *(1,) * (params.ndim - 1)))
    return F.where(mask, taken, F.zeros_like(taken))


def invert_permutation(x: Any) -> object:
    """Returns the inverse of a permutation, as a tuple for a tuple.

    Args:
        x: Permutation [N], a tensor or a tuple.
    """
    if isinstance(x, Tensor):
        return F.cast(F.argsort(x), x.dtype)
    if sorted(x) != list(range(len(x))):
        reject(ArgumentError, "ops.InvertPermutation",
               "the input must hold every number from 0 once", repr(x)[:80])  # fmt: skip
    return tuple(sorted(range(len(x)), key=lambda i: x[i]))


def unravel_index(indices: Tensor, dims: AxisLike) -> Tensor:
    """Turns positions of a flattened array into coordinates, one row per axis.

    Args:
        indices: Positions [N].
        dims: Shape of the array.
    """
    rest, columns = indices, []
    for size in reversed(ints(dims)):
        columns.append(F.floor_mod(rest, size))
        rest = F.floor_div(rest, size)
    return F.stack(columns[::-1], 0)


# ---- losses --------------------------------------------------------------------------------------


def nll_loss(
    logits: Tensor, labels: Tensor, weight: Tensor, reduction: str, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Negative log likelihood and the total weight of the labels.

    Args:
        logits: Log-probabilities [N, C].
        labels: Classes [N].
        weight: Weight per class [C].
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.
        ignore_index: The class whose labels do not count.
    """
    loss = F.nll_loss(logits, labels, weight, ignore_index, reduction)
    counted = F.not_equal(labels, ignore_index)
    each = F.gather(weight, F.where(counted, labels, F.zeros_like(labels)), 0)
    return loss, F.sum(F.where(counted, each, F.zeros_like(each)))


def softmax_cross_entropy(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Loss per row and the derivative by the logits; MindSpore has none by the labels.

    Args:
        logits: Logits [N, C].
        labels: Probabilities [N, C].
    """
    labels = F.stop_gradient(labels)
    loss = F.neg(F.sum(F.mul(labels, F.log_softmax(logits, -1)), -1))
    return loss, F.stop_gradient(F.sub(F.softmax(logits, -1), labels))


def sparse_softmax_cross_entropy(logits: Tensor, labels: Tensor, is_grad: bool) -> Tensor:
    """Mean loss over the rows, or its derivative by the logits.

    Args:
        logits: Logits [N, C].
        labels: Classes [N].
        is_grad: Whether the derivative is returned.
    """
    if not is_grad:
        return F.cross_entropy(logits, labels)
    return F.div(_minus_classes(logits, labels), logits.shape[0])


def _minus_classes(logits: Tensor, labels: Tensor) -> Tensor:
    """The derivative of the loss of every row by its logits."""
    hot = F.cast(F.one_hot(labels, logits.shape[-1]), logits.dtype)
    return F.sub(F.softmax(logits, -1), hot)


def sparse_softmax_cross_entropy_of_rows(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Loss per row and the derivative by the logits.

    Args:
        logits: Logits [N, C].
        labels: Classes [N].
    """
    if labels.ndim != 1 or logits.ndim != 2:
        raise ShapeError("logits must have the shape [N, C], and labels [N]",
                         op="ops.SparseSoftmaxCrossEntropyWithLogitsV2",
                         got=f"logits={logits.aval}, labels={labels.aval}")  # fmt: skip
    loss = F.cross_entropy(logits, labels, reduction="none")
    return loss, F.stop_gradient(_minus_classes(logits, labels))


# ---- random numbers and effects ------------------------------------------------------------------


def dropout(x: Tensor, keep_prob: float, seed0: int = 0, seed1: int = 0) -> tuple[Tensor, Tensor]:
    """Zeroes elements, scales the rest, and also returns the mask in the input's dtype.

    Args:
        x: Tensor of any shape.
        keep_prob: Probability with which an element stays.
        seed0, seed1: Kept for MindSpore programs.
    """
    _require_probability(keep_prob, "Dropout")
    mask = F.cast(F.bernoulli(F.ones_like(x), keep_prob), x.dtype)
    return F.div(F.mul(x, mask), max(keep_prob, np.finfo(np.float32).tiny)), mask


def dropout_channels(x: Tensor, keep_prob: float, axes: int) -> tuple[Tensor, Tensor]:
    """Zeroes whole channels, scales the rest, and also returns the bool mask.

    Args:
        x: Tensor [N, C, ...].
        keep_prob: Probability with which a channel stays.
        axes: Number of spatial axes.
    """
    _require_probability(keep_prob, f"Dropout{axes}D")
    ones = F.ones((*x.shape[:2], *(1,) * axes), x.dtype)
    mask = F.broadcast_to(F.cast(F.bernoulli(ones, keep_prob), dtypes.bool_), x.shape)
    scaled = F.div(x, max(keep_prob, np.finfo(np.float32).tiny))
    return F.where(mask, scaled, F.zeros_like(x)), mask


def _require_probability(p: float, op: str) -> None:
    if not 0 <= p <= 1:
        raise ArgumentError(f"keep_prob must be in [0, 1], not {p}", op=f"ops.{op}")


def truncated_normal(shape: object, dtype: DTypeLike, seed: object) -> Tensor:
    """Normal numbers redrawn until they lie within two standard deviations.

    Args:
        shape: Shape of the result.
        dtype: dtype of the result.
        seed: A generator, or None for the global one.
    """
    low = math.erf(-2 / math.sqrt(2))
    u = F.add(F.mul(F.rand(*ints(shape), dtype=dtypes.float32, seed=seed), -2 * low), low)
    return F.cast(F.mul(F.erfinv(u), math.sqrt(2)), dtype)


def assert_(condition: object, data: object) -> None:
    """Raises unless the condition holds.

    Args:
        condition: A bool, or a tensor of one.
        data: What the message shows, one object or several.

    Raises:
        ArgumentError: with the data, if the condition is false.
    """
    if not bool(condition):
        items = data if isinstance(data, (tuple, list)) else [data]
        reject(either(ArgumentError, RuntimeError), "ops.Assert", "the condition is false",
               ", ".join(map(str, items)))  # fmt: skip


# ---- images, segments, ranges -------------------------------------------------------------------


def data_format_dim_map(x: Tensor, source: str, target: str) -> Tensor:
    """Returns the axes of one order of letters that stand at places of another.

    Args:
        x: Numbers of axes, int32, of any shape.
        source: One letter per axis, as ``"NHWC"``.
        target: The letters in the other order.
    """
    places = Tensor([source.index(c) for c in target], int32)
    return F.cast(F.gather(places, F.floor_mod(x, len(source)), 0), x.dtype)


def rgb_to_hsv(images: Tensor) -> Tensor:
    """Returns hue, saturation and value of colours along the last axis.

    Args:
        images: Red, green and blue in [0, 1], of shape [..., 3].
    """
    r, g, b = (images[..., i] for i in (0, 1, 2))
    value = F.amax(images, -1)
    spread = value - F.amin(images, -1)
    safe = F.where(F.equal(spread, 0), F.ones_like(spread), spread)
    hue = F.where(F.equal(value, r), (g - b) / safe,
                  F.where(F.equal(value, g), (b - r) / safe + 2, (r - g) / safe + 4))  # fmt: skip
    hue = F.where(F.equal(spread, 0), F.zeros_like(hue), F.floor_mod(hue / 6, 1.0))
    whole = F.where(value > 0, value, F.ones_like(value))
    return F.stack((hue, F.where(value > 0, spread / whole, F.zeros_like(value)), value), -1)


def hsv_to_rgb(image: Tensor) -> Tensor:
    """Returns the colours of hue, saturation and value along the last axis.

    Args:
        image: Hue, saturation and value in [0, 1], of shape [..., 3].
    """
    h, s, v = (image[..., i] for i in (0, 1, 2))
    parts = [F.clamp(F.abs(h * 6 - 3) - 1, 0, 1), F.clamp(2 - F.abs(h * 6 - 2), 0, 1),
             F.clamp(2 - F.abs(h * 6 - 4), 0, 1)]  # fmt: skip
    return F.stack([((p - 1) * s + 1) * v for p in parts], -1)


def segment(how: str, x: Tensor, ids: Tensor) -> Tensor:
    """Reduces the rows of each segment; a segment without rows is 0 (1 for products).

    Args:
        how: ``"sum"``, ``"mean"``, ``"max"``, ``"min"`` or ``"prod"``.
        x: Rows [N, ...].
        ids: The segment of every row [N], ascending.
    """
    count = int(ids.asnumpy()[-1]) + 1
    found = getattr(F, f"unsorted_segment_{'sum' if how == 'mean' else how}")(x, ids, count)
    sizes = F.unsorted_segment_sum(F.ones_like(ids), ids, count)
    sizes = F.reshape(sizes, (-1,) + (1,) * (x.ndim - 1))
    if how == "mean":
        return F.cast(found / F.cast(F.maximum(sizes, 1), found.dtype), x.dtype)
    if how in ("max", "min"):
        return F.where(sizes > 0, found, F.zeros_like(found))
    return found


def tridiagonal_product(above: Tensor, main: Tensor, below: Tensor, rhs: Tensor) -> Tensor:
    """Multiplies matrices of three diagonals, each of shape [..., 1, M], by [..., M, N].

    Args:
        above: The diagonal above the main one.
        main: The main diagonal.
        below: The diagonal below it.
        rhs: The matrices they are multiplied by.
    """
    size = rhs.shape[-2]
    zero = F.zeros_like(F.narrow(rhs, -2, 0, 1))
    later = F.concat((F.narrow(rhs, -2, 1, size - 1), zero), -2)
    earlier = F.concat((zero, F.narrow(rhs, -2, 0, size - 1)), -2)
    found = F.swapaxes(main, -1, -2) * rhs + F.swapaxes(above, -1, -2) * later
    return found + F.swapaxes(below, -1, -2) * earlier


# ---- loops --------------------------------------------------------------------------------------


def _require_callable(function: object, name: str, op: str) -> None:
    if not callable(function):
        reject(DTypeError, f"ops.{op}", f"{name} must be a function, not {type(function).__name__}")


def _captured(function: Callable[..., object]) -> Callable[..., object]:
    """Lets a capture read a function as it reads those of the user, so that tensors may decide."""
    function.is_captured = True  # pyright: ignore[reportFunctionMemberAccess]

    @functools.wraps(function)
    def call(*args: object) -> object:
        return call_user(function, args)

    return call


@_captured
def while_loop(
    cond_func: Callable[[object], object], loop_func: Callable[[object], object], value: object
) -> object:
    """Applies ``loop_func`` to the value as long as ``cond_func`` of it is true.

    Args:
        cond_func: The condition of a value.
        loop_func: The step from a value to the next.
        value: The first value.
    """
    _require_callable(cond_func, "cond_func", "WhileLoop")
    _require_callable(loop_func, "loop_func", "WhileLoop")
    while cond_func(value):
        value = loop_func(value)
    return value


@_captured
def fori_loop(
    lower: int | Tensor,
    upper: int | Tensor,
    loop_func: Callable[[int, object], object],
    value: object,
) -> object:
    """Applies ``value = loop_func(i, value)`` for every i from ``lower`` to below ``upper``.

    Args:
        lower: The first number.
        upper: The first number that is too large.
        loop_func: The step.
        value: The first value.
    """
    _require_callable(loop_func, "loop_func", "ForiLoop")
    for i in range(lower, upper):
        value = loop_func(i, value)
    return value


def scan_loop(
    loop_func: Callable[[object, object], tuple[object, object]], carry: object,
    xs: Sequence[object] | None, length: int | None,
) -> tuple[object, list[object]]:  # fmt: skip
    """Applies ``carry, y = loop_func(carry, x)`` to every x; returns the carry and all y.

    Args:
        loop_func: The step.
        carry: The first carry.
        xs: The values x; None for ``length`` times None.
        length: How many steps where there are no ``xs``.

    Raises:
        ArgumentError: if neither ``xs`` nor ``length`` is given.
    """
    _require_callable(loop_func, "loop_func", "Scan")
    if xs is None and length is None:
        raise ArgumentError("xs or length is needed", op="ops.Scan")
    ys = []
    for x in [None] * (length or 0) if xs is None else xs:
        carry, y = loop_func(carry, x)
        ys.append(y)
    return carry, ys
