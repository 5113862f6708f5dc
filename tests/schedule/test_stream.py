"""Stores around the caches and early fetches: kernels of a processor with a tiny last cache."""

from dataclasses import replace

import numpy as np
import pytest
import tvm
from driver import THREADS, arrays, call, fused, module
from tvm import relax
from tvm.relax import op

from tvmgraph.schedule import cpu_model, make_target, schedule_cpu

_TINY = replace(cpu_model("host", THREADS), l3_bytes=2048)


def _check(build, reference, *specs, tolerance=1e-5, streamed=True):
    scheduled = schedule_cpu(fused(module(build, *specs)), _TINY, 2)
    assert ("tvmgraph_stream" in scheduled.script()) == streamed
    executable = tvm.compile(scheduled, target=make_target(), relax_pipeline="default_build")
    inputs = arrays(*specs)
    got = call(relax.VirtualMachine(executable, tvm.cpu())["main"], inputs)[0]
    want = reference(*[x.astype("float64") if "float" in str(x.dtype) else x for x in inputs])
    np.testing.assert_allclose(got.astype("float64"), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", [(64, 64), (7, 48), (3, 5, 160), (4096,), (33, 1024)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8"])
def test_elementwise(shape, dtype):
    size, itemsize = int(np.prod(shape)), np.dtype(dtype).itemsize
    aligned = size % _TINY.lanes_of(max(2, itemsize)) == 0
    _check(
        lambda _, x, y: op.add(x, y),
        lambda x, y: (x + y).astype(dtype),
        (shape, dtype),
        (shape, dtype),
        streamed=aligned and size * itemsize >= _TINY.l3_bytes // 2,
    )


def test_a_row_that_is_no_whole_number_of_vectors_is_stored_as_usual():
    def build(_, x, b):
        return op.add(x, b)

    _check(build, lambda x, b: x + b, ((50, 33), "float32"), ((33,), "float32"), streamed=False)
    _check(build, lambda x, b: x + b, ((50, 64), "float32"), ((64,), "float32"))


def test_narrower_result():
    _check(lambda _, x: op.astype(x, "float16"), lambda x: x, ((40, 96), "float32"), tolerance=1e-3)


def _softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("rows", [1, 2, 37])
def test_softmax(rows):
    _check(lambda _, x: op.nn.softmax(x), _softmax, ((rows, 256), "float32"), streamed=rows > 0)
    _check(lambda _, x: op.nn.log_softmax(x), lambda x: np.log(_softmax(x)),
           ((rows, 256), "float32"))  # fmt: skip


def test_normalization_of_rows():
    _check(
        lambda _, x, g, b: op.nn.layer_norm(x, g, b, axes=-1),
        lambda x, g, b: (x - x.mean(-1, keepdims=True))
        / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * g + b,
        ((29, 128), "float32"), ((128,), "float32"), ((128,), "float32"), tolerance=1e-4,
    )  # fmt: skip


@pytest.mark.parametrize("shape", [(64, 48), (50, 64), (3, 32, 80)])
def test_transpose(shape):
    _check(
        lambda _, x: op.permute_dims(x, [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]),
        lambda x: x.swapaxes(-1, -2),
        (shape, "float32"),
        streamed=shape[-2] % 16 == 0,
    )


@pytest.mark.parametrize("parts, streamed", [((32, 64), True), ((30, 34), False)])
def test_concatenation(parts, streamed):
    _check(
        lambda _, x, y: op.concat([x, y], 1),
        lambda x, y: np.concatenate([x, y], 1),
        *[((20, columns), "float32") for columns in parts],
        streamed=streamed,
    )


@pytest.mark.parametrize("reduce, numpy", [(op.sum, np.sum), (op.max, np.max), (op.mean, np.mean)])
@pytest.mark.parametrize("rows, columns", [(200, 600), (131, 257)])
def test_sweep_of_columns(reduce, numpy, rows, columns):
    _check(
        lambda _, x: reduce(x, 0), lambda x: numpy(x, 0), ((rows, columns), "float32"),
        tolerance=1e-4, streamed=False,
    )  # fmt: skip
