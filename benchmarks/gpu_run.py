"""Runs the bundle on a machine with a GPU: ``python3 gpu_run.py OUT [--seconds N]``.

Needs NumPy and the bundle only. With PyTorch (and JAX) installed the timed rows are compared with
them, interleaved. Every item runs in a process of its own, since a GPU's fault ends the process.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
sys.path[:0] = [str(_HERE / "runtime"), str(_HERE)]
_ITEM_SECONDS = 150
_ROUNDS = 5


def main() -> int:
    """Runs all items, or, as a child, one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="folder for results.json and results.md")
    parser.add_argument("--seconds", type=float, default=400, help="time for everything")
    parser.add_argument("--item", default="", help="run only this item, in this process")
    parser.add_argument("--emulator", default="", help="folder of an emulated driver")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    items = json.loads((_HERE / "items.json").read_text())
    if options.item:
        entry = next(e for e in items["items"] if e["name"] == options.item)
        print(json.dumps(run_item(entry, options.emulator)))
        return 0
    report = run_all(items, options)
    text = json.dumps(report, indent=1)
    (options.out / "results.json").write_text(text)
    table = render(report)
    (options.out / "results.md").write_text(table)
    print(table)
    return 1 if report["problems"] else 0


def run_all(items: dict[str, Any], options: Any) -> dict[str, Any]:
    """Runs every item that fits into the time, timed ones first; returns the report."""
    deadline = time.monotonic() + options.seconds
    results: list[dict[str, Any]] = []
    for entry in sorted(items["items"], key=lambda e: not e["timed"]):
        left = deadline - time.monotonic()
        if left < 5:
            results.append({"name": entry["name"], "error": "no time was left"})
            continue
        results.append(_in_child(entry["name"], options, min(left, _ITEM_SECONDS)))
        print(_line(results[-1]), flush=True)
    problems = sum(bool(r.get("error") or r.get("wrong")) for r in results)
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": next((r["device"] for r in results if "device" in r), "none"),
        "results": results, "not compiled": items["failed"], "problems": problems,
    }  # fmt: skip


