"""Derivatives of graphs as graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tvmgraph.autodiff.tape import GradTape, backward, recording
from tvmgraph.capture.interpreter import Interpreter
from tvmgraph.capture.recorder import Recorder
from tvmgraph.capture.replay import replay
from tvmgraph.capture.settings import Settings
from tvmgraph.core.op import F
from tvmgraph.core.state import state
from tvmgraph.core.symbols import Specialise, SymbolScope
from tvmgraph.core.tensor import Tensor
from tvmgraph.graph import Graph, Role
from tvmgraph.graph.simplify import quiet


def _linearize(
    graph: Graph, wanted: Sequence[int], given: Sequence[int], recorder: Recorder
) -> Callable[[Sequence[Tensor]], list[Tensor]]:
    """Records a graph and what its derivative keeps of it; returns the pull-back.

    That records the derivative: it maps the cotangents of the ``given`` outputs to those of the
    ``wanted`` parameters.
    """
    graph = quiet(graph)  # what it prints, it printed
    if graph.customs:  # the user's own derivatives, which may decide by traced values
        recorder.call = Interpreter(recorder, Settings()).call
    params = [recorder.argument(p.value.type, f"p{i}") for i, p in enumerate(graph.params)]
    tape = GradTape()
    inputs = [p for p, q in zip(params, graph.params) if q.role is Role.INPUT]
    others = [p for p, q in zip(params, graph.params) if q.role is not Role.INPUT]
    with state.interpreting(recorder, scope=()), recording(tape):
        outputs = replay(graph, inputs, others)

    def pull_back(cotangents: Sequence[Tensor]) -> list[Tensor]:
        with state.interpreting(recorder, scope=()):
            found = backward(tape, [outputs[i] for i in given], cotangents)
            tokens = [(params[i], id(params[i].token)) for i in wanted]
            return [found[t] if t in found else F.zeros_like(p) for p, t in tokens]

    return pull_back


def reverse(
    graph: Graph,
    wanted: Sequence[int],
    given: Sequence[int],
    sizes: Mapping[str, int] | None = None,
) -> Graph:
    """Builds the graph that maps parameters and output cotangents to parameter cotangents.

    It recomputes the forward values it needs; common subexpressions are shared.

    Args:
        graph: The graph.
        wanted: Numbers of the parameters to differentiate by.
        given: Numbers of the outputs that have a cotangent.
        sizes: Examples of the symbolic sizes, if there are any.

    Raises:
        Specialise: if the derivative depends on those sizes in another way than by the shapes.
    """
    recorder = Recorder(f"{graph.name}_vjp")
    if sizes:
        recorder.symbols, recorder.computes = SymbolScope(sizes), False
    pull_back = _linearize(graph, wanted, given, recorder)
    cotangents = [recorder.argument(graph.outputs[i].type, f"g{i}") for i in given]
    found = [recorder.value_of(g) for g in pull_back(cotangents)]
    if recorder.symbols is not None and recorder.symbols.conditions:
        raise Specialise(frozenset(recorder.symbols.decided))
    return recorder.builder.build(found)


def reverse_step(body: Graph, moving: Sequence[int], fixed: Sequence[int]) -> Graph:
    """Builds the reverse of one loop iteration.

    Args:
        body: The loop's body.
        moving: Numbers of the state values that have a cotangent.
        fixed: Numbers of the operands with a cotangent that stay fixed.

    Returns:
        A graph of the body's parameters, the cotangents of the new state and the sums for the
        fixed operands; it gives the cotangents of the old state and the new sums.
    """
    recorder = Recorder(f"{body.name}_vjp")
    pull_back = _linearize(body, [*moving, *fixed], moving, recorder)
    cotangents = [recorder.argument(body.outputs[i].type, f"g{i}") for i in moving]
    sums = [recorder.argument(body.params[i].value.type, f"s{i}") for i in fixed]
    found = pull_back(cotangents)
    with state.interpreting(recorder, scope=()):
        totals = [F.add(s, g) for s, g in zip(sums, found[len(moving) :])]
    results = [*found[: len(moving)], *totals]
    return recorder.builder.build([recorder.value_of(g) for g in results])


def tangent_loop(
    cond: Graph, body: Graph, pull_back: Graph, moving: Sequence[int], fixed: Sequence[int]
) -> tuple[Graph, Graph]:
    """Builds the loop that carries, beside the state, its directional derivative.

    One iteration is linear in the direction; its transpose is ``pull_back``, so the derivative of
    that by its cotangents is the iteration of the direction.

    Args:
        cond: The loop's condition.
        body: The loop's body.
        pull_back: The reverse of one iteration, see :func:`reverse_step`.
        moving: Numbers of the state values that have a cotangent.
        fixed: Numbers of the operands with a cotangent that stay fixed.

    Returns:
        Condition and body of a loop of: the state, its directions, the fixed operands, their
        directions.
    """
    count, forward = len(body.outputs), len(body.params)
    wanted = list(range(forward, forward + len(moving)))
    directional = reverse(pull_back, wanted, range(len(pull_back.outputs)))

    def build(name: str, with_directions: bool) -> Graph:
        recorder = Recorder(name)
        types = [p.value.type for p in body.params]
        carried = [recorder.argument(t, f"x{i}") for i, t in enumerate(types[:count])]
        moved = [recorder.argument(types[i], f"d{i}") for i in moving]
        rest = [recorder.argument(t, f"w{i}") for i, t in enumerate(types[count:])]
        fixed_moved = [recorder.argument(types[i], f"e{i}") for i in fixed]
        with state.interpreting(recorder, scope=()):
            found = replay(body if with_directions else cond, [*carried, *rest])
            if with_directions:
                directions = [*moved, *fixed_moved]
                anywhere = [F.zeros_like(d) for d in directions]  # it is linear in these
                found += replay(directional, [*carried, *rest, *anywhere, *directions])
        return recorder.builder.build([recorder.value_of(t) for t in found])

    return build("cond", False), build("body", True)
