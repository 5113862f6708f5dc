"""Runs the bundle on a machine with a GPU: ``python3 gpu_run.py OUT [--seconds N]``.

Needs NumPy and the bundle only. With PyTorch and JAX installed the timed rows are compared with
them, interleaved. What matters most comes first, and every phase has a time of its own; results are
written after every item. Items run in processes of their own: a GPU's fault, or a peer that
compiles for too long, costs one item of one phase, and the next process goes on behind it.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_COMPILED = ("mlp", "bert_layer", "resnet50")  # rows whose bar is torch.compile, quickest first


@dataclass(frozen=True)
class Phase:
    """One part of the check.

    Attributes:
        name: What :mod:`gpu_item` is told to do.
        rows: Which items: ``all``, ``timed``, or the names of some.
        seconds: Time for the phase.
        item: Time for one of its items.
    """

    name: str
    rows: tuple[str, ...] | str
    seconds: float
    item: float


#: What a phase does not need is left to those behind it; the last one takes all that is left.
PHASES = (
    Phase("own", "all", 160, 60),
    Phase("torch", "timed", 90, 45),
    Phase("profile", "timed", 40, 25),
    Phase("compile", _COMPILED[:2], 80, 60),
    Phase("jax", "timed", 50, 25),
    Phase("compile", _COMPILED[2:], 400, 400),
)


def main() -> int:
    """Runs all phases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="folder for results.json and results.md")
    parser.add_argument("--seconds", type=float, default=420, help="time for everything")
    parser.add_argument("--emulator", default="", help="folder of an emulated driver")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    items = json.loads((_HERE / "items.json").read_text())
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if items["python"] != here:
        print(f"the bundle is for Python {items['python']}, this is {here}: build it with "
              f"python -m benchmarks.gpu_bundle BUNDLE --python {here}")  # fmt: skip
        return 2
    report = run_all(items, options)
    print(render(report))
    return 1 if report["problems"] else 0


def run_all(items: dict[str, Any], options: Any) -> dict[str, Any]:
    """Runs the phases within the time; returns the report, which is written after every item."""
    deadline = time.monotonic() + options.seconds
    report: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": "none", "results": {}, "phases": {}, "not compiled": items["failed"],
        "problems": 0,
    }  # fmt: skip
    for phase in PHASES:
        start = time.monotonic()
        names = _names(phase, items["items"])
        until = min(deadline, start + phase.seconds)
        for result in _in_children(phase, names, options.emulator, until):
            _merge(report, phase.name, result)
            print(f"[{phase.name}] {_line(result)}", flush=True)
            _write(report, options.out)
        taken = report["phases"].get(phase.name, 0.0) + time.monotonic() - start
        report["phases"][phase.name] = round(taken, 1)
        if report["device"] == "none":
            break  # no GPU: nothing else can be found out
    _write(report, options.out)
    return report


def _names(phase: Phase, entries: list[dict[str, Any]]) -> list[str]:
    timed = [e["name"] for e in entries if e["timed"]]
    if phase.rows == "all":
        return [*timed, *(e["name"] for e in entries if not e["timed"])]
    return timed if phase.rows == "timed" else [n for n in timed if n in phase.rows]


def _merge(report: dict[str, Any], phase: str, result: dict[str, Any]) -> None:
    """Adds what a phase found to what is known of an item."""
    known = report["results"].setdefault(
        result["name"], {"name": result["name"], "wrong": [], "checked": 0, "notes": {}}
    )
    known["wrong"] += result.get("wrong", [])
    known["checked"] += result.get("checked", 0)
    seconds, ratios = result.get("seconds", {}), result.get("ratios", {})
    known["seconds"] = {**seconds, **known.get("seconds", {})}  # ours as it was alone
    known["ratios"] = {**known.get("ratios", {}), **ratios}
    known |= {k: result[k] for k in ("flops", "bytes", "profile") if k in result}
    known["notes"] |= result.get("peers", {})
    for kind in ("error", "late"):
        if result.get(kind):
            known["notes"][phase] = result[kind]
    ended = result.get("late", "") if "exit status" in result.get("late", "") else ""
    if phase == "own" and (result.get("error") or ended):
        known["error"] = result.get("error") or ended
        known["traceback"] = result.get("traceback", "")
    report["device"] = result.get("device", report["device"])
    report["problems"] = sum(bool(r.get("error") or r["wrong"]) for r in report["results"].values())


# ---- processes ----------------------------------------------------------------------------------


def _in_children(
    phase: Phase, names: list[str], emulator: str, until: float
) -> Iterator[dict[str, Any]]:
    """Yields a report of every item; a process that ends early is followed by another one."""
    waiting = list(names)
    while waiting:
        if until - time.monotonic() < 3:
            yield from ({"name": n, "error": "no time was left"} for n in waiting)
            return
        with tempfile.TemporaryFile("w+") as errors:
            for result in _one_child(phase, waiting, emulator, until, errors):
                waiting.remove(result["name"])
                yield result


