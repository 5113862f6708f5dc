"""Interrupts a call at one chosen place out of all at which Python looks at signals.

What a timer only meets by chance is met here for certain: :func:`count` says how many such places a
call passes, :func:`interrupt` sends Ctrl-C at one of them.
"""

from __future__ import annotations

import dis
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

#: After these the interpreter handles signals that came.
_LOOKS = {
    n for name, n in dis.opmap.items() if name.startswith(("CALL", "RESUME", "JUMP_BACKWARD"))
}


class _Places:
    """A trace function that counts places and sends SIGINT at one of them.

    Args:
        at: Number of the place; none is the last for a negative one.
    """

    def __init__(self, at: int) -> None:
        self.at, self.seen = at, 0
        self.where = ""
        self._before: dict[FrameType, int] = {}  # the instruction that each frame ran last

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            return self
        if event == "return":
            self._before.pop(frame, None)
        if event == "opcode":
            before = self._before.get(frame)
            self._before[frame] = frame.f_code.co_code[frame.f_lasti]
            if before in _LOOKS:
                self._pass(frame)
        return self

    def _pass(self, frame: FrameType) -> None:
        self.seen += 1
        if self.seen - 1 == self.at:
            self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            signal.raise_signal(signal.SIGINT)


def _traced(call: Callable[[], Any], places: _Places) -> None:
    before = sys.gettrace()
    sys.settrace(places)
    try:
        call()
    finally:
        sys.settrace(before)


def count(call: Callable[[], Any]) -> int:
    """Returns how many places a call passes at which it could be interrupted."""
    places = _Places(-1)
    _traced(call, places)
    return places.seen


def interrupt(call: Callable[[], Any], at: int) -> tuple[bool, str]:
    """Calls with Ctrl-C at one place.

    Args:
        call: What is interrupted.
        at: Number of the place, from 0.

    Returns:
        Whether the call ended with a KeyboardInterrupt, and ``file:line`` of the place, empty if
        the call passed fewer.
    """
    places = _Places(at)
    try:
        _traced(call, places)
    except KeyboardInterrupt:
        return True, places.where
    return False, places.where
