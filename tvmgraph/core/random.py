"""The random stream: a seed and a counter, so that eager and compiled code draw the same numbers.

Every random operator takes the pair ``(seed, offset)`` as a tensor and a static ``delta``; the
n-th draw of a program is the same whether it runs eagerly or inside a graph.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import SupportsInt

import numpy as np

from tvmgraph import dtypes, forking
from tvmgraph.core.shown import Shown
from tvmgraph.core.state import state
from tvmgraph.core.storage import aligned_empty
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.errors import ArgumentError, DTypeError, OutOfMemoryError, user_source

_MOST = 1 << 44  # counter blocks of one draw
STATE_TYPE = tensor_type((2,), dtypes.int64)


class Generator(Shown):
    """A seed and the number of counter blocks drawn so far.

    Args:
        seed: A non-negative integer; a random one by default.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._lock = forking.lock()
        self.manual_seed(secrets.randbits(31) if seed is None else seed)

    def manual_seed(self, seed: int) -> Generator:
        """Restarts the stream at ``seed``.

        Raises:
            DTypeError: if ``seed`` is not an integer.
            ArgumentError: if it is negative or needs more than 63 bits.
        """
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
            raise DTypeError(
                f"the seed must be an int, not {type(seed).__name__}",
                op="set_seed", at=user_source(),
            )  # fmt: skip
        if not 0 <= seed < 1 << 63:
            raise ArgumentError(
                f"the seed must be in [0, 2**63), not {seed}", op="set_seed", at=user_source()
            )
        with self._lock:
            self._seed, self.offset = int(seed), 0
        return self

    def __repr__(self) -> str:
        return f"Generator(seed={self._seed}, offset={self.offset})"

    def __getstate__(self) -> dict[str, int]:
        with self._lock:
            return {"_seed": self._seed, "offset": self.offset}

    def __setstate__(self, kept: dict[str, int]) -> None:
        self._lock = forking.lock()
        self.__dict__.update(kept)

    def initial_seed(self) -> int:
        """Returns the seed."""
        return self._seed

    def seed(self) -> int:
        """Restarts the stream at a random seed, which it returns."""
        return self.manual_seed(secrets.randbits(31)).initial_seed()

    def get_state(self) -> Tensor:
        """Returns seed and offset as an int64 tensor of two elements."""
        return Tensor(np.array([self._seed, self.offset], np.int64))

    def set_state(self, value: Tensor) -> None:
        """Continues where :meth:`get_state` was called."""
        seed, offset = (int(v) for v in value.asnumpy())
        with self._lock:
            self._seed, self.offset = seed, offset

    def seek(self, offset: int) -> None:
        """Continues the stream at a counter block."""
        with self._lock:
            self.offset = offset

    def advance(self, blocks: int) -> Tensor:
        """Reserves counter blocks and returns the state that addresses the first of them.

        Raises:
            OutOfMemoryError: for more than any memory holds; the stream stays where it is.
        """
        if blocks >= _MOST:
            raise OutOfMemoryError(f"{4 * blocks} random numbers are more than any memory holds")
        array = aligned_empty((2,), np.int64)
        with self._lock:
            array[0], array[1] = self._seed, self.offset
            self.offset += blocks
        return tensor_from_numpy(array, STATE_TYPE)

    def _step(self, step: SupportsInt) -> tuple[Tensor, Tensor]:
        """Returns seed and offset and moves on by ``step``, as MindSpore's operators ask."""
        start = self.advance(int(step))
        return start[0], start[1]

    def take_back(self, start: int, blocks: int) -> None:
        """Forgets that ``blocks`` were drawn from ``start`` on, unless others drew since."""
        with self._lock:
            if self.offset == start + blocks:
                self.offset = start


default_generator = Generator(0)


def draw(blocks: int) -> tuple[Tensor, int]:
    """Reserves counter blocks of the default generator for one random operator.

    Args:
        blocks: Philox blocks needed; each gives four 32-bit words.

    Returns:
        The state tensor and the static offset to add to its counter.
    """
    if state.interpreter is not None:
        return state.interpreter.draw(blocks)
    return default_generator.advance(blocks), 0


def first_values(blocks: int, type: TensorType, make: Callable[[int, int], Tensor]) -> Tensor:
    """Draws the first values of a Parameter: at every call, where a function is compiled.

    Args:
        blocks: Random counter blocks that they take.
        type: Their type.
        make: Computes them from seed and counter.
    """
    if state.interpreter is not None:
        return state.interpreter.first_values(blocks, type, make)
    seed, offset = default_generator.advance(blocks).array
    return make(int(seed), int(offset))


def initial_seed() -> int:
    """Returns the seed of the global random stream."""
    return default_generator.initial_seed()


def manual_seed(seed: int) -> Generator:
    """Restarts the default generator at a seed, and returns it.

    Args:
        seed: A whole number.
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Gives the global random stream a random seed and returns it."""
    return default_generator.seed()


def get_rng_state() -> Tensor:
    """Returns the state of the global random stream."""
    return default_generator.get_state()


def set_rng_state(state: Tensor) -> None:
    """Restores what :func:`get_rng_state` returned.

    Args:
        state: The tensor that it returned.
    """
    default_generator.set_state(state)
