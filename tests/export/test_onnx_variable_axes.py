"""ONNX files whose inputs have axes of any size: one capture, sizes computed in the model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

import tvmgraph as ms
from tests.export.helpers import MAX_ERROR, eager, relative_error, run_onnxruntime
from tvmgraph import Tensor, nn, ops
from tvmgraph.errors import ExportError, GraphError, TvmgraphError
from tvmgraph.export.onnx_file import onnx_model
from tvmgraph.testing.samples import Case, all_cases, assert_close, has_column, tolerance

ROWS = (None, 8)
IMAGES = (2, 3, None, None)
OF_ROWS = [(3,), (9,)]
OF_IMAGES = [(9, 12), (30, 31)]


def conv(stride: int, pad_mode: str = "pad", padding: int = 1) -> nn.Cell:
    return nn.Conv2d(3, 3, 3, stride, pad_mode=pad_mode, padding=padding)


class Residual(nn.Cell):
    """Two ways to halve an image, as in residual networks."""

    def __init__(self) -> None:
        super().__init__()
        self.long, self.short = conv(2, "same", 0), nn.Conv2d(3, 3, 1, 2, pad_mode="same")

    def construct(self, x: Tensor) -> Tensor:
        return self.long(x) + self.short(x)


#: Name: the function or Cell, the shape of its input, and sizes of the axes that vary.
CASES: dict[str, tuple[Callable[..., Any], tuple[int | None, ...], list[tuple[int, ...]]]] = {
    "mean by size": (lambda x: x.sum(0) / x.shape[0], ROWS, OF_ROWS),
    "root of a size": (lambda x: x / x.shape[0] ** 0.5 + 1 / (2 * x.shape[0] - 1), ROWS, OF_ROWS),
    "Primitives": (
        lambda x: ops.Reshape()(ops.Slice()(x, (0, 1), (x.shape[0], 6)), (x.shape[0], 2, 3)),
        ROWS, OF_ROWS,
    ),
    "half": (lambda x: x[: x.shape[0] // 2], ROWS, OF_ROWS),
    "last": (lambda x: x[:-1], ROWS, OF_ROWS),
    "square": (
        lambda x: ops.reshape(x[:, :1] + x[:, :1].T, (x.shape[0] ** 2,)), ROWS, OF_ROWS
    ),
    "narrow": (lambda x: ops.narrow(x, 0, 1, x.shape[0] - 1), ROWS, OF_ROWS),
    "repeat": (lambda x: ops.repeat_interleave(x, 2, 0), ROWS, OF_ROWS),
    "roll": (lambda x: ops.roll(x, 2, 0), ROWS, OF_ROWS),
    "eye": (lambda x: ops.eye(x.shape[0], x.shape[0], ms.float32) @ x, ROWS, OF_ROWS),
    "triangle of integers": (
        lambda x: ops.tril(ops.ones((x.shape[0], x.shape[0]), ms.int32)), ROWS, OF_ROWS
    ),
    "running product": (lambda x: ops.cumprod(x, 0), ROWS, OF_ROWS),
    "attention": (lambda x: ops.softmax(x @ x.T, -1) @ x, ROWS, OF_ROWS),
    "LSTM": (nn.LSTM(8, 3, 2, bidirectional=True), (None, None, 8), [(3, 2), (6, 1)]),
    "GRU": (nn.GRU(8, 3, batch_first=True), (2, None, 8), OF_ROWS),
    "RNN": (nn.RNN(8, 3), (None, 2, 8), OF_ROWS),
    "convolution": (conv(1), IMAGES, OF_IMAGES),
    "convolutions with strides": (
        nn.SequentialCell(conv(2), nn.ReLU(), conv(2), nn.MaxPool2d(3, 2), conv(1)),
        IMAGES, [(33, 40), (64, 65)],
    ),
    "same padding": (conv(1, "same", 0), IMAGES, OF_IMAGES),
    "same padding with strides": (
        nn.SequentialCell(
            conv(2, "same", 0), nn.MaxPool2d(3, 2, pad_mode="same"), conv(3, "same", 0),
            nn.AvgPool2d(2, 2, pad_mode="same"),
        ),
        IMAGES, [(33, 40), (64, 65)],
    ),
    "residual with strides": (Residual(), IMAGES, OF_IMAGES),
    "32 pixels become one": (
        nn.SequentialCell(*(conv(2) for _ in range(5)), conv(1, "same", 0)), IMAGES, [(64, 97)]
    ),
    "transposed convolution": (nn.Conv2dTranspose(3, 2, 3, 2), IMAGES, OF_IMAGES),
    "average pool": (
        lambda x: ops.avg_pool2d(x, 3, 2, padding=1, count_include_pad=False), IMAGES, OF_IMAGES
    ),
    "positions of maxima": (
        lambda x: ops.max_pool2d(x, 2, 2, return_indices=True)[1], IMAGES, OF_IMAGES
    ),
    "global pool": (lambda x: ops.adaptive_avg_pool2d(x, (1, 1)), IMAGES, OF_IMAGES),
    "batch norm": (nn.BatchNorm2d(3).set_train(False), IMAGES, OF_IMAGES),
    "group norm": (nn.GroupNorm(1, 3), IMAGES, OF_IMAGES),
    "windows": (lambda x: ops.unfold(x, 3), IMAGES, OF_IMAGES),
    "reflection": (lambda x: ops.pad(x, (1, 2, 1, 0), "reflect"), IMAGES, OF_IMAGES),
    "borders": (lambda x: ops.pad(x, (1, 2, 1, 0), "replicate"), IMAGES, OF_IMAGES),
    "circle": (lambda x: ops.pad(x, (1, 2, 1, 0), "circular"), IMAGES, OF_IMAGES),
    "twice as large": (
        lambda x: ops.interpolate(x, scale_factor=2.0, recompute_scale_factor=True),
        IMAGES, OF_IMAGES,
    ),
    "with corners": (
        lambda x: ops.interpolate(
            x, (x.shape[2] * 2, x.shape[3] * 2), mode="bilinear", align_corners=True
        ),
        IMAGES, OF_IMAGES,
    ),
    "of one size": (lambda x: ops.interpolate(x, (7, 7), mode="bilinear"), IMAGES, OF_IMAGES),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_one_file_serves_all_sizes(name: str) -> None:
    net, shape, sizes = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # none of these decides by a size
        model = onnx_model(net, (Tensor(shape=shape, dtype=ms.float32),))
    onnx.checker.check_model(model, full_check=True)
    rng = np.random.default_rng(0)
    for given in sizes:
        of_axes = iter(given)
        full = [next(of_axes) if d is None else d for d in shape]
        args = (Tensor(rng.standard_normal(full).astype(np.float32)),)
        assert relative_error(run_onnxruntime(model, args), eager(net, args)) <= MAX_ERROR


def test_axes_have_the_names_they_were_given() -> None:
    x = Tensor(np.ones((4, 6), np.float32))
    model = onnx_model(
        lambda x: (x, ops.concat([x, x]), x[1:]), (x,), dynamic={"x": {0: "rows", 1: "wide"}}
    )
    shapes = [
        [d.dim_param for d in v.type.tensor_type.shape.dim]
        for v in (*model.graph.input, *model.graph.output)
    ]
    assert shapes == [
        ["rows", "wide"], ["rows", "wide"], ["2*rows", "wide"], ["rows-1", "wide"]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: x * 2 if x.shape[0] > 2 else x, "sizes of at least 3 of n only"),
        (lambda x: ops.chunk(x, 2, 0)[1], "sizes of at least 2 of n only"),
        (lambda x: ops.split(x, [2, x.shape[0] - 2])[1], "sizes of at least 2 of n only"),
        (
            lambda x: ops.interpolate(x[None, None], (x.shape[0] // 2, 8), mode="bilinear"),
            "sizes of at least 2 of n only",
        ),
        (lambda x: x + ops.ones((50, 8))[: x.shape[0]], "sizes of at most 50 of n only"),
        (
            lambda x: x + ops.ones((50, 8))[: x.shape[0]] if x.shape[0] > 4 else x,
            "sizes of at least 5 and at most 50 of n only",
        ),
    ],
)
def test_limits_that_the_code_sets_are_said(function: Callable[..., Tensor], said: str) -> None:
    with pytest.warns(UserWarning, match=f"{said}: the code decides"):
        model = onnx_model(function, (Tensor(shape=["n", 8], dtype=ms.float32),))
    for rows in (5, 50):
        args = (Tensor(np.ones((rows, 8), np.float32)),)
        assert relative_error(run_onnxruntime(model, args), eager(function, args)) <= MAX_ERROR


@pytest.mark.filterwarnings("ignore:export")  # of an image of one pixel, which has no two thirds
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize(("up", "down"), [(7, 3), (2, 3), (10, 11)])
def test_elements_are_chosen_as_eager_code_rounds(mode: str, up: int, down: int) -> None:
    def resized(x: Tensor) -> Tensor:
        return ops.interpolate(x, x.shape[2] * up // down, mode=mode)

    model = onnx_model(resized, (Tensor(shape=(1, 1, None), dtype=ms.float32),))
    for n in (8, 14, 50, 62, 93, 100, 108, 122, 124, 182):
        args = (Tensor(np.arange(n, dtype=np.float32)[None, None]),)
        assert relative_error(run_onnxruntime(model, args), eager(resized, args)) <= MAX_ERROR


def test_cubic_positions_are_rounded_as_no_onnx_operator_does() -> None:
    def larger(x: Tensor) -> Tensor:
        return ops.interpolate(x, (x.shape[2] * 2, x.shape[3] * 2), mode="bicubic")

    with pytest.raises(ExportError, match="needs axes of known sizes in ONNX"):
        onnx_model(larger, (Tensor(shape=IMAGES, dtype=ms.float32),))


def test_a_window_that_does_not_fit_is_no_decision_of_the_code() -> None:
    """The file refuses smaller images as eager code does, so that nobody has to be told."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        onnx_model(nn.Conv2d(3, 4, 7, pad_mode="valid"), (Tensor(shape=IMAGES, dtype=ms.float32),))


