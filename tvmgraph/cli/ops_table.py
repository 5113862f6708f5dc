"""``tvmgraph ops``: the operator table."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

import tvmgraph.ops as ops
from tvmgraph.core.op import OPS, Op, Reason

COLUMNS = ("lower", "vjp", "onnx")


def describe(op: Op, column: str) -> str:
    """Returns a cell of the table: what the column holds, or why it is missing."""
    value = getattr(op, column)
    if isinstance(value, Reason):
        return f"[yellow]{value}[/]"
    return value if isinstance(value, str) else "yes"


def public_functions() -> list[str]:
    """Returns the names of all public operator functions."""
    return sorted(n for n in dir(ops) if n[:1].islower() and callable(getattr(ops, n, None)))


def print_table(name: str = "") -> bool:
    """Prints the rows whose name contains ``name``; returns whether there were any."""
    console = Console()
    rows = [OPS[n] for n in sorted(OPS) if name in n]
    table = Table("operator", "family", *COLUMNS, "samples")
    for op in rows:
        family = op.module.rpartition(".")[2]
        cells = [describe(op, c) for c in COLUMNS]
        table.add_row(op.name, family, *cells, str(len(op.samples)))
    console.print(table)
    console.print(f"{len(rows)} rows; {len(public_functions())} public functions in tvmgraph.ops")
    return bool(rows)


def _mark(op: Op, column: str) -> str:
    value = getattr(op, column)
    return f"no: {value}" if isinstance(value, Reason) else "yes"


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
        "| row | family | compiles | derivative | ONNX | samples |",
        "|---|---|---|---|---|---|",
    ]
    for op in rows:
        marks = " | ".join(_mark(op, c) for c in COLUMNS)
        family = op.module.rpartition(".")[2]
        lines.append(f"| `{op.name}` | {family} | {marks} | {len(op.samples)} |")
    lines += ["", "## Functions", "", ", ".join(f"`{n}`" for n in names), ""]
    return "\n".join(lines)
