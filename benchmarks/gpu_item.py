"""One process of the check on a GPU: runs some items of the bundle and prints what it found.

Every line of output is one report; an item's last one has ``"done": true``. What is known is
printed as soon as it is, since a GPU's fault or a peer that compiles for minutes ends the process.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
sys.path[:0] = [str(_HERE / "runtime"), str(_HERE)]
_ROUNDS = 5
_SECONDS = 0.1  # of one round of one candidate
_CALLS = (3, 2000)  # at least and at most, in one round
_PROFILED = 10  # calls


def main() -> int:
    """Runs the items that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("phase", help="own, profile, or a group of peers: torch, compile, jax")
    parser.add_argument("names", nargs="+", help="items")
    parser.add_argument("--emulator", default="", help="folder of an emulated driver")
    options = parser.parse_args()
    items = {e["name"]: e for e in json.loads((_HERE / "items.json").read_text())["items"]}
    for name in options.names:
        run_item(items[name], options.phase, options.emulator)
    return 0


def run_item(entry: dict[str, Any], phase: str, emulator: str) -> None:
    """Runs one item and prints what was found out."""
    result: dict[str, Any] = {"name": entry["name"], "wrong": [], "checked": 0}
    try:
        if phase not in ("own", "jax") and importlib.util.find_spec("torch") is not None:
            import torch  # noqa: F401  # first, so that CUDA's libraries are those it was built with
        _use(emulator)
        from tvmgraph.runtime import cuda

        result["device"] = str(cuda.device(0))
        _run(entry, phase, result)
    except Exception as e:
        result["error"] = f"{type(e).__name__}: {e}"
        result["traceback"] = traceback.format_exc()
    _say(result, done=True)


def _say(result: dict[str, Any], done: bool = False) -> None:
    print(json.dumps({**result, "done": done}), flush=True)


def _use(emulator: str) -> None:
    if emulator:
        import ctypes

        for name in ("libcuda.so.1", "libcudart.so.13"):
            ctypes.CDLL(f"{emulator}/{name}", mode=ctypes.RTLD_GLOBAL)


def _run(entry: dict[str, Any], phase: str, result: dict[str, Any]) -> None:
    import numpy as np
    from gpu_inputs import Recipe, from_storable

    from tvmgraph.runtime import load
    from tvmgraph.runtime.device_copy import upload

    stored = np.load(_HERE / "items" / f"{entry['name']}.npz")
    arrays = []
    for i, data in enumerate(entry["inputs"]):
        recipe = Recipe.from_json(data)
        kept = from_storable(stored[f"in{i}"], recipe.dtype) if f"in{i}" in stored else None
        arrays.append(recipe.make(kept))
    module = load(_HERE / "items" / f"{entry['name']}.tvm")
    if phase == "profile":
        result["profile"] = _profile(module, [upload(a, 0) for a in arrays])
        return
    found = module(*arrays)
    outputs = found if isinstance(found, tuple) else (found,)
    if phase == "own":
        _check(entry, stored, outputs, result)
    if entry["timed"]:
        result["flops"], result["bytes"] = entry["flops"], entry["bytes"]
        own = module.bound(*[upload(a, 0) for a in arrays])
        _time(entry, phase, arrays, outputs, own, result)


def _check(entry: dict[str, Any], stored: Any, outputs: Any, result: dict[str, Any]) -> None:
    from gpu_inputs import from_storable, some

    for i, dtype in enumerate(entry["expected"]):
        expected = from_storable(stored[f"out{i}"], dtype)
        result["checked"] += 1
        seen = some(outputs[i])
        if not close(seen, expected, entry["rtol"][i]):
            result["wrong"].append(f"{entry['outputs'][i]} ({difference(seen, expected)})")


def _time(
    entry: Any, phase: str, arrays: Any, outputs: Any, own: Any, result: dict[str, Any]
) -> None:
    """Times a row, beside the peers of a phase one after the other."""
    import gpu_peers
    from gpu_inputs import some

    calls = {"tvmgraph": own}
    if phase == "own":
        _note(result, measure(calls))
        return
    for name, make in gpu_peers.makers(phase, entry["name"], arrays, entry["labels"]).items():
        try:
            call, to_numpy = make()
            if name != "copy":
                result["checked"] += 1
                if not close(some(outputs[0]), some(to_numpy(call())), entry["rtol"][0]):
                    result["wrong"].append(f"{name} computes something else")
        except Exception as e:  # a peer that does not run says nothing about us
            result.setdefault("peers", {})[name] = f"{type(e).__name__}: {str(e)[:200]}"
            continue
        calls[name] = call
        _note(result, measure(calls))


def _note(result: dict[str, Any], seconds: dict[str, float]) -> None:
    """Notes times, and the peers' as multiples of ours in the same rounds."""
    result["seconds"] = seconds
    result["ratios"] = {k: v / seconds["tvmgraph"] for k, v in seconds.items()}
    _say(result)


def _profile(module: Any, arrays: list[Any]) -> list[tuple[str, int, float]]:
    """Kernels of a call with how often they run and their microseconds, by PyTorch's profiler."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    module(*arrays)
    with profile(activities=[ProfilerActivity.CUDA]) as heard:
        for _ in range(_PROFILED):
            module(*arrays)
        torch.cuda.synchronize()
    rows = [
        (e.key, round(e.count / _PROFILED), e.device_time_total / _PROFILED)
        for e in heard.key_averages()
        if e.device_time_total > 0  # not the calls of CUDA's runtime
    ]
    if not rows:
        raise RuntimeError("PyTorch's profiler saw no kernels: CUPTI does not work here")
    return sorted(rows, key=lambda row: -row[2])


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

    counts, (least, most) = {}, _CALLS
    for name, call in calls.items():
        call()
        counts[name] = max(least, min(most, int(_SECONDS / max(seconds(call, least), 1e-7))))
    rounds = {name: [] for name in calls}
    for _ in range(_ROUNDS):
        for name, call in calls.items():
            rounds[name].append(seconds(call, counts[name]))
    return {name: sorted(values)[_ROUNDS // 2] for name, values in rounds.items()}


if __name__ == "__main__":
    sys.exit(main())
