"""tvmgraph: write a network as a Cell, debug it eagerly, compile the same code with TVM."""

from tvmgraph.core.parameter import Parameter, ParameterTuple
from tvmgraph.core.tensor import Tensor, tensor

__version__ = "0.1.0"
