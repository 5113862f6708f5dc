"""ONNX operators that draw random numbers, from this package's stream.

ONNX does not define the generator, so only the distribution is the model's; the attribute ``seed``
makes a node give the same numbers at every call.
"""

from __future__ import annotations

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.onnx.table import NodeCall, converter


def _seed(n: NodeCall) -> int | None:
    """The attribute is a float; its bits are the seed."""
    given = n.get("seed")
    return None if given is None else int(np.float32(given).view(np.uint32))


@converter("RandomUniform", "RandomUniformLike")
def _uniform(n: NodeCall, like: Tensor | None = None) -> Tensor:
    shape, kind = _drawn(n, like)
    unit = F.rand(*shape, seed=_seed(n)) if shape else F.rand(1, seed=_seed(n))
    low, high = n.get("low"), n.get("high")
    return F.cast(F.reshape(unit, shape) * (high - low) + low, kind)


@converter("RandomNormal", "RandomNormalLike")
def _normal(n: NodeCall, like: Tensor | None = None) -> Tensor:
    shape, kind = _drawn(n, like)
    unit = F.randn(*shape, seed=_seed(n)) if shape else F.randn(1, seed=_seed(n))
    return F.cast(F.reshape(unit, shape) * n.get("scale") + n.get("mean"), kind)


def _drawn(n: NodeCall, like: Tensor | None) -> tuple[tuple[int, ...], dtypes.DType]:
    shape = n.get("shape") if like is None else like.shape
    n.require_memory(shape)
    return tuple(shape), n.dtype("dtype", dtypes.float32 if like is None else like.dtype)


@converter("Multinomial")
def _multinomial(n: NodeCall, logits: Tensor) -> Tensor:
    """Inverts the cumulative probabilities at uniform numbers."""
    steps = F.cumsum(F.softmax(F.cast(logits, dtypes.float32), -1), -1)
    rows, classes = logits.shape
    u = F.rand(rows, n.get("sample_size"), seed=_seed(n))
    passed = F.cast(F.expand_dims(u, 2) >= F.expand_dims(steps, 1), dtypes.int32)
    found = F.minimum(F.sum(passed, -1), classes - 1)  # the last sum may round below 1
    return F.cast(found, n.dtype("dtype", dtypes.int32))


@converter("Bernoulli")
def _bernoulli(n: NodeCall, p: Tensor) -> Tensor:
    u = F.reshape(F.rand(p.size, seed=_seed(n)), p.shape)
    return F.cast(u < F.cast(p, dtypes.float32), n.dtype("dtype", p.dtype))


@converter("Dropout")
def _dropout(
    n: NodeCall, x: Tensor, ratio: object = None, training: object = None
) -> tuple[Tensor, Tensor] | Tensor:
    """Zeroes elements with a probability, and scales the others; does nothing in inference."""
    active = bool(n.number(2, False))
    rate = n.number(1, 0.5) if n.opset >= 12 else n.get("ratio")
    mask = F.ones(x.shape, dtypes.bool_)
    if active and rate:
        mask = F.reshape(F.rand(x.size, seed=_seed(n)), x.shape) >= rate
        x = F.where(mask, x * (1 / (1 - rate)), F.zeros_like(x))
    return (x, mask) if n.count > 1 else x
