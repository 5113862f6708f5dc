"""Stores around the caches and early fetches: kernels of a processor with a tiny last cache."""

from dataclasses import replace

import numpy as np
import pytest
import tvm
from driver import THREADS, arrays, call, compile_module, fused, module
from tvm import relax, te
from tvm.relax import op

from tvmgraph.backend.cpu.schedule import schedule_cpu
from tvmgraph.backend.target import make_target
from tvmgraph.machine.processor import CpuModel, cpu_model


def _tiny() -> CpuModel:
    return replace(cpu_model("host", THREADS), l3_bytes=2048)


def _check(build, reference, *specs, tolerance=1e-5, nontemporal=True):
    scheduled = schedule_cpu(fused(module(build, *specs)), _tiny(), 2)
    assert nontemporal in (None, "tvmgraph_nontemporal" in scheduled.script())
    executable = tvm.compile(scheduled, target=make_target(), relax_pipeline="default_build")
    inputs = arrays(*specs)
    got = call(relax.VirtualMachine(executable, tvm.cpu())["main"], inputs)[0]
    want = reference(*[x.astype("float64") if "float" in str(x.dtype) else x for x in inputs])
    np.testing.assert_allclose(got.astype("float64"), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", [(64, 64), (7, 48), (3, 5, 160), (4096,), (33, 1024)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8"])
def test_elementwise(shape, dtype):
    size, itemsize = int(np.prod(shape)), np.dtype(dtype).itemsize
    aligned = size % _tiny().lanes_of(max(2, itemsize)) == 0
    _check(
        lambda _, x, y: op.add(x, y),
        lambda x, y: (x + y).astype(dtype),
        (shape, dtype),
        (shape, dtype),
        nontemporal=aligned and size * itemsize >= _tiny().l3_bytes // 2,
    )


def test_a_row_that_is_no_whole_number_of_vectors_is_stored_as_usual():
    def build(_, x, b):
        return op.add(x, b)

    _check(build, lambda x, b: x + b, ((50, 33), "float32"), ((33,), "float32"), nontemporal=False)
    _check(build, lambda x, b: x + b, ((50, 64), "float32"), ((64,), "float32"))


@pytest.mark.parametrize("columns, nontemporal", [(9, False), (32, True)])
def test_rows_of_several_loops(columns, nontemporal):
    """A channel of a batch of images: its elements are whole vectors, an image's need not be."""

    def build(builder, x):
        def stages(x):
            n, k = te.reduce_axis((0, 16)), te.reduce_axis((0, columns))
            total = te.compute((6,), lambda c: te.sum(x[n, c, k], axis=[n, k]))
            return te.compute(x.shape, lambda n, c, k: x[n, c, k] - total[c])

        return builder.call_te(stages, x)

    _check(
        build, lambda x: x - x.sum((0, 2), keepdims=True)[0], ((16, 6, columns), "float32"),
        tolerance=1e-4, nontemporal=nontemporal,
    )  # fmt: skip


def test_narrower_result():
    _check(lambda _, x: op.astype(x, "float16"), lambda x: x, ((40, 96), "float32"), tolerance=1e-3)


def _softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


#: Rows of one kernel: few, and so many that a row is written while the next one is reduced.
_ROWS = [(1,), (2,), (37,), (97,), (3, 50)]


def _log_softmax(x):
    return np.log(_softmax(x))


@pytest.mark.parametrize("rows", _ROWS)
def test_softmax(rows):
    _check(lambda _, x: op.nn.softmax(x), _softmax, ((*rows, 256), "float32"))
    _check(lambda _, x: op.nn.log_softmax(x), _log_softmax, ((*rows, 256), "float32"))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(67, 33), (5, 41, 100), (200, 7)])
