"""The table of targets (``configs/targets.toml``), and which of them this process compiles for.

Apart from the compiler, because settings and compiled code need the names without loading TVM.
"""

from __future__ import annotations

import functools
import importlib.resources
import os
import tomllib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tvmgraph.errors import ConfigError, TvmgraphError, reject

#: Environment variable that names the processor compiled for, instead of the one at hand.
CPU_VARIABLE = "TVMGRAPH_CPU"
#: The processor at hand, with all that it can do.
HOST = "host"


@functools.cache
def target_table() -> Mapping[str, Mapping[str, Any]]:
    """The rows of ``configs/targets.toml`` by target name."""
    table = importlib.resources.files("tvmgraph") / "configs" / "targets.toml"
    return MappingProxyType(tomllib.loads(table.read_text()))


def target_names(kind: str = "") -> tuple[str, ...]:
    """The names of targets.

    Args:
        kind: ``"llvm"`` for processors only, ``"cuda"`` for GPUs only.
    """
    return tuple(n for n, row in target_table().items() if kind in ("", row["kind"]))


def target_row(name: str) -> Mapping[str, Any]:
    """The row of a target; that of ``"host"`` is the one ``TVMGRAPH_CPU`` names, if it is set.

    Args:
        name: A target, or ``"host"``.

    Raises:
        TvmgraphError: There is no such target.
    """
    name = resolve(name)
    if name not in target_table():
        known = ", ".join(target_names())
        raise TvmgraphError(f"unknown target {name!r}", fix=f"use one of {known}")
    return target_table()[name]


def backend_name(name: str) -> str:
    """The backend that compiles for a target, ``"cpu"`` or ``"cuda"``.

    Args:
        name: A row of the table, or several GPUs with commas between them.
    """
    row = target_table().get(name.split(",")[0], {})
    return "cuda" if row.get("kind") == "cuda" else "cpu"


def resolve(name: str) -> str:
    """Says which target a name stands for: ``"host"`` may be another one by ``TVMGRAPH_CPU``.

    Args:
        name: A target, or ``"host"``.

    Raises:
        ConfigError: ``TVMGRAPH_CPU`` names no processor of the table.
    """
    given = os.environ.get(CPU_VARIABLE, "") if name == HOST else ""
    return check_cpu(given, CPU_VARIABLE) if given else name


def check_cpu(name: Any, where: str) -> str:
    """Returns the name of a processor of the table.

    Args:
        name: The name.
        where: The setting it comes from.

    Raises:
        ConfigError: There is no such processor; the message lists those there are.
    """
    known = target_names("llvm")
    if name not in known:
        reject(ConfigError, "targets", f"{where} cannot be {name!r}",
               fix=f"use one of {', '.join(known)}")  # fmt: skip
    return name
