"""Cells: networks, layers, containers, losses."""

from tvmgraph.core.guard import guard as _guard
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.guard import public_names as _public_names
from tvmgraph.nn._lazy import __dir__, __getattr__  # noqa: F401
from tvmgraph.nn.activation import *  # noqa: F403
from tvmgraph.nn.activation_smooth import *  # noqa: F403
from tvmgraph.nn.arithmetic import *  # noqa: F403
from tvmgraph.nn.basic import *  # noqa: F403
from tvmgraph.nn.cell import Cell as Cell
from tvmgraph.nn.combined import *  # noqa: F403
from tvmgraph.nn.container import *  # noqa: F403
from tvmgraph.nn.container import GraphCell as GraphCell
from tvmgraph.nn.conv import *  # noqa: F403
from tvmgraph.nn.embedding import *  # noqa: F403
from tvmgraph.nn.functions import *  # noqa: F403
from tvmgraph.nn.image import *  # noqa: F403
from tvmgraph.nn.initialisation import *  # noqa: F403
from tvmgraph.nn.loss import *  # noqa: F403
from tvmgraph.nn.loss_class import *  # noqa: F403
from tvmgraph.nn.loss_metric import *  # noqa: F403
from tvmgraph.nn.normalization import *  # noqa: F403
from tvmgraph.nn.padding import *  # noqa: F403
from tvmgraph.nn.pooling import *  # noqa: F403
from tvmgraph.nn.pooling_adaptive import *  # noqa: F403
from tvmgraph.nn.quantized import *  # noqa: F403
from tvmgraph.nn.recurrent import *  # noqa: F403
from tvmgraph.nn.transformer import *  # noqa: F403
from tvmgraph.nn.transformer_layers import *  # noqa: F403
from tvmgraph.nn.wrap import *  # noqa: F403

__all__ = _public_names(globals())

_guard_module(globals(), "nn")
# its constructor is guarded as all are; these are not called while it runs
for _method in ("compile", "insert_param_to_cell", "update_parameters_name"):
    _guard(getattr(Cell, _method), f"Cell.{_method}")
