"""Pooling and its derivatives."""
