"""Rows of the composite family."""

__all__: list[str] = []
