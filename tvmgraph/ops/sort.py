"""Rows of the sort family."""

__all__: list[str] = []
