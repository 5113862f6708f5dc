"""Graph to Relax: a fold over the nodes, each lowered by its row."""

from tvmgraph.lowering.relax import WRITES, lower, lower_many

__all__ = ["WRITES", "lower", "lower_many"]
