"""Graph + configuration + target -> Executable: the one place where the three meet.

The C++ parts of TVM and of what it needs cannot be loaded twice: an import that Ctrl-C breaks off
could not be repeated in the same process, so Ctrl-C waits until the import is over.
"""

from tvmgraph.interruption import held_back

with held_back():
    from tvmgraph.compiler.compile import compile_graph, compile_many, explain_kernels

__all__ = ["compile_graph", "compile_many", "explain_kernels"]
