"""Benchmarks: tvmgraph beside PyTorch, ONNX Runtime, JAX and MindSpore on the same machine.

Run ``python -m benchmarks.run --help``; the results are written to ``benchmarks/RESULTS.md``.
"""
