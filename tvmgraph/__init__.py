"""tvmgraph: write a network as a Cell, debug it eagerly, compile the same code with TVM."""

from tvmgraph import dtypes as dtype
from tvmgraph.autodiff import GradOperation, grad, value_and_grad
from tvmgraph.capture import record
from tvmgraph.config import (
    COMPATIBLE,
    GRAPH_MODE,
    LAX,
    PYNATIVE_MODE,
    STRICT,
    JitConfig,
    get_context,
    reset_context,
    set_context,
)
from tvmgraph.core.parameter import Parameter, ParameterTuple
from tvmgraph.core.tensor import Tensor, tensor
from tvmgraph.dtypes import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tvmgraph.graph import Graph
from tvmgraph.jit import jit, jit_class, ms_function

__version__ = "0.1.0"
