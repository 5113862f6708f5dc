"""Rows of the normalization family."""

__all__: list[str] = []
