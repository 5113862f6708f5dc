"""Rows to come."""

__all__: list[str] = []
