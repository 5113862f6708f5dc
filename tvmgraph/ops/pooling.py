"""Rows of the pooling family."""

__all__: list[str] = []
