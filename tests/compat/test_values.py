"""Names of MindSpore give what MindSpore gives: values, shapes, dtypes and gradients."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tests.compat.cases import differentiated, inputs
from tests.compat.record_values import TABLES, arrays, expected, scalar, table
from tvmgraph import Tensor, nn, ops

BATCH = 40  # calls that are compiled as one graph

#: Calls in which MindSpore is not followed, each with the reason.
DIFFERENT: dict[str, str] = {
    "np.mean(i, 0)": "MindSpore cuts the mean of integers to an integer",
    "!ops.ApplyFtrl()(P(x), P(p), P(y), y, 0.1, 0.2, 0.3, -0.5)": "its kernel on the CPU takes the"
    " sign of negative numbers for 1; test_single compares with nn.FTRL",
    "!ops.ApplyAdagradDA()(P(x), P(y), P(p), y, 0.1, 0.2, 0.3, 2)": "the same",
}

#: Calls of which MindSpore's gradient is wrong; they are compared with central differences.
WRONG_GRADIENTS = (
    "np.flip(x, 1)", "np.fliplr(x)", "np.interp(v, [-1.0, 0, 1], [2.0, 4, 8])",
    "np.interp(v, [-0.5, 0, 0.5], [2.0, 4, 8], left=-1, right=9)", "np.pad(v, (2, 3), 'reflect')",
    "np.pad(v, (2, 3), 'symmetric')", "np.pad(v, (2, 3), 'reflect', reflect_type='odd')",
    "ops.hfft(ops.fft(x))", "ops.hfft(ops.fft(x), 5)", "ops.hfft(ops.fft(x), 6, 1, 'ortho')",
    "ops.hfft(ops.fft(x), norm='forward')",
    "ops.ROIAlign(3, 2, 1.0, 1, 0)(img, T([[1, -3, 1, 4.5, 4.2], [0, 2, 2, 8, 9]], ms.float32))",
)  # fmt: skip

CALLS = [(name, call) for name in TABLES for call in table(name) if call not in DIFFERENT]
recorded = functools.cache(expected)


def scope() -> dict[str, Any]:
    """Returns what the calls name."""
    mnp = importlib.import_module("tvmgraph.numpy")
    return inputs(Tensor) | {"ms": ms, "nn": nn, "ops": ops, "np": mnp,
        "P": lambda t: ms.Parameter(t * 1)}  # fmt: skip


def wanted(name: str, call: str) -> list[np.ndarray]:
    """Returns the recorded results of a call."""
    found = recorded(name)
    return [found[f"{call}.{k}"] for k in range(len(found)) if f"{call}.{k}" in found]


def compare(found: Any, want: list[np.ndarray], tolerance: float = 2e-5) -> None:
    """Asserts equal shapes, dtypes and nearly equal elements."""
    got = arrays(found)
    assert [(g.shape, str(g.dtype)) for g in got] == [(w.shape, str(w.dtype)) for w in want]
    for g, w in zip(got, want):
        near = 2e-3 if w.dtype == np.float16 else tolerance
        np.testing.assert_allclose(g, w, rtol=near, atol=near)


@pytest.mark.parametrize("name, call", CALLS, ids=lambda v: v[:70])
def test_eager(name: str, call: str) -> None:
    want = wanted(name, call)
    assert want, "nothing is recorded"
    compare(eval(call.lstrip("!"), scope()), want)


def batches() -> Iterator[tuple[str, list[str]]]:
    """Yields the calls that are compiled together."""
    for name in TABLES:
        calls = [c for c in table(name) if c[0] != "!" and c not in DIFFERENT]
        for start in range(0, len(calls), BATCH):
            yield name, calls[start : start + BATCH]


@pytest.mark.parametrize(
    "name, calls", list(batches()), ids=lambda v: v if isinstance(v, str) else ""
)
def test_compiled(name: str, calls: list[str]) -> None:
    space = scope()
    tensors = {k: v for k, v in space.items() if isinstance(v, Tensor)}
    others = {k: v for k, v in space.items() if k not in tensors}
    made = [eval(f"lambda {', '.join(tensors)}: {c}", dict(others)) for c in calls]
    found = ms.jit(lambda *given: [f(*given) for f in made])(*tensors.values())
    for call, value in zip(calls, found):
        with _named(call):
            compare(value, wanted(name, call))


@pytest.mark.parametrize("name", TABLES)
def test_gradients(name: str) -> None:
    for call in (c for c in table(name) if f"{c}.grad" in recorded(name)):
        want = differences(call) if call in WRONG_GRADIENTS else recorded(name)[f"{call}.grad"]
        with _named(call):
            compare(ms.grad(loss_of(call)[0])(loss_of(call)[1]), [want], 2e-3)


def loss_of(call: str) -> tuple[Callable[[Any], Tensor], Tensor]:
    """Returns :func:`.record_values.scalar` of a call as a function, and its argument."""
    space, by = scope(), differentiated(call)
    assert by

    def loss(t: Any) -> Any:
        value = eval(call, space | {by: t})
        return scalar(value, lambda r: (r.astype(ms.float32) ** 2).sum() + r.sum())

    return loss, space[by]


def differences(call: str, step: float = 1e-2) -> np.ndarray:
    """Returns central differences, which are exact for the quadratic losses of linear calls."""
    loss, at = loss_of(call)
    base = at.asnumpy()
    found = np.zeros_like(base)
    for place in np.ndindex(base.shape):
        off = np.zeros_like(base)
        off[place] = step
        found[place] = (loss(Tensor(base + off)) - loss(Tensor(base - off))).item() / (2 * step)
    return found


class _named:  # noqa: N801  (reads as a function)
    """Names the call in the error of what is done inside."""

    def __init__(self, call: str) -> None:
        self.call = call

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, _: Any) -> None:
        if error is not None:
            error.add_note(f"call: {self.call}")
