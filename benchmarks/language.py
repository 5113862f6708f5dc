"""Tokens per second of generated text, ours beside others': ``python -m benchmarks.language``.

Every form runs in a process of its own, on one thread, see ``benchmarks.peers.language``; rounds of
all forms take turns, and the fastest of each counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Annotated, Any

import typer

from benchmarks.peers.language import FORMS, SIZES
from benchmarks.report import render
from benchmarks.results import Results
from benchmarks.run import Data, Out, Pythons

app = typer.Typer(add_completion=False)
_ONE_THREAD = dict.fromkeys(("TVM_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@app.command()
def main(
    size: Annotated[str, typer.Option(help=f"One of {', '.join(SIZES)}.")] = "125M",
    rows: Annotated[str, typer.Option(help="Only forms whose names have this.")] = "",
    rounds: int = 3,
    repeats: int = 3,
    out: Out = None,
    data: Data = None,
    python: Pythons = None,
) -> None:
    """Measure and add what was found to the results."""
    pythons = dict(option.split("=", 1) for option in python or [])
    results = Results.load(data) if data is not None else Results()
    kept = results.language.setdefault(size, {"read": 0, "rows": {}})
    forms = [name for name in FORMS if rows in name]
    for name in forms:
        kept["rows"].pop(name, None)
    for _ in range(rounds):
        for name in forms:
            found = _measure(pythons.get(FORMS[name][1], sys.executable), name, size, repeats)
            old = kept["rows"].get(name)
            kept["read"] = max(kept["read"], found.pop("read", 0) if found else 0)
            if found and (old is None or found["seconds"] < old["seconds"]):
                kept["rows"][name] = found
            if found:
                typer.echo(f"{name:24s} {1 / found['seconds']:7.1f} tokens per second")
    kept["rows"] = {name: kept["rows"][name] for name in FORMS if name in kept["rows"]}
    if data is not None:
        results.save(data)
    if out is not None:
        out.write_text(render(results))


def _measure(python: str, form: str, size: str, repeats: int) -> dict[str, Any] | None:
    command = [python, "-m", "benchmarks.peers.language", form, size, str(repeats)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | _ONE_THREAD
    )
    if done.returncode:
        typer.echo(f"{form}: {done.stderr.strip().splitlines()[-1]}")
        return None
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    app()
