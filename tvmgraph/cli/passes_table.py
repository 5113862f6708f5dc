"""``tvmgraph passes``: the table of passes."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from tvmgraph.passes.table import passes


def print_passes() -> None:
    """Prints the table in order."""
    table = Table("pass", "takes", "CPU", "GPU", "what for")
    for row in passes():
        name = f"  {row.name}" if row.within else row.name
        table.add_row(name, row.stage.value, row.cpu or "-", row.cuda or "-", row.why)
    Console().print(table)


def facts() -> list[dict[str, object]]:
    """Returns the table as data; a level is ``None`` where the pass does not run."""
    return [
        {"name": row.name, "within": row.within, "takes": row.stage.value, "cpu": row.cpu,
         "gpu": row.cuda, "optional": row.optional, "why": row.why}
        for row in passes()
    ]  # fmt: skip


def markdown() -> str:
    """Returns the table as a document."""
    lines = [
        "# Passes", "",
        "Every compile runs these passes in this order. `tvmgraph passes --markdown` writes this",
        "page from [passes/table.py](../tvmgraph/passes/table.py), which is also what runs; a test",
        "keeps it in step. The columns CPU and GPU say from which level on. A pass with a mark in",
        "the column *flag* can be left out with `graph_kernel_flags=\"--disable_pass=name\"`.", "",
        "| pass | takes | CPU | GPU | flag | what for |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in passes():
        name = f"`{row.name}`" + (f" (in `{row.within}`)" if row.within else "")
        flags = ", ".join(f"`{switch}` from `--opt_level={n}`" for switch, n in row.switches)
        facts = "".join(f"; where {fact}" for fact in sorted(row.when))
        facts += "".join(f"; not where {fact}" for fact in sorted(row.unless))
        again = f". More than once: {row.again}" if row.again else ""
        lines.append(
            f"| {name} | {row.stage.value} | {row.cpu or 'no'} | {row.cuda or 'no'} "
            f"| {flags or ('yes' if row.optional else '')} | {row.why}{facts}{again} |"
        )
    return "\n".join([*lines, ""])
