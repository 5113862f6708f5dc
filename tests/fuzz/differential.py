"""Compares what a program gives: eager, captured, compiled in every way, exported, differentiated.

Captured graphs are first evaluated in NumPy, where they must give the very bits of eager code.
Compiled code may differ where operators round: by no more than the results move when every
operator that is not correctly rounded is disturbed by a few units in the last place (stochastic
arithmetic). A program of correctly rounded operators must give the same bits.
"""

from __future__ import annotations

import contextlib
import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np

import tvmgraph as ms
from tests.capture.test_fuzz import NumpyGraph
from tests.fuzz.programs import Program
from tvmgraph import Tensor, dtypes, jit
from tvmgraph.autodiff.reverse import reverse
from tvmgraph.config.graph_kernel import parse_flags
from tvmgraph.config.options import CompileOptions
from tvmgraph.eager import evaluate
from tvmgraph.errors import ExportError, NoGradientError, TvmgraphError
from tvmgraph.export.onnx import to_onnx
from tvmgraph.graph import Graph, Node, Role, Value, parse
from tvmgraph.jit import compiled, entry
from tvmgraph.passes.freeze import arrange, freeze
from tvmgraph.passes.run import run_graph_passes
from tvmgraph.testing.samples import RTOL, all_cases

Arrays = list[np.ndarray]

#: Operators that give the exact result, or the one nearest to it: all code agrees to the bit.
_EXACT = """
    add sub mul real_div neg abs sign sqrt square reciprocal identity relu relu6 cast where full
    eye maximum minimum fmax fmin floor ceil trunc round copysign nextafter replace_nonfinite
    reshape squeeze expand_dims transpose broadcast_to concat split_at tile flip roll tril triu
    diagonal place_diagonal pad_constant pad_index basic_index basic_update index_get
    gather_along reduce_max reduce_min arg_extreme arg_sort arg_top max_pool max_pool_index
    interleave image_to_columns gradient_barrier bits_to_integers bits_to_permutation
    bits_to_uniform running_arg_extreme search_sorted isnan isinf isfinite floor_mod fmod
    trunc_div floor_divide
"""
EXACT = frozenset(re.findall(r"\w+", _EXACT))
#: Those that round.
ROUNDED = frozenset(("add", "sub", "mul", "real_div", "sqrt", "square", "reciprocal"))
_UNITS = 4.0  # in the last place: what another implementation of a function may be off
_FACTOR = 4.0  # the spread of a few samples, times this, bounds what rounding can do
#: Disturbed evaluations: of every program, and of one that seems to differ.
_SAMPLES = (6, 60)


@dataclass
class Recorded:
    """One graph that ran.

    Attributes:
        graph: The graph.
        arrays: Its arguments.
        expected: Its results in NumPy.
    """

    graph: Graph
    arrays: Arrays
    expected: Arrays


@dataclass
class Difference(Exception):
    """A program that gives two results.

    Attributes:
        kind: Which comparison failed.
        text: What was found.
    """

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@contextlib.contextmanager
def evaluating(evaluation: Callable[[Graph, Arrays], Arrays]) -> Iterator[None]:
    """Runs compiled graphs by a function of a graph and its arguments."""

    class Evaluated(NumpyGraph):
        evaluate = staticmethod(evaluation)

    with contextlib.ExitStack() as stack:
        for module in (entry, compiled):
            stack.enter_context(mock.patch.object(module, "CompiledGraph", Evaluated))
        yield


@contextlib.contextmanager
def recording() -> Iterator[dict[int, Recorded]]:
    """Runs compiled graphs in NumPy, and keeps the first call of every one."""
    graphs: dict[int, Recorded] = {}

    def recorded(graph: Graph, arrays: Arrays) -> Arrays:
        kept = [a.copy() for a in arrays]
        results = [np.asarray(a) for a in evaluate(graph, arrays)]
        graphs.setdefault(id(graph), Recorded(graph, kept, [r.copy() for r in results]))
        return results

    with evaluating(recorded):
        yield graphs


# ---- eager and captured -------------------------------------------------------------------------

#: Calls of a program, one after the other: the second finds what the first has changed.
_CALLS = 2


