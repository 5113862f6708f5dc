"""Cells: networks, layers, containers, losses."""

from tvmgraph.nn.cell import Cell, GraphCell
