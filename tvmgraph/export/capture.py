"""From a network and example inputs to a graph with the elements of its weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from tvmgraph.capture import tree
from tvmgraph.capture.checks import is_cell
from tvmgraph.capture.promotion import Promotion
from tvmgraph.capture.record import AttributeRef, Captured, capture
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import DTypeError, ExportError, either, reject, user_source, warn_user
from tvmgraph.graph import Graph, Param, Role, Value
from tvmgraph.graph.simplify import quiet
from tvmgraph.nn import Cell


@dataclass(frozen=True)
class Program:
    """A graph that stands on its own.

    Attributes:
        graph: The graph; its inputs are the tensor arguments. New values of the parameters that a
            call updates are its last outputs.
        parameters: Elements of the PARAMETER parameters by label.
        outputs: Names of the outputs, state writes excluded.
        decided: Symbolic sizes whose values decided what was captured.
        conditions: The comparisons that did, as text, and how they came out.
        least: The smallest size of an axis that the graph takes, by root, where that is not 1.
        most: The largest one, by root, where there is one.
    """

    graph: Graph
    parameters: dict[str, np.ndarray]
    outputs: tuple[str, ...]
    decided: frozenset[str] = frozenset()
    conditions: Mapping[str, bool] = field(default_factory=dict)
    least: Mapping[str, int] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)

    def limits(self, names: Mapping[str, str]) -> dict[str, dict[str, int]]:
        """Returns ``least`` and ``most`` by the user's names, where there are any.

        Args:
            names: The user's name of every symbol.
        """
        both = {"least": self.least, "most": self.most}
        return {
            key: {names[root]: n for root, n in given.items()}
            for key, given in both.items()
            if given
        }

    def without_state(self) -> Program:
        """Returns the program for ONNX, whose files keep nothing from one call to the next."""
        g = self.graph
        if not g.writes:
            return self
        warnings.warn(
            f"export: {', '.join(g.writes)} would change with every call, but an ONNX file "
            "keeps nothing: each call begins with the values of now; file_format='TVM' and 'GRAPH' "
            f"keep them\n  at:  {user_source()}", stacklevel=2,
        )  # fmt: skip
        outputs = g.outputs[: len(self.outputs)]
        plain = Graph(g.name, g.params, g.consts, g.nodes, outputs)
        return replace(self, graph=plain)


def unwrapped(net: object) -> Callable[..., object]:
    """Returns what ``jit`` wrapped; a Cell's attribute ``fn`` is the user's own.

    Args:
        net: A Cell, a function of tensors, or what ``jit`` returned.

    Raises:
        DTypeError: if it cannot be called.
    """
    found = net if is_cell(net) else getattr(net, "fn", net)
    if not callable(found):
        reject(either(DTypeError, RuntimeError), "export",
               f"a {type(found).__name__} is no network",
               fix="give a Cell, a function of tensors, or what jit returned")  # fmt: skip
    return found


def capture_program(
    net: object,
    args: tuple[object, ...],
    kwargs: dict[str, object] | None = None,
    training: bool = False,
    promotion: Promotion | None = None,
) -> Program:
    """Captures one call of a network or function for shipping.

    Args:
        net: A Cell, a function, or what ``jit`` returned.
        args: Example arguments; their shapes and dtypes count.
        kwargs: Example keyword arguments.
        training: Whether the captured code runs in training mode; the network's own mode is
            restored afterwards.
        promotion: Which sizes are symbolic.

    Raises:
        Specialise: if the value of a symbolic size is needed.
        ExportError: if the call draws random numbers, or returns no tensor.
    """
    fn = unwrapped(net)
    with _training_mode(getattr(net, "owner", None) or fn, training):
        captured = capture(fn, args, kwargs or {}, promotion=promotion)
    graph = _named_inputs(_with_attributes(captured), fn)
    values: dict[str, np.ndarray] = {}
    held: dict[int, Value] = {}
    for holder, p in zip(captured.holders, graph.params):
        if p.role is Role.STATE and isinstance(holder, int):  # a number of Python's
            raise ExportError(
                "Python's functions compute a number of a size, which a file cannot", op="export",
                got=graph.name, fix="compute it by operators, as n ** 0.5, or export a fixed size",
            )  # fmt: skip
        if p.role is Role.STATE:
            raise ExportError(
                "the network draws random numbers, which a file cannot reproduce", op="export",
                got=graph.name,
                fix="export with training=False (dropout is off then), or pass the numbers in",
            )  # fmt: skip
        if p.role is Role.PARAMETER:
            tensor = holder.read() if isinstance(holder, AttributeRef) else holder
            assert isinstance(tensor, Tensor)
            values[p.label] = tensor.array
            held[id(tensor)] = _latest(graph, p)
    kept = quiet(_in_order_of_result(graph, captured.result, held))
    outputs = tuple(f"output{i}" for i in range(len(kept.outputs) - len(kept.writes)))
    return Program(
        kept, values, outputs, captured.decided, captured.conditions, captured.least, captured.most
    )


def _with_attributes(captured: Captured) -> Graph:
    """Returns the graph in which attributes that a call replaces are state, as parameters are."""
    graph = captured.graph
    read = {
        (id(h.owner()), h.name): p
        for h, p in zip(captured.holders, graph.params)
        if isinstance(h, AttributeRef)
    }
    writes, outputs, lost = list(graph.writes), list(graph.outputs), []
    for owner, name, new in captured.attributes:
        cell = owner()
        before = read.get((id(cell), name))
        value = _value(graph, new)
        if before is not None and value is not None and value.type == before.value.type:
            writes.append(before.label)
            outputs.append(value)
        elif before is not None or _counts(cell.__dict__.get(name), new):
            lost.append(f"{type(cell).__name__}.{name}")
    if lost:
        warn_user(
            f"export: {', '.join(lost)} would change with every call, but a file keeps only "
            "Parameters and tensors whose shape and dtype stay: each call begins with the values "
            "of now"
        )
    return Graph(graph.name, graph.params, graph.consts, graph.nodes, tuple(outputs), tuple(writes))


def _value(graph: Graph, new: tree.Structure) -> Value | None:
    """The value of a graph that becomes an attribute; None for anything else."""
    if isinstance(new, tree.Leaf) and new.kind == "output":
        return graph.outputs[new.value]
    if isinstance(new, tree.Leaf) and new.kind == "argument":
        return graph.params[new.value].value
    return None


def _counts(before: object, new: tree.Structure) -> bool:
    """Whether an attribute is a number that a call changes."""
    if type(before) not in (int, float) or not isinstance(new, tree.Leaf):
        return False
    return new.kind == "number" or (new.kind == "constant" and new.value != before)


def _named_inputs(graph: Graph, net: object) -> Graph:
    """Gives the inputs of an imported network the names they have in its file."""
    inner = getattr(net, "graph", None)
    names = getattr(net, "input_names", None)
    if names is None and isinstance(inner, Graph):
        names = [p.label for p in inner.inputs]
    if names is None or len(names) != len(graph.inputs):
        return graph
    given = iter(names)
    params = tuple(
        Param(p.value, p.role, next(given)) if p.role is Role.INPUT else p for p in graph.params
    )
    return Graph(graph.name, params, graph.consts, graph.nodes, graph.outputs, graph.writes)


def _latest(graph: Graph, parameter: Param) -> Value:
    """Returns what a parameter holds when the call is over."""
    new = dict(zip(graph.writes, graph.outputs[len(graph.outputs) - len(graph.writes) :]))
    return new.get(parameter.label, parameter.value)


def _in_order_of_result(graph: Graph, result: tree.Structure, held: Mapping[int, Value]) -> Graph:
    """Returns the graph with the user's outputs in the order of the result, then its writes.

    Args:
        graph: The captured graph.
        result: What the call returned.
        held: The values of the weights, by the identity of their tensors.
    """
    outputs = []
    for leaf in _leaves(result):
        if leaf.kind in ("output", "number"):
            outputs.append(graph.outputs[leaf.value])
        elif leaf.kind == "argument":
            outputs.append(graph.params[leaf.value].value)
        elif leaf.kind == "object":
            outputs.append(held[id(leaf.value)])
    if not outputs:
        reject(ExportError, "export", "the network returns no tensor", graph.name,
               "return what the file shall compute")  # fmt: skip
    outputs += graph.outputs[len(graph.outputs) - len(graph.writes) :]
    return Graph(graph.name, graph.params, graph.consts, graph.nodes, tuple(outputs), graph.writes)


def _leaves(structure: tree.Structure) -> Iterator[tree.Leaf]:
    if isinstance(structure, tree.Leaf):
        yield structure.value[0] if structure.kind == "view" else structure
    else:
        for child in structure.children:
            yield from _leaves(child)


@contextmanager
def _training_mode(net: object, training: bool) -> Iterator[None]:
    """Runs with all cells of ``net`` in one mode, then gives each its own back."""
    if not isinstance(net, Cell):
        yield
        return
    cells = [c for _, c in net.cells_and_names()]
    before = [c.training for c in cells]
    net.set_train(training)
    try:
        yield
    finally:
        net.set_train(before[0])  # also tells compiled functions that flags changed
        for cell, mode in zip(cells, before):
            object.__setattr__(cell, "training", mode)
