"""Dynamically quantized networks: integers are exact, as the ONNX standard has them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnxruntime.quantization import QuantType, quantize_dynamic

import tvmgraph as ms
from tvmgraph import Tensor, jit, nn

RNG = np.random.default_rng(0)
IMAGES = RNG.standard_normal((2, 3, 8, 8)).astype(np.float32)
ROWS = RNG.standard_normal((8, 32)).astype(np.float32)


def convolutional() -> nn.Cell:
    return nn.SequentialCell(
        nn.Conv2d(3, 16, 3, has_bias=True), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Dense(32 * 4 * 4, 10),
    )  # fmt: skip


def perceptron() -> nn.Cell:
    return nn.SequentialCell(nn.Dense(32, 64), nn.ReLU(), nn.Dense(64, 48), nn.Tanh())


def _session(model: str | bytes, to: Path | None = None) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if to is not None:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(to)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def quantized(
    net: nn.Cell, x: np.ndarray, folder: Path, kind: Any, **options: Any
) -> onnx.ModelProto:
    """Exports a network, folds its transposed weights and quantizes it."""
    written = ms.export(net, Tensor(x), file_name=folder / "net", file_format="ONNX")
    _session(str(written), folder / "folded.onnx")
    names = ["Conv", "MatMul", "Gemm"]
    logging.disable(logging.WARNING)  # that a model should be preprocessed
    try:
        quantize_dynamic(folder / "folded.onnx", folder / "quantized.onnx", weight_type=kind,
                         op_types_to_quantize=names, **options)  # fmt: skip
    finally:
        logging.disable(logging.NOTSET)
    return onnx.load(folder / "quantized.onnx")


def _has_exact_integers() -> bool:
    """Whether ONNX Runtime's kernels for unsigned times signed bytes do not saturate here."""
    flags = Path("/proc/cpuinfo").read_text()
    return any(f" {name}" in flags for name in ("avx512_vnni", "avx_vnni", "asimddp"))


@pytest.mark.parametrize("kind", [QuantType.QInt8, QuantType.QUInt8], ids=["int8", "uint8"])
@pytest.mark.parametrize(
    ("make", "x", "operator"),
    [(convolutional, IMAGES, "ConvInteger"), (perceptron, ROWS, "MatMulInteger")],
    ids=["convolutions", "matrices"],
)
def test_quantized_networks_are_the_reference(
    make: Any, x: np.ndarray, operator: str, kind: Any, tmp_path: Path
) -> None:
    ms.set_seed(0)
    model = quantized(make(), x, tmp_path, kind)
    assert {"DynamicQuantizeLinear", operator} <= {n.op_type for n in model.graph.node}
    name = model.graph.input[0].name
    (expected,) = ReferenceEvaluator(model).run(None, {name: x})
    np.testing.assert_allclose(ms.onnx.load(model)(Tensor(x)).asnumpy(), expected, atol=1e-6)
    if kind == QuantType.QUInt8 or _has_exact_integers():
        (other,) = _session(model.SerializeToString()).run(None, {name: x})
        np.testing.assert_allclose(other, expected, atol=1e-5)


def test_a_quantized_network_compiles(tmp_path: Path) -> None:
    ms.set_seed(0)
    model = quantized(convolutional(), IMAGES, tmp_path, QuantType.QUInt8)
    (expected,) = ReferenceEvaluator(model).run(None, {model.graph.input[0].name: IMAGES})
    compiled = jit(ms.onnx.load(model))(Tensor(IMAGES)).asnumpy()
    np.testing.assert_allclose(compiled, expected, atol=1e-5)


class MatMulInteger(OpRun):
    """The operator as the instruction VPMADDUBSW has it: sums of pairs stop at 16 bits."""

    op_domain = "saturating"
    op_type = "MatMulInteger"

    def _run(self, a: Any, b: Any, a_zero_point: Any = None, b_zero_point: Any = None) -> Any:
        wide, narrow = a.astype(np.int32), b.astype(np.int32)
        pairs = wide[:, :, None] * narrow[None]
        pairs = np.clip(pairs[:, ::2] + pairs[:, 1::2], -(2**15), 2**15 - 1).sum(1)
        columns = narrow.sum(0) * (0 if a_zero_point is None else int(np.ravel(a_zero_point)[0]))
        return ((pairs - columns).astype(np.int32),)


def test_saturating_kernels_leave_the_standard_and_fewer_bits_avoid_it(tmp_path: Path) -> None:
    """What ONNX Runtime computes on processors with AVX2 alone, which have no other instruction."""
    far: dict[bool, float] = {}
    for reduced in (False, True):
        ms.set_seed(0)
        net = nn.SequentialCell(nn.Dense(32, 64, weight_init="ones"))
        x = np.linspace(0.5, 1.0, ROWS.size, dtype=np.float32).reshape(ROWS.shape)
        model = quantized(net, x, tmp_path, QuantType.QInt8, reduce_range=reduced)
        given = {model.graph.input[0].name: x}
        (exact,) = ReferenceEvaluator(model).run(None, given)
        (node,) = [n for n in model.graph.node if n.op_type == "MatMulInteger"]
        node.domain = MatMulInteger.op_domain
        model.opset_import.append(helper.make_opsetid(node.domain, 1))
        (stopped,) = ReferenceEvaluator(model, new_ops=[MatMulInteger]).run(None, given)
        node.domain = ""
        np.testing.assert_allclose(ms.onnx.load(model)(Tensor(x)).asnumpy(), exact, rtol=1e-5)
        far[reduced] = float(np.abs(stopped - exact).max() / np.abs(exact).max())
    assert far[False] > 0.05
    assert far[True] < 1e-6


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_sums_of_a_convolution_of_integers_are_exact(compiled: bool) -> None:
    x = RNG.integers(200, 256, (1, 130, 4, 4)).astype(np.uint8)
    w = RNG.integers(100, 128, (2, 130, 3, 3)).astype(np.int8)
    kinds = [onnx.TensorProto.UINT8, onnx.TensorProto.INT8]
    values = [helper.make_tensor_value_info(n, k, v.shape) for n, k, v in zip("xw", kinds, (x, w))]
    out = helper.make_tensor_value_info("y", onnx.TensorProto.INT32, None)
    graph = helper.make_graph(
        [helper.make_node("ConvInteger", ["x", "w"], ["y"])], "g", values, [out]
    )
    cell = ms.onnx.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    y = (jit(cell) if compiled else cell)(Tensor(x), Tensor(w)).asnumpy()
    windows = np.lib.stride_tricks.sliding_window_view(x[0].astype(np.int64), (3, 3), (1, 2))
    expected = np.einsum("chwij,ocij->ohw", windows, w.astype(np.int64))
    assert expected.min() > 2**24
    np.testing.assert_array_equal(y[0], expected)
