"""Passes from graph to graph: simplification, attention, layouts, freezing, recomputation."""
