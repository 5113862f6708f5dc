"""Builds one-function Relax modules by hand, schedules, compiles and runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from unittest import mock

import ml_dtypes
import numpy as np
import tvm
from tvm import relax

from tvmgraph.backend.cpu.schedule import schedule_cpu
from tvmgraph.backend.passes import run_passes
from tvmgraph.backend.target import make_target
from tvmgraph.compiler import pipeline
from tvmgraph.config import context
from tvmgraph.config.options import CompileOptions
from tvmgraph.machine import processor
from tvmgraph.machine.processor import cpu_model
from tvmgraph.machine.threads import configure_threads
from tvmgraph.passes.table import Stage, chosen

THREADS = 2
configure_threads(THREADS)

Spec = tuple[tuple, str]


def module(build: Callable, *specs: Spec) -> tvm.IRModule:
    """``build(block_builder, *parameters)`` returns the result of the function ``main``."""
    builder = relax.BlockBuilder()
    params = [
        relax.Var(f"x{i}", relax.TensorType(shape, dtype)) for i, (shape, dtype) in enumerate(specs)
    ]
    with builder.function("main", params):
        with builder.dataflow():
            output = builder.emit_output(builder.emit(build(builder, *params)))
        builder.emit_func_output(output)
    return builder.get()


def fused(mod: tvm.IRModule, level: int = 2) -> tvm.IRModule:
    """The module as the compiler hands it to the scheduler."""
    options = CompileOptions(f"O{level}")
    with make_target(), tvm.transform.PassContext(opt_level=3):
        return run_passes(mod, chosen(Stage.RELAX, options), options)


def compile_module(
    mod: tvm.IRModule, level: int = 2, threads: int = THREADS, target: str = "host"
) -> Callable:
    """The compiled function ``main``."""
    with mock.patch.object(context, "thread_num", threads):
        made = pipeline.build(mod, CompileOptions(f"O{level}", target))
    return relax.VirtualMachine(made.executable, tvm.cpu())["main"]


def kernels(mod: tvm.IRModule, level: int = 2) -> str:
    """The scheduled functions as text, for the caches of one processor whatever this one is."""
    with (
        mock.patch.object(processor, "cache_sizes", lambda: (1 << 15, 1 << 20, 1 << 25)),
        mock.patch.object(processor, "_halves_vectors", lambda wide: wide),
    ):
        return schedule_cpu(fused(mod, level), cpu_model("host", THREADS), level).script()


def arrays(*specs: Spec, seed: int = 0) -> list[np.ndarray]:
    """Random arguments: standard normal, or small integers."""
    rng = np.random.default_rng(seed)
    return [_array(rng, shape, dtype) for shape, dtype in specs]


def _array(rng: np.random.Generator, shape: Sequence[int], dtype: str) -> np.ndarray:
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype == "bfloat16":
        return rng.standard_normal(shape).astype(ml_dtypes.bfloat16)
    if "float" in dtype:
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(-4, 5, shape).astype(dtype)


def call(function: Callable, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Runs a compiled function on arrays and returns its results as arrays."""
    result = function(*[tvm.runtime.tensor(value) for value in inputs])
    results = [result] if hasattr(result, "numpy") else list(result)
    return [value.numpy() for value in results]


def check(
    build: Callable,
    reference: Callable,
    *specs: Spec,
    tolerance: float = 1e-5,
    level: int = 2,
    target: str = "host",
    inputs: Sequence[np.ndarray] | None = None,
) -> None:
    """Compares the compiled function with a NumPy function evaluated in float64."""
    inputs = arrays(*specs) if inputs is None else inputs
    outputs = call(compile_module(module(build, *specs), level, target=target), inputs)
    wide = [x.astype("float64") if "float" in str(x.dtype) else x for x in inputs]
    expected = reference(*wide)
    expected = list(expected) if isinstance(expected, (tuple, list)) else [expected]
    assert len(outputs) == len(expected)
    for got, want in zip(outputs, expected):
        assert got.shape == np.shape(want)
        scale = max(1.0, float(np.abs(want).max())) if np.size(want) else 1.0
        np.testing.assert_allclose(
            got.astype("float64"),
            np.asarray(want, "float64"),
            rtol=tolerance,
            atol=tolerance * scale,
        )
