"""Rows of the random family."""

__all__: list[str] = []
