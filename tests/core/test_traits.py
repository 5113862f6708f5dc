"""Every trait of every row is checked against the row's NumPy implementation, on its samples."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cache, reduce
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph.autodiff.vmap import find_rule
from tvmgraph.core.conversion import converted
from tvmgraph.core.op import OPS, Op
from tvmgraph.core.traits import Factors, Pattern, Reason
from tvmgraph.core.types import tensor_type
from tvmgraph.testing.samples import Case, all_cases, assert_close, tolerance

COMBINE = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
    "all": np.logical_and, "any": np.logical_or,
}  # fmt: skip


@cache
def cases() -> dict[str, list[Case]]:
    found = {n: list(g) for n, g in itertools.groupby(all_cases(), lambda c: c.op.name)}
    return found


NAMES = sorted(cases())
SPLIT = [n for n in NAMES if not isinstance(OPS[n].traits.factors, Reason)]
BATCHED = [n for n in NAMES if OPS[n].traits.batch]


def results(op: Op, arrays: Sequence[np.ndarray], attrs: dict[str, Any]) -> list[np.ndarray]:
    found = op.eager(*arrays, **attrs)
    return [np.asarray(a) for a in (found if op.multi else (found,))]


def factors_of(case: Case, arrays: Sequence[np.ndarray]) -> Factors:
    found = case.op.traits.split([tensor_type(a.shape, a.dtype) for a in arrays], case.attrs())
    assert found is not None
    return found


def parts_of(sizes: Sequence[int]) -> int:
    """The smallest number of equal parts that all sizes can be cut into, or 0."""
    return next(
        (p for p in range(2, min(sizes, default=0) + 1) if not any(n % p for n in sizes)), 0
    )


def pieces(arrays: Sequence[Any], dims: Any, name: str, count: int) -> Iterator[list[Any]]:
    for i in range(count):
        yield [
            np.split(a, count, axis=d.index(name))[i] if name in d else a
            for a, d in zip(arrays, dims, strict=True)
        ]


def sized(case: Case, factors: Factors, name: str, count: int) -> dict[str, Any]:
    """The attributes of the call that computes one part."""
    attrs, key = case.attrs(), case.op.traits.sized
    if key:
        first = factors.outputs[0]
        attrs[key] = tuple(n // count if d == name else n for n, d in zip(attrs[key], first))
    return attrs


def joined(case: Case, found: list[np.ndarray], dims: Any, name: str) -> np.ndarray:
    if name in dims:
        return np.concatenate(found, axis=dims.index(name))
    how = case.op.traits.combine
    if how == "mean":
        return np.asarray(reduce(np.add, found) / len(found), found[0].dtype)
    return reduce(COMBINE[how], found)


def check_split(case: Case) -> set[str]:
    """Computes a sample in parts along every factor; returns the factors that could be split."""
    arrays = case.cast_arrays()
    factors, whole = factors_of(case, arrays), results(case.op, arrays, case.attrs())
    every = [*zip(arrays, factors.inputs, strict=True), *zip(whole, factors.outputs, strict=True)]
    assert all(a.ndim == len(d) for a, d in every), f"{factors} for {case.name}"
    done = set()
    for name in factors.names:
        count = parts_of([a.shape[d.index(name)] for a, d in every if name in d])
        if not count:
            continue
        attrs = sized(case, factors, name, count)
        parts = [results(case.op, p, attrs) for p in pieces(arrays, factors.inputs, name, count)]
        for i, expected in enumerate(whole):
            with np.errstate(all="ignore"):
                got = joined(case, [p[i] for p in parts], factors.outputs[i], name)
            rtol = max(tolerance(case, ms.dtypes.dtype_of(expected.dtype)), 1e-6)
            assert_close(got, expected, rtol, f"{case.name} along {name} of {factors}")
        done.add(name)
    return done


@pytest.mark.parametrize("name", SPLIT)
def test_parts_along_every_factor_make_the_whole(name: str) -> None:
    split = [check_split(case) for case in cases()[name]]
    assert any(split), f"no sample of {name} has a dimension that can be split"


@pytest.mark.parametrize("name", BATCHED)
def test_a_batch_at_once_is_a_loop_over_its_elements(name: str) -> None:
    by_rule = 0
    for case in cases()[name]:
        op, arrays = case.op, case.cast_arrays()
        if not arrays:
            continue
        other = [np.flip(a) if a.ndim and a.dtype.kind in "fc" else a for a in arrays]
        whole = [ms.Tensor(np.stack(pair)) for pair in zip(arrays, other)]
        rule = find_rule(op)
        assert rule is not None
        found = rule(op, whole, [True] * len(whole), case.attrs(), 2)
        if found is None:  # with all operands but the first shared
            other = [other[0], *arrays[1:]]
            shared = [whole[0], *map(ms.Tensor, arrays[1:])]
            found = rule(op, shared, [True] + [False] * len(arrays[1:]), case.attrs(), 2)
        if found is None:
            continue
        by_rule += 1
        single = [results(op, one, case.attrs()) for one in (arrays, other)]
        for got, *expected in zip(found, *single, strict=True):
            kind = ms.dtypes.dtype_of(expected[0].dtype)
            assert_close(got.asnumpy(), np.stack(expected), tolerance(case, kind), case.name)
    assert by_rule, f"no sample of {name} is computed by its rule"


def finite(case: Case) -> list[np.ndarray] | None:
    """The arguments of a sample, if elements are numbers that survive scaling."""
    arrays = case.cast_arrays()
    usual = all(
        a.size and a.dtype in (np.float32, np.float64) and np.isfinite(a).all() for a in arrays
    )
    return arrays if arrays and usual else None


def of_pattern(*patterns: Pattern) -> list[str]:
    return [n for n in NAMES if OPS[n].traits.pattern in patterns]


@pytest.mark.parametrize("name", of_pattern(Pattern.CONTRACTION))
def test_contractions_are_linear_in_both_operands(name: str) -> None:
    seen = 0
    for case in cases()[name]:
        if (arrays := finite(case)) is None:
            continue
        seen += 1
        for i, a in enumerate(arrays):
            other = np.flip(a) * a.dtype.type(0.5)
            terms = [[*arrays[:i], v, *arrays[i + 1 :]] for v in (a, other, a + other)]
            (x,), (y,), (both,) = (results(case.op, t, case.attrs()) for t in terms)
            np.testing.assert_allclose(both, x + y, rtol=1e-4, atol=1e-4, err_msg=case.name)
    assert seen or "integer" in name


@pytest.mark.parametrize("name", of_pattern(Pattern.VIEW, Pattern.GATHER, Pattern.BROADCAST))
def test_results_hold_elements_of_operands(name: str) -> None:
    traits = OPS[name].traits
    if isinstance(traits.factors, Reason) and "compiled" in traits.factors:
        return
    for case in cases()[name]:
        arrays, attrs = case.cast_arrays(), case.attrs()
        if not arrays or attrs.get("mode") in ("add", "mul", "max", "min"):
            continue
        given = np.concatenate([a.reshape(-1).astype(np.float64) for a in arrays])
        for found in results(case.op, arrays, attrs):
            values = found.reshape(-1).astype(np.float64)
            if traits.pattern is Pattern.VIEW:
                source = arrays[-1 if traits.alias else 0].reshape(-1).astype(np.float64)
                np.testing.assert_array_equal(np.sort(values), np.sort(source))
            fill = converted(np.asarray(attrs.get("value", 0)), ms.dtypes.dtype_of(found.dtype))
            known = [*given, 0, fill.astype(np.float64)]
            assert np.isin(values[~np.isnan(values)], known).all(), case.name


@pytest.mark.parametrize("name", of_pattern(Pattern.ELEMENTWISE))
def test_elements_of_elementwise_rows_know_only_their_place(name: str) -> None:
    for case in cases()[name]:
        arrays = case.cast_arrays()
        (whole,) = results(case.op, arrays, case.attrs())
        spread = np.broadcast_arrays(*arrays)
        assert whole.shape == spread[0].shape
        flat = [np.ascontiguousarray(a).reshape(-1)[::-1] for a in spread]
        (back,) = results(case.op, flat, case.attrs())
        kind = ms.dtypes.dtype_of(whole.dtype)
        assert_close(back[::-1].reshape(whole.shape), whole, tolerance(case, kind), case.name)


def test_aliases_views_and_effects() -> None:
    for op in OPS.values():
        traits = op.traits
        if traits.alias:
            for case in cases()[op.name]:
                arrays = case.cast_arrays()
                (found,) = results(op, arrays, case.attrs())
                assert found.size == arrays[-1].size
        assert not traits.cheap or traits.pattern in (Pattern.ELEMENTWISE, Pattern.BROADCAST)
        assert not traits.sized or traits.sized in op.attrs
    assert [n for n in NAMES if OPS[n].traits.effect] == ["host_print", "host_raise"]


@pytest.mark.parametrize(
    ("name", "shapes", "attrs", "text"),
    [
        ("matmul", [(4, 2, 3), (3, 5)], {"transpose_a": False, "transpose_b": False},
         "_0 m k, k n -> _0 m n"),
        ("matmul", [(2, 3), (5, 3)], {"transpose_a": False, "transpose_b": True},
         "m k, n k -> m n"),
        ("add", [(4, 1, 3), (5, 1)], {}, "_0 . _2, _1 . -> _0 _1 _2"),
        ("reduce_sum", [(2, 3, 4)], {"axis": (0, 2), "keep_dims": True}, "a b c -> . b ."),
        ("reshape", [(6, 8, 4)], {"shape": (48, 2, 2)}, "a . b -> a b ."),
        ("reshape", [(6, 8)], {"shape": (6, 2, 4)}, "a b -> a b ."),
        ("transpose", [(2, 3, 4)], {"dims": (2, 0, 1)}, "a b c -> c a b"),
        ("softmax", [(2, 3)], {"axis": -1}, "a . -> a ."),
        ("convolution", [(1, 4, 8, 8), (6, 4, 3, 3)], {"groups": 1}, "n c . ., o c . . -> n o . ."),
        ("convolution", [(1, 4, 8, 8), (6, 2, 3, 3)], {"groups": 2}, "n . . ., . . . . -> n . . ."),
    ],
)  # fmt: skip
def test_factors_are_written_like_this(name: str, shapes: Any, attrs: Any, text: str) -> None:
    found = OPS[name].traits.split([tensor_type(s, ms.float32) for s in shapes], attrs)
    assert str(found) == text
