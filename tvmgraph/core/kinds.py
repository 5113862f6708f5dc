"""What an annotation of a public function says about an argument.

Only what is certainly wrong is refused: a string where a number is documented, a fraction where a
count is. What captures and users put in the place of numbers (sizes with names, 0-d tensors,
NumPy's scalars) is none of that.
"""

from __future__ import annotations

import enum
import functools
import operator

import numpy as np

from tvmgraph.core.arguments import Unknown, is_sequence
from tvmgraph.errors import ArgumentError, DTypeError, no_scalar

_NOTHING = type(None)
_CONTAINERS = frozenset({list, tuple, dict, set, frozenset})
_NEVER = frozenset({object, type, bytes, bytearray, dict, set, frozenset})
_TEXT = frozenset({str, _NOTHING})
_FRACTIONS = frozenset({float, complex, np.float64, np.float32, np.float16})

_WORDS = _NEVER | _CONTAINERS | _FRACTIONS | {_NOTHING, np.ndarray}  # neither text nor a code
#: Enumerations of words that datasets take.
_ENUMERATIONS = (
    "AutoAugmentPolicy", "Border", "ConvertMode", "Enum", "ImageBatchFormat", "ImageReadMode",
    "Inter", "NormalizeForm", "Relational", "SliceMode",
)  # fmt: skip

#: Classes of values that are no such thing, by the word of the annotation.
_WRONG: dict[str, frozenset[type]] = {
    "int": _NEVER | _TEXT | _FRACTIONS | _CONTAINERS,
    "Workers": _NEVER | _TEXT | _FRACTIONS | _CONTAINERS | {bool},
    "float": _NEVER | _TEXT | _CONTAINERS | {complex},
    "bool": _NEVER | _TEXT | _FRACTIONS | _CONTAINERS,
    "str": _NEVER | _CONTAINERS | _FRACTIONS | {_NOTHING, int, bool, np.ndarray},
    "Tensor": _NEVER | _TEXT,
    "Parameter": _NEVER | _TEXT | _FRACTIONS | _CONTAINERS | {int, bool},
    "DType": _NEVER | _CONTAINERS | _FRACTIONS | {_NOTHING, int, bool, np.ndarray},
    "Sequence": _NEVER | _TEXT | _FRACTIONS,
    "PerAxis": _NEVER | _TEXT | _FRACTIONS,
    "tuple": _NEVER | _TEXT | _FRACTIONS,
    "list": _NEVER | _TEXT | _FRACTIONS,
    "Callable": _NEVER - {type} | _TEXT | _FRACTIONS | _CONTAINERS | {int, bool},
    "Around": _NEVER | _TEXT,
    "Fill": _NEVER | _TEXT,
    **dict.fromkeys(_ENUMERATIONS, _WORDS),
    "None": frozenset({object, str, int, bool, type, bytes}) | _NEVER | _CONTAINERS | _FRACTIONS,
}  # fmt: skip

_SPOKEN = {
    "int": "an int", "float": "a number", "bool": "a bool", "str": "a string", "Tensor": "a Tensor",
    "Parameter": "a Parameter", "DType": "a dtype", "Callable": "callable", "None": "None",
    "Around": "a number or two", "Fill": "a number or one per channel",
    "PerAxis": "an int or a tuple of ints", "Workers": "an int",
}  # fmt: skip
#: Sizes per axis and words.
_SEVERAL = frozenset({"tuple", "list", "Sequence", "PerAxis", "str"})
_NUMBERS = frozenset({"bool", "int", "float", "None"})
_WHOLE = frozenset({"int", "None"})
_TENSORS = frozenset({"Tensor", "Parameter", "None"})

#: The class that almost every right value has, for a check that costs next to nothing.
EXACT = {"bool": bool, "int": int, "float": float}


def words(annotation: object) -> tuple[str, ...]:
    """Returns the alternatives of an annotation without what stands in brackets.

    Args:
        annotation: An annotation of a signature, text or a class.
    """
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    depth = 0
    kept: list[str] = []
    for c in text:
        depth += (c == "[") - (c == "]")
        if not depth and c != "]":
            kept.append(c)
    return tuple(w.strip().rpartition(".")[2] for w in "".join(kept).split("|"))


