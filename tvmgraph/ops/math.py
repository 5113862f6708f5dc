"""Rows of the math family."""

__all__: list[str] = []
