"""Which layers compute in a short float type.

Weights are stored in float32 at every level: they are cast where they are used, gradients arrive
in float32, and the optimizer updates float32 values. Products of short floats
accumulate in float32.
"""

from __future__ import annotations

from typing import NoReturn

from tvmgraph import dtypes, nn
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.errors import ArgumentError, DTypeError, TvmgraphError
from tvmgraph.nn.cell import Cell

_WHITE: tuple[type, ...] = (
    nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Conv1dTranspose, nn.Conv2dTranspose, nn.Conv3dTranspose,
    nn.Dense, nn.LSTMCell, nn.RNNCell, nn.GRUCell, nn.LSTM, nn.RNN, nn.GRU, nn.PReLU,
    nn.MultiheadAttention,
)  # fmt: skip
_BLACK: tuple[type, ...] = (
    nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm, nn.GroupNorm,
    nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d, nn.SyncBatchNorm,
)  # fmt: skip
#: The same as MindSpore's ``train.amp`` names them, where zoos take them from.
AMP_WHITE_LIST, AMP_BLACK_LIST = list(_WHITE), list(_BLACK)
LEVELS = ("O0", "O1", "O2", "O3", "auto")


def get_white_list() -> list[type]:
    """Returns the layers that level O1 computes in the short type."""
    return list(_WHITE)


def get_black_list() -> list[type]:
    """Returns the layers that level O2 leaves in float32."""
    return list(_BLACK)


def _reject(kind: type[TvmgraphError], rule: str, fix: str | None = None) -> NoReturn:
    raise kind(rule, op="amp.auto_mixed_precision", fix=fix)


def _short(dtype: DTypeLike) -> dtypes.DType:
    found = dtypes.dtype_of(dtype)
    if found not in (dtypes.float16, dtypes.bfloat16):
        _reject(ArgumentError, f"dtype cannot be {found.name}", "use float16 or bfloat16")
    return found


def _outermost(cell: Cell, kinds: tuple[type, ...]) -> list[Cell]:
    """Returns the cells of some classes that are not inside another one of them."""
    if isinstance(cell, kinds):
        return [cell]
    return [c for child in cell.cells() for c in _outermost(child, kinds)]


def _set(cell: Cell, dtype: dtypes.DType) -> None:
    cell.to_float(dtype)


def auto_mixed_precision(
    network: Cell, amp_level: str = "O0", dtype: DTypeLike = dtypes.float16
) -> Cell:
    """Lets a network compute in a short float type; changes and returns it.

    Args:
        network: The network.
        amp_level: ``"O0"`` changes nothing. ``"O1"`` and ``"auto"``: products, convolutions and
            recurrent layers compute in ``dtype`` and return float32, everything else is float32.
            ``"O2"``: everything but normalization, and the network returns float32. ``"O3"``:
            everything, and it returns float32.
        dtype: ``float16`` or ``bfloat16``.

    Returns:
        The network.

    Raises:
        ArgumentError: for another level or dtype.
        DTypeError: if ``network`` is no Cell.

    Example:
        >>> net = ms.amp.auto_mixed_precision(nn.Dense(3, 4), "O2")
        >>> net(ops.ones((2, 3))).dtype, net.weight.dtype
        (tvmgraph.float32, tvmgraph.float32)
    """
    if not isinstance(network, Cell):
        _reject(DTypeError, f"network must be a Cell, not {type(network).__name__}")
    if amp_level not in LEVELS:
        _reject(ArgumentError, f"amp_level cannot be {amp_level!r}", f"use {', '.join(LEVELS)}")
    short = _short(dtype)
    if amp_level in ("O1", "auto"):
        custom_mixed_precision(network, white_list=list(_WHITE), dtype=short)
    elif amp_level == "O2":
        custom_mixed_precision(network, black_list=list(_BLACK), dtype=short)
    elif amp_level == "O3":
        _set(network, short)
        network.set_output_float(dtypes.float32)
    return network


def custom_mixed_precision(
    network: Cell,
    *,
    white_list: list[type] | None = None,
    black_list: list[type] | None = None,
    dtype: DTypeLike = dtypes.float16,
) -> Cell:
    """Lets chosen layers compute in a short float type; changes and returns the network.

    Args:
        network: The network.
        white_list: Classes that compute in ``dtype`` and return float32; all others stay.
        black_list: Classes that stay in float32; all others compute in ``dtype``, and the network
            returns float32.
        dtype: ``float16`` or ``bfloat16``.

    Returns:
        The network.

    Raises:
        ArgumentError: unless exactly one list is given.

    Example:
        >>> net = ms.amp.custom_mixed_precision(nn.Dense(3, 4), white_list=[nn.Dense])
        >>> net(ops.ones((2, 3))).shape
        (2, 4)
    """
    if (white_list is None) == (black_list is None):
        _reject(ArgumentError, "give either white_list or black_list")
    short = _short(dtype)
    if white_list is not None:
        for cell in _outermost(network, tuple(white_list)):
            _set(cell, short)
            cell.set_output_float(dtypes.float32)
        return network
    _set(network, short)
    for cell in _outermost(network, tuple(black_list or ())):
        _set(cell, dtypes.float32)
    network.set_output_float(dtypes.float32)
    return network


__all__ = [
    "auto_mixed_precision", "custom_mixed_precision", "get_black_list", "get_white_list",
]  # fmt: skip
