"""Making a compile visible: phase timing, dumps and reports."""

from tvmgraph.debug.dump import Dump
from tvmgraph.debug.phases import Phases

__all__ = ["Dump", "Phases"]