def observe(function: Any, net: Any, program: Program) -> Any:
    """Returns the results of some calls, and what they left in arguments and parameters.

    Returns:
        The arrays, in the order of :func:`observed`; as text the first error.
    """
    found: Arrays = []
    ms.set_seed(1)
    for _ in range(_CALLS):
        tensors = program.arguments()
        try:
            results = function(*tensors)
        except (TvmgraphError, IndexError, TypeError, ValueError) as e:
            return f"{type(e).__name__}: {str(e).splitlines()[0]}"
        found += [np.asarray(t.asnumpy()).copy() for t in [*results, *tensors]]
    return [*found, *(getattr(net, name).asnumpy().copy() for name in program.parameters)]


def observed(program: Program) -> list[str]:
    """Returns what the arrays of :func:`observe` are called."""
    found = [f"{n} of call {i + 1}" for i in range(_CALLS)
             for n in (*program.outputs, *program.inputs)]  # fmt: skip
    return [*found, *(f"self.{name}" for name in program.parameters)]


def eager_results(program: Program) -> Arrays:
    """Returns what eager code gives.

    Raises:
        Difference: if it raises, which no program does.
    """
    net = program.net()
    expected = observe(net, net, program)
    if isinstance(expected, str):
        raise Difference("invalid", expected)
    return expected


def capture_mode(program: Program) -> str:
    """How a program is captured."""
    return "bytecode" if program.seed % 3 == 0 else "ast"


def captured(program: Program) -> list[Recorded]:
    """Compares eager with captured code; returns the graphs that ran.

    Raises:
        Difference: if they differ in a bit, or only one of them raises.
    """
    expected, net = eager_results(program), program.net()
    with recording() as graphs:
        actual = observe(jit(net, capture_mode=capture_mode(program)), net, program)
    assert_same("captured", program, actual, expected)
    return list(graphs.values())


def assert_same(kind: str, program: Program, actual: Any, expected: Arrays) -> None:
    """Compares what :func:`observe` returned of two ways to run a program.

    Raises:
        Difference: if they differ in a bit, or the first is an error.
    """
    if isinstance(actual, str):
        raise Difference(f"{kind} refuses", actual)
    for name, a, e in zip(observed(program), actual, expected, strict=True):
        where = unequal(a, e)
        if where is not None:
            raise Difference(kind, f"{name}{where}")


def unequal(actual: np.ndarray, expected: np.ndarray) -> str | None:
    """Says where two arrays do not hold the same numbers; NaN are equal, zeros have signs."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f" {actual.dtype}{actual.shape} != {expected.dtype}{expected.shape}"
    wrong = ~same_bits(actual, expected)
    return describe(actual, expected, wrong) if wrong.any() else None


def same_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where two arrays hold the same number."""
    if a.dtype.kind not in "fV":
        return np.asarray(a == b)
    a, b = a.astype(np.float64), b.astype(np.float64)
    return ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))


def describe(actual: np.ndarray, expected: np.ndarray, wrong: np.ndarray) -> str:
    """Returns the first wrong element as text."""
    i = tuple(int(n) for n in np.argwhere(wrong)[0]) if actual.ndim else ()
    place, share = ", ".join(map(str, i)), f"{wrong.sum()} of {wrong.size}"
    return f"[{place}]: {actual[i]!r} instead of {expected[i]!r} ({share})"


# ---- compiled -----------------------------------------------------------------------------------


def _noise_of_rows() -> dict[str, dict[str, float]]:
    """The relative error of a row's implementations, by dtype, where it is above the usual."""
    found: dict[str, dict[str, float]] = {}
    for case in all_cases():
        if case.sample.rtol is not None:
            kind = (
                case.sample.dtype if isinstance(case.sample.dtype, str) else case.sample.dtype[-1]
            )
            noise = found.setdefault(case.op.name, {})
            noise[kind] = max(noise.get(kind, 0.0), case.sample.rtol)
        if case.op.module.removeprefix("tvmgraph.ops.") in _SPECIAL_FUNCTIONS:
            found.setdefault(case.op.name, {}).update(RTOL)
    return found


_SPECIAL_FUNCTIONS = (
    "math.bessel", "math.special", "math.gamma", "math.binary", "math.exponential",
)  # fmt: skip
_NOISE = _noise_of_rows()


