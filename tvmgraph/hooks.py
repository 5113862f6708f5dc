"""What lower rooms ask of higher ones.

A room imports only rooms below it. Where it needs a function of a room above, it calls a hook
that is declared here; :mod:`tvmgraph.wiring` says which function answers, and that module is
imported at the first call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any


class Hook:
    """A function that a higher room provides.

    Args:
        purpose: What it does and who asks for it.
    """

    def __init__(self, purpose: str) -> None:
        self.__doc__ = purpose
        self._provider = ""

    def provide(self, provider: str) -> None:
        """Names the function that answers.

        Args:
            provider: ``module:function``.
        """
        self._provider = provider
        self.__dict__.pop("function", None)

    @functools.cached_property
    def function(self) -> Callable[..., Any]:
        """The function that answers; its module is imported by the first use."""
        return resolve_name(self._provider)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


# ---- core and config ---------------------------------------------------------------------------

initializer = Hook("``Tensor(init=...)`` and ``Parameter.clone(init)`` name an initializer")
to_gpu = Hook("``Tensor.to('GPU')`` copies elements to a GPU")
copy_on_gpu = Hook("``copy.copy`` of a tensor that lives on a GPU")
adopt_on_gpu = Hook("``Tensor.from_dlpack`` of another library's memory on a GPU")
wait_for_reader = Hook("``Tensor.__dlpack__`` lets another library's stream wait for ours")
use_gpu = Hook("``set_context(device_target='GPU')`` looks for the GPU and runs operators there")
gpu_target = Hook("a configuration without a target compiles for the context's GPU")
eager_kernel = Hook("an eager operator that takes long gets machine code of its own")
eager_fusion = Hook("a composition of operators becomes one compiled function in eager code")
one_node = Hook("the graph of a single operator")
llvm_features = Hook("LLVM names the processor's features where the system does not")

# ---- operators ---------------------------------------------------------------------------------

evaluate = Hook("the NumPy column of control flow evaluates its regions")
loop = Hook("operators of many steps are one loop of a graph")
reverse = Hook("a branch differentiates its regions")
reverse_step = Hook("a loop differentiates its body")
tangent_loop = Hook("a reversed loop is differentiated by its state")
vjp = Hook("the gradient of a recurrent layer differentiates its steps")
grad = Hook("operators that are derivatives of a function, such as ``ops.derivative``")
jvp = Hook("operators that are directional derivatives of a function, such as ``ops.jet``")
custom_vjp = Hook("``ops.Morph`` computes a function that has a derivative of its own")
compile_graph = Hook("an eager call of a custom kernel without a reference compiles it")

# ---- graphs and compiled functions -------------------------------------------------------------

shard_graph = Hook("a capture in which layouts are asked for is split over processes")
shard_primitive = Hook("``Primitive.shard`` asks for layouts of an operator's operands")
shard = Hook("``Cell.shard`` asks for layouts of a network's inputs and parameters")
draw = Hook("``Graph.draw()`` loads the drawing room when somebody wants a picture")
export = Hook("``JitFunction.export`` writes the function it holds")
write_rows = Hook("``Dataset.save`` writes MindRecord files")
load_mindir = Hook("``load`` reads a file of MindSpore")
format_of = Hook("``JitFunction.export`` reads the format off the name of the file")
