"""Attention by MindSpore's name, as a function of basic operators.

Compiled inference runs it as one kernel, see :mod:`tvmgraph.ops.attention.rows`.
"""

from __future__ import annotations

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, ShapeError
from tvmgraph.ops.common.arguments import bad, require, require_tensor

__all__ = ["flash_attention_score"]

_NAME = "flash_attention_score"
#: How each layout becomes (batch, heads, sequence, size), given with its heads apart.
_TO_BNSD = {"BSH": (0, 2, 1, 3), "SBH": (1, 2, 0, 3), "BSND": (0, 2, 1, 3), "BNSD": (0, 1, 2, 3)}
_ALL = 2147483647


def flash_attention_score(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    head_num: int,
    real_shift: Tensor | None = None,
    drop_mask: Tensor | None = None,
    padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None,
    prefix: object = None,
    actual_seq_qlen: object = None,
    actual_seq_kvlen: object = None,
    keep_prob: float = 1.0,
    scalar_value: float = 1.0,
    pre_tokens: int = _ALL,
    next_tokens: int = _ALL,
    inner_precise: int = 0,
    input_layout: str = "BSH",
    sparse_mode: int = 0,
) -> Tensor:
    r"""Attention :math:`softmax(scale \cdot Q K^T + shift) V` over several heads.

    Args:
        query: Queries in ``input_layout``.
        key: Keys, likewise; as many heads as the query has, or a divisor of that number.
        value: Values, likewise.
        head_num: Heads of the query, N.
        real_shift: What is added to the scores; broadcasts to (B, N, S, S').
        drop_mask: Not supported, with ``keep_prob`` below 1.
        padding_mask: Not supported, as in MindSpore.
        attn_mask: bool or integers, True where a key is hidden; broadcasts to (B, N, S, S').
        prefix: Not supported.
        actual_seq_qlen: Not supported.
        actual_seq_kvlen: Not supported.
        keep_prob: 1.
        scalar_value: The scale.
        pre_tokens: Query i sees keys from i - ``pre_tokens`` on (``sparse_mode`` 0).
        next_tokens: Query i sees keys up to i + ``next_tokens`` (``sparse_mode`` 0).
        inner_precise: Ignored: float16 and bfloat16 are always summed in float32.
        input_layout: ``"BSH"``, ``"SBH"``, ``"BSND"`` or ``"BNSD"``, with H = N D.
        sparse_mode: 0: the mask and the tokens as given; 2: query i sees keys up to i; 3: the last
            query sees all keys, and each one before it one less.

    Returns:
        Tensor of the query's layout.

    Raises:
        ArgumentError: if an argument has a value that is not supported.
        ShapeError: if the extents do not fit.

    Example:
        >>> x = ops.ones((1, 3, 8))
        >>> ops.flash_attention_score(x, x, x, 2, scalar_value=0.5, sparse_mode=2).shape
        (1, 3, 8)
    """
    given = {
        "drop_mask": drop_mask, "padding_mask": padding_mask, "prefix": prefix,
        "actual_seq_qlen": actual_seq_qlen, "actual_seq_kvlen": actual_seq_kvlen,
    }  # fmt: skip
    for name, argument in given.items():
        if argument is not None:
            raise bad(ArgumentError, f"{name} is not supported", _NAME, name, f"leave {name} out")
    require(keep_prob == 1.0, "keep_prob must be 1", _NAME, ArgumentError, keep_prob=keep_prob)
    if input_layout not in _TO_BNSD or sparse_mode not in (0, 2, 3):
        raise bad(ArgumentError, "this input_layout or sparse_mode is not supported", _NAME,
                  f"input_layout={input_layout!r}, sparse_mode={sparse_mode}",
                  f"use one of {', '.join(_TO_BNSD)} and 0, 2 or 3")  # fmt: skip
    q, k, v = (_heads(t, n, input_layout, head_num, query)
               for n, t in (("query", query), ("key", key), ("value", value)))  # fmt: skip
    scores = F.matmul(q, F.swapaxes(k, -1, -2)) * scalar_value
    if real_shift is not None:
        scores = scores + F.cast(real_shift, scores.dtype)
    hidden = _hidden(scores, attn_mask, pre_tokens, next_tokens, sparse_mode)
    if hidden is not None:
        scores = F.masked_fill(scores, hidden, float("-inf"))
    mixed = F.matmul(F.softmax(scores, -1), v)
    order = _TO_BNSD[input_layout]
    mixed = F.transpose(mixed, tuple(order.index(axis) for axis in range(4)))
    return F.reshape(mixed, (*mixed.shape[:2], -1)) if input_layout[-1] == "H" else mixed


def _heads(x: Tensor, name: str, layout: str, heads: int, query: Tensor) -> Tensor:
    """Takes the heads apart and brings the axes into the order batch, heads, sequence, size."""
    require_tensor(_NAME, x, name)
    if x.ndim != len(layout):
        raise bad(ShapeError, f"{name} must have the axes {layout}", _NAME, f"{name}={x.aval}")
    if layout[-1] == "H":
        size, rest = divmod(query.shape[-1], heads)
        if rest or x.shape[-1] % size:
            raise bad(ShapeError, f"{heads} heads do not divide the axis H of query and {name}",
                      _NAME, f"query={query.aval}, {name}={x.aval}, head_num={heads}")  # fmt: skip
        x = F.reshape(x, (*x.shape[:2], x.shape[-1] // size, size))
    x = F.transpose(x, _TO_BNSD[layout])
    share, rest = divmod(heads, x.shape[1])
    if rest or (name == "query" and share != 1):
        raise bad(ShapeError, f"{name} has {x.shape[1]} heads", _NAME, f"{name}={x.aval}",
                  f"head_num={heads} must be a multiple")  # fmt: skip
    return F.repeat_interleave(x, share, 1) if share > 1 else x


def _hidden(
    scores: Tensor, mask: Tensor | None, before: int, after: int, mode: int
) -> Tensor | None:
    """Where a query must not see a key, or None."""
    queries, keys = scores.shape[-2:]
    if mode:
        mask, before, after = None, _ALL, keys - queries if mode == 3 else 0
    hidden = None if mask is None else F.cast(mask, dtypes.bool_)
    rows = F.reshape(F.arange(queries), (queries, 1))
    columns = F.reshape(F.arange(keys), (1, keys))
    for limit, wrong in (
        (after < keys, lambda: columns > rows + after),
        (before < queries, lambda: columns < rows - before),
    ):
        if limit:
            hidden = wrong() if hidden is None else F.logical_or(hidden, wrong())
    return hidden
