"""Bounding boxes: overlap, encoding, validity."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, ShapeError, either
from tvmgraph.ops.common.arguments import bad, require

__all__ = ["bounding_box_decode", "bounding_box_encode", "check_valid", "iou"]


def _require_boxes(op: str, **boxes: Tensor) -> None:
    for name, b in boxes.items():
        if b.ndim != 2 or b.shape[1] != 4:
            raise bad(ShapeError, f"{name} must have shape (N, 4)", op, f"{name}={b.aval}")


def iou(anchor_boxes: Tensor, gt_boxes: Tensor, mode: str = "iou") -> Tensor:
    r"""Overlap of all pairs of boxes: the area they share over the area they cover.

    Args:
        anchor_boxes: Corners :math:`(x_0, y_0, x_1, y_1)`, both inclusive, :math:`(N, 4)`.
        gt_boxes: Corners of the true boxes, :math:`(M, 4)`.
        mode: ``"iou"``, or ``"iof"`` to divide by the area of the true box alone.

    Returns:
        Tensor of shape :math:`(M, N)`.

    Raises:
        ShapeError: if the boxes do not have 4 columns.
        ArgumentError: if ``mode`` is unknown; it is a KeyError, too.

    Example:
        >>> ops.iou(Tensor([[0.0, 0.0, 9.0, 9.0]]), Tensor([[0.0, 0.0, 9.0, 4.0]]))
        Tensor(shape=[1, 1], dtype=Float32, value=
        [[ 5.00000000e-01]])
    """
    op = "iou"
    known = isinstance(mode, str) and mode in ("iou", "iof")
    error = either(ArgumentError, KeyError)
    require(known, "mode must be 'iou' or 'iof'", op, error, mode=mode)
    _require_boxes(op, anchor_boxes=anchor_boxes, gt_boxes=gt_boxes)
    a = F.expand_dims(anchor_boxes, 0)
    g = F.expand_dims(gt_boxes, 1)

    def area(b: Tensor) -> Tensor:
        return (b[..., 2] - b[..., 0] + 1) * (b[..., 3] - b[..., 1] + 1)

    width = F.minimum(a[..., 2], g[..., 2]) - F.maximum(a[..., 0], g[..., 0]) + 1
    height = F.minimum(a[..., 3], g[..., 3]) - F.maximum(a[..., 1], g[..., 1]) + 1
    shared = F.relu(width) * F.relu(height)
    whole = area(g) if mode == "iof" else area(a) + area(g) - shared
    return shared / whole


def _centers(b: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Centre and size of boxes whose corners are inclusive."""
    return (
        (b[:, 0] + b[:, 2]) * 0.5, (b[:, 1] + b[:, 3]) * 0.5,
        b[:, 2] - b[:, 0] + 1, b[:, 3] - b[:, 1] + 1,
    )  # fmt: skip


def bounding_box_encode(
    anchor_box: Tensor, groundtruth_box: Tensor, means: Sequence[float] = (0.0, 0.0, 0.0, 0.0),
    stds: Sequence[float] = (1.0, 1.0, 1.0, 1.0),
) -> Tensor:  # fmt: skip
    r"""Expresses true boxes relative to anchors: shifts in sizes, and logarithms of size ratios.

    Args:
        anchor_box: Corners :math:`(x_0, y_0, x_1, y_1)`, :math:`(N, 4)`.
        groundtruth_box: Corners of the true boxes, :math:`(N, 4)`.
        means: Subtracted from the four results.
        stds: What they are divided by.

    Returns:
        Tensor of shape :math:`(N, 4)`: :math:`(dx, dy, dw, dh)`.

    Raises:
        ShapeError: if the boxes do not have 4 columns.

    Example:
        >>> ops.bounding_box_encode(Tensor([[0.0, 0.0, 9.0, 9.0]]), Tensor([[1.0, 1.0, 8.0, 8.0]]))
        Tensor(shape=[1, 4], dtype=Float32, value=
        [[ 0.00000000e+00,  0.00000000e+00, -2.23143533e-01, -2.23143533e-01]])
    """
    _require_boxes("bounding_box_encode", anchor_box=anchor_box, groundtruth_box=groundtruth_box)
    px, py, pw, ph = _centers(anchor_box)
    gx, gy, gw, gh = _centers(groundtruth_box)
    deltas = ((gx - px) / pw, (gy - py) / ph, F.log(gw / pw), F.log(gh / ph))
    parts = [(d - m) / s for d, m, s in zip(deltas, means, stds, strict=True)]
    return F.stack(tuple(parts), 1)