def noise(name: str, kind: np.dtype, terms: float = 1.0) -> float:
    """Returns how far apart results of a row may be, relative to them.

    Args:
        name: The row.
        kind: Type of the results.
        terms: What each of them is the sum of: one after the other or in pairs.
    """
    d = dtypes.dtype_of(kind)
    units = max(_UNITS, terms / 4) * float(dtypes_eps(d.name))
    return max(units, _NOISE.get(name, {}).get(d.name, 0.0))


#: Modules of rows that sum, in an order that is not said.
_SUMMING = (
    "reduction", "linalg", "conv", "pooling", "normalization", "activation.softmax",
    "attention", "rnn", "loss", "image", "fourier", "scatter", "segments", "interleave", "matmul",
)  # fmt: skip


def _terms(node: Node, inputs: Arrays, results: Arrays) -> float:
    """Returns of how many terms the results of a row are sums."""
    if not any(m in node.op.module for m in _SUMMING):
        return 1.0
    most = max((a.size for a in inputs), default=0) / max(1, min(r.size for r in results))
    return max(1.0, most, *(d for a in inputs for d in a.shape))


def dtypes_eps(name: str) -> float:
    """Returns half the distance from one to the next number."""
    return {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}[
        name
    ]


def is_float(a: np.ndarray) -> bool:
    """Whether an array holds floating-point numbers."""
    return a.dtype.kind == "f" or a.dtype.name == "bfloat16"


@dataclass(frozen=True)
class Freedom:
    """What compiled code may do with floats.

    Attributes:
        reorder: It may compute correctly rounded operators in another order.
        zeros: It may give zeros either sign.
        floor: How far off functions may be, relative to results of more than 1.
    """

    reorder: bool = False
    zeros: bool = False
    floor: float = 0.0

    def floor_of(self, a: np.ndarray) -> float:
        """The floor of the dtype of an array: no less than its own rounding."""
        if not self.floor or not is_float(a):
            return 0.0
        return max(self.floor, 2 * dtypes_eps(dtypes.dtype_of(a.dtype).name))


ANY_ORDER = Freedom(reorder=True, zeros=True)
#: Weights that are multiplied ahead by what scales results give zeros of other signs.
SCALED = Freedom(zeros=True)
#: Attributes are float32 in ONNX, and some functions are written in terms of others.
EXPORTED = Freedom(reorder=True, zeros=True, floor=2.0**-22)


def disturbed(
    graph: Graph, arrays: Arrays, rng: np.random.Generator, freedom: Freedom = Freedom()
) -> Arrays:
    """Evaluates a graph with operators that are as far off as other implementations may be.

    Args:
        graph: The graph.
        arrays: Its arguments.
        rng: Decides how far and where.
        freedom: What is not certain besides functions that are not correctly rounded.
    """
    left_alone = EXACT - ROUNDED if freedom.reorder else EXACT
    fused = _contracted(graph)

    def rezeroed(a: np.ndarray) -> np.ndarray:
        if not freedom.zeros or not is_float(a):
            return a
        return np.where((a == 0) & (rng.random(a.shape) < 0.5), -a, a)

    def lifted(r: np.ndarray, inputs: Arrays) -> np.ndarray:
        if not freedom.reorder or not is_float(r):
            return r
        off = freedom.floor_of(r) * rng.uniform(-1, 1, r.shape)
        r = np.asarray((r + off * np.maximum(1.0, np.abs(r))).astype(r.dtype))
        return _bounded(r, inputs, rng)

    def watch(node: Node, inputs: Arrays, results: Arrays) -> None:
        if node.regions or not any(map(is_float, results)):
            return
        if node.op.name in left_alone or node.op.traits.binds:  # selects: sizes are decided
            for i, r in enumerate(results):
                if node.outputs[i] in fused:
                    r = _unrounded(r, inputs, rng)
                results[i] = rezeroed(_either_zero(node, inputs, r, rng))
            return
        for i, r in enumerate(_imprecise(node, inputs, results, rng)):
            results[i] = rezeroed(lifted(r, inputs))

    with np.errstate(all="ignore"):
        return [np.asarray(a) for a in evaluate(graph, [rezeroed(a) for a in arrays], watch)]


