"""Graph to Relax: a fold over the nodes, each lowered by its row."""

from tvmgraph.lowering.relax import lower, lower_many

__all__ = ["lower", "lower_many"]
