"""Derivatives of rows against finite differences, one sample at a time."""

from __future__ import annotations

import numpy as np

from tvmgraph import Tensor
from tvmgraph.autodiff.tape import GradTape, backward, recording, snapshot
from tvmgraph.testing.samples import Case, has_column

STEP = 1e-6
TOLERANCE = 2e-6


def is_checkable(case: Case) -> bool:
    """Whether finite differences apply: a VJP, float inputs, and the sample does not opt out.

    Args:
        case: The sample.
    """
    kinds = case.sample.dtype
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    floats = any(k.startswith("float") or k == "bfloat16" for k in kinds)
    return has_column(case.op, "vjp") and case.sample.grad and floats


def check_gradient(case: Case) -> None:
    """Compares the VJP with central differences in float64.

    Args:
        case: The sample.

    Raises:
        AssertionError: naming the input whose cotangent is wrong.
    """
    arrays = [a.astype(np.float64) if a.dtype.kind in "fV" else a for a in case.arrays()]
    rng = np.random.default_rng(7)
    outputs, analytic = _vjp(case, arrays, rng)
    for i, (x, g) in enumerate(zip(arrays, analytic)):
        if x.dtype.kind != "f":
            continue
        numeric = _differences(case, arrays, i, outputs)
        scale = max(1.0, float(np.max(np.abs(numeric), initial=0.0)))
        np.testing.assert_allclose(
            g, numeric, rtol=1e-4, atol=TOLERANCE * scale * 10,
            err_msg=f"{case.name}: cotangent of input {i}",
        )  # fmt: skip


def _vjp(
    case: Case, arrays: list[np.ndarray], rng: np.random.Generator
) -> tuple[list[np.ndarray | None], list[np.ndarray]]:
    """Returns the output weights used and the cotangent of every input."""
    tape = GradTape()
    inputs = [Tensor(a) for a in arrays]
    marks = [snapshot(t) for t in inputs]
    with recording(tape):
        results = case.call(inputs)
    kept = [r.dtype.is_float for r in results]
    weights = [rng.standard_normal(r.shape) if k else None for r, k in zip(results, kept)]
    outs = [snapshot(r) for r, k in zip(results, kept) if k]
    sens = [Tensor(w.astype(r.array.dtype)) for w, r in zip(weights, results) if w is not None]
    found = backward(tape, outs, sens)
    zeros = [np.zeros(a.shape) for a in arrays]
    grads = [found[id(m.token)].asnumpy() if id(m.token) in found else z
             for m, z in zip(marks, zeros)]  # fmt: skip
    return weights, grads


def _differences(
    case: Case, arrays: list[np.ndarray], i: int, weights: list[np.ndarray | None]
) -> np.ndarray:
    x = arrays[i]
    result = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        values = []
        for sign in (1, -1):
            moved = [a.copy() for a in arrays]
            moved[i][index] += sign * STEP
            outs = case.call([Tensor(a) for a in moved])
            total = sum(
                float(np.sum(o.asnumpy().astype(np.float64) * w))
                for o, w in zip(outs, weights) if w is not None
            )  # fmt: skip
            values.append(total)
        result[index] = (values[0] - values[1]) / (2 * STEP)
    return result