def _shaken(a: np.ndarray, amount: float, rng: np.random.Generator) -> np.ndarray:
    """Moves numbers by up to a share of them, and those near the least ones anywhere near 0."""
    wide = a.astype(np.float64)
    tiny = float(np.finfo(np.float32).tiny) if a.dtype.itemsize != 2 else 6e-8
    wide = wide * (1 + rng.uniform(-amount, amount, a.shape))
    wide = np.where((np.abs(wide) < tiny) & (wide != 0), wide * rng.uniform(0, 2, a.shape), wide)
    return np.asarray(wide.astype(a.dtype))


def _unrounded(r: np.ndarray, inputs: Arrays, rng: np.random.Generator) -> np.ndarray:
    """A product that is not rounded before it is summed: it does not overflow either."""
    return _bounded(_shaken(r, 2 * dtypes_eps(dtypes.dtype_of(r.dtype).name), rng), inputs, rng)


def _bounded(r: np.ndarray, inputs: Arrays, rng: np.random.Generator) -> np.ndarray:
    """What overflows may not do so where it is computed in a wider type."""
    overflown = np.isinf(r) & (rng.random(r.shape) < 0.5)
    if not overflown.any() or not all(np.isfinite(a).any() for a in inputs):
        return r
    for a in inputs:
        overflown &= np.isfinite(a) if a.shape == r.shape or not a.ndim else np.isfinite(a).all()
    return np.where(overflown, np.copysign(ml_dtypes.finfo(r.dtype).max, r), r).astype(r.dtype)


