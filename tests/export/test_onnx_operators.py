"""Imported operators that ONNX's node tests do not check: narrow types, random numbers, regions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tvmgraph as ms
from tests.export.helpers import relative_error, run_onnxruntime
from tvmgraph import Tensor
from tvmgraph.errors import CaptureError, LoadError


def one_node(op_type: str, inputs: dict[str, np.ndarray], outputs: int = 1, **attrs: Any) -> Any:
    """A model of one operator; returns it with its inputs."""
    names = list(inputs)
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in inputs.items()
    ]
    results = [f"y{i}" for i in range(outputs)]
    kinds = [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in results]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, results, **attrs)], "g", infos, kinds
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


@pytest.mark.parametrize(
    "kind",
    ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn"],
)
def test_rounding_to_narrow_floats(kind: str) -> None:
    """Every value, every border between two values, and both neighbours of a border."""
    dtype = np.dtype(getattr(ml_dtypes, kind))
    values = np.arange(8 if "4_" in kind else 128, dtype=np.uint8).view(dtype).astype(np.float32)
    values = values[np.isfinite(values)]
    middle = (values[:-1] + values[1:]) / 2
    x = np.concatenate([values, middle, np.nextafter(middle, 0), np.nextafter(middle, 1e9)])
    x = np.concatenate([x, -x]).astype(np.float32)
    number = helper.np_dtype_to_tensor_dtype(dtype)
    net = ms.onnx.load(one_node("Cast", {"x": x}, to=number))
    expected = x.astype(dtype).astype(np.float32)
    for run in (net, ms.jit(net)):
        np.testing.assert_array_equal(run(Tensor(x)).asnumpy(), expected)


def test_four_bit_weights() -> None:
    """Blocks of 4-bit weights, as quantized language models hold them."""
    rng = np.random.default_rng(0)
    w = rng.integers(-8, 8, (6, 4)).astype(ml_dtypes.int4)
    scale = rng.random((3, 4)).astype(np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "scale"], ["d"], axis=0, block_size=2),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    weights = [onnx.numpy_helper.from_array(a, n) for n, a in (("w", w), ("scale", scale))]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])], weights,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    net, x = ms.onnx.load(model), rng.random((2, 6)).astype(np.float32)
    expected = x @ (w.astype(np.float32) * np.repeat(scale, 2, 0))
    for run in (net, ms.jit(net)):
        np.testing.assert_allclose(run(Tensor(x)).asnumpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("op_type", "attrs"),
    [
        ("LSTM", {}), ("LSTM", {"clip": 0.5}), ("GRU", {"linear_before_reset": 1}), ("GRU", {}),
        ("RNN", {}), ("RNN", {"activations": "Relu"}),
    ],
)  # fmt: skip
def test_recurrent_layers(op_type: str, attrs: dict[str, Any], direction: str) -> None:
    """Gates in ONNX's order, run as a layer of this package where it has one of that kind."""
    rng = np.random.default_rng(0)
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op_type]
    ways = 2 if direction == "bidirectional" else 1
    units, states = 5, 2 if op_type == "LSTM" else 1
    sizes = {
        "x": (4, 2, 3), "w": (ways, gates * units, 3), "r": (ways, gates * units, units),
        "b": (ways, 2 * gates * units), "": (), "h": (ways, 2, units), "c": (ways, 2, units),
    }  # fmt: skip
    given = {n: rng.standard_normal(s).astype(np.float32) for n, s in sizes.items() if s}
    if states == 1:
        del given["c"]
    more = dict(attrs)
    if "activations" in more:
        more["activations"] = [more["activations"]] * ways
    model = one_node(op_type, given, 1 + states, hidden_size=units, direction=direction, **more)
    model.graph.node[0].input.insert(4, "")
    for output in model.graph.output:
        output.type.tensor_type.elem_type = TensorProto.FLOAT
    args = tuple(Tensor(a) for a in given.values())
    expected = run_onnxruntime(model, args)
    net = ms.onnx.load(model)
    for run in (net, ms.jit(net)):
        for got, want in zip(run(*args), expected, strict=True):
            assert relative_error(got.asnumpy(), want) < 1e-5