def bounding_box_decode(
    anchor_box: Tensor,
    deltas: Tensor,
    max_shape: Sequence[int],
    means: Sequence[float] = (0.0, 0.0, 0.0, 0.0),
    stds: Sequence[float] = (1.0, 1.0, 1.0, 1.0),
    wh_ratio_clip: float = 0.016,
) -> Tensor:
    r"""Moves anchors by encoded offsets: the inverse of :func:`bounding_box_encode`.

    Args:
        anchor_box: Corners :math:`(x_0, y_0, x_1, y_1)`, :math:`(N, 4)`.
        deltas: Offsets :math:`(dx, dy, dw, dh)`, :math:`(N, 4)`.
        max_shape: Height and width of the image to which the boxes are clipped.
        means: Added to the four offsets after scaling.
        stds: What they are multiplied by.
        wh_ratio_clip: Smallest ratio of sizes (and, inverted, the largest).

    Returns:
        Tensor of corners, :math:`(N, 4)`.

    Raises:
        ShapeError: if the boxes do not have 4 columns.

    Example:
        >>> ops.bounding_box_decode(Tensor([[0.0, 0.0, 9.0, 9.0]]), ops.zeros((1, 4)), (16, 16))
        Tensor(shape=[1, 4], dtype=Float32, value=
        [[ 0.00000000e+00,  0.00000000e+00,  9.00000000e+00,  9.00000000e+00]])
    """
    _require_boxes("bounding_box_decode", anchor_box=anchor_box, deltas=deltas)
    height, width = (float(v) for v in max_shape)
    px, py, pw, ph = _centers(anchor_box)
    dx, dy, dw, dh = (deltas[:, i] * s + m for i, (m, s) in enumerate(zip(means, stds)))
    limit = abs(math.log(wh_ratio_clip))
    gw = pw * F.exp(F.minimum(F.maximum(dw, -limit), limit))
    gh = ph * F.exp(F.minimum(F.maximum(dh, -limit), limit))
    gx, gy = px + pw * dx, py + ph * dy
    corners = (
        (gx - gw * 0.5 + 0.5, width), (gy - gh * 0.5 + 0.5, height),
        (gx + gw * 0.5 - 0.5, width), (gy + gh * 0.5 - 0.5, height),
    )  # fmt: skip
    parts = [F.minimum(F.maximum(c, 0.0), size) for c, size in corners]
    return F.stack(tuple(parts), 1)


def check_valid(bboxes: Tensor, img_metas: Tensor) -> Tensor:
    r"""Tells which boxes lie in the image.

    Args:
        bboxes: Corners :math:`(x_0, y_0, x_1, y_1)`, :math:`(N, 4)`.
        img_metas: Height, width and ratio of the image, :math:`(3,)`.

    Returns:
        bool Tensor of shape :math:`(N,)`.

    Raises:
        ShapeError: if the shapes do not fit.

    Example:
        >>> ops.check_valid(Tensor([[0.0, 0.0, 9.0, 9.0]]), Tensor([8.0, 8.0, 1.0]))
        Tensor(shape=[1], dtype=Bool, value= [False])
    """
    op = "check_valid"
    _require_boxes(op, bboxes=bboxes)
    require(img_metas.aval.shape == (3,), "img_metas must have shape (3,)", op, img_metas=img_metas)
    metas = F.cast(img_metas, dtypes.float32)
    boxes = F.cast(bboxes, dtypes.float32)
    height, width = metas[0] * metas[2] - 1, metas[1] * metas[2] - 1
    low = F.logical_and(boxes[:, 0] >= 0, boxes[:, 1] >= 0)
    high = F.logical_and(boxes[:, 2] <= width, boxes[:, 3] <= height)
    return F.logical_and(low, high)