def _imprecise(
    node: Node, inputs: Arrays, results: Arrays, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yields the results of a row that is not correctly rounded, as another one may give them."""
    terms = _terms(node, inputs, results)
    spread = 2 * max(1, terms / 8) ** 0.5
    eps = [dtypes_eps(dtypes.dtype_of(a.dtype).name) if is_float(a) else 0 for a in inputs]
    moved = [_shaken(a, spread * e, rng) if e else a for a, e in zip(inputs, eps)]
    found = node.op.eager(*moved, **node.keywords)
    for r, given in zip(found if node.op.multi else (found,), results):
        r = np.asarray(r)
        if is_float(r):
            r = _shaken(r, noise(node.op.name, r.dtype, terms), rng)
            r = r + _cancelled(node, moved[0] if moved else r, r) * rng.uniform(-1, 1, r.shape)
            r = _poisoned(node, inputs, r, rng)
        yield np.asarray(r.astype(given.dtype))


#: Roundings of the largest result by which those of Winograd's kernels may be off.
_WINOGRAD_UNITS = 32
#: Rows whose kernels multiply by zeros that they put between or around elements.
_PADDED = frozenset(("conv_transpose", "convolution"))


def _poisoned(node: Node, inputs: Arrays, r: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """What is multiplied by NaN or infinity and left out may give NaN all the same."""
    if node.op.name not in _PADDED or all(np.isfinite(a).all() for a in inputs):
        return r
    return np.where(rng.random(r.shape) < 0.5, np.nan, r)


#: Rows that find one of equal numbers: of which sign a zero is, is not said.
_OF_EQUALS = frozenset(("reduce_max", "reduce_min", "max_pool", "max_pool_index"))


def _either_zero(node: Node, inputs: Arrays, r: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Gives zeros either sign if there were zeros of either."""
    if node.op.name not in _OF_EQUALS or not is_float(r):
        return r
    if len(set(np.signbit(inputs[0][inputs[0] == 0]).tolist())) < 2:
        return r
    return np.where((r == 0) & (rng.random(r.shape) < 0.5), -r, r)


#: Modules of rows that add what may cancel inside.
_CANCELLING = ("activation", "attention", "rnn", "normalization", "reduction.scan", "image")


def _cancelled(node: Node, x: np.ndarray, r: np.ndarray) -> Any:
    """The absolute error of a row that is a sum inside, such as gelu or a recurrent network.

    Winograd's convolutions add and subtract large elements of a tile for every small one.
    """
    tiled = node.op.name in _PADDED
    if not (tiled or any(f".{m}" in node.op.module for m in _CANCELLING)) or not is_float(x):
        return 0.0
    size = np.abs((x if x.shape == r.shape else r).astype(np.float64))
    finite = np.where(np.isfinite(size), size, 0.0)
    size = finite if "activation" in node.op.module else finite.max(initial=0.0)
    units = _WINOGRAD_UNITS if tiled else _UNITS
    return units * dtypes_eps(dtypes.dtype_of(r.dtype).name) * size


_ADDING = frozenset(("add", "sub", "reduce_sum"))
#: What rules remove, or what kernels do on the way from one element to another.
_PASSING = frozenset((
    "identity", "neg", "mul", "real_div", "cast", "reshape", "squeeze", "expand_dims",
    "transpose", "broadcast_to", "basic_index", "concat", "where", "full",
))  # fmt: skip


def _contracted(graph: Graph) -> set[Value]:
    """Products that are summed: compiled code does not round them, as its processor can."""
    found: set[Value] = set()
    for g in [graph, *(r for n in graph.walk() for r in n.regions)]:
        summed: set[Value] = set()
        for n in reversed(g.nodes):
            if n.op.name in _ADDING or (n.op.name in _PASSING and n.outputs[0] in summed):
                summed.update(n.inputs)
        made = (n for n in g.nodes if n.op.name in ("mul", "square", "power_scalar"))
        found |= {n.outputs[0] for n in made if n.outputs[0] in summed}
    return found


def compare(
    item: Recorded, actual: Arrays, kind: str, seed: int, freedom: Freedom = Freedom()
) -> None:
    """Compares results of compiled code with NumPy's.

    Args:
        item: A graph with its results in NumPy.
        actual: The results that are compared with them.
        kind: What the difference is called.
        seed: Seed of the disturbances.
        freedom: What is not certain besides functions that are not correctly rounded.

    Raises:
        Difference: if they are further apart than rounding explains.
    """
    rng = np.random.default_rng(seed)
    found = differs(
        item.expected, actual, lambda: disturbed(item.graph, item.arrays, rng, freedom), freedom
    )
    if found is not None:
        raise Difference(kind, found)


def differs(
    expected: Arrays, actual: Arrays, sample: Callable[[], Arrays], freedom: Freedom
) -> str | None:
    """Says where results are further apart than rounding explains.

    Args:
        expected: The results in NumPy.
        actual: The results that are compared with them.
        sample: Draws results of disturbed operators.
        freedom: What is not certain besides functions that are not correctly rounded.
    """
    if all(unequal(a, e) is None for a, e in zip(actual, expected, strict=True)):
        return None
    samples: list[Arrays] = []
    found = None
    for count in _SAMPLES:
        samples += [sample() for _ in range(count)]
        found = _beyond(expected, actual, samples, freedom)
        if found is None:
            return None
    return found


def _beyond(
    expected: Arrays, actual: Arrays, samples: list[Arrays], freedom: Freedom
) -> str | None:
    for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
        near = [s[i] for s in samples]
        if a.dtype == e.dtype and any(s.shape != e.shape for s in near):
            continue  # how many values there are is a matter of rounding
        if a.dtype != e.dtype or a.shape != e.shape:
            return f"output {i}: {a.dtype}{a.shape} != {e.dtype}{e.shape}"
        wrong = ~_close(a, e, near, freedom.floor_of(e))
        if freedom.reorder and is_float(e):
            wrong &= np.isfinite(e)  # another order may not overflow, and inf - inf may be gone
            both = np.maximum(np.abs(a.astype(np.float64)), np.abs(e.astype(np.float64)))
            wrong &= ~(both <= _LEAST[e.dtype.itemsize])  # nor underflow
        if wrong.any():
            return f"output {i}{describe(a, e, wrong)}"
    return None


#: The least normal number of a float, by its bytes.
_LEAST = {2: 6e-5, 4: float(np.finfo(np.float32).tiny), 8: float(np.finfo(np.float64).tiny)}


def _close(actual: np.ndarray, expected: np.ndarray, samples: Arrays, floor: float) -> np.ndarray:
    same = same_bits(actual, expected)
    if same.all():
        return same
    if actual.dtype.kind == "b":
        return same | np.any([s != expected for s in samples], axis=0)
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        spread = np.max([np.abs(s.astype(np.float64) - e) for s in samples], axis=0)
        unsure = np.any(
            [np.isfinite(s.astype(np.float64)) != np.isfinite(e) for s in samples], axis=0
        )
        unsure |= (
            np.any([s.astype(np.float64) != e for s in samples], axis=0)
            & ~np.isfinite(e)
            & ~np.isnan(e)
        )
        ulp = np.abs(np.spacing(expected)).astype(np.float64) if is_float(expected) else 0.0
        # functions that are off are summed, too: relative to the largest result
        least = floor * np.abs(e[np.isfinite(e)]).max(initial=1.0)
        near = np.abs(a - e) <= _FACTOR * spread + np.maximum(
            least, np.where(spread > 0, 2 * ulp, 0)
        )
    # the sign of a zero is certain where every sample has it
    near &= (a != e) | np.any([~same_bits(s, expected) for s in samples], axis=0)
    return same | near | unsure


# ---- derivatives --------------------------------------------------------------------------------

#: Operators whose results are steps: differences over one of them are no derivative.
_ROUNDING = frozenset(("ceil", "floor", "floor_divide", "round", "sign", "trunc", "trunc_div"))
_STEPS = (1e-5, 3e-6, 1e-7)
_SMOOTH = 1e-3  # differences that differ more than this do not approximate a derivative
_WRONG = 1e-3  # what a derivative may differ from them: rules with a series are less accurate


def gradient(item: Recorded, seed: int) -> Recorded | None:
    """Returns the graph of a pull-back, compared with central differences where those exist.

    Args:
        item: A graph of float64.
        seed: Seed of the cotangents and the direction.

    Raises:
        Difference: if the derivative along a random direction is wrong.
    """
    graph, rng = item.graph, np.random.default_rng(seed)
    wanted = [i for i, p in enumerate(graph.params) if p.value.type.dtype.is_float]
    floats = [i for i, v in enumerate(graph.outputs) if v.type.dtype.is_float]
    if not wanted or not floats or not all(np.isfinite(item.expected[i]).all() for i in floats):
        return None
    if any(node.op.name == "leaf_value" for node in graph.walk()):
        return None  # a Parameter that is assigned is a leaf, which differences do not know
    try:
        pulled = reverse(graph, wanted, floats)
    except NoGradientError:
        return None
    weights = [np.asarray(rng.standard_normal(item.expected[i].shape)) for i in floats]
    found = [np.asarray(g) for g in evaluate(pulled, [*item.arrays, *weights])]
    way = [np.asarray(rng.standard_normal(item.arrays[i].shape)) for i in wanted]
    with np.errstate(invalid="ignore", over="ignore"):  # a slope may be infinite
        actual = sum(float(np.sum(g * w)) for g, w in zip(found, way))
    slopes = [s for h in _STEPS for s in _slopes(item, wanted, floats, weights, way, h)]
    scale = max(1.0, *map(abs, slopes))
    agree = np.ptp(slopes) <= _SMOOTH * scale
    scale = max(scale, *(float(np.abs(g).max(initial=0)) for g in found))
    if np.isfinite([*slopes, actual]).all() and agree and abs(actual - slopes[-1]) > _WRONG * scale:
        raise Difference("gradient", f"{actual} along a direction, differences give {slopes}")
    return Recorded(pulled, [*item.arrays, *weights], found)


def _slopes(
    item: Recorded, wanted: list[int], floats: list[int], weights: Arrays, way: Arrays, h: float
) -> tuple[float, float]:
    """Returns the differences of the weighted results to either side along a direction.

    They are NaN where a step decides something else: a truth, an integer or what was rounded is
    another one.
    """
    totals: list[Arrays] = []
    decided: list[list[bytes]] = []
    for step in (h, 0.0, -h):
        moved = list(item.arrays)
        for i, w in zip(wanted, way):
            moved[i] = moved[i] + step * w
        decided.append([])

        def watch(node: Node, inputs: Arrays, results: Arrays) -> None:
            found = [*results, inputs[0] != 0] if node.op.name == "where" else results
            if node.op.name in ("floor_mod", "fmod"):  # its steps are those of the quotient
                found = [*found, np.floor_divide(inputs[0], inputs[1])]
            rounded = node.op.name in _ROUNDING
            decided[-1].extend(r.tobytes() for r in found if rounded or not is_float(r))

        results = evaluate(item.graph, moved, watch)
        totals.append([results[i] for i in floats])
    if decided[0] != decided[1] or decided[1] != decided[2]:
        return np.nan, np.nan
    up, here, down = totals
    ahead = sum(float(np.sum((a - b) * w)) for a, b, w in zip(up, here, weights)) / h
    behind = sum(float(np.sum((a - b) * w)) for a, b, w in zip(here, down, weights)) / h
    return ahead, behind


def differentiated(program: Program) -> list[Recorded]:
    """Compares gradients by arguments and parameters of every dtype; returns the graphs that ran.

    Raises:
        Difference: if compiled code gives other gradients than eager code, or one of them an error.
    """
    expected = _gradients(_GRADIENTS["eager"], program)
    graphs: dict[int, Recorded] = {}
    for kind in ("of compiled", "compiled"):
        use = _GRADIENTS[kind]
        with recording() as found:
            actual = _gradients(use, program)
        graphs |= found
        if isinstance(expected, str):
            if actual != expected and not _are_none(expected, actual):
                raise Difference(f"gradients {kind}", f"{actual!s:.200} instead of {expected}")
        elif isinstance(actual, str):
            if actual != NoGradientError.__name__ or not program.decides():
                raise Difference(f"gradients {kind}", actual)
        else:
            _compare_gradients(kind, program, actual, expected)
    return list(graphs.values())


def _are_none(error: str, gradients: Arrays | str) -> bool:
    """Whether eager code met an operator without a derivative behind which is nothing to derive by.

    A compiled derivative is that of the arguments alone, and skips it.
    """
    if isinstance(gradients, str) or error != NoGradientError.__name__:
        return False
    return not any(np.any(g) for g in gradients)


#: What gives the gradients of a Cell: arguments are the gradient, the Cell and ``jit``.
_GRADIENTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "eager": lambda by, net, jit: by(net),
    "of compiled": lambda by, net, jit: by(jit(net)),
    "compiled": lambda by, net, jit: jit(by(net)),
}


