"""Branches and loops of a graph."""
