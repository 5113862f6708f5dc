"""Graph, Node and Value.

A graph is a list of nodes in execution order; every value is defined once, by a parameter, a
constant or a node. Nothing is changed after construction: a pass builds a new graph.
"""

from __future__ import annotations

import enum
import hashlib
import html
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvmgraph import hooks
from tvmgraph.core.op import Op
from tvmgraph.core.types import TensorType


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """One SSA value; compared by identity.

    Attributes:
        name: Printed after ``%``; unique within a graph and its regions.
        type: Its tensor type.
    """

    name: str
    type: TensorType

    def __repr__(self) -> str:
        return f"%{self.name}"


class Role(enum.Enum):
    """What a graph parameter stands for."""

    INPUT = "input"  # an argument of the call
    PARAMETER = "parameter"  # a Parameter or Tensor read by reference
    STATE = "state"  # something the runtime supplies, such as the random counter


@dataclass(frozen=True, eq=False, slots=True)
class Param:
    """A graph parameter.

    Attributes:
        value: The value it defines.
        role: What it stands for.
        label: The user's name for it: argument name or parameter name.
    """

    value: Value
    role: Role
    label: str


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One operator application.

    Attributes:
        op: The table row.
        inputs: Values it reads.
        attrs: Its attributes; all values hashable.
        outputs: Values it defines.
        source: The user's ``file.py:line``.
        scope: Dotted Cell names, such as ``net.dense1``.
        regions: Sub-graphs of control-flow operators; what they read comes as their parameters.
    """

    op: Op
    inputs: tuple[Value, ...]
    attrs: Mapping[str, Any]
    outputs: tuple[Value, ...]
    source: str = ""
    scope: str = ""
    regions: tuple[Graph, ...] = ()

    @property
    def keywords(self) -> dict[str, Any]:
        """Attributes and regions by name, as the columns of the row take them."""
        return {**self.attrs, **dict(zip(self.op.regions, self.regions))}


@dataclass(frozen=True, eq=False, slots=True)
class CustomCall:
    """A run of nodes that has a derivative of its own.

    Attributes:
        name: What was called, for error messages.
        start: Number of its first node.
        end: Number of the node after its last.
        inputs: Values it is differentiated by.
        outputs: Values it gives.
        pull_back: ``(inputs, outputs, cotangents) -> input cotangents``, all tensors.
        partial: Whether it takes None for a value it gives that has no cotangent; that has zeros
            otherwise.
    """

    name: str
    start: int
    end: int
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    pull_back: Callable[..., Any]
    partial: bool = False


@dataclass(frozen=True, eq=False)
class Graph:
    """A function of tensors.

    Attributes:
        name: Function name.
        params: Parameters in call order.
        consts: Constant values with their elements.
        nodes: Operator applications in execution order.
        outputs: Results: the user's outputs first, then the new value of every written state.
        writes: For each trailing state output, the label of the parameter it replaces.
        customs: Runs of nodes with a derivative of their own; a pass may drop them.
    """

    name: str
    params: tuple[Param, ...]
    consts: Mapping[Value, np.ndarray]
    nodes: tuple[Node, ...]
    outputs: tuple[Value, ...]
    writes: tuple[str, ...] = ()
    customs: tuple[CustomCall, ...] = ()
    _hash: list[str] = field(default_factory=list, init=False, repr=False)

    @property
    def inputs(self) -> tuple[Param, ...]:
        """Parameters whose role is INPUT."""
        return tuple(p for p in self.params if p.role is Role.INPUT)

    @property
    def parameters(self) -> tuple[Param, ...]:
        """Parameters whose role is PARAMETER."""
        return tuple(p for p in self.params if p.role is Role.PARAMETER)

    def walk(self) -> Iterator[Node]:
        """Yields every node, and after a node those of its regions."""
        for node in self.nodes:
            yield node
            for region in node.regions:
                yield from region.walk()

    def op_counts(self) -> Counter[str]:
        """Returns how often every operator occurs."""
        return Counter(n.op.name for n in self.nodes)

    def text(self, *, full: bool = False) -> str:
        """Returns the graph as text.

        Args:
            full: Write every constant's elements, so that the text parses back.
        """
        from tvmgraph.graph.text import format_graph

        return format_graph(self, full=full)

    def draw(self) -> Any:
        """Draws the graph, nested by Cell scope, for a notebook or to be saved as SVG.

        Returns:
            A :class:`tvmgraph.view.Drawing`.
        """
        return hooks.draw(self)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {len(self.params)} params, {len(self.nodes)} nodes>"

    def _repr_html_(self) -> str:
        font = "font-family:var(--jp-code-font-family,monospace)"  # pages' own is not always
        return f'<pre style="{font}">{html.escape(self.text())}</pre>'

    def structural_hash(self) -> str:
        """Returns a digest that is equal for graphs that compute the same thing the same way.

        Names of values, sources and scopes do not count; types, attributes, roles and the
        elements of constants do.
        """
        if not self._hash:
            from tvmgraph.graph.text import canonical_text

            self._hash.append(hashlib.sha256(canonical_text(self).encode()).hexdigest())
        return self._hash[0]
