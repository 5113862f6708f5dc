"""Rows of the loss family."""

__all__: list[str] = []
