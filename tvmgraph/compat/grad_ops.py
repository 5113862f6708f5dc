"""``ops.operations._grad_ops``: MindSpore's operators of gradients, by the derivative of others."""

from __future__ import annotations

from typing import Any

from tvmgraph.compat import primitives
from tvmgraph.compat.absent import not_found
from tvmgraph.compat.primitives.base import build_class, parse_rows

PATH = "tvmgraph.ops.operations._grad_ops"
#: Operators that get the cotangent and the operand; ``dx`` is ``F.vjp(...)[1](dy)[0]``.
_OF_OPERAND = {
    "AbsGrad": "x, dy: F.abs", "ACosGrad": "x, dy: F.acos", "AsinGrad": "x, dy: F.asin",
    "AtanGrad": "x, dy: F.atan", "FastGeLUGrad": "dy, x: F.fast_gelu", "ReluGrad": "dy, x: F.relu",
    "ReLU6Grad": "dy, x: F.relu6", "HSigmoidGrad": "dy, x: F.hardsigmoid",
    "HSwishGrad": "dy, x: F.hardswish", "SiLUGrad": "dy, x: F.silu",
    "SoftplusGrad": "dy, x: F.softplus",
}  # fmt: skip
_ROWS = (
    "\n".join(
        f"{name} | | {row.partition(': ')[0]} | F.vjp({row.partition(': ')[2]}, x)[1](dy)[0]"
        for name, row in _OF_OPERAND.items()
    )
    + """
AcoshGrad | | y, dy | dy / F.sinh(y)
AsinhGrad | | y, dy | dy / F.cosh(y)
AvgPoolGrad | kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW" | x, out, grad |
  F.vjp(P.AvgPool(kernel_size, strides, pad_mode, data_format), x)[1](grad)[0]
MaxPoolGrad | kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW" | x, out, grad |
  F.vjp(P.MaxPool(kernel_size, strides, pad_mode, data_format), x)[1](grad)[0]
BiasAddGrad | | dy | F.sum(dy, (0, *range(2, dy.ndim)))
EluGrad | | dy, y | F.where(y > 0, dy, dy * (y + 1))
GeLUGrad | | dy, x, y | F.vjp(lambda t: F.gelu(t, "tanh"), x)[1](dy)[0]
HShrinkGrad | lambd=0.5 | dy, x | F.vjp(lambda t: F.hardshrink(t, lambd), x)[1](dy)[0]
InvGrad | | y, dy | F.neg(dy * y * y)
LogSoftmaxGrad | axis=-1 | y, dy | dy - F.exp(y) * F.sum(dy, axis, keepdim=True)
MaximumGrad | | x, y, dout | F.vjp(F.maximum, x, y)[1](dout)
MinimumGrad | | x, y, dout | F.vjp(F.minimum, x, y)[1](dout)
PReLUGrad | | dy, x, weight | F.vjp(F.prelu, x, weight)[1](dy)
ReciprocalGrad | | y, dy | F.neg(dy * y * y)
RsqrtGrad | | y, dy | dy * y * y * y * -0.5
SigmoidCrossEntropyWithLogitsGrad | | x, y, dout | dout * (F.sigmoid(x) - y)
SigmoidGrad | | y, dy | dy * y * (1 - y)
SmoothL1LossGrad | beta=1.0, reduction="none" | x, y, dy |
  F.vjp(lambda t: F.smooth_l1_loss(t, y, beta, reduction), x)[1](dy)[0]
SoftShrinkGrad | lambd=0.5 | dy, x | F.vjp(lambda t: F.softshrink(t, lambd), x)[1](dy)[0]
SoftmaxGrad | | y, dy | y * (dy - F.sum(dy * y, -1, keepdim=True))
SqrtGrad | | y, dy | dy / y * 0.5
TanhGrad | | y, dy | dy * (1 - y * y)
"""
)
ROWS = parse_rows(_ROWS)


def __getattr__(name: str) -> Any:
    if name not in ROWS:
        raise not_found(PATH, name, [*ROWS, *primitives.ROWS])
    built = build_class(ROWS[name], PATH, {"P": primitives})
    globals()[name] = built
    return built


def __dir__() -> list[str]:
    return sorted(ROWS)


__all__ = [*ROWS]  # pyright: ignore[reportUnsupportedDunderAll]
