"""From Python to a graph: the recorder, guards, and replaying a graph."""

from tvmgraph.capture.record import Captured, capture, record
from tvmgraph.capture.replay import replay
from tvmgraph.capture.traced import TracedTensor

__all__ = ["Captured", "TracedTensor", "capture", "record", "replay"]
