"""Branches and loops that code of the package records, with functions of tensors as regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvmgraph.capture.recorder import Recorder
from tvmgraph.capture.region import Region
from tvmgraph.capture.traced import TracedTensor
from tvmgraph.core.op import F
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType
from tvmgraph.graph.ir import Value

Run = Callable[[Sequence[Tensor]], Sequence[Tensor]]


def can_record() -> bool:
    """Whether a graph is being captured, so that regions can be recorded."""
    return isinstance(state.interpreter, Recorder)


def record(name: str, types: Sequence[TensorType], run: Run) -> tuple[Region, list[Value]]:
    """Runs a subgraph on parameters of a new region.

    Args:
        name: Name of the region.
        types: Types of the parameters.
        run: Takes the parameters as tensors and gives the results.

    Returns:
        The region, which has to be closed, and the results as values of it.
    """
    recorder = state.interpreter
    assert isinstance(recorder, Recorder)
    region = Region(name, recorder.region)
    tapes, state.tapes = state.tapes, ()
    try:
        with recorder.recording_into(region):
            given = [TracedTensor(recorder, region.state(t, f"s{i}")) for i, t in enumerate(types)]
            outputs = [recorder.value_of(v) for v in run(given)]
    finally:
        state.tapes = tapes
        recorder.leave(region)
    return region, outputs


def branch(
    condition: Tensor, then: Callable[[], Sequence[Tensor]], orelse: Callable[[], Sequence[Tensor]]
) -> tuple[Tensor, ...]:
    """Records both sides of a branch as one ``if_``.

    Args:
        condition: ``bool`` with one element.
        then: Gives the results for a true condition.
        orelse: Gives the results for a false condition.

    Returns:
        The results.

    Raises:
        ShapeError: if the sides give different shapes.
    """
    sides = [
        record(name, (), lambda _, run=run: run())
        for name, run in (("then", then), ("orelse", orelse))
    ]
    operands = list(dict.fromkeys(v for region, _ in sides for v in region.imports))
    graphs = [region.close(outputs, operands) for region, outputs in sides]
    recorder: Any = state.interpreter
    given = [TracedTensor(recorder, v) for v in operands]
    condition = F.reshape(condition, ())
    return F.if_(condition, *given, then=graphs[0], orelse=graphs[1])


def loop(start: Sequence[Tensor], test: Run, step: Run) -> tuple[Tensor, ...] | None:
    """Records a loop as one ``while_``, if a graph is being captured.

    Args:
        start: What the loop carries, at its beginning.
        test: Gives whether to go on, as a list of one ``bool[]``.
        step: Gives the state after one iteration.

    Returns:
        The state at the end; ``None`` in eager code and under ``vmap``.

    Raises:
        ShapeError: if the state changes its shape.
    """
    if not can_record():
        return None
    types = [s.aval for s in start]
    sides = [record(name, types, run) for name, run in (("cond", test), ("body", step))]
    operands = list(dict.fromkeys(v for region, _ in sides for v in region.imports))
    graphs = [region.close(outputs, operands, len(types)) for region, outputs in sides]
    recorder: Any = state.interpreter
    given = [TracedTensor(recorder, v) for v in operands]
    return F.while_(*start, *given, cond=graphs[0], body=graphs[1])
