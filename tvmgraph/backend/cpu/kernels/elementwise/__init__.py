"""Kernels whose every output element comes from few input elements."""
