"""Normalization by statistics of a batch, a layer or groups."""
