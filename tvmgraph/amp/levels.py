"""Which layers compute in a short float type.

Weights are stored in float32 at every level: they are cast where they are used, gradients arrive
in float32, and the optimizer updates float32 values. Products of short floats
accumulate in float32.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import NoReturn, TypeVar, cast

from tvmgraph import dtypes, nn
from tvmgraph.amp.scaler import DynamicLossScaleManager
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.precision import mixed
from tvmgraph.core.state import call_user, state
from tvmgraph.errors import ArgumentError, DTypeError, TvmgraphError
from tvmgraph.nn.cell import Cell
from tvmgraph.nn.wrap import _OutputTo32

_WHITE: tuple[type, ...] = (
    nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Conv1dTranspose, nn.Conv2dTranspose, nn.Conv3dTranspose,
    nn.Dense, nn.LSTMCell, nn.RNNCell, nn.GRUCell, nn.PReLU,
    nn.MultiheadAttention,
)  # fmt: skip
_BLACK: tuple[type, ...] = (
    nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm, nn.GroupNorm,
    nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d, nn.SyncBatchNorm,
)  # fmt: skip
#: The same as MindSpore's ``train.amp`` names them, where zoos take them from.
AMP_WHITE_LIST, AMP_BLACK_LIST = list(_WHITE), list(_BLACK)
Network = TypeVar("Network")
_NAMED = ("__name__", "__qualname__", "__doc__")
LEVELS = ("O0", "O1", "O2", "O3", "auto")
#: What MindSpore's levels set; packages that derive from ``Model`` read it.
_config_level: dict[str, dict[str, object]] = {
    level: {
        "keep_batchnorm_fp32": level == "O2",
        "cast_model_type": dtypes.float16 if level in ("O2", "O3") else dtypes.float32,
        "loss_scale_manager": DynamicLossScaleManager() if level == "O2" else None,
    }
    for level in LEVELS
}


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


def auto_mixed_precision(
    network: Network, amp_level: str = "O0", dtype: DTypeLike = dtypes.float16
) -> Network:
    """Lets a network compute in a short float type.

    Weights keep their dtype at every level, and are cast where they are used.

    Args:
        network: The network, which is changed; a function with ``"auto"``, which is not.
        amp_level: ``"O0"`` changes nothing. ``"O1"``: layers of products, convolutions and
            recurrent steps compute in ``dtype`` and return float32, all else in its own type.
            ``"O2"``: everything but normalization computes in ``dtype``, ``"O3"``: everything.
            ``"auto"`` chooses operator by operator: products and convolutions in ``dtype``; powers,
            exponentials, logarithms, sums, softmax, normalization and losses in float32; others
            in the types that they get.
        dtype: ``float16`` or ``bfloat16``.

    Returns:
        With ``"O2"`` and ``"O3"`` a Cell that returns the network's results as float32; with
        ``"auto"`` and a function another function; else the network.

    Raises:
        ArgumentError: for another level or dtype.
        DTypeError: if ``network`` is neither a Cell nor a function with ``"auto"``.

    Note:
        A Cell with a type of its own (``to_float``) computes in that type at level ``"auto"``.

    Example:
        >>> net = ms.amp.auto_mixed_precision(nn.Dense(3, 4), "O2")
        >>> net(ops.ones((2, 3))).dtype, net.weight.dtype
        (tvmgraph.float32, tvmgraph.float32)
        >>> product = ms.amp.auto_mixed_precision(lambda a, b: a @ b, "auto")
        >>> product(ops.ones((2, 3)), ops.ones((3, 2))).dtype
        tvmgraph.float16
    """
    if not isinstance(network, Cell):
        called = cast("Callable[..., object]", network)
        if amp_level != "auto" or not _is_function(called):
            kinds = "a Cell or a function" if amp_level == "auto" else "a Cell"
            _reject(DTypeError, f"network must be {kinds}, not {type(network).__name__}")
        return cast("Network", _function_in(called, _short(dtype)))
    if amp_level not in LEVELS:
        _reject(ArgumentError, f"amp_level cannot be {amp_level!r}", f"use {', '.join(LEVELS)}")
    return cast("Network", _cell_at(network, amp_level, _short(dtype)))


def _is_function(value: object) -> bool:
    return inspect.isroutine(value) or getattr(type(value), "_is_jit", False)


def _function_in(function: Callable[..., object], short: dtypes.DType) -> Callable[..., object]:
    """Returns a function in mixed precision."""

    def call(*args: object, **named: object) -> object:
        with state.computing_in(mixed(short)):
            return call_user(function, args, named)

    functools.update_wrapper(call, function, [n for n in _NAMED if hasattr(function, n)])
    return call


def _cell_at(network: Cell, level: str, short: dtypes.DType) -> Cell:
    """Changes a network to a level of mixed precision; returns what computes it."""
    if level == "O1":
        return custom_mixed_precision(network, white_list=list(_WHITE), dtype=short)
    if level == "O2":
        return custom_mixed_precision(network, black_list=list(_BLACK), dtype=short)
    if level == "O3":
        network.to_float(short)
        return _OutputTo32(network)
    if level == "auto":
        network.set_precision(short)
    return network


def custom_mixed_precision(
    network: Cell,
    *,
    white_list: list[type] | None = None,
    black_list: list[type] | None = None,
    dtype: DTypeLike = dtypes.float16,
) -> Cell:
    """Lets chosen layers of a network, which is changed, compute in a short float type.

    Args:
        network: The network.
        white_list: Classes that compute in ``dtype`` and return float32; all others stay.
        black_list: Classes of sub-cells that stay in float32; all others compute in ``dtype``.
        dtype: ``float16`` or ``bfloat16``.

    Returns:
        The network; with a ``black_list`` a Cell that returns its results as float32.

    Raises:
        ArgumentError: unless exactly one list is given.
        DTypeError: if a list holds something else than classes.

    Example:
        >>> net = ms.amp.custom_mixed_precision(nn.Dense(3, 4), white_list=[nn.Dense])
        >>> net(ops.ones((2, 3))).shape
        (2, 4)
    """
    if (white_list is None) == (black_list is None):
        _reject(ArgumentError, "give either white_list or black_list")
    short = _short(dtype)
    for kind in white_list or black_list or ():
        if not isinstance(kind, type):
            _reject(DTypeError, f"a list must hold classes, not {kind!r}", "nn.Dense, for example")
    if white_list is not None:
        for cell in _outermost(network, tuple(white_list)):
            cell.to_float(short)
            cell.set_output_float(dtypes.float32)
        return network
    network.to_float(short)
    _keep_float32(network, tuple(black_list or ()), short)
    return _OutputTo32(network)


def _keep_float32(network: Cell, kinds: tuple[type, ...], short: DTypeLike) -> None:
    for cell in network.cells():
        for precise in _outermost(cell, kinds):
            precise.to_float(dtypes.float32)
            precise.set_output_float(short)


def _do_keep_batchnorm_fp32(network: Cell) -> None:
    """Layers of normalization in a float16 network compute in float32, by MindSpore's name."""
    _keep_float32(network, _BLACK, dtypes.float16)


__all__ = [
    "auto_mixed_precision", "custom_mixed_precision", "get_black_list", "get_white_list",
]  # fmt: skip
