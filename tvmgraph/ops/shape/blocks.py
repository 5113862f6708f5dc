"""Grids and blocks of pixels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.ops.common.arguments import as_int, bad, describe, int_tuple, require

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "batch_to_space_nd", "cartesian_prod",
    "channel_shuffle", "combinations", "depth_to_space", "meshgrid", "pixel_shuffle",
    "pixel_unshuffle", "space_to_batch_nd", "space_to_depth",
]  # fmt: skip


# ---- at least so many axes ----------------------------------------------------------------------


def _at_least(
    inputs: object, convert: Callable[[Tensor], Tensor], op: str
) -> Tensor | tuple[Tensor, ...]:
    if isinstance(inputs, Tensor):
        return convert(inputs)
    if not isinstance(inputs, (tuple, list)) or not all(isinstance(x, Tensor) for x in inputs):
        raise bad(DTypeError, "inputs must be a Tensor, or a tuple or list of them", op,
                  repr(inputs)[:80])  # fmt: skip
    return tuple(convert(x) for x in inputs)


def atleast_1d(inputs: object) -> Any:
    """Gives 0-d tensors one axis.

    Args:
        inputs: Tensor, or a tuple or list of tensors.

    Returns:
        Tensor, or a tuple of tensors.

    Example:
        >>> ops.atleast_1d(Tensor(1))
        Tensor(shape=[1], dtype=Int64, value= [1])
    """
    return _at_least(inputs, lambda x: F.reshape(x, (1,)) if x.ndim == 0 else x, "atleast_1d")


def atleast_2d(inputs: object) -> Any:
    """Gives tensors with fewer than two axes two, adding leading ones.

    Args:
        inputs: Tensor, or a tuple or list of tensors.

    Returns:
        Tensor, or a tuple of tensors.

    Example:
        >>> ops.atleast_2d(Tensor([1, 2]))
        Tensor(shape=[1, 2], dtype=Int64, value=
        [[1, 2]])
    """

    def convert(x: Tensor) -> Tensor:
        return x if x.ndim > 1 else F.reshape(x, (1, 1)) if x.ndim == 0 else F.expand_dims(x, 0)

    return _at_least(inputs, convert, "atleast_2d")


def atleast_3d(inputs: object) -> Any:
    """Gives tensors with fewer than three axes three: :math:`(n,)` becomes :math:`(1, n, 1)`.

    Args:
        inputs: Tensor, or a tuple or list of tensors.

    Returns:
        Tensor, or a tuple of tensors.

    Example:
        >>> ops.atleast_3d(Tensor([1, 2])).shape
        (1, 2, 1)
    """

    def convert(x: Tensor) -> Tensor:
        return x if x.ndim > 2 else F.expand_dims(atleast_2d(x), 2)

    return _at_least(inputs, convert, "atleast_3d")


# ---- grids --------------------------------------------------------------------------------------


def meshgrid(*inputs: object, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Spreads vectors over a common grid.

    Args:
        inputs: Tensors with at most one axis, or one tuple of them.
        indexing: ``"ij"``: input :math:`i` varies along axis :math:`i`; ``"xy"``: the first two
            axes are exchanged.

    Returns:
        One tensor per input, all of the grid's shape.

    Raises:
        ArgumentError: if ``indexing`` is unknown.
        ShapeError: if an input has more than one axis.

    Example:
        >>> ops.meshgrid(Tensor([1, 2]), Tensor([3, 4]), indexing="ij")
        (Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 1],
         [2, 2]]), Tensor(shape=[2, 2], dtype=Int64, value=
        [[3, 4],
         [3, 4]]))
    """
    items = _vectors(inputs, "meshgrid")
    indexing = str(indexing).lower()
    require(indexing in ("xy", "ij"), "indexing must be 'xy' or 'ij'", "meshgrid", ArgumentError,
            indexing=indexing)  # fmt: skip
    order = list(range(len(items)))
    if indexing == "xy" and len(items) > 1:
        order[:2] = [1, 0]
    sizes = [0] * len(items)
    for x, axis in zip(items, order):
        sizes[axis] = x.shape[0]
    spread = []
    for x, axis in zip(items, order):
        lone = tuple(x.shape[0] if i == axis else 1 for i in range(len(items)))
        spread.append(F.broadcast_to(F.reshape(x, lone), tuple(sizes)))
    return tuple(spread)


