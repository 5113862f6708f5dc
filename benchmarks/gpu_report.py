"""Puts what the check on a GPU found into RESULTS.md: ``python -m benchmarks.gpu_report OUT``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.report import render
from benchmarks.results import Results

_HERE = Path(__file__).parent


def main(
    out: Annotated[Path, typer.Argument(help="Folder that benchmarks/gpu.sh wrote to.")],
    data: Annotated[Path, typer.Option(help="Results so far.")] = _HERE / "results.json",
    page: Annotated[Path, typer.Option(help="The page to write.")] = _HERE / "RESULTS.md",
) -> None:
    """Replaces the rows of the device; rows that were not timed stay as they are."""
    report = json.loads((out / "results.json").read_text())
    results = Results.load(data)
    device = report["device"].split(" (")[0]
    kept: dict[str, Any] = results.gpus.setdefault(device, {"rows": {}})
    kept["date"] = report["date"][:10]
    for name, row in report["results"].items():
        if "tvmgraph" in row.get("seconds", {}):
            wrong = "; ".join(row["wrong"]) or row.get("note", "")
            own = row["seconds"]["tvmgraph"]
            kept["rows"][name] = {
                "seconds": {peer: ratio * own for peer, ratio in row["ratios"].items()},
                "flops": row["flops"], "bytes": row["bytes"], "note": wrong,
            }  # fmt: skip
    results.save(data)
    page.write_text(render(results))


if __name__ == "__main__":
    typer.run(main)
