"""The random stream: a seed and a counter, so that eager and compiled code draw the same numbers.

Every random operator takes the pair ``(seed, offset)`` as a tensor and a static ``delta``; the
n-th draw of a program is the same whether it runs eagerly or inside a graph.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import SupportsInt, TypeAlias

import numpy as np

from tvmgraph import dtypes, forking
from tvmgraph.core.op import F
from tvmgraph.core.shown import Shown
from tvmgraph.core.state import state
from tvmgraph.core.storage import aligned_empty
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.errors import ArgumentError, DTypeError, OutOfMemoryError

_MOST = 1 << 44  # counter blocks of one draw
STATE_TYPE = tensor_type((2,), dtypes.int64)


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


class Generator(Shown):
    """A stream of random numbers: its seed and the number of counter blocks drawn so far.

    Both are held by a tensor, so that a compiled function that draws moves the stream on.

    Args:
        seed: A non-negative integer; a random one by default.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._lock = forking.lock()
        self._place = Tensor(np.zeros(2, np.int64))
        self.manual_seed(secrets.randbits(31) if seed is None else seed)

    def _position(self) -> tuple[int, int]:
        seed, offset = self._place.tolist()
        return seed, offset

    def _move(self, seed: int, offset: int) -> None:
        self._place.rebind(Tensor(np.array([seed, offset], np.int64)))

    @property
    def offset(self) -> int:
        """Number of counter blocks drawn so far."""
        return self._position()[1]

    def manual_seed(self, seed: int) -> Generator:
        """Restarts the stream at ``seed``.

        Args:
            seed: An integer in :math:`[0, 2^{63})`.

        Raises:
            DTypeError: if ``seed`` is not an integer.
            ArgumentError: if it is negative or needs more than 63 bits.
        """
        if not _is_integer(seed):
            raise DTypeError(f"the seed must be an int, not {type(seed).__name__}", op="set_seed")
        if not 0 <= seed < 1 << 63:
            raise ArgumentError(f"the seed must be in [0, 2**63), not {seed}", op="set_seed")
        with self._lock:
            self._move(int(seed), 0)
        return self

    def __repr__(self) -> str:
        return "Generator(seed={}, offset={})".format(*self._position())

    def __getstate__(self) -> tuple[int, int]:
        with self._lock:
            return self._position()

    def __setstate__(self, kept: tuple[int, int]) -> None:
        self.__init__()
        self._move(*kept)

    def initial_seed(self) -> int:
        """Returns the seed."""
        return self._position()[0]

    def seed(self) -> int:
        """Restarts the stream at a random seed, which it returns."""
        return self.manual_seed(secrets.randbits(31)).initial_seed()

    def get_state(self) -> Tensor:
        """Returns seed and offset as an int64 tensor of two elements."""
        return Tensor(np.array(self._position(), np.int64))

    def set_state(self, value: Tensor) -> None:
        """Continues where :meth:`get_state` was called.

        Args:
            value: What :meth:`get_state` returned: int64 seed and offset.
        """
        seed, offset = (int(v) for v in value.asnumpy())
        with self._lock:
            self._move(seed, offset)

    def advance(self, blocks: int) -> Tensor:
        """Reserves counter blocks and returns the state that addresses the first of them.

        Args:
            blocks: Philox blocks; each gives four 32-bit words.

        Raises:
            OutOfMemoryError: for more than any memory holds; the stream stays where it is.
        """
        if blocks >= _MOST:
            raise OutOfMemoryError(f"{4 * blocks} random numbers are more than any memory holds")
        with self._lock:
            start = self._place.snapshot()
            self._place.rebind(F.add(start, Tensor(np.array([0, blocks], np.int64))))
        return start

    def draw(self, blocks: int) -> tuple[Tensor, int]:
        """Reserves counter blocks for one random operator, as :func:`draw` does.

        Args:
            blocks: Philox blocks; each gives four 32-bit words.
        """
        return self.advance(blocks), 0

    def _step(self, step: SupportsInt) -> tuple[Tensor, Tensor]:
        """Returns seed and offset and moves on by ``step``, as MindSpore's operators ask."""
        start = self.advance(int(step))
        return start[0], start[1]


class _Global(Generator):
    """The stream that operators draw from by default; compiled functions are given its place."""

    def _position(self) -> tuple[int, int]:
        return self._at

    def _move(self, seed: int, offset: int) -> None:
        self._at = seed, offset

    def seek(self, offset: int) -> None:
        """Continues the stream at a counter block."""
        with self._lock:
            self._at = self._at[0], offset

    def advance(self, blocks: int) -> Tensor:
        """Reserves counter blocks and returns the state that addresses the first of them.

        Raises:
            OutOfMemoryError: for more than any memory holds; the stream stays where it is.
        """
        if blocks >= _MOST:
            raise OutOfMemoryError(f"{4 * blocks} random numbers are more than any memory holds")
        array = aligned_empty((2,), np.int64)
        with self._lock:
            array[0], array[1] = seed, offset = self._at
            self._at = seed, offset + blocks
        return tensor_from_numpy(array, STATE_TYPE)

    def draw(self, blocks: int) -> tuple[Tensor, int]:
        """Reserves counter blocks for one random operator, as :func:`draw` does.

        Args:
            blocks: Philox blocks; each gives four 32-bit words.
        """
        if state.interpreter is not None:
            return state.interpreter.draw(blocks)
        return self.advance(blocks), 0

    def take_back(self, start: int, blocks: int) -> None:
        """Forgets that ``blocks`` were drawn from ``start`` on, unless others drew since.

        Args:
            start: The offset before them.
            blocks: Philox blocks that were drawn.
        """
        with self._lock:
            if self.offset == start + blocks:
                self._at = self._at[0], start


default_generator = _Global(0)
#: Where a random operator draws from: None is the global stream, an int one that starts anew.
Seed: TypeAlias = "int | Generator | None"


def draw(blocks: int) -> tuple[Tensor, int]:
    """Reserves counter blocks of the default generator for one random operator.

    Args:
        blocks: Philox blocks needed; each gives four 32-bit words.

    Returns:
        The state tensor and the static offset to add to its counter.
    """
    return default_generator.draw(blocks)


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
