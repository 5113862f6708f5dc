"""Attention over several heads, from one tensor of queries, keys and values each."""

from __future__ import annotations

import math

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Takes the heads apart: :math:`(N, T, E)` to :math:`(N, heads, T, E / heads)`.

    Args:
        x: Tensor (N, T, E).
        heads: Number of heads, which divides E.
    """
    n, t, e = x.shape
    return F.transpose(F.reshape(x, (n, t, heads, e // heads)), (0, 2, 1, 3))


def join_heads(x: Tensor) -> Tensor:
    """Puts the heads together: :math:`(N, heads, T, D)` to :math:`(N, T, heads D)`.

    Args:
        x: Tensor (N, heads, T, D).
    """
    n, heads, t, d = x.shape
    return F.reshape(F.transpose(x, (0, 2, 1, 3)), (n, t, heads * d))


def attend(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
    r"""Attention :math:`softmax(q k^T / \sqrt{D}) v`.

    Args:
        q: Queries :math:`(N, heads, T, D)`.
        k: Keys :math:`(N, kept, S, D)`; as many heads, or a divisor.
        v: Values :math:`(N, kept, S, D)`.
        hidden: Where a query must not see a key, broadcastable to :math:`(N, heads, T, S)`.

    Returns:
        :math:`(N, heads, T, D)`.
    """
    share = q.shape[1] // k.shape[1]
    if share > 1:
        k, v = F.repeat_interleave(k, share, 1), F.repeat_interleave(v, share, 1)
    scores = F.matmul(q, F.transpose(k, (0, 1, 3, 2))) / math.sqrt(q.shape[-1])
    if hidden is not None:
        scores = F.where(hidden, F.full_like(scores, -1e9), scores)
    return F.matmul(F.softmax(scores, -1), v)


#: Activations by the names that ``config.json`` uses: a function of ``ops``, and its arguments.
ACTIVATIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "gelu": ("gelu", ()),
    "gelu_new": ("gelu", ("tanh",)),
    "gelu_pytorch_tanh": ("gelu", ("tanh",)),
    "relu": ("relu", ()),
    "silu": ("silu", ()),
    "tanh": ("tanh", ()),
}


def activation(name: str, x: Tensor) -> Tensor:
    """Applies the activation that a ``config.json`` names.

    Args:
        name: The name, such as ``"gelu_new"``.
        x: Tensor of any shape.
    """
    function, settings = ACTIVATIONS[name]
    return getattr(F, function)(x, *settings)
