"""Compares random programs of any Python for a while: ``python -m tests.capture SECONDS [folder]``.

Every run goes on where the last one in the folder ended. What differs is written to
``differences/SEED.txt`` there; ``python -m tests.capture --seed SEED`` runs one program again.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
import time
from pathlib import Path

from tests.capture.any_python import CALLS, Found, run_many

_FIRST = 1_000_000  # seeds that no test uses
_BATCH = 1000  # programs of one process; it ends with what it keeps


def campaign(seconds: float, folder: Path) -> None:
    """Compares fresh programs until the time is over, and prints figures as it goes."""
    (folder / "differences").mkdir(parents=True, exist_ok=True)
    state = folder / "state.json"
    known = json.loads(state.read_text()) if state.exists() else {}
    done = {k: known.get(k, 0) for k in ("programs", "broken", "operators", "differences")}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        first = _FIRST + done["programs"]
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found: Found = pool.apply(run_many, (range(first, first + _BATCH),))
        for seed, text in found.differences.items():
            (folder / "differences" / f"{seed}.txt").write_text(text)
        for k in ("programs", "broken", "operators"):
            done[k] += getattr(found, k)
        done["differences"] += len(found.differences)
        state.with_suffix(".new").write_text(json.dumps(done))
        state.with_suffix(".new").replace(state)
        shown = ", ".join(f"{v} {k}" for k, v in done.items())
        print(f"{shown} ({CALLS} calls each)", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--seed":
        for text in run_many([int(sys.argv[2])]).differences.values():
            sys.exit(text)
    else:
        where = sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp(prefix="any-python-")
        campaign(float(sys.argv[1]), Path(where))
