"""``@jit``: capture, compile, cache, call, explain."""

from tvmgraph.jit.api import jit, jit_class, ms_function
from tvmgraph.jit.function import JitFunction

__all__ = ["JitFunction", "jit", "jit_class", "ms_function"]
