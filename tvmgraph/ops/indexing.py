"""Rows of the indexing family."""

__all__: list[str] = []
