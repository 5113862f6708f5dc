"""Graph + configuration + target -> Executable: the one place where the three meet."""

from tvmgraph.compiler.compile import compile_graph, compile_many

__all__ = ["compile_graph", "compile_many"]
