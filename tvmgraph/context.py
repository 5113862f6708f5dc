"""MindSpore's import path for the context: ``from tvmgraph import context``."""

from tvmgraph.config import (
    GRAPH_MODE,
    PYNATIVE_MODE,
    get_context,
    reset_context,
    set_context,
)

__all__ = ["GRAPH_MODE", "PYNATIVE_MODE", "get_context", "reset_context", "set_context"]
