"""Kernels for processors, by what they compute."""
