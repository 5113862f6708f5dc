"""Turns samples into arrays and one-node graphs."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import itertools
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import promotion
from tvmgraph.core.op import OPS, Op, Reason, Sample
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import tensor_type
from tvmgraph.errors import DTypeError
from tvmgraph.graph import Graph, GraphBuilder


@dataclass(frozen=True)
class Case:
    """One sample of one row.

    Attributes:
        op: The row.
        index: Position in the row's samples.
        sample: The sample.
        derived: The dtype that it was changed to, if it was.
    """

    op: Op
    index: int
    sample: Sample
    derived: str = ""

    @property
    def name(self) -> str:
        """A readable, unique identifier."""
        return f"{self.op.name}-{self.index}{self.derived}"

    def arrays(self) -> list[np.ndarray]:
        """Generates the arguments; the same ones every time."""
        seed = zlib.crc32(self.name.encode())
        rng = np.random.default_rng(seed)
        s = self.sample
        return [_generate(rng, shape, d, s) for shape, d in zip(s.shapes, kinds(s), strict=True)]

    def tensors(self) -> list[Tensor]:
        """Generates the arguments as tensors."""
        return [Tensor(a) for a in self.arrays()]

    def attrs(self) -> dict[str, object]:
        """Returns all attributes of the call, defaults included, in the row's order."""
        defaults = inspect.signature(self.op.fn).parameters
        given = self.sample.attrs
        names = self.op.attrs + self.op.regions
        return {a: given[a] if a in given else defaults[a].default for a in names}

    def call(self, tensors: list[Tensor]) -> tuple[Tensor, ...]:
        """Calls the public function of the row.

        Args:
            tensors: The tensors among its arguments.
        """
        if self.op.variadic:
            result = self.op.fn(*tensors, **self.sample.attrs)
        else:
            named = dict(zip(self.op.tensors, tensors, strict=True))
            result = self.op.fn(**named, **self.sample.attrs)
        return result if self.op.multi else (result,)

    def cast_arrays(self) -> list[np.ndarray]:
        """Returns the arguments with the dtypes the row's promotion gives them."""
        arrays = self.arrays()
        wanted = promotion.targets(self.op.promote, [dtypes.dtype_of(a.dtype) for a in arrays])
        return [a.astype(d.numpy) for a, d in zip(arrays, wanted)]

    def graph(self) -> Graph:
        """Returns the graph of this one operator."""
        builder = GraphBuilder(self.op.name)
        inputs = [builder.param(tensor_type(a.shape, a.dtype)) for a in self.cast_arrays()]
        return builder.build(builder.call(self.op, inputs, **self.attrs()))


def _generate(rng: np.random.Generator, shape: Any, dtype: str, s: Sample) -> np.ndarray:
    d = dtypes.dtype_of(dtype)
    if isinstance(shape, np.ndarray):
        return shape
    if d is dtypes.bool_:
        return np.asarray(rng.random(shape) < 0.5)
    if d.is_integer:
        return np.asarray(rng.integers(int(s.low), int(s.high) + 1, size=shape), dtype=d.numpy)
    with np.errstate(over="ignore"):  # float16 ends early
        return np.asarray(rng.uniform(s.low, s.high, size=shape), dtype=d.numpy)


def all_cases(*, bad: bool = False) -> Iterator[Case]:
    """Yields every sample of every row: the good ones, or those that must raise.

    Args:
        bad: Whether they are those that must raise.
    """
    import tvmgraph.ops  # noqa: F401

    for name in sorted(OPS):
        for i, s in enumerate(OPS[name].samples):
            if (s.raises is not None) == bad:
                yield Case(OPS[name], i, s)


_FLOATS = ("float16", "bfloat16", "float32", "float64")
_INTEGERS = ("int8", "uint8", "int16", "int32", "int64")


def kinds(s: Sample) -> tuple[str, ...]:
    """Returns the dtype of every generated array of a sample.

    Args:
        s: The sample.
    """
    return s.dtype if isinstance(s.dtype, tuple) else (s.dtype,) * len(s.shapes)


def derived_cases() -> Iterator[Case]:
    """Yields a case for every dtype that a row takes and none of its samples has.

    It is the row's first sample that the row's type rule accepts with that dtype.
    """
    for name, cases in itertools.groupby(all_cases(), lambda case: case.op.name):
        samples = [case.sample for case in cases]
        seen = {kind for s in samples for kind in kinds(s)}
        if OPS[name].of_bools is not None:
            seen.add("bool")  # of bools it is another row
        for dtype in (*_FLOATS, *_INTEGERS, "bool"):
            if dtype not in seen:
                yield from itertools.islice(_with_dtype(OPS[name], samples, dtype), 1)


def _with_dtype(op: Op, samples: list[Sample], dtype: str) -> Iterator[Case]:
    for i, s in enumerate(samples):
        changed = _changed(s, dtype)
        if changed == kinds(s):
            continue
        low = max(s.low, 0.0) if dtype == "uint8" else s.low
        case = Case(op, i, dataclasses.replace(s, dtype=changed, low=low), dtype)
        with contextlib.suppress(DTypeError):
            case.graph()
            case.call(case.tensors())
            yield case


def _changed(s: Sample, dtype: str) -> tuple[str, ...]:
    """A sample's dtypes, those of one kind with ``dtype``, or else those of its first argument."""
    given = [not isinstance(shape, np.ndarray) for shape in s.shapes]
    family = next((f for f in (_FLOATS, _INTEGERS) if dtype in f), ("bool",))
    for group in (family, kinds(s)[:1]):
        found = tuple(dtype if k in group and g else k for k, g in zip(kinds(s), given))
        if found != kinds(s):
            break
    return found


def has_column(op: Op, column: str) -> bool:
    """Whether a row has the column, as opposed to a written reason.

    Args:
        op: The row.
        column: Name of the column.
    """
    return not isinstance(getattr(op, column), Reason)


RTOL = {
    "float64": 1e-9, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2,
    "complex128": 1e-9, "complex64": 2e-5,
}  # fmt: skip


def tolerance(case: Case, dtype: dtypes.DType) -> float:
    """Returns the relative tolerance for results of ``dtype``.

    Args:
        case: The sample.
        dtype: dtype of the result.
    """
    if case.sample.rtol is not None:
        return case.sample.rtol
    return RTOL.get(dtype.name, 0.0)


def assert_close(actual: np.ndarray, expected: np.ndarray, rtol: float, what: str) -> None:
    """Compares values (NaN equal) and, exactly, shape and dtype.

    Args:
        actual: What was computed.
        expected: What it should be.
        rtol: The relative tolerance.
        what: What is computed, for the message.
    """
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape} != {expected.shape}"
    assert actual.dtype == expected.dtype, f"{what}: dtype {actual.dtype} != {expected.dtype}"
    if actual.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, expected, err_msg=what)
        return
    wide = np.complex128 if actual.dtype.kind == "c" else np.float64
    a, e = actual.astype(wide), expected.astype(wide)
    scale = np.max(np.abs(e[np.isfinite(e)]), initial=1.0)
    np.testing.assert_allclose(a, e, rtol=rtol, atol=rtol * min(scale, 1e3), err_msg=what)
