"""The one graph type: flat SSA, immutable, printable, checkable."""

from tvmgraph.graph.builder import GraphBuilder
from tvmgraph.graph.check import check
from tvmgraph.graph.ir import Graph, Node, Param, Role, Value
from tvmgraph.graph.text import parse

__all__ = ["Graph", "GraphBuilder", "Node", "Param", "Role", "Value", "check", "parse"]