def _vectors(inputs: tuple[object, ...], op: str) -> list[Tensor]:
    items = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)) else inputs
    require(items, "at least one Tensor is needed", op, ArgumentError)
    for i, x in enumerate(items):
        if not isinstance(x, Tensor):
            raise bad(DTypeError, f"inputs[{i}] must be a Tensor, not {type(x).__name__}", op,
                      repr(x)[:80])  # fmt: skip
        require(x.ndim <= 1, f"inputs[{i}] must have at most 1 axis, not {x.ndim}", op, x=x)
    return [atleast_1d(x) for x in items]


def cartesian_prod(*inputs: Tensor) -> Tensor:
    """Returns all combinations of one element from every vector.

    Args:
        inputs: Tensors with one axis.

    Returns:
        Tensor of shape :math:`(n_1 \\cdots n_k, k)`; a single vector is returned as it is.

    Raises:
        ShapeError: if an input has more than one axis.

    Example:
        >>> ops.cartesian_prod(Tensor([1, 2]), Tensor([5]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 5],
         [2, 5]])
    """
    items = _vectors(inputs, "cartesian_prod")
    if len(items) == 1:
        return items[0]
    grid = meshgrid(*items, indexing="ij")
    return F.stack([F.ravel(g) for g in grid], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Returns all subsequences of ``r`` elements of a vector.

    Args:
        input: Tensor with one axis.
        r: Length of a subsequence.
        with_replacement: Whether an element may occur several times.

    Returns:
        Tensor of shape :math:`(N, r)`.

    Raises:
        ShapeError: if ``input`` does not have one axis.
        ArgumentError: if ``r`` is negative.

    Example:
        >>> ops.combinations(Tensor([1, 2, 3]))
        Tensor(shape=[3, 2], dtype=Int64, value=
        [[1, 2],
         [1, 3],
         [2, 3]])
    """
    require(input.ndim == 1, f"input must have 1 axis, not {input.ndim}", "combinations",
            input=input)  # fmt: skip
    count = as_int(r, "combinations", "r")
    require(count >= 0, "r must not be negative", "combinations", ArgumentError, r=r)
    pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(pick(range(input.shape[0]), count))
    index = np.array(rows, np.int64).reshape(len(rows), count)
    return F.gather(input, Tensor(index), 0)


# ---- blocks of pixels ---------------------------------------------------------------------------


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Turns groups of :math:`r^2` channels into blocks of :math:`r \\times r` pixels.

    Args:
        input: Tensor of shape :math:`(..., C r^2, H, W)`.
        upscale_factor: The block size :math:`r`.

    Returns:
        Tensor of shape :math:`(..., C, H r, W r)`.

    Raises:
        ShapeError: if the channels cannot be grouped.

    Example:
        >>> ops.pixel_shuffle(ops.ones((1, 8, 2, 3)), 2).shape
        (1, 2, 4, 6)
    """
    got = describe(input=input, upscale_factor=upscale_factor)
    f = _block("pixel_shuffle", upscale_factor, "upscale_factor", got)
    if input.ndim < 3 or input.shape[-3] % (f * f):
        raise bad(ShapeError, f"input must have shape (..., C*{f * f}, H, W)", "pixel_shuffle", got)
    *lead, c, h, w = input.shape
    n = len(lead)
    x = F.reshape(input, (*lead, c // (f * f), f, f, h, w))
    x = F.transpose(x, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return F.reshape(x, (*lead, c // (f * f), h * f, w * f))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Turns blocks of :math:`r \\times r` pixels into :math:`r^2` channels.

    Args:
        input: Tensor of shape :math:`(..., C, H r, W r)`.
        downscale_factor: The block size :math:`r`.

    Returns:
        Tensor of shape :math:`(..., C r^2, H, W)`.

    Raises:
        ShapeError: if the image cannot be divided into blocks.

    Example:
        >>> ops.pixel_unshuffle(ops.ones((1, 2, 4, 6)), 2).shape
        (1, 8, 2, 3)
    """
    got = describe(input=input, downscale_factor=downscale_factor)
    f = _block("pixel_unshuffle", downscale_factor, "downscale_factor", got)
    if input.ndim < 3 or input.shape[-2] % f or input.shape[-1] % f:
        raise bad(ShapeError, f"height and width must be multiples of {f}", "pixel_unshuffle", got)
    *lead, c, h, w = input.shape
    n = len(lead)
    x = F.reshape(input, (*lead, c, h // f, f, w // f, f))
    x = F.transpose(x, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return F.reshape(x, (*lead, c * f * f, h // f, w // f))


def _block(op: str, value: int, name: str, got: object) -> int:
    if as_int(value, op, name) < 1:
        raise bad(ArgumentError, f"{name} must be positive", op, got)
    return value


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """Interleaves the channels of ``groups`` groups.

    Args:
        x: Tensor of shape :math:`(N, C, ...)`.
        groups: Number of groups; divides :math:`C`.

    Returns:
        Tensor of ``x``'s shape.

    Raises:
        ShapeError: if the channels cannot be divided into groups.

    Example:
        >>> ops.channel_shuffle(ops.ones((1, 4, 2, 2)), 2).shape
        (1, 4, 2, 2)
    """
    got = describe(x=x, groups=groups)
    g = _block("channel_shuffle", groups, "groups", got)
    if x.ndim < 3 or x.shape[1] % g:
        raise bad(ShapeError, f"x must have shape (N, C, ...) with C a multiple of {g}",
                  "channel_shuffle", got)  # fmt: skip
    n, c, *rest = x.shape
    y = F.reshape(x, (n, g, c // g, *rest))
    return F.reshape(F.swapaxes(y, 1, 2), (n, c, *rest))


def depth_to_space(x: Tensor, block_size: int) -> Tensor:
    """Turns channels into blocks of pixels, the block position counting before the channel.

    Args:
        x: Tensor of shape :math:`(N, C b^2, H, W)`.
        block_size: The block size :math:`b`, at least 2.

    Returns:
        Tensor of shape :math:`(N, C, H b, W b)`.

    Raises:
        ShapeError: if the channels cannot be grouped.

    Example:
        >>> ops.depth_to_space(ops.ones((1, 8, 2, 3)), 2).shape
        (1, 2, 4, 6)
    """
    got = describe(x=x, block_size=block_size)
    b = _block("depth_to_space", block_size, "block_size", got)
    if x.ndim != 4 or x.shape[1] % (b * b):
        raise bad(ShapeError, f"x must have shape (N, C*{b * b}, H, W)", "depth_to_space", got)
    n, c, h, w = x.shape
    y = F.transpose(F.reshape(x, (n, b, b, c // (b * b), h, w)), (0, 3, 4, 1, 5, 2))
    return F.reshape(y, (n, c // (b * b), h * b, w * b))


def space_to_depth(x: Tensor, block_size: int) -> Tensor:
    """Turns blocks of pixels into channels; the inverse of :func:`depth_to_space`.

    Args:
        x: Tensor of shape :math:`(N, C, H b, W b)`.
        block_size: The block size :math:`b`, at least 2.

    Returns:
        Tensor of shape :math:`(N, C b^2, H, W)`.

    Raises:
        ShapeError: if the image cannot be divided into blocks.

    Example:
        >>> ops.space_to_depth(ops.ones((1, 2, 4, 6)), 2).shape
        (1, 8, 2, 3)
    """
    got = describe(x=x, block_size=block_size)
    b = _block("space_to_depth", block_size, "block_size", got)
    if x.ndim != 4 or x.shape[2] % b or x.shape[3] % b:
        raise bad(ShapeError, f"height and width must be multiples of {b}", "space_to_depth", got)
    n, c, h, w = x.shape
    y = F.transpose(F.reshape(x, (n, c, h // b, b, w // b, b)), (0, 3, 5, 1, 2, 4))
    return F.reshape(y, (n, c * b * b, h // b, w // b))


def space_to_batch_nd(
    input_x: Tensor, block_size: object, paddings: Sequence[Sequence[int]]
) -> Tensor:
    """Pads the last axes with zeros and moves blocks of them into the batch.

    Args:
        input_x: Tensor of shape :math:`(n, c_1, ..., c_k, w_1, ..., w_M)`.
        block_size: Block size per spatial axis, or one int for all of them.
        paddings: Elements to add before and after every spatial axis, of shape :math:`(M, 2)`.

    Returns:
        Tensor with :math:`n \\prod_i b_i` batch entries.

    Raises:
        ShapeError: if a padded axis is no multiple of its block size.

    Example:
        >>> ops.space_to_batch_nd(ops.ones((1, 1, 2, 2)), (2, 2), ((0, 0), (0, 0))).shape
        (4, 1, 1, 1)
    """
    pads = tuple(int_tuple(tuple(p), "space_to_batch_nd", "paddings") for p in paddings)
    count = len(pads)
    blocks = int_tuple(block_size, "space_to_batch_nd", "block_size")
    blocks = blocks * count if len(blocks) == 1 else blocks
    got = describe(input_x=input_x, block_size=block_size, paddings=paddings)
    if len(blocks) != count or input_x.ndim <= count or any(b < 1 for b in blocks):
        raise bad(ArgumentError, "block_size and paddings need one entry per spatial axis",
                  "space_to_batch_nd", got)  # fmt: skip
    head = input_x.ndim - count
    x = F.pad_constant(input_x, ((0, 0),) * head + pads, 0)
    sizes = x.shape[head:]
    if any(s % b for s, b in zip(sizes, blocks)):
        raise bad(ShapeError, "padded sizes must be multiples of the block sizes",
                  "space_to_batch_nd", got)  # fmt: skip
    split = list(itertools.chain.from_iterable((s // b, b) for s, b in zip(sizes, blocks)))
    x = F.reshape(x, (*x.shape[:head], *split))
    inner = range(head + 1, head + 2 * count, 2)
    x = F.transpose(x, (*inner, *range(head), *range(head, head + 2 * count, 2)))
    batch = input_x.shape[0] * math.prod(blocks)
    outer = [s // b for s, b in zip(sizes, blocks)]
    return F.reshape(x, (batch, *input_x.shape[1:head], *outer))


def batch_to_space_nd(
    input_x: Tensor, block_shape: object, crops: Sequence[Sequence[int]]
) -> Tensor:
    """Moves blocks of the batch into the last axes and crops them.

    Args:
        input_x: Tensor of shape :math:`(n \\prod_i b_i, c_1, ..., c_k, w_1, ..., w_M)`.
        block_shape: Block size per spatial axis, or one int for all of them.
        crops: Elements to cut off before and after every spatial axis, of shape :math:`(M, 2)`.

    Returns:
        Tensor with :math:`n` batch entries.

    Raises:
        ShapeError: if the batch is no multiple of the block, or the crop too large.

    Example:
        >>> ops.batch_to_space_nd(ops.ones((4, 1, 1, 1)), (2, 2), ((0, 0), (0, 0))).shape
        (1, 1, 2, 2)
    """
    op = "batch_to_space_nd"
    cuts = tuple(int_tuple(tuple(c), op, "crops") for c in crops)
    count = len(cuts)
    blocks = int_tuple(block_shape, op, "block_shape")
    blocks = blocks * count if len(blocks) == 1 else blocks
    got = describe(input_x=input_x, block_shape=block_shape, crops=crops)
    if len(blocks) != count or input_x.ndim <= count or any(b < 1 for b in blocks):
        raise bad(ArgumentError, "block_shape and crops need one entry per spatial axis", op, got)
    head = input_x.ndim - count
    sizes = input_x.shape[head:]
    if input_x.shape[0] % math.prod(blocks) or any(
        min(c) < 0 or s * b <= sum(c) for s, b, c in zip(sizes, blocks, cuts)
    ):
        raise bad(ShapeError, "the batch must be a multiple of the block, and crops must leave "
                  "something", op, got)  # fmt: skip
    batch = input_x.shape[0] // math.prod(blocks)
    middle = input_x.shape[1:head]
    x = F.reshape(input_x, (*blocks, batch, *middle, *sizes))
    spatial = [(count + head + i, i) for i in range(count)]
    x = F.transpose(x, (*range(count, count + head), *itertools.chain.from_iterable(spatial)))
    x = F.reshape(x, (batch, *middle, *(s * b for s, b in zip(sizes, blocks))))
    for i, (l, r) in enumerate(cuts):
        if l or r:
            x = F.split_at(x, (l, sizes[i] * blocks[i] - r), head + i)[1]
    return x
