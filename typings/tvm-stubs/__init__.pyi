"""What TVM offers at the top, as a type checker should see it."""

from . import error as error
from . import ir as ir
from . import relax as relax
from . import runtime as runtime
from . import script as script
from . import support as support
from . import sym as sym
from . import target as target
from . import te as te
from . import tirx as tirx
from .ir import IRModule as IRModule
from .ir import transform as transform
from .libinfo import __version__ as __version__
from .runtime import DataType as DataType
from .runtime import Device
from .runtime import Object as Object
from .runtime._tensor import cpu as cpu
from .runtime._tensor import device as device

def cuda(dev_id: int = 0) -> Device: ...
