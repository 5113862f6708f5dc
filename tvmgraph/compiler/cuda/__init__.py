"""Modules for NVIDIA GPUs: compiled, searched, run operator by operator, given to libraries."""
