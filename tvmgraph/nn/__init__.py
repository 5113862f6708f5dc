"""Cells: networks, layers, containers, losses."""

from tvmgraph.nn.activation import *  # noqa: F403
from tvmgraph.nn.activation_smooth import *  # noqa: F403
from tvmgraph.nn.basic import *  # noqa: F403
from tvmgraph.nn.cell import Cell, GraphCell
from tvmgraph.nn.container import CellDict, CellList, SequentialCell
from tvmgraph.nn.conv import *  # noqa: F403
from tvmgraph.nn.conv_transpose import *  # noqa: F403
from tvmgraph.nn.dropout import *  # noqa: F403
from tvmgraph.nn.embedding import *  # noqa: F403
from tvmgraph.nn.recurrent import *  # noqa: F403
from tvmgraph.nn.recurrent_cells import *  # noqa: F403
