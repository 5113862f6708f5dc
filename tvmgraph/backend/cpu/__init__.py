"""Kernels and code generation for processors."""
