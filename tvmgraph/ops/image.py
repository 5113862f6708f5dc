"""Rows of the image family."""

__all__: list[str] = []
