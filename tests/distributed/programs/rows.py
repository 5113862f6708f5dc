"""Every row of the table, split along every dimension, against the whole computation."""

from __future__ import annotations

import sys

import numpy as np

from tvmgraph.core.op import OPS
from tvmgraph.core.types import tensor_type
from tvmgraph.distributed import engine
from tvmgraph.distributed.layout import Mesh, Spec
from tvmgraph.distributed.partition import partition
from tvmgraph.eager import evaluate
from tvmgraph.graph.builder import GraphBuilder
from tvmgraph.graph.ir import Graph, Value
from tvmgraph.testing.samples import Case, all_cases, assert_close, tolerance

WORLD = engine.world()
MESH = Mesh((WORLD.size,), ("d",))


def graph_of(case: Case, arrays: list[np.ndarray]) -> Graph:
    builder = GraphBuilder("row")
    inputs = [builder.param(tensor_type(a.shape, a.dtype)) for a in arrays]
    return builder.build(builder.call(case.op, inputs, **case.attrs()))


def own(array: np.ndarray, spec: Spec) -> np.ndarray:
    for d, axes in enumerate(spec):
        if axes:
            array = np.split(array, WORLD.size, axis=d)[WORLD.rank]
    return array.copy()


def check(case: Case) -> int:
    """Splits the operands along every dimension in turn; returns how many splits there were."""
    arrays = case.cast_arrays()
    graph = graph_of(case, arrays)
    if not all(v.type.is_static for v in graph.outputs):
        return 0
    whole, done = evaluate(graph, arrays), 0
    for i, array in enumerate(arrays):
        for d, size in enumerate(array.shape):
            if not size or size % WORLD.size:
                continue
            spec = tuple(("d",) if e == d else () for e in range(array.ndim))
            given: dict[Value, Spec] = {graph.params[i].value: spec}
            found = partition(graph, MESH, given)
            local = [own(a, s) for a, s in zip(arrays, found.inputs)]
            for got, expected in zip(evaluate(found.graph, local), whole, strict=True):
                rtol = max(tolerance(case, graph.outputs[0].type.dtype), 1e-6)
                assert_close(got, expected, rtol, f"{case.name}: operand {i} along {d}")
            done += 1
    return done


def main() -> None:
    names, count, failures = set(), 0, []
    for case in all_cases():
        traits = case.op.traits
        if traits.effect or traits.collective or case.op.name in ("placed_as", *sys.argv[1:]):
            continue
        try:
            done = check(case)
        except AssertionError as e:
            failures.append(f"{case.name}: {str(e).strip().splitlines()[0]}")
            continue
        count += done
        names |= {case.op.name} if done else set()
    for text in failures:
        print("WRONG", text, flush=True)
    if WORLD.rank == 0:
        print(f"{len(names)} of {len(OPS)} rows, {count} splits, {len(failures)} wrong", flush=True)
        print("not split:", sorted(set(OPS) - names))


main()
