"""The NumPy interpreter: runs a whole graph node by node."""

from tvmgraph.eager.evaluate import evaluate

__all__ = ["evaluate"]
