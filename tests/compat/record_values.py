"""Records what MindSpore gives for the calls: ``python -m tests.compat.record_values``.

It runs at the root of the repository, where MindSpore is installed.
"""

from __future__ import annotations

import importlib
import json
import lzma
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.compat.cases import differentiated, inputs

HERE = Path(__file__).parent
TABLES = {"numpy": "NUMPY", "nn": "NN", "ops": "OPS"}


def arrays(value: Any) -> list[np.ndarray]:
    """Flattens nested results."""
    if isinstance(value, (tuple, list)):
        return [a for v in value for a in arrays(v)]
    return [np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value)]


def packed(array: Any) -> list[Any]:
    """Returns dtype, shape and elements, complex ones as pairs, with seven digits."""
    parts = array.ravel()
    if parts.dtype.kind == "U":
        return [str(array.dtype), array.shape, parts.tolist()]
    if parts.dtype.kind == "c":
        parts = parts.view(parts.real.dtype)
    return [str(array.dtype), array.shape, [float(f"{v:.7g}") for v in parts.tolist()]]


def unpacked(dtype: str, shape: list[int], elements: list[Any]) -> np.ndarray:
    """Returns the array of :func:`packed`."""
    kind: Any = np.dtype(dtype)
    if kind.kind == "U":
        return np.array(elements, kind).reshape(shape)
    plain = np.zeros(0, kind).real.dtype if kind.kind == "c" else kind
    return np.array(elements).astype(plain).view(kind).reshape(shape)


def expected(name: str) -> dict[str, np.ndarray]:
    """Returns the recorded arrays of a table, by call and part."""
    text = lzma.decompress((HERE / f"expected_{name}.json.xz").read_bytes())
    return {k: unpacked(*v) for k, v in json.loads(text).items()}


def table(name: str) -> list[str]:
    """Returns the calls of ``cases_<name>.py``."""
    return getattr(importlib.import_module(f"tests.compat.cases_{name}"), TABLES[name])


def flat(value: Any) -> list[Any]:
    """Returns the tensors of floats of nested results."""
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in flat(v)]
    return [value] if "loat" in str(getattr(value, "dtype", "")) else []


def scalar(value: Any, squared: Any) -> Any:
    """Returns a number that depends on each element of the results."""
    return sum((squared(t) * (k + 1) for k, t in enumerate(flat(value))), 0.0)


def record(call: str, scope: dict[str, Any], ms: Any) -> dict[str, np.ndarray]:
    """Returns the results of a call, and its gradient where there is one."""
    found = {f".{k}": a for k, a in enumerate(arrays(eval(call.lstrip("!"), dict(scope))))}
    by = differentiated(call)
    if by is None:
        return found

    def loss(t: Any) -> Any:
        value = eval(call, scope | {by: t})
        return scalar(value, lambda r: (r.astype(ms.float32) ** 2).sum() + r.sum())

    try:
        gradient = ms.grad(loss)(scope[by]).asnumpy()
    except Exception as error:  # MindSpore has no gradient: none is compared
        print("no gradient:", call, str(error).splitlines()[0][:80])
        return found
    return found | {".grad": gradient} if np.any(gradient) else found


def optimizers(ms: Any) -> dict[str, np.ndarray]:
    """Returns the results of :mod:`.cases_optimizers`."""
    from tests.compat.cases_optimizers import OPTIMIZERS, SCHEDULES, run

    optim = importlib.import_module("mindspore.experimental.optim")
    found = {}
    for call in OPTIMIZERS + SCHEDULES:
        found |= {f"{call}.{k}": a for k, a in enumerate(arrays(run(call, ms, optim)))}
    return found


def transforms(ms: Any) -> dict[str, np.ndarray]:
    """Returns the results of :mod:`.cases_dataset`."""
    from tests.compat import cases_dataset

    rooms = {n: importlib.import_module(f"mindspore.dataset.{n}") for n in cases_dataset.ROOMS}
    found = {}
    for call in cases_dataset.DATASET:
        try:
            value = eval(call, cases_dataset.inputs() | rooms | {"ms": ms, "np": np})
        except Exception as error:
            print("refused:", call, type(error).__name__, str(error).splitlines()[0][:100])
            continue
        found |= {f"{call}.{k}": a for k, a in enumerate(arrays(value))}
    return found


def write(name: str, found: dict[str, np.ndarray]) -> None:
    """Writes the recorded arrays of a table."""
    text = json.dumps({k: packed(a) for k, a in found.items()}, separators=(",", ":"))
    (HERE / f"expected_{name}.json.xz").write_bytes(lzma.compress(text.encode()))


def main() -> None:
    """Writes the files of the tables that the command line names, or of all."""
    ms = importlib.import_module("mindspore")
    if sys.argv[1:] in ([], ["optimizers"]):
        write("optimizers", optimizers(ms))
    if sys.argv[1:] in ([], ["dataset"]):
        write("dataset", transforms(ms))
    scope = inputs(ms.Tensor) | {"ms": ms, "nn": ms.nn, "ops": ms.ops, "np": ms.numpy,
        "P": lambda t: ms.Parameter(t * 1)}  # fmt: skip
    for name in [n for n in TABLES if not sys.argv[1:] or n in sys.argv]:
        found = {}
        for call in table(name):
            try:
                found |= {call + k: a for k, a in record(call, scope, ms).items()}
            except Exception as error:
                print("refused:", call, type(error).__name__, str(error).splitlines()[0][:100])
        write(name, found)


if __name__ == "__main__":
    main()