def _one_child(
    phase: Phase, names: list[str], emulator: str, until: float, errors: Any
) -> Iterator[dict[str, Any]]:
    command = [sys.executable, str(_HERE / "gpu_item.py"), phase.name, *names]
    process = subprocess.Popen(
        [*command, *(["--emulator", emulator] if emulator else [])], stdout=subprocess.PIPE,
        stderr=errors, text=True, env={**os.environ, "TVM_NUM_THREADS": "1"},
        start_new_session=True,
    )  # fmt: skip
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
    try:
        for name in list(names):
            limit = min(until, time.monotonic() + phase.item)
            result = _await(name, lines, limit)
            if result is None or not result.pop("done", False):
                yield _cut_short(name, result, process, errors, time.monotonic() >= limit)
                return
            yield result
    finally:
        _end(process)


def _read(stream: Any, lines: queue.Queue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _await(name: str, lines: queue.Queue[str | None], limit: float) -> dict[str, Any] | None:
    """The last report of an item that came before the limit."""
    known: dict[str, Any] | None = None
    while True:
        try:
            line = lines.get(timeout=max(0.0, limit - time.monotonic()))
        except queue.Empty:
            return known
        if line is None:
            return known
        if line.startswith('{"name"'):
            found = json.loads(line)
            known = found if found["name"] == name else known
            if known is not None and known["done"]:
                return known


def _cut_short(
    name: str, known: dict[str, Any] | None, process: Any, errors: Any, late: bool
) -> dict[str, Any]:
    """The report of an item whose process was too slow, or ended."""
    if late:
        why = "its time was over"
    else:
        status = process.wait()
        errors.seek(0)
        why = f"exit status {status}: {errors.read().strip()[-1500:]}"
    return {**known, "late": why} if known else {"name": name, "error": why}


def _end(process: Any) -> None:
    """Ends a process with those that it started: compilers of PyTorch's."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


# ---- the report ---------------------------------------------------------------------------------


def _write(report: dict[str, Any], out: Path) -> None:
    for name, text in (("json", json.dumps(report, indent=1)), ("md", render(report))):
        part = out / f".results.{name}.part"
        part.write_text(text)
        part.replace(out / f"results.{name}")


def _line(result: dict[str, Any]) -> str:
    why = result.get("error") or result.get("late")
    times = ", ".join(f"{k} {v * 1e3:.3f} ms" for k, v in result.get("seconds", {}).items())
    wrong = f", wrong: {', '.join(result['wrong'])}" if result.get("wrong") else ""
    kernels = f", {len(result['profile'])} kernels" if "profile" in result else ""
    checked = f"{result.get('checked', 0)} outputs checked{wrong}{kernels} {times}"
    return f"{result['name']}: {why.splitlines()[0]}; {checked}" if why else (
        f"{result['name']}: {checked}"
    )  # fmt: skip


def render(report: dict[str, Any]) -> str:
    """Returns the report as Markdown."""
    results = list(report["results"].values())
    timed = [r for r in results if "tvmgraph" in r.get("seconds", {})]
    peers = list(dict.fromkeys(n for r in timed for n in r["ratios"] if n != "tvmgraph"))
    checked = sum(r["checked"] for r in results)
    lines = [
        f"Device: {report['device']}, {report['date']}.", "",
        f"{checked} outputs checked; problems in {report['problems']} of {len(results)} items; "
        f"{len(report['not compiled'])} operators not compiled. Seconds per phase: "
        + ", ".join(f"{k} {v:.0f}" for k, v in report["phases"].items()), "",
        "Ours in ms; of the peers how many times ours they take, interleaved.", "",
        "| row | tvmgraph (ms) | TFLOP/s or GB/s | " + " | ".join(peers) + " |",
        "|---|---|---|" + "---|" * len(peers),
    ]  # fmt: skip
    for r in timed:
        own = r["seconds"]["tvmgraph"]
        rate = f"{r['flops'] / own / 1e12:.1f}" if r["flops"] else f"{r['bytes'] / own / 1e9:.0f}"
        ratios = [f"{r['ratios'][p]:.2f}" if p in r["ratios"] else "" for p in peers]
        lines.append(f"| {r['name']} | {own * 1e3:.3f} | {rate} | {' | '.join(ratios)} |")
    lines += ["", *(f"- {r['name']}: {w}" for r in results for w in r["wrong"])]
    lines += [
        f"- {r['name']}, {phase}: {note.splitlines()[0]}"
        for r in results for phase, note in r["notes"].items()
    ]  # fmt: skip
    lines += [
        f"- {n}: not compiled: {e.splitlines()[0]}" for n, e in report["not compiled"].items()
    ]
    for r in results:
        if "profile" in r:
            lines += ["", f"Kernels of {r['name']}, µs of a call:", ""]
            lines += [f"- {us:.1f} ({count} x) {key}" for key, count, us in r["profile"]]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
