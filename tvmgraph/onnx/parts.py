"""What of a model is compiled where the whole is no graph.

Nodes whose results have sizes that values decide (which boxes a detector keeps) run eagerly, and
divide the others: those that wait for the same of them can run one after the other, as one graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tvmgraph.core.onnx_library import onnx
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import CaptureError, reject
from tvmgraph.nn import Cell
from tvmgraph.onnx.low_precision import LowPrecision
from tvmgraph.onnx.order import names_read
from tvmgraph.onnx.table import to_tensor

if TYPE_CHECKING:
    from tvmgraph.onnx.model import Env, OnnxCell

#: Costly operators without weights.
_COSTLY = ("RoiAlign",)


class OnnxPart(Cell):
    """Nodes of a model that are one graph, where the whole model is none.

    A model such as a detector that suppresses boxes runs with graph breaks: these are the Cells
    that are compiled on their own.

    Args:
        model: The model.
        split: Its nodes.
    """

    def __init__(self, model: OnnxCell, split: Split) -> None:
        super().__init__()
        self.model = model
        self.split = split

    def run_in(self, env: Env) -> None:
        """Runs the part, compiled where its operands are tensors with elements.

        Args:
            env: Values by name; gets the results.
        """
        split = self.split
        given = [env[name] for name in split.reads]
        if split.waits:  # what other nodes left is no constant
            given = [to_tensor(v) for v in given]
        if any(isinstance(v, LowPrecision) for v in given) or (split.waits and not _full(given)):
            self.model.run_nodes(split.nodes, env)
        else:
            env.update(zip(split.names, self(*given)))

    def construct(self, *inputs: object) -> tuple[object, ...]:
        """Runs the nodes of the part.

        Args:
            inputs: What they read of the others.

        Returns:
            What the others read of them.

        Raises:
            CaptureError: if one is of low precision: a graph has no such results.
        """
        env = self.model.constants()
        env.update(zip(self.split.reads, inputs))
        self.model.run_nodes(self.split.nodes, env)
        values = [env.get(name) for name in self.split.names]
        if state.interpreter is None:
            return tuple(values)
        if any(isinstance(value, LowPrecision) for value in values):
            reject(CaptureError, "onnx.load", "a graph has no results of low precision")
        return tuple(map(result_of, values))

    def extend_repr(self) -> str:
        """Returns how many nodes it has, and what the others read of it."""
        split = self.split
        return f"{len(split.nodes)} of {split.total} nodes -> {', '.join(split.names)}"


Step = OnnxPart | onnx.NodeProto


class Split:
    """Nodes of a model that can run one after the other; it is compared as one object.

    Args:
        nodes: The nodes.
        waits: Whether they wait for nodes that no graph has.
        given: Names that are constants or weights.
        wanted: Names that others read, and the model's results.
        total: How many nodes the model has.

    Attributes:
        reads: What they read of others.
        names: What others read of them.
    """

    def __init__(
        self, nodes: Sequence[onnx.NodeProto], waits: bool, given: set[str], wanted: set[str],
        total: int,
    ) -> None:  # fmt: skip
        self.nodes, self.waits, self.total = nodes, waits, total
        made = {name for node in nodes for name in node.output}
        read = dict.fromkeys(name for node in nodes for name in names_read(node))
        self.reads = [name for name in read if name not in made and name not in given]
        self.names = [name for node in nodes for name in node.output if name in wanted]


def first_result(node: onnx.NodeProto) -> str:
    """Returns the name of a node's first result, which no other node has.

    Args:
        node: A node.
    """
    return next(filter(None, node.output), "")


def result_of(value: object) -> object:
    """Returns a result of a model as a tensor, a sequence as a list of them.

    Args:
        value: A tensor, array, or list of these; anything else is returned as it is.
    """
    if isinstance(value, list):
        return [to_tensor(v) for v in value]
    return to_tensor(value)


def divide(model: OnnxCell, nodes: Sequence[onnx.NodeProto]) -> list[Step]:
    """Divides a model into parts that are compiled and nodes that run eagerly, in order.

    A node waits for the refused nodes that it depends on. Whoever depends on a node waits for no
    fewer: nodes that wait for the same ones form a graph that nothing leaves and enters again, and
    the numbers of these say in which order such graphs run.

    Args:
        model: The model.
        nodes: Its nodes that are not constants, in order.
    """
    definition = model.definition
    waits: dict[str, int] = {}  # by name, as bits
    groups: dict[int, tuple[list[onnx.NodeProto], list[onnx.NodeProto]]] = {}
    for node in nodes:
        mask = 0
        for name in names_read(node):
            mask |= waits.get(name, 0)
        ready, late = groups.setdefault(mask, ([], []))
        is_refused = first_result(node) in definition.refused
        (late if is_refused else ready).append(node)
        if is_refused:
            mask |= 1 << len(waits)
        waits.update(dict.fromkeys(node.output, mask))
    steps: list[Step] = []
    for mask in sorted(groups, key=int.bit_count):
        ready, late = groups[mask]
        steps += _part(model, ready, nodes, bool(mask)) + late
    return steps


def _part(
    model: OnnxCell, ready: list[onnx.NodeProto], nodes: Sequence[onnx.NodeProto], waits: bool
) -> list[Step]:
    """Returns what of a group runs eagerly, and its part, if a graph is worth compiling."""
    definition = model.definition
    early, chosen = _from_costly(model, ready) if waits else ([], ready)
    if not chosen:
        return list(ready)
    key = tuple(map(first_result, chosen))
    if key not in definition.parts:
        own = set(key)
        wanted = {v.name for v in definition.graph.output}
        for node in nodes:
            if first_result(node) not in own:
                wanted.update(names_read(node))
        given = set(model.constants())
        definition.parts[key] = OnnxPart(model, Split(chosen, waits, given, wanted, len(nodes)))
    part = definition.parts[key]
    return [*early, part] if part.split.names else list(ready)


def _from_costly(
    model: OnnxCell, nodes: Sequence[onnx.NodeProto]
) -> tuple[list[onnx.NodeProto], list[onnx.NodeProto]]:
    """Returns the nodes that depend on none with weights, or otherwise costly, and the others.

    What comes before puts parts together, of which any may be empty.
    """
    weights = {n for n, at in model.definition.weights.items() if getattr(model, at).ndim > 1}
    early, late, made = [], [], set()
    for node in nodes:
        costly = node.op_type in _COSTLY or not weights.isdisjoint(node.input)
        if costly or not made.isdisjoint(names_read(node)):
            late.append(node)
            made.update(node.output)
        else:
            early.append(node)
    return early, late


def _full(values: Sequence[object]) -> bool:
    return all(isinstance(v, Tensor) and v.size for v in values)
