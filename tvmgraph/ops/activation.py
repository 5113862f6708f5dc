"""Rows of the activation family."""

__all__: list[str] = []
