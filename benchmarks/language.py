"""Tokens per second of generated text, ours beside others': ``python -m benchmarks.language``.

Every form runs in a process of its own, on one thread, see ``benchmarks.peers.language``; rounds of
all forms take turns, and the fastest of each counts.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Annotated, Any

import typer

from benchmarks.peers.language import FORMS, SIZES
from benchmarks.report import machine_description, render
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
    if size not in SIZES:
        raise typer.BadParameter(f"unknown size {size!r}; known: {', '.join(SIZES)}")
    pythons = _interpreters(python or [])
    results = Results.load(data) if data is not None else Results()
    kept = results.language.setdefault(size, {"read": 0, "rows": {}})
    forms = [name for name in FORMS if rows in name]
    if not forms:
        raise typer.BadParameter(f"no form has {rows!r}; known: {'; '.join(FORMS)}")
    for name in forms:
        kept["rows"].pop(name, None)
    kept["machine"] = machine_description(threads=1)
    for _ in range(rounds):
        for name in forms:
            found = _measure(pythons[FORMS[name][1]], name, size, repeats)
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


def _interpreters(options: list[str]) -> dict[str, str]:
    """Maps every package to the interpreter that runs it; one without a name is all others'."""
    packages = dict.fromkeys(package for _, package, _ in FORMS.values())
    given = dict(o.split("=", 1) if "=" in o else ("", o) for o in options)
    unknown = given.keys() - {"", *packages}
    if unknown:
        raise typer.BadParameter(f"unknown {sorted(unknown)}; known: {', '.join(packages)}")
    others = {p: given.get("", sys.executable) for p in packages if p != "tvmgraph"}
    return {"tvmgraph": sys.executable} | others | given


def _measure(python: str, form: str, size: str, repeats: int) -> dict[str, Any] | None:
    command = [python, "-m", "benchmarks.peers.language", form, size, str(repeats)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | _ONE_THREAD
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"ended with status {done.returncode}"]
        if done.returncode < 0:
            last = [f"ended by {signal.Signals(-done.returncode).name}"]
        typer.echo(f"{form}: {last[0]}")
        return None
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    app()
