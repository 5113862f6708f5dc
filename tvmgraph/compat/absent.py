"""Names of MindSpore that are not here, each with the reason; and errors that say so.

A row of ``absent.rows`` holds what MindSpore calls such names, as patterns. A name without one is
either misspelled, in which case the error names the nearest one that exists, or not built yet.
"""

from __future__ import annotations

import dis
import fnmatch
import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from tvmgraph.compat.elsewhere import INSTEAD, nearest
from tvmgraph.errors import NotFoundError, NotFoundImportError, user_frame, user_source


def _rows(text: str) -> dict[str, list[str]]:
    """Reads reasons, each with indented lines of names below it; ``#`` begins a comment."""
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for line in text.splitlines():
        if line.startswith("  "):
            names += line.split()
        elif line and not line.startswith("#"):
            names = found[line] = []
    return found


#: Reason -> names, with what to use instead.
ABSENT: Mapping[str, list[str]] = _rows(Path(__file__).with_name("absent.rows").read_text("utf-8"))


def explanation(name: str, where: str = "") -> tuple[str, str] | None:
    """Returns why a name of MindSpore is not here and the pattern that says it, or None.

    Args:
        name: The name.
        where: The module that lacks it, below ``tvmgraph``; patterns with a dot look at both.
    """
    whole = f"{where}.{name}" if where else name
    for why, patterns in ABSENT.items():
        for p in patterns:
            if fnmatch.fnmatchcase(whole if "." in p else name, p):
                return why, p
    return None


def reason(name: str, where: str = "") -> str | None:
    """Returns why a name of MindSpore is not here, or None; see :func:`explanation`.

    Args:
        name: The name.
        where: The module that lacks it, below ``tvmgraph``.
    """
    found = explanation(name, where)
    return None if found is None else found[0]


def not_found(
    where: str, name: str, known: Iterable[str], module: bool = False
) -> NotFoundError | NotFoundImportError:
    """Returns the error for a name that does not exist.

    Python replaces an AttributeError that ends ``from module import name`` by an ImportError
    without its text, so there it is an ImportError from the beginning.

    Args:
        where: The module that was asked, such as ``tvmgraph.ops``.
        name: The name.
        known: The names that it has.
        module: Whether a module is asked for.
    """
    why = reason(name, where.removeprefix("tvmgraph").removeprefix("."))
    near = None if name[:2] == "__" else nearest(name, known, 0.85 if why else 0.75)
    instead = INSTEAD.get(where, {}).get(name) or _among_operators(where, name)
    importing = stands_at("IMPORT_NAME" if module else "IMPORT_FROM")
    return (NotFoundImportError if importing else NotFoundError)(
        f"{where} has no {name!r}" + (f": {why}" if why else ""), at=user_source(),
        fix=instead if instead and not why else
            f"did you mean {near}?" if near and not why else
            f"the nearest name here is {near}" if near else None,
    )  # fmt: skip


def _among_operators(where: str, name: str) -> str | None:
    """Says that a name which the package was asked for, as PyTorch's is, is an operator's."""
    if where != "tvmgraph" or name not in dir(importlib.import_module("tvmgraph.ops")):
        return None
    return f"it is ops.{name}"


def stands_at(instruction: str) -> bool:
    """Whether the user's code is executing a bytecode instruction.

    Args:
        instruction: Its name in :mod:`dis`, such as ``"IMPORT_NAME"``.
    """
    frame = user_frame()
    if frame is None or frame.f_lasti < 0:
        return False
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == instruction


class AbsentFinder:
    """The last finder of modules: says why a module of MindSpore cannot be imported."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raises :class:`NotFoundImportError` where the user imports a module that has a reason.

        Args:
            name: Full name of the module.
            path, target: What Python passes to finders; not used.
        """
        where, _, leaf = name.rpartition(".")
        if where.partition(".")[0] == "tvmgraph" and stands_at("IMPORT_NAME"):
            below = where.removeprefix("tvmgraph").removeprefix(".")
            if reason(leaf, below) is not None:
                raise not_found(where, leaf, (), module=True)
