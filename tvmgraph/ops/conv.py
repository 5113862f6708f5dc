"""Rows of the conv family."""

__all__: list[str] = []
