"""Masks of attention that are constants: which are looked at, and what they hide."""

from __future__ import annotations

import numpy as np

from tvmgraph.core.op import Reason
from tvmgraph.graph.ir import Node

#: A fill value from here down leaves nothing of a weight, whatever the other scores are.
HIDDEN = -3e4
#: Constant masks up to this many elements are looked at.
MAX_MASK = 1 << 25


def is_evaluated(node: Node) -> bool:
    """Whether a node of constants may be evaluated here.

    Args:
        node: A node of constants alone. Control flow, what cannot be compiled and large tensors are
            left to the call.
    """
    if node.regions or len(node.outputs) != 1 or isinstance(node.op.lower, Reason):
        return False
    values = (*node.inputs, *node.outputs)
    return all(v.type.is_static and v.type.size <= MAX_MASK for v in values)


def hidden_above(mask: np.ndarray, fill: float | None, inverted: bool) -> int | None:
    """The diagonal up to which a mask hides nothing, if it hides everything above it.

    Args:
        mask: Rows by keys: booleans where scores are replaced, else numbers that are added.
        fill: What replaces scores, None where the mask is added.
        inverted: Whether scores are kept where the mask is true.
    """
    if fill is not None:
        if not fill <= HIDDEN:
            return None
        visible = mask if inverted else ~mask
    else:
        wide = mask.astype(np.float64)
        if not np.all((wide == 0) | (wide <= HIDDEN)):
            return None
        visible = wide == 0
    rows, keys = mask.shape
    diagonal = int(visible[0].sum()) - 1
    if diagonal < 0 or not np.array_equal(visible, np.tri(rows, keys, diagonal, dtype=bool)):
        return None
    return diagonal