def resize(x: np.ndarray, scales: tuple[float, ...], **attrs: object) -> onnx.ModelProto:
    """A model that resizes an image by the numbers of an initializer."""
    numbers = onnx.numpy_helper.from_array(np.array([1, 1, *scales], np.float32), "scales")
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    kinds = [helper.make_tensor_value_info(n, kind, s) for n, s in (("x", x.shape), ("y", None))]
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], **attrs)
    graph = helper.make_graph([node], "g", kinds[:1], kinds[1:], [numbers])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def test_scales_of_images_are_constants() -> None:
    """Numbers that decide about a shape; compiled as one graph."""
    x = np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2)
    x[0, 0, 1, 0] = np.inf  # copied: nothing is multiplied with it
    net = ms.onnx.load(resize(x, (2, 3), mode="nearest"))
    assert not net.trainable_params()
    expected = x.repeat(2, 2).repeat(3, 3)
    for run in (net, ms.jit(net, fullgraph=True)):
        np.testing.assert_array_equal(run(Tensor(x)).asnumpy(), expected)


def test_the_last_axis_of_a_growing_image_is_resampled_first() -> None:
    x = np.ones((1, 2, 4, 5), np.float32)
    resized = ms.jit(ms.onnx.load(resize(x, (3, 3), mode="linear")), fullgraph=True)
    resized(Tensor(x))
    nodes = [n for n in resized.graph().nodes if n.op.name == "resample"]
    assert [n.attrs["axis"] for n in nodes] == [3, 2]


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("grid", ["half_pixel", "asymmetric"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("scales", [(2, 3), (1.7, 0.6)])
def test_images_are_resized(scales: tuple[float, ...], mode: str, grid: str, dtype: str) -> None:
    if dtype == "int32" and mode == "cubic":
        return  # ONNX Runtime has none
    x = (100 * np.random.default_rng(0).random((1, 2, 7, 10))).astype(dtype)
    model = resize(x, scales, mode=mode, coordinate_transformation_mode=grid, nearest_mode="floor")
    (expected,) = run_onnxruntime(model, (Tensor(x),))
    net = ms.onnx.load(model)
    for run in (net, ms.jit(net)):
        got = run(Tensor(x)).asnumpy()
        assert got.dtype == x.dtype
        np.testing.assert_allclose(got, expected, atol=2e-3 if dtype == "float32" else 1)


def test_max_roi_pool() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 9, 11)).astype(np.float32)
    rois = np.array([[0, 0, 0, 10, 8], [1, 2, 1, 7, 6], [1, 20, 20, 30, 30], [0, 3, 3, 3, 3]])
    given = {"x": x, "rois": rois.astype(np.float32)}
    model = one_node("MaxRoiPool", given, pooled_shape=[3, 2], spatial_scale=0.5)
    args = tuple(Tensor(a) for a in given.values())
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    model.opset_import[0].version = 20  # ONNX Runtime has no newer one
    expected = run_onnxruntime(model, args)
    net = ms.onnx.load(model)
    assert relative_error([net(*args)], expected) <= 1e-6
    assert relative_error([ms.jit(net)(args[0], given["rois"])], expected) <= 1e-6


