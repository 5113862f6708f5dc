"""``tvmgraph ops``: the operator table."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

import tvmgraph.ops as ops
from tvmgraph.core.op import OPS, Op, Reason
from tvmgraph.core.traits import Pattern
from tvmgraph.errors import ArgumentError

COLUMNS = ("lower", "vjp", "onnx")


def describe(op: Op, column: str) -> str:
    """Returns a cell of the table: what the column holds, or why it is missing.

    Args:
        op: The row.
        column: Name of the column.
    """
    value = getattr(op, column)
    if isinstance(value, Reason):
        return f"[yellow]{value}[/]"
    return value if isinstance(value, str) else "yes"


def public_functions() -> list[str]:
    """Returns the names of all public operator functions."""
    return sorted(n for n in dir(ops) if n[:1].islower() and callable(getattr(ops, n, None)))


def _family(op: Op) -> str:
    return op.module.removeprefix("tvmgraph.ops.").partition(".")[0]


def _rows(name: str) -> list[Op]:
    """Returns the rows whose name contains ``name``.

    Raises:
        ArgumentError: if there are none.
    """
    found = [OPS[n] for n in sorted(OPS) if name in n]
    if not found:
        raise ArgumentError(f"no operator is called like {name!r}", op="tvmgraph ops",
                            fix="`tvmgraph ops` lists them")  # fmt: skip
    return found


def print_table(name: str = "") -> None:
    """Prints the rows whose name contains ``name``.

    Args:
        name: A part of the name; all rows by default.
    """
    console = Console()
    rows = _rows(name)
    table = Table("operator", "family", *COLUMNS, "samples")
    for op in rows:
        family = _family(op)
        cells = [describe(op, c) for c in COLUMNS]
        table.add_row(op.name, family, *cells, str(len(op.samples)))
    console.print(table)
    console.print(f"{len(rows)} rows; {len(public_functions())} public functions in tvmgraph.ops")


def facts(name: str = "") -> list[dict[str, object]]:
    """Returns the rows whose name contains ``name`` as data.

    Args:
        name: A part of the name; all rows by default.
    """
    return [
        {"name": op.name, "family": _family(op), "samples": len(op.samples),
         **{c: _mark(op, c) for c in COLUMNS}}
        for op in _rows(name)
    ]  # fmt: skip


def _mark(op: Op, column: str) -> str:
    value = getattr(op, column)
    return f"no: {value}" if isinstance(value, Reason) else "yes"


def _split(op: Op) -> str:
    factors = op.traits.factors
    if isinstance(factors, Reason):
        return f"no: {factors}"
    return f"`{factors}`" if isinstance(factors, str) else str(factors.__doc__).partition("\n")[0]


def _traits(op: Op) -> str:
    """The traits besides pattern and factors, in words."""
    t = op.traits
    combined = t.combine if t.pattern is Pattern.REDUCTION else ""
    words = [w for w in ("cheap", "effect", "alias") if getattr(t, w)]
    named = {"batch": t.batch, "layout": t.layout, "combine": combined, "sizes": t.sized}
    return ", ".join([*words, *(f"{k}: {v}" for k, v in named.items() if v)])


def markdown() -> str:
    """Returns the table of all rows and the list of all functions as Markdown."""
    rows = [OPS[n] for n in sorted(OPS)]
    names = public_functions()
    lines = [
        "# Operators",
        "",
        f"{len(names)} public functions in `tvmgraph.ops` are built on {len(rows)} rows. This page",
        "is written by `tvmgraph ops --markdown`; a test keeps it in step with the code.",
        "",
        "## Rows",
        "",
        "How a row may be split is an equation of dimensions: `...` are leading ones, which",
        "broadcast, `.` is one that stays whole, `*` all that follow. The words are those of",
        "`tvmgraph/core/traits.py`.",
        "",
        "| row | family | pattern | split | traits | compiles | derivative | ONNX | samples |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for op in rows:
        marks = " | ".join(_mark(op, c) for c in COLUMNS)
        family = _family(op)
        traits = f"{op.traits.pattern} | {_split(op)} | {_traits(op)}"
        lines.append(f"| `{op.name}` | {family} | {traits} | {marks} | {len(op.samples)} |")
    lines += ["", "## Functions", "", ", ".join(f"`{n}`" for n in names), ""]
    return "\n".join(lines)
