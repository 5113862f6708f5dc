"""Peak memory of training steps, ours beside PyTorch's: ``python -m benchmarks.memory``."""

import subprocess
import sys

import typer

from benchmarks.peers.memory import MEASURES
from benchmarks.report import render
from benchmarks.results import Results
from benchmarks.run import Data, Out, Pythons, Rows, interpreters, select
from benchmarks.training_rows import TRAINING

app = typer.Typer(add_completion=False)


@app.command()
def main(rows: Rows = "", out: Out = None, data: Data = None, python: Pythons = None) -> None:
    """Measure the peak memory of training steps and add it to the results."""
    pythons = interpreters(python or [], list(MEASURES))
    results = Results.load(data) if data is not None else Results()
    for row in select(rows, dict(TRAINING), "row"):
        results.memory[row] = found = {p: _measure(pythons[p], p, row) for p in MEASURES}
        typer.echo(f"{row:32s} " + "  ".join(f"{p} {n / 2**20:.1f} MiB" for p, n in found.items()))
    if data is not None:
        results.save(data)
    if out is not None:
        out.write_text(render(results))


def _measure(python: str, peer: str, row: str) -> int:
    command = [python, "-m", "benchmarks.peers.memory", peer, row]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{peer} failed on {row}:\n{done.stderr}")
    return int(done.stdout.split()[-1])


if __name__ == "__main__":
    app()
