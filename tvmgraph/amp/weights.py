"""Networks whose weights are rounded to a few bits after training."""

from __future__ import annotations

from tvmgraph import nn
from tvmgraph.errors import ArgumentError, DTypeError, TvmgraphError
from tvmgraph.models.language import LanguageModel
from tvmgraph.nn.cell import Cell

#: Bits of the names, and weights that share a factor where nothing else is said.
_KINDS = {"int8": (8, 0), "int4": (4, 32)}


def quantize_weights(network: Cell, dtype: str = "int8", group: int | None = None) -> Cell:
    """Rounds the weights of all dense layers to integers, in place.

    Only the weights are rounded: activations, biases and sums stay float32. A layer becomes an
    :class:`tvmgraph.nn.QuantizedDense`; a language model's head that shares the table of the
    embedding gets a rounded copy. Layers with an activation of their own, and those whose input
    does not consist of whole groups, stay as they are. No data are needed. Save a checkpoint
    before: what was rounded off does not come back.

    Args:
        network: The network.
        dtype: ``"int8"`` or ``"int4"``.
        group: Weights of a row that share a factor; 0 for all of them. By default all with int8,
            32 with int4. Fewer weights lose less and take more memory: 4 bits in groups of 32 are
            4.5 bits each.

    Returns:
        The network.

    Raises:
        DTypeError: if ``network`` is no Cell.
        ArgumentError: if ``dtype`` is another one, or no layer could be rounded.

    Example:
        >>> net = nn.SequentialCell(nn.Dense(64, 32), nn.ReLU(), nn.Dense(32, 8))
        >>> ms.amp.quantize_weights(net, "int4")[0].bits
        4
    """
    if not isinstance(network, Cell):
        _reject(DTypeError, f"network must be a Cell, not a {type(network).__name__}")
    if dtype not in _KINDS:
        _reject(ArgumentError, "dtype must be 'int8' or 'int4'", repr(dtype))
    bits, usual = _KINDS[dtype]
    size = usual if group is None else group
    if not isinstance(size, int) or size < 0 or (bits == 4 and size % 8):
        _reject(ArgumentError, "group must be a number of weights, for int4 a multiple of 8",
                f"group={group!r}", "choose 32, 64 or 128")  # fmt: skip
    changed = _replace(network, bits, size)
    if isinstance(network, LanguageModel) and network.lm_head is None:
        table = network.embedding_table.asnumpy()
        if _fits(table.shape[1], bits, size):
            network.lm_head = nn.QuantizedDense.of_weight(table, None, bits, size)
            changed += 1
    if not changed:
        _reject(ArgumentError, "no layer of the network could be rounded",
                f"{type(network).__name__}, group={size}",
                "give a network with Dense layers and a group that divides them")  # fmt: skip
    return network


def _fits(depth: int, bits: int, group: int) -> bool:
    size = group or depth
    return depth % size == 0 and (bits == 8 or size % 8 == 0)


def _replace(cell: Cell, bits: int, group: int) -> int:
    changed = 0
    for name, child in list(cell.name_cells().items()):
        if not isinstance(child, (nn.Dense, nn.Linear)):
            changed += _replace(child, bits, group)
            continue
        plain = getattr(child, "activation", None) is None
        if plain and _fits(child.weight.shape[1], bits, group):
            setattr(cell, name, nn.QuantizedDense.of(child, bits, group))
            changed += 1
    return changed


def _reject(
    kind: type[TvmgraphError], rule: str, got: str | None = None, fix: str | None = None
) -> None:
    raise kind(rule, op="amp.quantize_weights", got=got, fix=fix)


__all__ = ["quantize_weights"]
