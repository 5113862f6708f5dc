"""Kernels and code generation for NVIDIA GPUs."""
