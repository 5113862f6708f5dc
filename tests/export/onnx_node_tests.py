"""ONNX's own node tests, as the ``onnx`` package ships them, on imported models.

``python -m tests.export.onnx_node_tests`` writes the table in ``docs/onnx.md``.
"""

from __future__ import annotations

import functools
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

import tvmgraph as ms
from tvmgraph import Tensor
from tvmgraph.errors import TvmgraphError

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "onnx.md"
MARKS = ("<!-- node tests -->", "<!-- end of node tests -->")

#: Cases that run and whose numbers differ, with the reason.
DIFFERENT = {
    "_bf16": "intermediate results are rounded to bfloat16 at other places",
    "_fp16": "intermediate results are rounded to float16 at other places",
}


@functools.cache
def cases() -> list[Any]:
    """All node tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tests' own divisions by zero
        import onnx.backend.test.loader as loader

        return loader.load_model_tests(kind="node")


#: Errors of captured models, with the reason.
REASONS = {
    "depends on values": "a shape, or the length of a loop, depends on the values of inputs",
    "not known": "a shape, or the length of a loop, depends on the values of inputs",
    "cannot be compiled": "an operator that only NumPy runs: matrices are factorised eagerly",
    "has no ONNX form": "an operator of this package without an ONNX form",
}


def tensor(value: Any) -> Any:
    """Returns a test's input as a tensor, a list of them, or ``None``."""
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    if isinstance(value, (list, tuple)):
        return [tensor(v) for v in value]
    return None if value is None else Tensor(wide(np.asarray(value)))


#: Types that tensors lack, by the one that holds their values.
_WIDE = {"float8": np.float32, "float4": np.float32, "int4": np.int8, "int2": np.int8,
         "uint4": np.uint8, "uint2": np.uint8}  # fmt: skip


def wide(array: np.ndarray) -> np.ndarray:
    """Returns an array of a narrow type in the type that holds its values."""
    kind = next((w for name, w in _WIDE.items() if array.dtype.name.startswith(name)), None)
    return array if kind is None else array.astype(kind)


def difference(found: Any, expected: Any, rtol: float, atol: float) -> str:
    """Returns how an output differs from the expected one, or ``""``."""
    if isinstance(expected, (list, tuple)):
        if len(found) != len(expected):
            return f"{len(found)} elements, not {len(expected)}"
        parts = (difference(f, e, rtol, atol) for f, e in zip(found, expected))
        return next(filter(None, parts), "")
    if isinstance(expected, onnx.TensorProto):
        expected = numpy_helper.to_array(expected)
    a = found.asnumpy() if isinstance(found, Tensor) else np.asarray(found)
    b = wide(np.asarray(expected))
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype}{a.shape}, not {b.dtype}{b.shape}"
    if a.dtype.kind not in "biuf":
        a, b = a.astype(np.float32), b.astype(np.float32)
    if a.dtype == np.bool_:
        return "" if np.array_equal(a, b) else "other elements"
    return "" if np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True) else "other numbers"


def compare(case: Any, found: Sequence[Any], expected: Sequence[Any]) -> str:
    """Returns how outputs differ from a test's, or ``""``."""
    if len(found) != len(expected):
        return f"{len(found)} outputs, not {len(expected)}"
    tolerances = max(case.rtol, 1e-3), max(case.atol, 1e-5)
    problems = (difference(f, e, *tolerances) for f, e in zip(found, expected))
    return next(filter(None, problems), "")


def why_not(e: TvmgraphError) -> str:
    """Returns an error as one line."""
    return f"{e.message}: {e.got}" if e.got and e.op == "onnx.load" else e.message


_results: dict[str, str] = {}


def run(case: Any) -> str:
    """Runs one test eagerly, once; returns why it fails, or ``""``."""
    if case.name not in _results:
        _results[case.name] = _run(case)
    return _results[case.name]


def _run(case: Any) -> str:
    try:
        net: Any = ms.onnx.load(case.model)
        for inputs, outputs in case.data_sets:
            found = net(*[tensor(v) for v in inputs])
            problem = compare(case, found if isinstance(found, tuple) else (found,), outputs)
            if problem:
                return problem
    except TvmgraphError as e:
        return why_not(e)
    return ""


