"""``@jit``: capture, compile, cache, call, explain."""

from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.jit.api import enable_dynamic, jit, jit_class, ms_function
from tvmgraph.jit.function import JitFunction

_guard_module({"JitFunction": JitFunction})

__all__ = ["JitFunction", "enable_dynamic", "jit", "jit_class", "ms_function"]