def _gradients(use: Callable[[Any, Any, Any], Any], program: Program) -> Arrays | str:
    """Returns the gradients of the sum of a program's outputs, or the class of an error."""
    net = program.net()
    by_list = ms.GradOperation(get_all=True, get_by_list=bool(program.parameters))
    parameters = [getattr(net, name) for name in program.parameters]
    by = (lambda f: by_list(f, parameters)) if parameters else by_list
    ms.set_seed(1)
    try:
        found = use(by, net, lambda f: jit(f, capture_mode=capture_mode(program)))(
            *program.arguments()
        )
    except (TvmgraphError, IndexError, TypeError, ValueError) as e:
        return type(e).__name__
    return [t.asnumpy().copy() for part in found for t in _flat(part)]


def _flat(value: Any) -> list[Tensor]:
    return [value] if isinstance(value, Tensor) else [t for v in value for t in _flat(v)]


def _compare_gradients(kind: str, program: Program, actual: Arrays, expected: Arrays) -> None:
    """Compares two lists of gradients, which may be summed in another order."""
    rng = np.random.default_rng(program.seed)

    def sample() -> Arrays:
        with evaluating(lambda g, arrays: disturbed(g, arrays, rng, ANY_ORDER)):
            found = _gradients(_GRADIENTS["compiled"], program)
        return expected if isinstance(found, str) else found

    where = differs(expected, actual, sample, ANY_ORDER)
    if where is not None:
        raise Difference(f"gradients {kind}", where)