@pytest.mark.parametrize(
    ("op_type", "attrs", "mean", "deviation"),
    [
        ("RandomUniform", {"low": -1.0, "high": 3.0}, 1.0, 4 / 12**0.5),
        ("RandomNormal", {"mean": 2.0, "scale": 0.5}, 2.0, 0.5),
    ],
)
def test_random_numbers(op_type: str, attrs: Any, mean: float, deviation: float) -> None:
    shape = (50, 80)
    net = ms.onnx.load(one_node(op_type, {}, shape=shape, **attrs))
    like = ms.onnx.load(one_node(f"{op_type}Like", {"x": np.zeros(shape, np.float32)}, **attrs))
    for y in (net(), like(Tensor(np.zeros(shape, np.float32)))):
        found = y.asnumpy()
        assert found.shape == shape
        assert abs(found.mean() - mean) < 4 * deviation / found.size**0.5
        assert abs(found.std() - deviation) < 0.05 * deviation
    seeded = ms.onnx.load(one_node(op_type, {}, shape=shape, seed=3.0, **attrs))
    np.testing.assert_array_equal(seeded().asnumpy(), seeded().asnumpy())
    assert not np.array_equal(net().asnumpy(), seeded().asnumpy())


def test_classes_are_drawn_by_their_probability() -> None:
    p = np.array([[0.1, 0.6, 0.3], [0.5, 0.25, 0.25]], np.float32)
    net = ms.onnx.load(one_node("Multinomial", {"x": np.log(p)}, sample_size=4000))
    drawn = net(Tensor(np.log(p))).asnumpy()
    assert drawn.dtype == np.int32
    for row, wanted in zip(drawn, p):
        np.testing.assert_allclose(np.bincount(row, minlength=3) / row.size, wanted, atol=0.03)


def test_results_that_do_not_fit_into_memory() -> None:
    shape = np.array([10**7, 10**7])
    net = ms.onnx.load(one_node("ConstantOfShape", {"shape": shape}))
    with pytest.raises(LoadError, match="does not fit into memory"):
        net(Tensor(shape))


def test_shapes_as_numbers() -> None:
    """A tuple is a constant of the compiled model; another one compiles again."""
    x, shape = np.arange(6, dtype=np.float32), np.array([2, 3])
    net = ms.onnx.load(one_node("Reshape", {"x": x, "shape": shape}))
    compiled = ms.jit(net, fullgraph=True)
    with pytest.raises(CaptureError, match="give that input as a number or tuple"):
        compiled(Tensor(x), Tensor(shape))
    for wanted in ((2, 3), (3, 2), (6, 1)):
        assert compiled(Tensor(x), wanted).shape == wanted


@pytest.mark.parametrize("centred", [0, 1])
@pytest.mark.parametrize(("limit", "least"), [(400, 0.1), (20, -1.0)])
def test_boxes_that_overlap_others_are_left_out(centred: int, limit: int, least: float) -> None:
    rng = np.random.default_rng(0)
    boxes = rng.random((2, 500, 4), np.float32)
    boxes[..., 2:] = boxes[..., 2:] * 0.1 + (0 if centred else boxes[..., :2])
    boxes[0, :3] = boxes[0, 0]
    scores = rng.random((2, 2, 500), np.float32)
    node = helper.make_node("NonMaxSuppression", ["b", "s", "n", "o", "l"], ["y"],
                            center_point_box=centred)  # fmt: skip
    given = [helper.make_tensor_value_info("b", TensorProto.FLOAT, [2, 500, 4]),
             helper.make_tensor_value_info("s", TensorProto.FLOAT, [2, 2, 500])]  # fmt: skip
    known = [helper.make_tensor("n", TensorProto.INT64, [1], [limit]),
             helper.make_tensor("o", TensorProto.FLOAT, [1], [0.3]),
             helper.make_tensor("l", TensorProto.FLOAT, [1], [least])]  # fmt: skip
    result = helper.make_tensor_value_info("y", TensorProto.INT64, ["k", 3])
    model = helper.make_model(helper.make_graph([node], "g", given, [result], known))
    model.ir_version = 10
    args = Tensor(boxes), Tensor(scores)
    (expected,) = run_onnxruntime(model, args)
    assert len(expected) <= 4 * limit
    np.testing.assert_array_equal(ms.onnx.load(model)(*args).asnumpy(), expected)
