"""Kernels for CUDA devices; :mod:`tvmgraph.backend.cuda.table` says which loops get which."""
