"""How code is compiled and run: ``JitConfig``, the context, flags, graph-kernel settings."""

from tvmgraph.config.settings import *  # noqa: F403
from tvmgraph.config.settings import __all__ as __all__
