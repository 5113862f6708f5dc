"""Calls of the rows of :mod:`.operations_rows_more`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.dtypes import float32, int32

# ---- optimizers: they store the new values in their parameters and return them ------------------


def proximal(v: Tensor, rate: Any, l1: Any, l2: Any) -> Tensor:
    """Returns ``v`` drawn to 0 by ``l1`` and divided by ``1 + rate l2``."""
    return F.sign(v) * F.maximum(F.abs(v) - rate * l1, 0.0) / (1 + rate * l2)


def apply_proximal_adagrad(
    var: Tensor, accum: Tensor, lr: Any, l1: Any, l2: Any, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """Adagrad with proximal steps."""
    a = F.assign_add(accum, F.square(grad))
    rate = lr / F.sqrt(a)
    F.assign(var, proximal(var - grad * rate, rate, l1, l2))
    return var, accum


def apply_adagrad_da(
    var: Tensor, total: Tensor, squares: Tensor, grad: Tensor, lr: Any, l1: Any, l2: Any, step: Any
) -> Tensor:
    """Adagrad by the sums of all gradients."""
    g, s = F.assign_add(total, grad), F.assign_add(squares, F.square(grad))
    drawn = F.sign(g) * F.maximum(F.abs(g) - l1 * step, 0.0)
    F.assign(var, F.neg(drawn * lr) / (F.sqrt(s) + l2 * step * lr))
    return var


def apply_ftrl(
    var: Tensor, accum: Tensor, linear: Tensor, grad: Tensor, lr: Any, l1: Any, l2: Any, power: Any
) -> Tensor:
    """Follow the regularized leader."""
    new = accum + F.square(grad)
    before, after = (F.pow(a, -power) for a in (accum, new))
    z = linear + grad - (after - before) / lr * var
    F.assign(var, (F.clamp(z, -l1, l1) - z) / (after / lr + 2 * l2))
    F.assign(linear, z)
    F.assign(accum, new)
    return var


def apply_sign(
    var: Tensor, m: Tensor, lr: Any, beta: Any, grad: Tensor, factor: Callable[[Tensor], Any]
) -> tuple[Tensor, Tensor]:
    """Scales the gradient by whether its sign agrees with that of the running mean."""
    mean = F.assign(m, m * beta + grad * (1 - beta))
    F.assign_sub(var, grad * factor(F.sign(grad) * F.sign(mean)) * lr)
    return var, m


def apply_amsgrad(
    var: Tensor, m: Tensor, v: Tensor, vhat: Tensor, beta1_power: Any, beta2_power: Any, lr: Any,
    beta1: Any, beta2: Any, epsilon: Any, grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Adam with the largest mean square so far; the powers are those after this step."""
    mean = F.assign(m, m * beta1 + grad * (1 - beta1))
    square = F.assign(v, v * beta2 + F.square(grad) * (1 - beta2))
    most = F.assign(vhat, F.maximum(vhat, square))
    rate = lr * F.sqrt(F.cast(1 - beta2_power, float32)) / (1 - beta1_power)
    F.assign_sub(var, mean * rate / (F.sqrt(most) + epsilon))
    return var, m, v, vhat


# ---- images, segments, ranges -------------------------------------------------------------------


def data_format_dim_map(x: Tensor, source: str, target: str) -> Tensor:
    """Returns the axes of one order of letters that stand at places of another."""
    places = Tensor([source.index(c) for c in target], int32)
    return F.cast(F.gather(places, F.floor_mod(x, len(source)), 0), x.dtype)


def rgb_to_hsv(images: Tensor) -> Tensor:
    """Returns hue, saturation and value of colours along the last axis."""
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
    """Returns the colours of hue, saturation and value along the last axis."""
    h, s, v = (image[..., i] for i in (0, 1, 2))
    parts = [F.clamp(F.abs(h * 6 - 3) - 1, 0, 1), F.clamp(2 - F.abs(h * 6 - 2), 0, 1),
             F.clamp(2 - F.abs(h * 6 - 4), 0, 1)]  # fmt: skip
    return F.stack([((p - 1) * s + 1) * v for p in parts], -1)


def segment(how: str, x: Tensor, ids: Tensor) -> Tensor:
    """Reduces the rows of each segment; a segment without rows is 0 (1 for products)."""
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
    """Multiplies matrices of three diagonals, each of shape [..., 1, M], by [..., M, N]."""
    size = rhs.shape[-2]
    zero = F.zeros_like(F.narrow(rhs, -2, 0, 1))
    later = F.concat((F.narrow(rhs, -2, 1, size - 1), zero), -2)
    earlier = F.concat((zero, F.narrow(rhs, -2, 0, size - 1)), -2)
    found = F.swapaxes(main, -1, -2) * rhs + F.swapaxes(above, -1, -2) * later
    return found + F.swapaxes(below, -1, -2) * earlier
