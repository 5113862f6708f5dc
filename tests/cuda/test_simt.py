"""Kernels without tensor cores on the emulated GPU, compared with eager code.

``TVMGRAPH_TEST_GPU_TABLE=1`` runs the samples of the whole operator table (minutes) instead of
every fortieth.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tvm

import tvmgraph as ms
from tests.cuda import emulator
from tvmgraph import Tensor, dtypes, ops
from tvmgraph.config.options import CompileOptions
from tvmgraph.core.types import TensorType
from tvmgraph.graph import Graph
from tvmgraph.testing.samples import Case, all_cases, assert_close, has_column, tolerance

_TOLERANCE = {"float16": 4e-3, "float32": 3e-5}
_BATCH = 20
#: Kernels that take f16 and bf16 only, see ``test_flash_grad.py``; the samples are of f32.
_HALVES = ("attention_gradient", "attention_with_statistics")


def _run(
    graphs: dict[str, Graph], arguments: Mapping[str, Sequence[np.ndarray]]
) -> Iterator[tuple[str, list[np.ndarray] | Exception]]:
    """Compiles graphs as one module for the emulated device, and runs each."""
    from tvmgraph.compiler import pipeline
    from tvmgraph.lowering import lower_many
    from tvmgraph.runtime.device_executable import DeviceExecutable

    made = pipeline.build(lower_many(graphs), CompileOptions(target="sm_90", native=False))
    executable = DeviceExecutable(made.executable, made.images, "sm_90", made.kernels)
    for name, graph in graphs.items():
        types: list[TensorType] = [v.type for v in graph.outputs]
        try:
            outputs = executable.run([Tensor(a) for a in arguments[name]], types, name)
            yield name, [o.asnumpy() for o in outputs]
        except ms.errors.TvmgraphError as e:
            yield name, e


# ---- the operator table -----------------------------------------------------------------------


def _table() -> list[tuple[Case, ...]]:
    whole = os.environ.get("TVMGRAPH_TEST_GPU_TABLE") == "1"
    cases = [
        c for c in all_cases()
        if has_column(c.op, "lower") and c.op.name not in _HALVES and not _is_complex(c)
        and ".collective." not in c.op.fn.__module__  # several processes compute those
    ]  # fmt: skip
    chosen = cases if whole else cases[7::40]
    return [tuple(chosen[i : i + _BATCH]) for i in range(0, len(chosen), _BATCH)]


def _is_complex(case: Case) -> bool:
    """Whether a program of reals alone cannot run it: TVM has no complex dtype."""
    graph = case.graph()
    types = [value.type for value in (*(p.value for p in graph.params), *graph.outputs)]
    return any(t.dtype in dtypes.COMPLEX for t in types)


def _id(cases: Sequence[Case]) -> str:
    return f"{cases[0].name}..{cases[-1].name}"


@pytest.mark.parametrize("cases", _table(), ids=_id)
def test_operators(gpu: emulator.Device, cases: Sequence[Case]) -> None:
    named = {re.sub(r"\W", "_", case.name): case for case in cases}
    graphs = {name: case.graph() for name, case in named.items()}
    arrays = {name: case.cast_arrays() for name, case in named.items()}
    failed = {}
    for name, outputs in _run(graphs, arrays):
        case = named[name]
        try:
            if isinstance(outputs, Exception):
                raise outputs
            for actual, expected in zip(outputs, case.call(case.tensors()), strict=True):
                wanted = tolerance(case, expected.dtype)
                assert_close(actual, expected.asnumpy(), wanted, case.name)
        except (AssertionError, ms.errors.TvmgraphError) as e:
            failed[case.name] = f"{e} {gpu.message}"
            gpu.reset()
    assert not failed, "\n".join(f"{name}: {text}" for name, text in failed.items())


# ---- sizes ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Program:
    """A function and the shapes of its arguments."""

    run: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]
    dtype: str = "float32"

    def arrays(self) -> list[np.ndarray]:
        rng = np.random.default_rng(len(str(self.shapes)))
        return [rng.uniform(-1, 1, shape).astype(self.dtype) for shape in self.shapes]


def _normalized(x: Tensor) -> Tensor:
    return ops.layer_norm(x, x.shape[-1:], ops.ones(x.shape[-1:]), ops.zeros(x.shape[-1:]))


def _lstm_slopes(*inputs: Tensor) -> Tensor:
    def total(*inputs: Tensor) -> Tensor:
        y, h, c = ops.recurrent_sweep(*inputs, mode="lstm", reverse=True)
        return (y * y).sum() + h.sum() + (c * c).sum()

    return ops.cat([g.reshape(-1) for g in ms.grad(total, (0, 1, 2, 3, 4))(*inputs)])


PROGRAMS = {
    "chain": Program(lambda x, y: ops.relu(x * y + x) * 2.0, [(7, 131), (7, 131)]),
    "chain_of_halves": Program(lambda x, y: x * y + x, [(9, 64), (9, 64)], "float16"),
    "two_vectors_each": Program(lambda x: ops.exp(x), [(1063, 1021)]),
    "broadcast_row": Program(lambda x, b: x + b, [(33, 68), (68,)]),
    "broadcast_column": Program(lambda x, b: x + b, [(33, 68), (33, 1)]),
    "transpose": Program(lambda x: ops.transpose(x, (0, 2, 1)), [(3, 70, 37)]),
    "transpose_of_halves": Program(lambda x: ops.transpose(x, (1, 0)), [(66, 130)], "float16"),
    "transpose_and_add": Program(lambda x, y: ops.transpose(x, (1, 0)) + y, [(40, 72), (72, 40)]),
    "concatenate": Program(lambda x, y: ops.cat((x, y), 1), [(5, 17), (5, 20)]),
    "pad": Program(lambda x: ops.pad(x, (1, 2, 3, 0)), [(6, 10)]),
    "few_elements_a_row": Program(lambda x: ops.softmax(x, axis=-1), [(301, 5)]),
    "a_warp_a_row": Program(lambda x: ops.softmax(x, axis=-1), [(21, 200)]),
    "a_block_a_row": Program(lambda x: ops.softmax(x, axis=-1), [(140, 1001)]),
    "long_rows": Program(lambda x: ops.softmax(x, axis=-1), [(70, 40004)]),
    "softmax_of_columns": Program(lambda x: ops.softmax(x, axis=0), [(37, 70)]),
    "softmax_of_channels": Program(lambda x: ops.softmax(x, axis=1), [(2, 300, 41)]),
    "norm_of_channels": Program(lambda x: x / ops.sqrt(ops.mean(x * x, 1, True)), [(3, 19, 25)]),
    "logsoftmax_of_halves": Program(lambda x: ops.log_softmax(x, 1), [(2, 40, 64)], "float16"),
    "layer_norm": Program(_normalized, [(150, 516)]),
    "norm_of_halves": Program(lambda x: ops.rsqrt(ops.mean(x * x, -1)), [(9, 264)], "float16"),
    "sum_of_columns": Program(lambda x: ops.sum(x, 0), [(1500, 36)]),
    "sum_of_middle": Program(lambda x: ops.sum(x, 1), [(3, 77, 50)]),
    "sum_of_all": Program(lambda x: ops.sum(x), [(517, 263)]),
    "sums_of_few_rows": Program(lambda x: ops.sum(x, -1), [(3, 40001)]),
    "mean_of_channels": Program(lambda x: ops.mean(x, (0, 2, 3)), [(5, 6, 9, 11)]),
    "position": Program(lambda x: ops.argmax(x, -1), [(37, 333)]),
    "position_in_columns": Program(lambda x: ops.argmax(x, 0), [(33, 50)]),
    "extremum": Program(lambda x: ops.amax(x, 1), [(11, 5, 13)]),
    "pooling": Program(lambda x: ops.max_pool2d(x, 3, 2, 1), [(2, 3, 17, 19)]),
    "running_sum": Program(lambda x: ops.cumsum(x, -1), [(5, 3001)]),
    "running_sum_of_columns": Program(lambda x: ops.cumsum(x, 0), [(50, 33)]),
    "running_sum_in_parts": Program(lambda x: ops.cumsum(x, -1), [(2, 33000)]),
    "derivative_of_an_lstm": Program(
        _lstm_slopes, [(3, 2, 76), (2, 19, 4, 16), (76,), (2, 19), (2, 19)]
    ),
    "first_few": Program(lambda x: ops.topk(x, 5), [(4, 1003)]),
}


def _capture(program: Program) -> Graph:
    return ms.jit(program.run).graph(*map(Tensor, program.arrays()))


@pytest.fixture(scope="module")
def results() -> Iterator[dict[str, tuple[list[np.ndarray] | Exception, str]]]:
    """What all programs compute on the device, threads in both orders."""
    if emulator.missing():
        pytest.skip(emulator.missing())
    from tvmgraph.backend.cuda import nvcc

    device = emulator.install()
    device.reset()
    device.set(races=1)
    found: dict[str, tuple[list[np.ndarray] | Exception, str]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nvcc, "compile_unit", lambda text, *_: emulator.compile_cuda(text))
        patch.setattr(nvcc, "find", lambda: "g++")
        arrays = {name: program.arrays() for name, program in PROGRAMS.items()}
        graphs = {name: _capture(program) for name, program in PROGRAMS.items()}
        for name, outputs in _run(graphs, arrays):
            found[name] = outputs, device.message
            if isinstance(outputs, Exception):
                device.reset()
                device.set(races=1)
    yield found
    device.reset()


@pytest.mark.parametrize("name", PROGRAMS)
def test_any_size_in_any_order_of_threads(name: str, results: dict[str, Any]) -> None:
    program = PROGRAMS[name]
    outputs, message = results[name]
    assert not isinstance(outputs, Exception), message
    expected = program.run(*map(Tensor, program.arrays()))
    for actual, wanted in zip(outputs, expected if isinstance(expected, tuple) else [expected]):
        assert_close(actual, wanted.asnumpy(), _TOLERANCE[program.dtype], name)


# ---- what the code looks like -------------------------------------------------------------------


def _source(program: Program) -> str:
    from tvmgraph.backend.cuda import codegen as device_code
    from tvmgraph.compiler import pipeline
    from tvmgraph.lowering import lower_many

    texts: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        from tvmgraph.backend.cuda import nvcc

        def keep(sources: Sequence[device_code.DeviceSource], *_: Any) -> tuple[()]:
            texts.extend(source.text for source in sources)
            return ()

        patch.setattr(nvcc, "compile_all", keep)
        options = CompileOptions(target="sm_90", native=False)
        pipeline.build(lower_many({"main": _capture(program)}), options)
    return "\n".join(text[text.rindex("#define ushort") :] for text in texts)


@pytest.mark.parametrize(
    ("program", "kernels", "vectors"),
    [
        (PROGRAMS["chain_of_halves"], 1, "uint4"),
        (PROGRAMS["broadcast_row"], 1, "float4"),
        (Program(lambda x: ops.softmax(x, axis=-1), [(256, 1024)]), 1, "float4"),
        (Program(lambda x: ops.sum(x), [(1024, 1024)]), 2, "float4"),
        (Program(lambda x: ops.sum(x, 0), [(64, 4096)]), 1, "float4"),
        (Program(lambda x, i: ops.gather(x, i.astype(ms.int32), 0), [(50, 64), (9,)]), 2, "float4"),
    ],
)
def test_memory_is_accessed_in_vectors(program: Program, kernels: int, vectors: str) -> None:
    text = _source(program)
    bodies = re.findall(r"^extern .*\{$", text, re.MULTILINE)
    assert len(bodies) == kernels, text
    assert f"*({vectors}*)" in text


@pytest.mark.parametrize(
    "program",
    [
        PROGRAMS["softmax_of_columns"],
        PROGRAMS["norm_of_channels"],
        PROGRAMS["logsoftmax_of_halves"],
        Program(lambda x: ops.log_softmax(x, 1), [(8, 1000, 56, 56)]),
    ],
)
def test_rows_whose_elements_lie_apart_are_one_kernel(program: Program) -> None:
    assert len(re.findall(r"^extern .*\{$", _source(program), re.MULTILINE)) == 1


def test_float64_constants_keep_their_value() -> None:
    from tvm import tirx

    from tvmgraph.backend.cuda.codegen import exact_constants

    rng = np.random.default_rng(3)
    values = [1e-20, 1 / 3, 5e-324, 1.7e308, np.pi, *10.0 ** rng.uniform(-300, 300, 50)]
    for value in values:
        body = tirx.Evaluate(tirx.FloatImm("float64", value))
        module = exact_constants(tvm.IRModule({"f": tirx.PrimFunc([], body)}))
        written: Any = module["f"]
        assert _evaluate(written.body.value) == value


def test_bits_of_a_constant_are_an_integer() -> None:
    """CUDA C++ has no address of a constant, through which TVM reads the bits of a value."""
    from tvm import tirx

    from tvmgraph.backend.cuda.codegen import exact_constants

    for value in (0.0, -0.0, 1.5):
        body = tirx.Evaluate(tirx.reinterpret("int32", tirx.FloatImm("float32", value)))
        module = exact_constants(tvm.IRModule({"f": tirx.PrimFunc([], body)}))
        written: Any = module["f"]
        assert int(written.body.value) == int(np.float32(value).view(np.int32))


def _evaluate(expr: Any) -> float:
    """What the device computes of an expression of float32 constants."""
    from tvm import tirx

    if isinstance(expr, tirx.Cast):
        constant: Any = expr.value
        return float(np.float32(constant.value))
    if isinstance(expr, (tirx.Add, tirx.Mul)):
        left, right = _evaluate(expr.a), _evaluate(expr.b)
        return left + right if isinstance(expr, tirx.Add) else left * right
    return float(expr.value)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_formulas_with_names_are_computed_for_every_lane(gpu: emulator.Device, dtype: str) -> None:
    case = next(c for c in all_cases() if c.op.name == "erfinv" and c.index == 0)
    x = np.linspace(-0.99, 0.99, 37).astype(dtype)
    ms.set_context(device_target="GPU")
    found = ms.ops.erfinv(Tensor(x).to("GPU")).asnumpy()
    expected = case.op.eager(x)
    np.testing.assert_allclose(found, expected, rtol=1e-3 if dtype == "float16" else 1e-5)


@pytest.mark.parametrize("columns", [17, 24])
def test_sums_of_the_same_columns_are_one_kernel(gpu: emulator.Device, columns: int) -> None:
    def sums(x: Tensor, g: Tensor) -> Any:
        wide, other = x.astype(ms.float32), g.astype(ms.float32)
        return other.sum((0, 1)), (wide * other).sum((0, 1)), (wide - 1).prod((0, 1))

    rng = np.random.default_rng(0)
    x, g = (rng.standard_normal((37, 41, columns)).astype(np.float16) for _ in range(2))
    x = (x / 64 + 2).astype(np.float16)
    ms.set_context(device_target="GPU")
    found = ms.jit(sums)(Tensor(x), Tensor(g))
    a, b = x.astype(np.float64), g.astype(np.float64)
    for result, wanted in zip(found, (b.sum((0, 1)), (a * b).sum((0, 1)), (a - 1).prod((0, 1)))):
        np.testing.assert_allclose(result.asnumpy(), wanted, rtol=1e-4, atol=2e-3)
    names = {launch.name.removesuffix("_1") for launch in gpu.launches}
    assert len([name for name in names if "sum" in name or "prod" in name]) == 1


@pytest.mark.parametrize("units", [16, 19])
def test_a_recurrent_layer_of_a_batch_that_varies(gpu: emulator.Device, units: int) -> None:
    net = ms.nn.GRU(3, units, bidirectional=True)
    gradient = ms.value_and_grad(lambda x: (net(x)[0] ** 2).sum(), 0, net.trainable_params())
    rng = np.random.default_rng(0)
    given = [Tensor(rng.standard_normal((3, n, 3)).astype(np.float32)) for n in (2, 9)]
    expected = [gradient(x) for x in given]
    ms.set_context(device_target="GPU")
    compiled = ms.jit(gradient, dynamic=1)
    with ms.assert_max_compiles(1):
        found = [compiled(x) for x in given]
    for a, b in zip(found, expected):
        for actual, wanted in zip((a[0], a[1][0], *a[1][1]), (b[0], b[1][0], *b[1][1])):
            np.testing.assert_allclose(actual.asnumpy(), wanted.asnumpy(), rtol=2e-4, atol=2e-5)