def _in_child(name: str, options: Any, seconds: float) -> dict[str, Any]:
    command = [sys.executable, __file__, str(options.out), "--item", name]
    if options.emulator:
        command += ["--emulator", options.emulator]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, check=False,
            env={**os.environ, "TVM_NUM_THREADS": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired as e:
        known = _last((e.stdout or b"").decode(errors="replace"))
        late = f"it took more than {seconds:.0f} s"
        return {**known, "late": late} if known else {"name": name, "error": late}
    known = _last(done.stdout)
    if known and (done.returncode == 0 or "seconds" in known):
        return known if done.returncode == 0 else {**known, "late": f"exit {done.returncode}"}
    else:
        tail = (done.stderr or done.stdout).strip()[-1500:]
        return {"name": name, "error": f"exit status {done.returncode}: {tail}"}


def _last(text: str) -> dict[str, Any] | None:
    """The last report that a child printed."""
    for line in reversed(text.splitlines()):
        if line.startswith('{"name"') and line.endswith("}"):
            return json.loads(line)
    return None


def _line(result: dict[str, Any]) -> str:
    if result.get("error"):
        return f"{result['name']}: {result['error'].splitlines()[0]}"
    times = ", ".join(f"{k} {v * 1e3:.3f} ms" for k, v in result.get("seconds", {}).items())
    wrong = f", wrong: {', '.join(result['wrong'])}" if result["wrong"] else ""
    return f"{result['name']}: {result['checked']} outputs checked{wrong} {times}"


# ---- one item -----------------------------------------------------------------------------------


def run_item(entry: dict[str, Any], emulator: str) -> dict[str, Any]:
    """Runs one item; returns what was found out."""
    if emulator:
        import ctypes

        for name in ("libcuda.so.1", "libcudart.so.13"):
            ctypes.CDLL(f"{emulator}/{name}", mode=ctypes.RTLD_GLOBAL)
    result: dict[str, Any] = {"name": entry["name"], "wrong": [], "checked": 0}
    try:
        from tvmgraph.runtime import cuda

        result["device"] = str(cuda.device(0))
        _run(entry, result)
    except Exception as e:
        result["error"] = f"{type(e).__name__}: {e}"
        result["traceback"] = traceback.format_exc()
    return result


def _run(entry: dict[str, Any], result: dict[str, Any]) -> None:
    import numpy as np
    from gpu_inputs import Recipe, from_storable, some

    from tvmgraph.runtime import load
    from tvmgraph.runtime.device_copy import upload

    stored = np.load(_HERE / "items" / f"{entry['name']}.npz")
    arrays = []
    for i, data in enumerate(entry["inputs"]):
        recipe = Recipe.from_json(data)
        kept = from_storable(stored[f"in{i}"], recipe.dtype) if f"in{i}" in stored else None
        arrays.append(recipe.make(kept))
    module = load(_HERE / "items" / f"{entry['name']}.tvm")
    found = module(*arrays)
    outputs = found if isinstance(found, tuple) else (found,)
    for i, dtype in enumerate(entry["expected"]):
        expected = from_storable(stored[f"out{i}"], dtype)
        result["checked"] += 1
        seen = some(outputs[i])
        if not close(seen, expected, entry["rtol"][i]):
            result["wrong"].append(f"{entry['outputs'][i]} ({difference(seen, expected)})")
    if entry["timed"]:
        result["flops"], result["bytes"] = entry["flops"], entry["bytes"]
        own = module.bound(*[upload(a, 0) for a in arrays])
        _time(entry, arrays, outputs, own, result)


def _time(entry: Any, arrays: Any, outputs: Any, own: Any, result: dict[str, Any]) -> None:
    """Times a row, and prints what is known after each peer: some take minutes to compile."""
    import gpu_peers

    calls = {"tvmgraph": own}
    result["seconds"] = measure(calls)
    print(json.dumps(result), flush=True)
    for name, make in gpu_peers.makers(entry["name"], arrays, entry["labels"]).items():
        try:
            call, to_numpy = make()
            if name != "copy":
                result["checked"] += 1
                if not close(outputs[0], to_numpy(call()), entry["rtol"][0]):
                    result["wrong"].append(f"{name} computes something else")
        except Exception as e:  # a peer that does not run says nothing about us
            result.setdefault("peers", {})[name] = f"{type(e).__name__}: {str(e)[:200]}"
            continue
        calls[name] = call
        result["seconds"] = measure(calls)
        print(json.dumps(result), flush=True)


def close(found: Any, expected: Any, rtol: float) -> bool:
    """Whether two arrays agree: within ``rtol`` of the largest element, NaN equal."""
    import numpy as np

    if found.shape != expected.shape:
        return False
    a, b = (np.asarray(x, np.float64) for x in (found, expected))
    finite = np.isfinite(b)
    scale = np.abs(b[finite]).max() if finite.any() else 0.0
    return bool(np.allclose(a, b, rtol=rtol, atol=rtol * scale + 1e-30, equal_nan=True))


def difference(found: Any, expected: Any) -> str:
    """Says how far two arrays are apart."""
    import numpy as np

    if found.shape != expected.shape:
        return f"shape {found.shape}, not {expected.shape}"
    a, b = (np.asarray(x, np.float64) for x in (found, expected))
    with np.errstate(invalid="ignore"):
        worst = np.nanmax(np.abs(a - b)) if a.size else 0.0
    return f"largest error {worst:.3g}, NaN {np.isnan(a).sum()} and {np.isnan(b).sum()}"


def measure(calls: dict[str, Any]) -> dict[str, float]:
    """Returns seconds per call, the median of interleaved rounds."""
    from tvmgraph.runtime import cuda

    def seconds(call: Any, count: int) -> float:
        cuda.call("cudaDeviceSynchronize")
        start = time.perf_counter()
        for _ in range(count):
            call()
        cuda.call("cudaDeviceSynchronize")
        return (time.perf_counter() - start) / count

    counts = {}
    for name, call in calls.items():
        call()
        counts[name] = max(3, min(2000, int(0.1 / max(seconds(call, 3), 1e-7))))
    rounds = {name: [] for name in calls}
    for _ in range(_ROUNDS):
        for name, call in calls.items():
            rounds[name].append(seconds(call, counts[name]))
    return {name: sorted(values)[_ROUNDS // 2] for name, values in rounds.items()}


def render(report: dict[str, Any]) -> str:
    """Returns the report as Markdown."""
    results = report["results"]
    names = [n for r in results for n in r.get("seconds", {})]
    columns = list(dict.fromkeys(names))
    checked = sum(r.get("checked", 0) for r in results)
    lines = [
        f"Device: {report['device']}, {report['date']}.", "",
        f"{checked} outputs checked; problems in {report['problems']} of {len(results)} items; "
        f"{len(report['not compiled'])} operators not compiled.", "",
        "| row | " + " | ".join(f"{c} (ms)" for c in columns) + " | TFLOP/s or GB/s |",
        "|---|" + "---|" * (len(columns) + 1),
    ]  # fmt: skip
    for r in results:
        if "seconds" in r:
            times = [f"{r['seconds'][c] * 1e3:.3f}" if c in r["seconds"] else "" for c in columns]
            own = r["seconds"]["tvmgraph"]
            rate = (
                f"{r['flops'] / own / 1e12:.1f}" if r["flops"] else f"{r['bytes'] / own / 1e9:.0f}"
            )
            lines.append(f"| {r['name']} | {' | '.join(times)} | {rate} |")
    lines += ["", *(f"- {_line(r)}" for r in results if r.get("error") or r.get("wrong"))]
    lines += [
        f"- {n}: not compiled: {e.splitlines()[0]}" for n, e in report["not compiled"].items()
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
