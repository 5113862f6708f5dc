"""Attention and its derivative, without the matrix of all weights."""