def test_rows_in_the_caches(shape, threads):
    """Results that are stored as usual are written one row late too."""
    x, g = arrays((shape, "float32"), (shape[-1:], "float32"))
    normalize = compile_module(
        module(lambda _, x, g: op.nn.layer_norm(x, g, g, axes=-1), (shape, "float32"),
               (shape[-1:], "float32")), threads=threads,
    )  # fmt: skip
    mean, deviation = x.mean(-1, keepdims=True), x.std(-1, keepdims=True)
    want = (x - mean) / np.sqrt(deviation**2 + 1e-5) * g + g
    np.testing.assert_allclose(call(normalize, [x, g])[0], want, rtol=1e-4, atol=1e-4)
    for build, reference in ((op.nn.softmax, _softmax), (op.nn.log_softmax, _log_softmax)):
        function = compile_module(
            module(lambda _, v, build=build: build(v), (shape, "float32")), threads=threads
        )
        np.testing.assert_allclose(call(function, [x])[0], reference(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", _ROWS[2:])
@pytest.mark.parametrize("inner", [(128,), (4, 32)])
def test_normalization_of_rows(rows, inner):
    axes = tuple(range(-len(inner), 0))
    _check(
        lambda _, x, g, b: op.nn.layer_norm(x, g, b, axes=axes),
        lambda x, g, b: (x - x.mean(axes, keepdims=True))
        / np.sqrt(x.var(axes, keepdims=True) + 1e-5) * g + b,
        ((*rows, *inner), "float32"), (inner, "float32"), (inner, "float32"), tolerance=1e-4,
    )  # fmt: skip


def _late(summed, stored):
    """Rows of exponentials, a sum of ``summed``, and ``stored`` divided by it."""
    rows, columns = shape = (97, 256)

    def build(builder, x):
        def stages(x):
            k, m = te.reduce_axis((0, columns)), te.reduce_axis((0, columns))
            top = te.compute((rows,), lambda i: te.max(x[i, m], axis=m))
            e = te.compute(shape, lambda i, j: te.exp(x[i, j] - top[i]), "e")
            total = te.compute((rows,), lambda i: te.sum(summed(e, x, i, k), axis=k))
            return te.compute(shape, lambda i, j: stored(e, i, j) / total[i])

        return builder.call_te(stages, x)

    return build, (shape, "float32")


def test_what_is_written_late_finds_its_own_row():
    """The next row must not be in the scratch buffer yet when a row is written."""

    def exponentials(x):
        return np.exp(x - x.max(-1, keepdims=True))

    build, spec = _late(lambda e, x, i, k: e[i, k], lambda e, i, j: e[i, 255 - j])
    _check(build, lambda x: _softmax(x)[:, ::-1], spec, nontemporal=None)
    build, spec = _late(lambda e, x, i, k: e[i, 255 - k] * (k + 1), lambda e, i, j: e[i, j])
    ramp = np.arange(256, 0, -1)
    _check(build, lambda x: exponentials(x) / (exponentials(x) * ramp).sum(-1, keepdims=True), spec)
    build, spec = _late(lambda e, x, i, k: x[i, k] * x[i, k], lambda e, i, j: e[i, j])
    _check(build, lambda x: exponentials(x) / (x * x).sum(-1, keepdims=True), spec)


@pytest.mark.parametrize("dtype, tolerance", [("float16", 2e-2), ("float64", 1e-12)])
def test_rows_of_other_types(dtype, tolerance):
    _check(lambda _, x: op.nn.softmax(x), _softmax, ((97, 256), dtype), tolerance=tolerance)


@pytest.mark.parametrize("shape", [(64, 48), (50, 64), (3, 32, 80)])
def test_transpose(shape):
    _check(
        lambda _, x: op.permute_dims(x, [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]),
        lambda x: x.swapaxes(-1, -2),
        (shape, "float32"),
        nontemporal=shape[-2] % 16 == 0,
    )


@pytest.mark.parametrize("parts, nontemporal", [((32, 64), True), ((30, 34), False)])
def test_concatenation(parts, nontemporal):
    _check(
        lambda _, x, y: op.concat([x, y], 1),
        lambda x, y: np.concatenate([x, y], 1),
        *[((20, columns), "float32") for columns in parts],
        nontemporal=nontemporal,
    )


@pytest.mark.parametrize("reduce, numpy", [(op.sum, np.sum), (op.max, np.max), (op.mean, np.mean)])
@pytest.mark.parametrize("rows, columns", [(200, 600), (131, 257)])
def test_sweep_of_columns(reduce, numpy, rows, columns):
    _check(
        lambda _, x: reduce(x, 0), lambda x: numpy(x, 0), ((rows, columns), "float32"),
        tolerance=1e-4, nontemporal=reduce is op.mean and columns % _tiny().lanes == 0,
    )  # fmt: skip
