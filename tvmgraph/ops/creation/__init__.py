"""Tensors made from numbers."""
