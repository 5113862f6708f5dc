"""Rows of the comparison family."""

__all__: list[str] = []
