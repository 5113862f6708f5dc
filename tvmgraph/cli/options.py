"""Options that commands share: one name, one meaning, one completion each."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Annotated

import numpy as np
import typer

#: The end of every command's help; `docs/command-line.md` says more.
EXIT_CODES = (
    "Exit status: 0 done, 1 it cannot be done or a check failed, 2 wrong arguments or files, "
    "130 interrupted."
)


def _starting(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Completes a word from names that are looked up only then."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _targets() -> list[str]:
    from tvmgraph.machine.targets import target_names

    return list(target_names())


def _presets() -> list[str]:
    from tvmgraph.config.settings import presets

    return list(presets())


def _operators() -> list[str]:
    import tvmgraph.ops  # noqa: F401  (fills the table)
    from tvmgraph.core.op import OPS

    return sorted(OPS)


LEVELS = ("O0", "O1", "O2", "O3")

Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input", "-i",
        help="An argument, once for each: 8x3, x:8x3:int32 or float32[8,3]; ? or a name is a "
        "size that varies. Without any: example_inputs of the file.",
    ),
]  # fmt: skip
Output = Annotated[str, typer.Option("--output", "-o", help="File to write.")]
Threads = Annotated[int, typer.Option("--threads", min=0, help="Workers; 0 for all cores.")]
Config = Annotated[
    str,
    typer.Option("--config", help="Settings: a preset of configs/jit.toml, or file.toml:preset.",
                 autocompletion=_starting(_presets)),
]  # fmt: skip
Level = Annotated[
    str,
    typer.Option("--level", help="O0, O1, O2 or O3; O2 by default.",
                 autocompletion=_starting(lambda: LEVELS)),
]  # fmt: skip
Target = Annotated[
    str,
    typer.Option("--target", help="A name from configs/targets.toml.",
                 autocompletion=_starting(_targets)),
]  # fmt: skip
Operator = Annotated[
    str,
    typer.Argument(help="Only operators whose name contains this.",
                   autocompletion=_starting(_operators)),
]  # fmt: skip
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown.")]


@contextmanager
def only_json(wanted: bool) -> Iterator[None]:
    """Sends what a user's file prints to the other stream where the result is JSON.

    Args:
        wanted: Whether the result is JSON.
    """
    if not wanted:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


def answer(as_json: bool, facts: object, text: str) -> None:
    """Prints what a command has found or done.

    Args:
        as_json: Whether scripts read it.
        facts: What they read.
        text: What people read.
    """
    if as_json:
        print_json(facts)
    else:
        typer.echo(text)


def print_json(value: object) -> None:
    """Prints a value as JSON; paths and NumPy's numbers are texts and numbers.

    Args:
        value: Dictionaries, lists, texts and numbers.
    """
    json.dump(value, sys.stdout, indent=2, default=_plain, allow_nan=False)
    print()


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else str(value)
