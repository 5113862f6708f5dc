"""Kernels that treat every row of a tensor alike: reductions, softmax, norms, scans, sorting."""
