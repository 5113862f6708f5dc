"""Convolutions and the gradients of their weights."""
