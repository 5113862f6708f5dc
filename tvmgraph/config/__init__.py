"""How code is compiled and run: ``JitConfig``, the context, flags, graph-kernel settings."""

from tvmgraph.config.settings import (
    COMPATIBLE,
    GLOBAL_WRITES,
    GRAPH_MODE,
    LAX,
    PYNATIVE_MODE,
    STRICT,
    Context,
    JitConfig,
    as_jit_config,
    context,
    effective_jit_config,
    get_context,
    reset_context,
    set_context,
)

__all__ = [
    "COMPATIBLE", "GLOBAL_WRITES", "GRAPH_MODE", "LAX", "PYNATIVE_MODE", "STRICT", "Context",
    "JitConfig", "as_jit_config", "context", "effective_jit_config", "get_context",
    "reset_context", "set_context",
]  # fmt: skip
