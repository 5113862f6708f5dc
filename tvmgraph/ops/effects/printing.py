"""Printing as a part of a graph, for code in which a tensor decides whether something is printed.

The row takes and gives a token, which orders it among others of its kind and keeps it alive.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.op import Reason, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.core.traits import Pattern, Traits
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.errors import DTypeError

__all__: list[str] = []

TOKEN = tensor_type((), dtypes.int64)
Words = tuple[str | None, ...]


def _infer_print(
    *types: TensorType, words: Words, end: str, numbers: tuple[str, ...]
) -> TensorType:
    if not types or types[0] is not TOKEN:
        raise DTypeError(f"the token must be int64[], not {types[0] if types else 'absent'}")
    return TOKEN


def show(arrays: Sequence[np.ndarray], words: Words, end: str, numbers: tuple[str, ...]) -> None:
    """Prints tensors between words.

    Args:
        arrays: Elements of the tensors.
        words: Text pieces in order; ``None`` stands for the next tensor.
        end: What comes last.
        numbers: For every tensor the class of the Python number it stands for, ``"Tensor"`` for
            its representation, or ``""``.
    """
    texts = {"": str, "Tensor": repr}
    shown = iter(
        [
            texts[kind](tensor_from_numpy(a)) if kind in texts else str(a.item())
            for a, kind in zip(arrays, numbers)
        ]
    )
    print("".join([next(shown) if w is None else w for w in words]), end=end)


def _eager_print(
    token: np.ndarray, *arrays: np.ndarray, words: Words, end: str, numbers: tuple[str, ...]
) -> np.ndarray:
    show(arrays, words, end, numbers)
    return token


def _lower_print(R: Builder, *args: Expr, words: Words, end: str, numbers: tuple[str, ...]) -> Expr:
    def call(_token: np.ndarray, *arrays: np.ndarray) -> None:
        show(arrays, words, end, numbers)

    return R.host_call(call, f"print {words!r} {end!r} {numbers!r}", args)


_NONE = {"words": ("nothing",), "end": "\n", "numbers": ()}


@primitive(
    infer=_infer_print, eager=_eager_print, lower=_lower_print,
    traits=Traits(Pattern.OPAQUE, Reason("it prints whole tensors"), effect=True),
    vjp=Reason("what is printed has no derivative"),
    onnx=Reason("ONNX has no operator that prints"),
    samples=[
        sample(np.array(0), attrs=_NONE),
        sample(
            np.array(0), (2,), (), dtype=("int64", "float32", "float64"),
            attrs={"words": ("x = ", None, " ", None), "end": "\n", "numbers": ("", "float")},
        ),
        sample(np.array(0.0), dtype="float32", attrs=_NONE, raises=DTypeError),
    ],
)  # fmt: skip
def host_print(*operands: Tensor, words: Words, end: str, numbers: tuple[str, ...]) -> Tensor:
    """Prints tensors, then returns the first operand.

    Args:
        *operands: The token that the print before returned, ``int64[]``, then what is printed.
        words: Text pieces in order; ``None`` stands for the next value.
        end: What comes last.
        numbers: For every value the class of the Python number it stands for, ``"Tensor"`` for
            its representation, or ``""``.

    Returns:
        The token for the next print, ``int64[]``.

    Raises:
        DTypeError: if the token is not ``int64[]``.

    Example:
        >>> ms.jit(lambda x: print(x) if x.sum() > 0 else None)(Tensor([1.0]))
        [1.]
    """
    ...