# ---- passes of graphs -----------------------------------------------------------------------

_EXACT_RULES = CompileOptions(kernels=parse_flags("--opt_level=2 --disable_pass=attention"))
_ALL_RULES = CompileOptions("O3")


def passes(item: Recorded, seed: int) -> None:
    """Compares a graph with what its passes make of it, both in NumPy.

    Raises:
        Difference: if exact rules change a bit, or others more than rounding explains.
    """
    exact = evaluate(run_graph_passes(item.graph, _EXACT_RULES), item.arrays)
    for i, (a, e) in enumerate(zip(exact, item.expected, strict=True)):
        where = unequal(np.asarray(a), e)
        if where is not None:
            raise Difference("exact rules", f"output {i}{where}")
    changed = evaluate(run_graph_passes(item.graph, _ALL_RULES), item.arrays)
    compare(item, [np.asarray(a) for a in changed], "all rules", seed, ANY_ORDER)
    arranged = evaluate(arrange(item.graph), item.arrays)
    compare(item, [np.asarray(a) for a in arranged], "arranged", seed)
    frozen = freeze(item.graph)
    if frozen is not None:
        ahead = frozen.prepare([item.arrays[i] for i in frozen.sources])
        arrays = [*[item.arrays[i] for i in frozen.kept], *ahead]
        compare(
            item, [np.asarray(a) for a in evaluate(frozen.main, arrays)], "frozen", seed, SCALED
        )