def _first_cases() -> list[Case]:
    cases: dict[str, Case] = {}
    for case in all_cases():
        if has_column(case.op, "onnx") and case.sample.shapes:
            cases.setdefault(case.op.name, case)
    return list(cases.values())


@pytest.mark.parametrize("case", _first_cases(), ids=lambda case: case.op.name)
def test_a_row_takes_any_size_or_says_that_it_cannot(case: Case) -> None:
    """Every axis of the first sample in turn, with those of the other operands of its size."""
    labels = [f"a{i}" for i in range(len(case.tensors()))]
    call = f"lambda {', '.join(labels)}: call([{', '.join(labels)}])"
    net = eval(call, {"call": lambda tensors: tuple(case.call(tensors))})
    tensors, expected = case.tensors(), case.call(case.tensors())
    for axis in range(max(t.ndim for t in tensors)):
        sizes = [t.shape[axis] if t.ndim > axis else 0 for t in tensors]
        size = next(n for n in sizes if n)
        if size < 2:
            continue
        dynamic = {label: {axis: "n"} for label, n in zip(labels, sizes) if n == size}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # limits
                model = onnx_model(net, tuple(tensors), dynamic=dynamic)
        except TvmgraphError as e:
            assert not isinstance(e, GraphError) or isinstance(e, ExportError), str(e)
            continue
        taken = {i.name for i in model.graph.input}
        feeds = tuple(t for label, t in zip(labels, tensors) if label in taken)
        found = run_onnxruntime(model, feeds)
        for a, e in zip(found, expected, strict=True):
            assert_close(np.asarray(a), e.asnumpy(), tolerance(case, e.dtype), case.name)
