"""What a notebook shows of a Cell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tvmgraph.core.notebook import fragment, heading, size, table
from tvmgraph.core.parameter import Parameter

if TYPE_CHECKING:
    from tvmgraph.nn.cell import Cell

_INDENT = "\u2003"
_LONGEST = 80  # characters of a Cell's settings


def cell_html(cell: Cell) -> str:
    """Returns the tree of a Cell with its settings and parameters, and their sum.

    Args:
        cell: The Cell.
    """
    params = list({id(p): p for p in cell.get_parameters()}.values())
    total, trained = (sum(p.size for p in ps) for ps in (params, _trained(params)))
    facts = (f"{total:,} parameters", f"{trained:,} of them trained",
             size(sum(p.nbytes for p in params)), "training" if cell.training else "")  # fmt: skip
    rows = list(_rows(cell, "itself", 0, set()))
    if rows[0][2] == "":  # no parameters of its own
        del rows[0]
    heads = ("cell", "class", "shapes of parameters", "parameters")
    shown = table(heads, rows) if cell.name_cells() else _own(cell)
    return fragment(heading(type(cell).__name__, *facts) + shown)


def _trained(params: list[Parameter]) -> list[Parameter]:
    return [p for p in params if p.requires_grad]


def _own(cell: Cell) -> str:
    """A Cell without others in it: its settings and parameters."""
    rows = [(n, str(p.aval), p.size) for n, p in cell.parameters_and_names(expand=False)]
    settings = cell.extend_repr()
    about = heading("", settings) if settings else ""
    return about + (table(("parameter", "type", "elements"), rows) if rows else "")


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _rows(
    cell: Cell, name: str, depth: int, seen: set[int]
) -> Iterator[tuple[str, str, str, int | str]]:
    settings = _shortened(cell.extend_repr()) if depth else ""
    kind = type(cell).__name__ + (f"({settings})" if settings else "")
    again = id(cell) in seen
    seen.add(id(cell))
    own = [] if again else [p for _, p in cell.parameters_and_names(expand=False)]
    shapes = "the same as above" if again else ", ".join(str(p.aval) for p in own)
    yield _INDENT * (depth - 1) + name, kind, shapes, sum(p.size for p in own) if own else ""
    for child_name, child in () if again else cell.name_cells().items():
        yield from _rows(child, child_name, depth + 1, seen)