# ---- ONNX and text ------------------------------------------------------------------------------


def round_trips(item: Recorded, seed: int) -> None:
    """Compares a graph with itself after a way through ONNX, and through text.

    Raises:
        Difference: if it is another one.
    """
    graph = item.graph
    if parse(graph.text(full=True)).structural_hash() != graph.structural_hash():
        raise Difference("text", "the parsed text is another graph")
    named = {p.label: a for p, a in zip(graph.params, item.arrays) if p.role is not Role.INPUT}
    if any(p.role is Role.STATE for p in graph.params) or not _has_onnx_meaning(item):
        return
    try:
        model = to_onnx(graph, named)
    except ExportError:
        return
    cell = ms.onnx.load(model)
    given = {p.label: a for p, a in zip(graph.params, item.arrays)}
    try:
        results = cell(*[Tensor(given[n].copy()) for n in cell.input_names])
    except TvmgraphError as e:
        raise Difference("onnx refuses", str(e)) from e
    results = results if isinstance(results, tuple) else (results,)
    count = len(graph.outputs) - len(graph.writes)
    shown = Recorded(graph, item.arrays, item.expected[:count])
    compare(shown, [r.asnumpy() for r in results], "onnx", seed, EXPORTED)


def _has_onnx_meaning(item: Recorded) -> bool:
    """Whether ONNX says what a graph gives: it has no rule for some values.

    Integers divided by zero, shifts by more bits than there are, and how NaN, infinities and
    empty tensors go through the operators that others are written in.
    """
    found = [np.isfinite(a.astype(np.float64)).all() and a.size > 0 for a in item.arrays]

    def watch(node: Node, inputs: Arrays, results: Arrays) -> None:
        if node.op.name in _DIVISIONS and inputs[1].dtype.kind in "iu":
            found.append(bool(inputs[1].all()))
        if "shift" in node.op.name:
            found.append(bool((inputs[1] < 8).all()))
        floats = [r.astype(np.float64) for r in results if is_float(r)]
        found.extend(bool(np.isfinite(r).all()) for r in floats)
        found.extend(r.size > 0 for r in results)

    evaluate(item.graph, item.arrays, watch)
    return all(found)


_DIVISIONS = ("trunc_div", "floor_divide", "floor_mod", "fmod", "real_div")


def explain_failure(e: Exception) -> str:
    """Returns the innermost line of this package and the message."""
    frames = [f for f in traceback.extract_tb(e.__traceback__) if "tvmgraph" in f.filename]
    place = f"{frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}" if frames else ""
    return f"{type(e).__name__}: {str(e)[:300]} ({place})"


def compile_all(graphs: dict[str, Graph], level: str, target: str = "host") -> dict[str, Any]:
    """Compiles graphs as few modules as possible: those that TVM rejects stand alone.

    Returns:
        For every name the executable, or the exception.
    """
    from tvmgraph.compiler import compile_many

    try:
        made = compile_many(graphs, level, target)
        return dict.fromkeys(graphs, made)
    except Exception as e:
        if len(graphs) == 1:
            return dict.fromkeys(graphs, e)
    names = list(graphs)
    half = len(names) // 2
    parts = ({n: graphs[n] for n in part} for part in (names[:half], names[half:]))
    return {n: found for part in parts for n, found in compile_all(part, level, target).items()}
