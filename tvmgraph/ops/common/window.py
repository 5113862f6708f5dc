"""Sliding windows: sizes, padding and NumPy views shared by convolution, pooling and unfold.

Spatial attributes of rows are canonical: ``kernel``, ``stride`` and ``dilation`` have one int per
spatial axis, ``padding`` one ``(before, after)`` pair per spatial axis.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import EllipsisType
from typing import Any, TypeAlias, TypedDict

import numpy as np

from tvmgraph.core import rules
from tvmgraph.core.arguments import is_sequence
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.op import Sample, sample
from tvmgraph.core.sizes import proven
from tvmgraph.core.symbols import described, scope
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import Dim, Shape, TensorType
from tvmgraph.errors import (
    ArgumentError,
    DTypeError,
    ExportError,
    ShapeError,
    TvmgraphError,
    user_source,
)
from tvmgraph.ops.common.arguments import bad, require

Ints = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]


class Sliding(TypedDict):
    """Attributes of a row of windows that slide over the spatial axes."""

    kernel: Ints
    stride: Ints
    padding: Pairs
    dilation: Ints


class Grouped(TypedDict):
    """Attributes of a convolution; its weight says the size of the window."""

    stride: Ints
    padding: Pairs
    dilation: Ints
    groups: int


def in_order(attrs: Sliding) -> tuple[Ints, Ints, Pairs, Ints]:
    """Returns kernel, stride, padding and dilation.

    Args:
        attrs: The attributes.
    """
    return attrs["kernel"], attrs["stride"], attrs["padding"], attrs["dilation"]


_CHUNK = 1 << 23  # elements of a column buffer that are laid out at a time


def out_sizes(spatial: Shape, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints) -> Ints:
    """Returns the number of window positions per spatial axis.

    Args:
        spatial: Sizes of the spatial axes.
        kernel: Sizes of the window.
        stride: Distances of neighbouring windows.
        padding: Elements before and after every axis.
        dilation: Distances of neighbouring taps.

    Raises:
        ShapeError: if a window is larger than its padded axis, or an axis is symbolic.
    """
    result: list[int | Dim] = []
    for i, (size, k, s, (lo, hi), d) in enumerate(
        zip(spatial, kernel, stride, padding, dilation, strict=True)
    ):
        if isinstance(size, Dim) and not described():
            if scope() is not None:
                size.specialise()
            raise ShapeError(f"spatial axis {i} has the symbolic size {size}, but must be static")
        reach = d * (k - 1) + 1
        if size + lo + hi < reach:
            raise ShapeError(
                f"a window of {reach} does not fit spatial axis {i}, {size + lo + hi} with padding",
                fix="use a smaller kernel_size or dilation, or more padding",
            )
        result.append((size + lo + hi - reach) // s + 1)
    return tuple(result)  # pyright: ignore[reportReturnType] - they stand for numbers


def output_padding(
    spatial: Shape, out: Shape, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints
) -> Ints:
    """What :func:`out_sizes` rounds off: the transposed convolution adds it to get ``spatial``.

    Args:
        spatial: Sizes of the spatial axes before the convolution.
        out: Their sizes after it.
        kernel: Sizes of the window.
        stride: Distances of neighbouring windows.
        padding: Elements before and after every axis.
        dilation: Distances of neighbouring taps.
    """
    axes = zip(spatial, padding, dilation, kernel, out, stride)
    return tuple(n + lo + hi - d * (k - 1) - 1 - (o - 1) * s for n, (lo, hi), d, k, o, s in axes)


def same_padding(spatial: Sequence[int], kernel: Ints, stride: Ints, dilation: Ints) -> Pairs:
    """Returns the padding that gives ``ceil(size / stride)`` positions; the odd one goes after.

    Args:
        spatial: Sizes of the spatial axes.
        kernel: Sizes of the window.
        stride: Distances of neighbouring windows.
        dilation: Distances of neighbouring taps.
    """
    result: list[tuple[int, int]] = []
    for size, k, s, d in zip(spatial, kernel, stride, dilation, strict=True):
        total = (-(-size // s) - 1) * s + d * (k - 1) + 1 - size
        total = 0 if proven("<=", total, 0) else total if proven(">=", total, 0) else max(total, 0)
        result.append((total // 2, total - total // 2))
    return tuple(result)


def ceil_padding(
    spatial: Sequence[int], kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints
) -> Pairs:
    """Extends the padding after each axis for a partial last window that starts inside the data.

    Args:
        spatial: Sizes of the spatial axes.
        kernel: Sizes of the window.
        stride: Distances of neighbouring windows.
        padding: Elements before and after every axis.
        dilation: Distances of neighbouring taps.
    """
    result: list[tuple[int, int]] = []
    for size, k, s, (lo, hi), d in zip(spatial, kernel, stride, padding, dilation, strict=True):
        reach = d * (k - 1) + 1
        count = max(-(-(size + lo + hi - reach) // s), 0) + 1
        if (count - 1) * s >= size + lo:
            count -= 1
        result.append((lo, max(hi, (count - 1) * s + reach - size - lo)))
    return tuple(result)


def spatial_of(x: Tensor, count: int, op: str) -> Ints:
    """Returns the last ``count`` axes' sizes as ints, for functions that compute a padding.

    Args:
        x: Tensor with at least ``count`` axes.
        count: How many axes are spatial.
        op: Name of the function, for errors.

    Raises:
        ShapeError: if there are fewer axes.
    """
    sizes = x.aval.shape[-count:]
    require(x.ndim >= count, f"input must have {count} spatial axes", op, input=x)
    return tuple(d if described() else int(d) for d in sizes)  # pyright: ignore[reportArgumentType, reportReturnType] - they stand for numbers


def pad_array(x: np.ndarray, padding: Pairs, value: object = 0) -> np.ndarray:
    """Pads the spatial (last) axes; much cheaper than ``np.pad`` for small arrays.

    Args:
        x: Array whose last axes are spatial.
        padding: Elements before and after every spatial axis.
        value: What they are.
    """
    if not any(lo or hi for lo, hi in padding):
        return x
    lead = x.ndim - len(padding)
    spatial = [n + lo + hi for n, (lo, hi) in zip(x.shape[lead:], padding)]
    full = np.full((*x.shape[:lead], *spatial), value, x.dtype)
    inner = tuple(slice(lo, lo + n) for n, (lo, _) in zip(x.shape[lead:], padding))
    full[(..., *inner)] = x
    return full


def tap(
    position: Ints, out: Ints, stride: Ints, dilation: Ints
) -> tuple[slice | EllipsisType, ...]:
    """Returns the index of what one kernel tap sees of a padded array, at all window positions.

    Args:
        position: The tap's position in the window.
        out: Number of windows per axis.
        stride: Distances of neighbouring windows.
        dilation: Distances of neighbouring taps.
    """
    return (
        ...,
        *(
            slice(p * d, p * d + (o - 1) * s + 1, s) if o else slice(0, 0)
            for p, o, s, d in zip(position, out, stride, dilation)
        ),
    )


def columns(
    x: np.ndarray, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints, out: Ints
) -> np.ndarray:
    """Lays windows out as columns: ``[N, C, *spatial]`` to ``[N, C, *kernel, *out]``.

    Args:
        x: Array ``[N, C, *spatial]``.
        kernel: Sizes of the window.
        stride: Distances of neighbouring windows.
        padding: Elements before and after every spatial axis.
        dilation: Distances of neighbouring taps.
        out: Number of windows per axis.
    """
    xp = pad_array(x, padding)
    if xp.shape[2:] == out and all(k == 1 for k in kernel):
        return xp.reshape(*xp.shape[:2], *kernel, *out)
    cols = np.empty((*x.shape[:2], *kernel, *out), x.dtype)
    for position in np.ndindex(*kernel):
        cols[(slice(None), slice(None), *position)] = xp[tap(position, out, stride, dilation)]
    return cols


def scatter_columns(
    cols: np.ndarray, spatial: Ints, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints
) -> np.ndarray:
    """The transpose of :func:`columns`: sums columns back into ``[N, C, *spatial]``.

    Args:
        cols: What :func:`columns` returns.
        spatial: Sizes of the spatial axes of the result.
        kernel: Sizes of the window.
        stride: Distances of neighbouring windows.
        padding: Elements before and after every spatial axis.
        dilation: Distances of neighbouring taps.
    """
    nd = len(kernel)
    out = cols.shape[2 + nd :]
    # windows may stop short of the padded end, or (output padding) reach beyond it
    full_shape = [
        max(n + lo + hi, (o - 1) * s + d * (k - 1) + 1)
        for n, (lo, hi), o, s, d, k in zip(spatial, padding, out, stride, dilation, kernel)
    ]
    full = np.zeros((*cols.shape[:2], *full_shape), cols.dtype)
    for position in np.ndindex(*kernel):
        full[tap(position, out, stride, dilation)] += cols[(slice(None), slice(None), *position)]
    return full[(..., *(slice(lo, lo + n) for n, (lo, _) in zip(spatial, padding)))]


def flat_padding(padding: Pairs) -> list[int]:
    """Returns all paddings before, then all after: the order of TVM and ONNX.

    Args:
        padding: Elements before and after every axis.
    """
    return [lo for lo, _ in padding] + [hi for _, hi in padding]


def onnx_padding(
    spatial: Shape, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints
) -> dict[str, object]:
    """Returns ONNX's attribute of a padding; one that follows from sizes is that of ``"same"``.

    Args:
        spatial: Sizes of the spatial axes.
        kernel: Sizes of the window.
        stride: Distances of neighbouring windows.
        padding: Elements before and after every axis.
        dilation: Distances of neighbouring taps.

    Raises:
        ExportError: if a padding follows from sizes in another way.
    """
    if not any(isinstance(n, Dim) for pair in padding for n in pair):
        return {"pads": flat_padding(padding)}
    roots = sorted({root for d in spatial if isinstance(d, Dim) for root in d.roots})
    for first in range(_LARGE, 2 * _LARGE, 37):  # all remainders, after divisions, too
        sizes = {root: first + i for i, root in enumerate(roots)}
        given = tuple(_at(n, sizes) for pair in padding for n in pair)
        same = same_padding([_at(d, sizes) for d in spatial], kernel, stride, dilation)
        if given != tuple(n for pair in same for n in pair):
            raise ExportError("a padding that depends on the size is none of ONNX's")
    return {"auto_pad": "SAME_UPPER"}


_LARGE = 1024  # pixels; no network makes nothing of them


def _at(size: int | Dim, sizes: Mapping[str, int]) -> int:
    return size.evaluate(sizes) if isinstance(size, Dim) else size


def batches(count: int, per_item: int) -> list[slice]:
    """Splits a batch so that the column buffer stays small.

    Args:
        count: Items of the batch.
        per_item: Elements of the buffer for one item.
    """
    step = max(1, _CHUNK // max(per_item, 1))
    return [slice(i, i + step) for i in range(0, count, step)]


# ---- arguments of public functions ------------------------------------------------------------


def ints(value: object, count: int, name: str, op: str, minimum: int = 1) -> Ints:
    """Returns an int or a sequence of ``count`` ints as a tuple.

    Args:
        value: The int, or the sequence.
        count: How many ints are wanted; one stands for all of them.
        name: Name of the argument.
        op: Name of the function.
        minimum: The least number that is allowed.

    Raises:
        DTypeError: if it is neither.
        ArgumentError: if the count is wrong or an entry is below ``minimum``.
    """
    try:
        return rules.positive_ints(value, count, name, minimum)
    except TvmgraphError as e:
        raise e.locate(f"ops.{op}", f"{name}={value!r}", user_source()) from None


def padding_pairs(value: object, count: int, op: str) -> Pairs:
    """Returns a padding as pairs: an int, one int per axis, or two (before, after) per axis.

    Args:
        value: The argument.
        count: Number of spatial axes.
        op: Name of the function.

    Raises:
        ArgumentError: if a number is negative, or there are more or fewer.
    """
    if is_sequence(value) and len(value) == 2 * count:
        flat = ints(value, 2 * count, "padding", op, 0)
        return tuple((flat[2 * i], flat[2 * i + 1]) for i in range(count))
    return tuple((p, p) for p in ints(value, count, "padding", op, 0))


def resolve_padding(
    pad_mode: object,
    padding: object,
    x: Tensor,
    kernel: Ints,
    stride: Ints,
    dilation: Ints,
    op: str,
) -> Pairs:
    """Turns MindSpore's ``pad_mode`` and ``padding`` into pairs.

    Args:
        pad_mode: ``"valid"`` (none), ``"same"`` (``ceil(size / stride)`` positions) or ``"pad"``.
        padding: For ``"pad"``: see :func:`padding_pairs`; otherwise it must be 0.
        x: The input; its last axes are the spatial ones.
        kernel: Window sizes.
        stride: Steps.
        dilation: Gaps between window elements.
        op: Name for error messages.

    Raises:
        ArgumentError: if the mode is unknown, or a padding is given to another mode than ``"pad"``.
    """
    mode = pad_mode.lower() if isinstance(pad_mode, str) else pad_mode
    require(mode in ("valid", "same", "pad"), "pad_mode must be 'same', 'valid' or 'pad'", op,
            ArgumentError if isinstance(pad_mode, str) else DTypeError,
            pad_mode=pad_mode)  # fmt: skip
    pairs = padding_pairs(padding, len(kernel), op)
    if mode == "pad":
        return pairs
    if any(lo or hi for lo, hi in pairs):
        raise bad(
            ArgumentError, f"padding must be 0 when pad_mode is {mode!r}", op,
            f"padding={padding!r}", "pass pad_mode='pad'",
        )  # fmt: skip
    if mode == "valid":
        return pairs
    return same_padding(spatial_of(x, len(kernel), op), kernel, stride, dilation)


# ---- inference --------------------------------------------------------------------------------


def require_spatial(x: TensorType, count: int, name: str = "input") -> None:
    """Makes sure that a type is ``[N, C]`` and ``count`` spatial axes.

    Args:
        x: The type.
        count: Number of spatial axes.
        name: Name of the argument.

    Raises:
        ShapeError: if it has another number of axes.
    """
    rules.require_ndim(x, count + 2, name)


def window_sample(
    images: Ints | np.ndarray, *more: object, stride: Ints = (), padding: Pairs = (),
    dilation: Ints = (), **kwargs: Any,
) -> Sample:  # fmt: skip
    """Builds a sample of a row of sliding windows: by default next to each other and unpadded.

    Args:
        images: Shape of the images, or they.
        *more: Shapes of other operands.
        stride: Distances of neighbouring windows.
        padding: Elements before and after every spatial axis.
        dilation: Distances of neighbouring taps.
        **kwargs: More arguments of :func:`tvmgraph.core.op.sample`, such as ``kernel``.
    """
    count = len(kwargs.get("kernel", images[2:]))
    ones = (1,) * count
    return sample(
        images, *more, stride=stride or ones, padding=padding or ((0, 0),) * count,
        dilation=dilation or ones, **kwargs,
    )  # fmt: skip


def conv_sample(images: Ints, *more: object, groups: int = 1, **kwargs: Any) -> Sample:
    """Builds a sample of a convolution row, by default of one group.

    Args:
        images: Shape of the images.
        *more: Shapes of other operands.
        groups: Groups of channels.
        **kwargs: More arguments of :func:`window_sample`.
    """
    return window_sample(images, *more, groups=groups, **kwargs)


# ---- sliding windows as tensor expressions, for the ``lower`` column of pooling rows -------------

#: Windows of up to this many taps become one expression, which fuses and vectorizes.
UNROLL = 16

#: A position: one index expression per axis.
Point: TypeAlias = tuple[Expr, ...]
#: A place in a window, where its taps are written out one by one.
Tap: TypeAlias = tuple[int, ...] | Point
Combine = Callable[[Expr, Expr], Expr]
Fold = Callable[[list[Expr]], Expr]


def te_pad(R: Builder, x: Expr, padding: Pairs, value: Expr) -> Expr:
    """TE: pads the spatial axes of ``[N, C, *spatial]`` with a constant.

    Args:
        R: The builder.
        x: TE tensor ``[N, C, *spatial]``.
        padding: Elements before and after every spatial axis.
        value: What they are.
    """
    if not any(lo or hi for lo, hi in padding):
        return x
    before = [0, 0, *(lo for lo, _ in padding)]
    return R.topi.nn.pad(x, before, [0, 0, *(hi for _, hi in padding)], value)


def te_fold(
    R: Builder, lead: tuple[object, ...], out: Ints, taps: Ints, term: Callable[[Point, Tap], Expr],
    combine: Combine, identity: Callable[[str], Expr], name: str, fold: Fold | None = None,
) -> Expr:  # fmt: skip
    """TE: combines ``term(point, tap)`` over all taps, at every point of ``[*lead, *out]``.

    Args:
        R: The builder.
        lead: Leading sizes.
        out: Spatial sizes of the result.
        taps: Sizes of the window.
        term: ``(point, tap) -> value``, called with index expressions.
        combine: An associative function of two values.
        identity: Neutral element of ``combine`` for a dtype.
        name: Name of the stage.
        fold: Combines a list of values, where repeating ``combine`` would repeat its operands.
    """
    if prod(taps) <= UNROLL:

        def unrolled(*point: Expr) -> Expr:
            window = itertools.product(*(range(t) for t in taps))
            items = [term(point, at) for at in window]
            return fold(items) if fold else functools.reduce(combine, items)

        return R.te.compute((*lead, *out), unrolled, name=name)
    axes = [R.te.reduce_axis((0, t), name=f"r{i}") for i, t in enumerate(taps)]

    # TVM wants functions of exactly two and one arguments
    def pair(a: Expr, b: Expr) -> Expr:
        return combine(a, b)

    def neutral(dtype: str) -> Expr:
        return identity(dtype)

    def reduced(*point: Expr) -> Expr:
        return reducer(term(point, tuple(axes)), axis=axes)

    reducer = R.te.comm_reducer(pair, neutral, name=f"{name}_reduce")
    return R.te.compute((*lead, *out), reduced, name=name)


def te_isnan(R: Builder, value: Expr, dtype: str) -> Expr:
    """TE: whether a float is NaN; TVM cannot ask a bfloat16.

    Args:
        R: The builder.
        value: A float.
        dtype: Name of its dtype.
    """
    return R.tir.isnan(value.astype("float32") if dtype == "bfloat16" else value)


def te_max(R: Builder, dtype: str) -> tuple[Combine, Callable[[str], Expr], Fold]:
    """Returns the maximum in which NaN wins, as in NumPy: pairwise, neutral element, of a list.

    Args:
        R: The builder.
        dtype: Name of the elements' dtype.
    """

    def largest(items: Sequence[Expr]) -> Expr:
        return functools.reduce(R.tir.max, items)

    if "float" not in dtype:
        return R.tir.max, R.tir.min_value, largest

    def combine(a: Expr, b: Expr) -> Expr:
        # isnan and not a != a, which TVM simplifies to false
        return R.tir.Select(R.tir.any(a > b, te_isnan(R, a, dtype)), a, b)

    def fold(items: Sequence[Expr]) -> Expr:
        spoiled = R.tir.any(*(te_isnan(R, i, dtype) for i in items))
        return R.tir.Select(spoiled, R.tir.const(float("nan"), dtype), largest(items))

    return combine, lambda d: R.tir.const(float("-inf"), d), fold


def te_transposed(
    R: Builder, lead: tuple[object, ...], spatial: Ints, out: Ints, reach: Ints, stride: Ints,
    padding: Pairs, term: Callable[[Point, Point, Point], Expr], dtype: str, name: str,
) -> Expr:  # fmt: skip
    """TE: sums over every element's windows: what a pooling's output cotangent sends back.

    Every element asks its (few) windows, so nothing is written twice and all elements are
    independent.

    Args:
        R: The builder.
        lead: Leading sizes.
        spatial: Spatial sizes of the result.
        out: Number of windows per axis.
        reach: Size of a window, dilation included.
        stride: Step of the windows.
        padding: Padding of the windows.
        term: ``(point, window, offset) -> value`` for a window that holds the point.
        dtype: dtype of the sum.
        name: Name of the stage.
    """
    counts = tuple(-(-r // s) for r, s in zip(reach, stride))

    def one(point: Point, back: Tap) -> Expr:
        moved = [p + lo for p, (lo, _) in zip(point[len(lead) :], padding)]
        window = tuple(m // s - b for m, s, b in zip(moved, stride, back))
        offset = tuple(m - w * s for m, w, s in zip(moved, window, stride))
        moving = [r > 1 or s > 1 or pads != (0, 0) for r, s, pads in zip(reach, stride, padding)]
        inside = [w >= 0 for w, moves in zip(window, moving) if moves]
        inside += [w < o for w, o, moves in zip(window, out, moving) if moves]
        inside += [f < r for f, r, s in zip(offset, reach, stride) if r % s]
        value = term(point, window, offset)
        if not inside:
            return value
        return R.tir.if_then_else(R.tir.all(*inside), value, R.tir.const(0, dtype))

    return te_fold(
        R, lead, spatial, counts, one, lambda a, b: a + b, lambda d: R.tir.const(0, d), name
    )