def reason(case: Any, problem: str) -> str:
    """Returns the written reason for a failure; ``""`` if there is none."""
    if problem in ("other numbers", "other elements") and _draws(case):
        return "random numbers: ONNX does not define the generator"
    if problem == "other numbers":
        return next((why for part, why in DIFFERENT.items() if part in case.name), "")
    if "not a supported dtype" in problem or problem.startswith("element type"):
        return "strings: tensors hold numbers"
    if "operators that are not supported" in problem:
        return _missing(problem.rsplit(": ", 1)[1])
    return next((why for part, why in REASONS.items() if part in problem), "")


def _missing(operators: str) -> str:
    if operators.startswith("ai.onnx.ml"):
        return "operators of classical machine learning"
    if any(w in operators for w in ("String", "Regex", "TfIdf")):
        return "strings: tensors hold numbers"
    if "Image" in operators:
        return "decoding of image files"
    return ""


def _draws(case: Any) -> bool:
    return "bernoulli" in case.name or "training_dropout" in case.name


def operator(case: Any) -> str:
    """Returns the operator a test is about."""
    expanded = "_expanded" in case.name
    name = case.model.graph.node[0].op_type if not expanded else ""
    return name or "(definitions of operators by others)"


COLUMNS = ("eager", "compiled", "exported again")


def table() -> str:
    """Returns the report as Markdown."""
    from tests.export.onnx_node_graphs import Batch

    total: Counter[str] = Counter()
    passed = {c: Counter[str]() for c in COLUMNS}
    reasons = {c: defaultdict[str, Counter[str]](Counter) for c in COLUMNS}
    eager = {case.name: run(case) for case in cases()}
    batch = Batch([c for c in cases() if not eager[c.name]])
    for case in cases():
        name = operator(case)
        total[name] += 1
        problems = (eager[case.name], *batch.problems(case.name))
        for column, problem in zip(COLUMNS, problems):
            passed[column][name] += not problem
            if problem:
                why = reason(case, problem) or f"unexplained: {problem}"
                reasons[column][why][name] += 1
            if problem and column == "eager":
                break  # what does not run does not compile either
    return "\n".join([*_summary(total, passed, reasons), *_rows(total, passed)])


def _summary(total: Any, passed: Any, reasons: Any) -> list[str]:
    counts = [f"{sum(passed[c].values())} {c}" for c in COLUMNS]
    lines = [
        f"Of {sum(total.values())} tests (onnx {onnx.__version__}) pass {', '.join(counts)}; "
        "the others, by reason (a test that fails eagerly is listed there only):",
        "",
        "| mode | reason | tests | operators |",
        "|---|---|---|---|",
    ]
    for column in COLUMNS:
        for why, names in sorted(reasons[column].items(), key=lambda x: -sum(x[1].values())):
            listed = ", ".join(f"{n} {c}" for n, c in sorted(names.items()))
            lines.append(f"| {column} | {why} | {sum(names.values())} | {listed} |")
    return lines


def _rows(total: Any, passed: Any) -> list[str]:
    lines = ["", f"| operator | {' | '.join(COLUMNS)} | of |", "|---|---|---|---|---|"]
    for n in sorted(total):
        lines.append(f"| {n} | {' | '.join(str(passed[c][n]) for c in COLUMNS)} | {total[n]} |")
    return lines


def documented() -> dict[str, tuple[int, ...]]:
    """Returns the numbers of the document's table: passed by column, and all, by operator."""
    rows = (line.strip("| ").split(" | ") for line in DOCUMENT.read_text().splitlines())
    width = len(COLUMNS) + 2
    return {
        r[0]: tuple(map(int, r[1:])) for r in rows if len(r) == width and r[1].strip().isdigit()
    }


def main() -> None:
    """Writes the table into the document."""
    before, rest = DOCUMENT.read_text().split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    DOCUMENT.write_text(f"{before}{MARKS[0]}\n\n{table()}\n\n{MARKS[1]}{after}")


if __name__ == "__main__":
    main()