@functools.cache
def wrong_classes(kinds: tuple[str, ...]) -> frozenset[type]:
    """Returns the classes whose objects fit none of the alternatives.

    Args:
        kinds: The alternatives as :func:`words` returns them; one that is not known allows
            everything.
    """
    tables = [_WRONG.get(k) for k in kinds]
    known = [t for t in tables if t is not None]
    if not known or len(known) < len(tables):
        return frozenset()
    return known[0].intersection(*known[1:])


def are_numbers(kinds: tuple[str, ...]) -> bool:
    """Whether all alternatives are numbers or None.

    Args:
        kinds: The alternatives as :func:`words` returns them.
    """
    return _NUMBERS.issuperset(kinds) and kinds != ("None",)


def are_several(kinds: tuple[str, ...]) -> bool:
    """Whether an alternative is a word or sizes per axis.

    Args:
        kinds: The alternatives as :func:`words` returns them.
    """
    return not _SEVERAL.isdisjoint(kinds)


def no_tensor(kinds: tuple[str, ...], value: object) -> bool:
    """Whether only a tensor is documented where there is something else that may become one.

    Args:
        kinds: The alternatives as :func:`words` returns them.
        value: What a user gave.
    """
    only = "Tensor" in kinds and _TENSORS.issuperset(kinds)
    return only and not hasattr(value, "aval") and (value is not None or "None" not in kinds)


def are_words(kinds: tuple[str, ...]) -> bool:
    """Whether the one alternative is an enumeration of words that datasets take.

    Args:
        kinds: The alternatives as :func:`words` returns them.
    """
    return len(kinds) == 1 and kinds[0] in _ENUMERATIONS


def is_wrong(kinds: tuple[str, ...], value: object) -> bool:
    """Whether a value is certainly none of the alternatives.

    Args:
        kinds: The alternatives as :func:`words` returns them.
        value: What a user gave.
    """
    if "bool" in kinds and {"bool", "None"}.issuperset(kinds):
        if value.__class__ is int:
            return value not in (0, 1)
        if getattr(value, "ndim", 0):  # arrays and tensors with axes
            return True
    if kinds == ("Fill",):
        parts = value if is_sequence(value) else (value,)
        return not all(isinstance(v, (int, float, np.number)) for v in parts)
    if isinstance(value, np.ndarray) and are_numbers(kinds):
        return value.size != 1 or value.dtype.kind not in "biuf"
    return value.__class__ in wrong_classes(kinds)


def spoken(kinds: tuple[str, ...]) -> str:
    """Returns the alternatives as a message names them.

    Args:
        kinds: The alternatives as :func:`words` returns them.
    """
    return " or ".join(_SPOKEN.get(k, f"an {k}" if k[0] in "AEIOU" else f"a {k}") for k in kinds)


def require(name: str, value: object, kinds: tuple[str, ...]) -> object:
    """Makes sure that a value may be one of the alternatives.

    Args:
        name: Name of the argument.
        value: What a user gave.
        kinds: The alternatives as :func:`words` returns them.

    Returns:
        The value; where an int is wanted, the int that a tensor without axes holds.

    Raises:
        DTypeError: if it is certainly none of them.
    """
    kind = getattr(value, "aval", None)  # of a tensor
    if kind is not None and kinds[0] == "int" and _WHOLE.issuperset(kinds):
        holds_int = kind.dtype.is_integer and not kind.shape and not isinstance(value, Unknown)
        return operator.index(value) if holds_int else value  # pyright: ignore[reportArgumentType]
    if kinds[0] == "Workers" and type(value) is int and value < 1:
        raise ArgumentError(f"{name} must be at least 1, not {value}")
    if is_wrong(kinds, value):
        raise no_scalar(value, are_several(kinds))(
            f"{name} must be {spoken(kinds)}, not {value.__class__.__name__}",
            got=f"{name}={value!r}"[:80],
        )
    return value


def require_word(name: str, value: object, default: enum.Enum) -> None:
    """Makes sure that a value is a word of an enumeration.

    Args:
        name: Name of the argument.
        value: What a user gave.
        default: Another word of the enumeration.

    Raises:
        DTypeError: if it is not; a string or number that is a word's value is none, either.
    """
    if value.__class__ is not default.__class__:
        raise DTypeError(
            f"{name} must be {spoken((default.__class__.__name__,))}, not {value!r:.40}"
        )
