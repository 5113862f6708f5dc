"""How objects without a text of their own are shown: by class and settings, never by address."""

from __future__ import annotations

from tvmgraph.core.arguments import is_sequence
from tvmgraph.dtypes import DType

_SIMPLE = (bool, int, float, str, DType, type(None))


class Shown:
    """Base of classes that are shown as a call: ``Resize(size=(3, 4))``."""

    def __repr__(self) -> str:
        own = {k: v for k, v in getattr(self, "__dict__", {}).items() if not k.startswith("_")}
        shown = [f"{k}={v!r}" for k, v in own.items() if _is_simple(v)]
        return f"{type(self).__name__}({', '.join(shown)})"


def _is_simple(value: object) -> bool:
    if is_sequence(value):
        return len(value) <= 8 and all(map(_is_simple, value))
    return isinstance(value, _SIMPLE)
