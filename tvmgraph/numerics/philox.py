"""The rounds of the random generator Philox4x32-10, on whatever has arithmetic.

Reference:
    Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
INCREMENTS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10


def philox(
    counter: tuple[object, object],
    key: tuple[object, object],
    mul: Callable[[Any, int], tuple[Any, Any]],
    word: Callable[[int], Any],
) -> list[Any]:
    """Returns the four words of a block.

    Args:
        counter: Low and high word of the block number.
        key: Low and high word of the seed.
        mul: Multiplies by a constant and returns the high and low word of the product.
        word: Makes a 32-bit constant.
    """
    c0, c1 = counter
    c2 = c3 = c0 & word(0)
    k0, k1 = key
    for _ in range(ROUNDS):
        high0, low0 = mul(c0, MULTIPLIERS[0])
        high1, low1 = mul(c2, MULTIPLIERS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + word(INCREMENTS[0]), k1 + word(INCREMENTS[1])
    return [c0, c1, c2, c3]
