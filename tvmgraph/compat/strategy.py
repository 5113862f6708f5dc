"""MindSpore's ``_c_expression.amp``: what zoos tell its compiler about precision."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

from tvmgraph import dtypes


class AmpLevel(enum.IntEnum):
    """Which operators compute in the short type."""

    AmpO0 = 0
    AmpO1 = 1
    AmpO2 = 2
    AmpO3 = 3
    AmpAuto = 4


class AmpStrategy(NamedTuple):
    """A level with its dtype and lists; a Cell keeps what is set as its ``amp_strategy``.

    Attributes:
        level: Which operators.
        dtype: The short type.
        white_list: Operators that compute in it, with the numbers of their arguments.
        black_list: Operators that do not.
    """

    level: AmpLevel
    dtype: dtypes.DType
    white_list: Sequence[object] = ()
    black_list: Sequence[object] = ()

    def get_amp_level(self) -> AmpLevel:
        """Returns the level."""
        return self.level

    def get_amp_dtype(self) -> dtypes.DType:
        """Returns the short type."""
        return self.dtype

    def get_white_list(self) -> list[object]:
        """Returns the operators that compute in it."""
        return list(self.white_list)

    def get_black_list(self) -> list[object]:
        """Returns the operators that do not."""
        return list(self.black_list)


create_amp_strategy = AmpStrategy
