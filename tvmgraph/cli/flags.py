"""``tvmgraph flags``: the registry of debugging flags."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from tvmgraph.config.flag_registry import REGISTRY, active


def facts() -> list[dict[str, object]]:
    """Returns every flag with the value in force, and what every value means."""
    return [
        {"name": flag.name, "variable": flag.variable, "value": getattr(active, flag.name),
         "meanings": list(flag.levels)}
        for flag in REGISTRY.values()
    ]  # fmt: skip


def print_flags() -> None:
    """Prints one row per value of every flag; the value in force is marked."""
    table = Table("variable", "with ms.flags(...)", "value", "meaning")
    for flag in REGISTRY.values():
        for value, meaning in enumerate(flag.levels):
            mark = " *" if getattr(active, flag.name) == value else ""
            first = value == 0
            table.add_row(
                flag.variable if first else "", flag.name if first else "",
                f"{value}{mark}", meaning, end_section=value == len(flag.levels) - 1,
            )  # fmt: skip
    console = Console()
    console.print(table)
    console.print("* in force; every level includes those below it")
