"""Compiled graphs and prepared weights on disk."""
