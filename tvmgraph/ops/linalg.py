"""Rows of the linalg family."""

__all__: list[str] = []
