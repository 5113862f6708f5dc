"""Products handed to cuBLASLt; a stand-in computes what it is told."""

from dataclasses import replace

import numpy as np
import pytest

import tvmgraph as ms
from tests.cuda.cublaslt import Library
from tvmgraph import JitConfig, Tensor, ops
from tvmgraph.compiler.cuda import library_products
from tvmgraph.compiler.tuning import database as tuning
from tvmgraph.errors import DeviceError
from tvmgraph.runtime import cublaslt

_RNG = np.random.default_rng(0)
_CONFIG = JitConfig(options={"library_dispatch": True})


@pytest.fixture
def library(gpu, monkeypatch):
    """The stand-in, said to be faster than anything."""
    found = Library()
    monkeypatch.setattr(cublaslt, "library", lambda: found)
    monkeypatch.setattr(library_products, "_is_faster", lambda *_: True)
    for function in (cublaslt._plan, cublaslt._context):
        function.cache_clear()
    ms.set_context(device_target="GPU")
    yield found
    for function in (cublaslt._plan, cublaslt._context):
        function.cache_clear()


def _array(shape, dtype):
    return Tensor(_RNG.uniform(-1, 1, shape).astype(np.float32)).astype(dtype)


_CASES = {
    "plain": ((5, 7), (7, 3), {}, ms.float32),
    "turned": ((7, 5), (3, 7), {"transpose_a": True, "transpose_b": True}, ms.float32),
    "rows of all images": ((2, 3, 7), (4, 7), {"transpose_b": True}, ms.float16),
    "batched": ((2, 3, 5, 7), (2, 3, 7, 4), {}, ms.bfloat16),
    "batched, turned": ((3, 7, 5), (3, 7, 4), {"transpose_a": True}, ms.float32),
}


@pytest.mark.parametrize("case", _CASES)
def test_any_layout(library, case):
    left, right, attrs, dtype = _CASES[case]
    a, b = _array(left, dtype), _array(right, dtype)
    found = ms.jit(lambda x, y: ops.matmul(x, y, **attrs), jit_config=_CONFIG)(a, b)
    assert len(library.calls) == 1
    x, y = (t.asnumpy().astype(np.float32) for t in (a, b))
    x = x.swapaxes(-1, -2) if attrs.get("transpose_a") else x
    y = y.swapaxes(-1, -2) if attrs.get("transpose_b") else y
    tolerance = {ms.float32: 1e-5, ms.float16: 4e-3, ms.bfloat16: 3e-2}[dtype]
    assert np.allclose(found.asnumpy().astype(np.float32), x @ y, atol=tolerance)


def test_bias_and_activation_go_along(library):
    a, b, bias = (_array(s, ms.float32) for s in ((3, 5, 7), (3, 7, 6), (6,)))
    expected = a.asnumpy() @ b.asnumpy() + bias.asnumpy()

    @ms.jit(jit_config=_CONFIG)
    def network(x, y, z):
        h = ops.matmul(x[2], y[2]) + z
        relu, gelu = ops.relu(ops.matmul(x[0], y[0]) + z), z + ops.matmul(x[1], y[1])
        return relu, ops.gelu(gelu, "tanh"), h * h

    relu, gelu, square = network(a, b, bias)
    assert sorted(c[7] for c in library.calls) == [4, 6, 36]
    assert np.allclose(relu.asnumpy(), np.maximum(expected[0], 0), atol=1e-5)
    inner = np.sqrt(2 / np.pi) * (expected[1] + 0.044715 * expected[1] ** 3)
    assert np.allclose(gelu.asnumpy(), expected[1] / 2 * (1 + np.tanh(inner)), atol=1e-5)
    assert np.allclose(square.asnumpy(), expected[2] ** 2, atol=1e-4)


def test_refusals_are_errors(library):
    a = _array((9, 9), ms.float32)
    square = ms.jit(lambda x: ops.matmul(x, x), jit_config=_CONFIG)
    library.algorithms = 0
    with pytest.raises(DeviceError, match="knows no algorithm") as info:
        square(a)
    assert "float32 1x9x9x9" in str(info.value)
    library.algorithms, library.status = 1, 15
    with pytest.raises(DeviceError, match=r"cublasLtMatmul failed in cuBLASLt \(status 15\)"):
        square(a)
    library.status = 0
    assert np.allclose(square(a).asnumpy(), a.asnumpy() @ a.asnumpy(), atol=1e-5)


def test_without_the_library_it_says_what_to_install(gpu):
    if cublaslt.is_installed():
        pytest.skip("cuBLASLt is installed here")
    ms.set_context(device_target="GPU")
    a = _array((4, 4), ms.float32)
    with pytest.raises(DeviceError, match="cuBLASLt was not found") as info:
        ms.jit(lambda x: ops.matmul(x, x), jit_config=_CONFIG)(a)
    assert "pip install nvidia-cublas" in str(info.value)


def test_the_faster_one_is_measured_once(gpu, monkeypatch, tmp_path):
    monkeypatch.setenv(tuning.FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setattr(cublaslt, "library", lambda: found)
    found = Library()
    for function in (cublaslt._plan, cublaslt._context):
        function.cache_clear()
    ms.set_context(device_target="GPU")
    a = _array((4, 6), ms.float32)
    ms.jit(lambda x: ops.matmul(x, x, transpose_b=True), jit_config=_CONFIG)(a)
    measured = len(found.calls)
    (record,) = tuning.records()
    assert measured >= 100 and record.best_us <= record.default_us
    path = next(tmp_path.glob("*.json"))
    functions = {
        True: lambda x: ops.matmul(x, x, transpose_b=True) * 2,
        False: lambda x: ops.matmul(x, x, transpose_b=True) * 3,
    }
    for answer, function in functions.items():
        tuning.keep(path.stem, replace(record, decisions={"library": answer}))
        found.calls.clear()
        ms.jit(function, jit_config=_CONFIG)(a)
        assert len(found.calls) == answer
    for function in (cublaslt._plan, cublaslt._context):
        function.cache_clear()
