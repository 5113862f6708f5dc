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
    return sorted(n for n in dir(ops) if n[:1].islower() and callable(getattr(ops, n)))


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
