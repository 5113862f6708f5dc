"""Names that model zoos import at the top of their files, whatever they use of them later."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops
from tvmgraph._c_expression import _random_normal, _random_uniform  # pyright: ignore
from tvmgraph._checkparam import args_type_check, check_type_name, twice  # pyright: ignore
from tvmgraph.common import initializer as init
from tvmgraph.common._stub_tensor import StubTensor  # pyright: ignore
from tvmgraph.common.api import _function_forbid_reuse, _pynative_executor  # pyright: ignore
from tvmgraph.dataset.vision.py_transforms_util import hwc_to_chw, is_numpy  # pyright: ignore
from tvmgraph.nn.layer import rnn_cells  # pyright: ignore
from tvmgraph.nn.layer.conv import _deconv_output_length  # pyright: ignore
from tvmgraph.nn.wrap.loss_scale import grad_scale  # pyright: ignore
from tvmgraph.ops import operations as P
from tvmgraph.ops.operations._rl_inner_ops import CudnnGRU  # pyright: ignore
from tvmgraph.ops.operations.nn_ops import FlashAttentionScore  # pyright: ignore
from tvmgraph.train.amp import AMP_BLACK_LIST, AMP_WHITE_LIST  # pyright: ignore


def test_registers_of_overflows_are_made_everywhere_and_called_on_their_processor() -> None:
    alloc, get, clear = (
        P.NPUAllocFloatStatus(), P.NPUGetFloatStatus(), P.NPUClearFloatStatus(),
    )  # fmt: skip
    x, gru = ops.ones((2, 3, 4)), CudnnGRU(4, 4, 1, True, False, 0.0)
    flash = FlashAttentionScore(2, scale_value=0.5)
    calls = (alloc, lambda: get(x), lambda: clear(x), lambda: flash(x, x, x))
    with pytest.raises(RuntimeError, match=r"NVIDIA's processors only(.|\n)*call nn.GRU"):
        gru(x, x, x)
    for call in calls:
        with pytest.raises(RuntimeError, match="Ascend processors only"):
            call()


@pytest.mark.parametrize("compiled", [False, True])
def test_strategies_of_operators_do_nothing_on_one_process(compiled: bool) -> None:
    add = ops.Add().shard(((8, 1), (8, 1)))
    function = ms.jit(lambda x: add(x, x)) if compiled else lambda x: add(x, x)
    assert function(Tensor(np.ones((2, 3), np.float32))).asnumpy().sum() == 12


def test_gradients_are_switched_off_and_on() -> None:
    def constant_inside(x: Tensor) -> Tensor:
        before = _pynative_executor.enable_grad()
        _pynative_executor.set_enable_grad(False)
        z = x * x
        _pynative_executor.set_enable_grad(before)
        return z * x

    assert ms.grad(constant_inside)(Tensor(2.0)).item() == 4
    assert _pynative_executor.enable_grad()


def test_an_initializer_of_ones_own_has_a_name() -> None:
    @init._register("two")
    class Twos(init.Initializer):
        def _initialize(self, arr: np.ndarray) -> None:
            init._assignment(arr, 2)

    try:
        for name in ("two", "Twos"):
            assert init.initializer(name, (3,)).asnumpy().tolist() == [2, 2, 2]
    finally:
        del init._INITIALIZER_ALIAS["two"], init._INITIALIZER_ALIAS["twos"]


def test_random_arrays_of_initializers() -> None:
    ms.set_seed(3)
    normal = init._init_random_normal(5.0, 0.1, (1000,))
    uniform = init._init_random_uniform(2.0, 4.0, (1000,))
    assert normal.mean() == pytest.approx(5, abs=0.02) and normal.std() == pytest.approx(0.1, 0.1)
    assert 2 <= uniform.min() < 2.1 and 3.9 < uniform.max() <= 4


def test_arrays_are_filled_with_random_numbers() -> None:
    normal, uniform = np.zeros(1000, np.float32), np.zeros(1000, np.float32)
    _random_normal(1, normal, 5.0, 0.1)
    _random_uniform(1, uniform, 2.0, 4.0)
    assert normal.mean() == pytest.approx(5, abs=0.02) and normal.std() == pytest.approx(0.1, 0.1)
    assert 2 <= uniform.min() < 2.1 and 3.9 < uniform.max() <= 4


@pytest.mark.parametrize(
    ("mode", "cell"),
    [
        ("rnn_tanh", nn.RNNCell(3, 4)),
        ("rnn_relu", nn.RNNCell(3, 4, nonlinearity="relu")),
        ("gru", nn.GRUCell(3, 4)),
        ("lstm", nn.LSTMCell(3, 4)),
    ],
)
def test_steps_of_recurrent_cells_are_functions(mode: str, cell: Any) -> None:
    x, h = Tensor(np.ones((2, 3), np.float32)), Tensor(np.full((2, 4), 0.5, np.float32))
    state = (h, h * 2) if mode == "lstm" else h
    weights = cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh
    got, want = getattr(rnn_cells, f"_{mode}_cell")(x, state, *weights), cell(x, state)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-6)
    bare = getattr(rnn_cells, f"_{mode}_cell")(x, state, *weights[:2], None, None)
    assert (bare[0].asnumpy() != got[0].asnumpy()).any()


def test_checks_of_types() -> None:
    assert check_type_name("x", ms.float32, (ms.float16, ms.float32)) is ms.float32
    with pytest.raises(TypeError, match="x must be one of Float16"):
        check_type_name("x", ms.int32, [ms.float16], "Layer")

    @args_type_check(size=int, name=(str, type(None)))
    def make(size: int, name: str | None = None) -> Any:
        return size, name

    assert make(3, name="a") == (3, "a")
    with pytest.raises(TypeError, match="size must be of type int"):
        make("3")  # pyright: ignore[reportArgumentType]
    assert twice(3) == (3, 3) and twice([1, 2]) == (1, 2)


@pytest.mark.parametrize("compiled", [False, True])
def test_identity_passes_all_gradients_on(compiled: bool) -> None:
    def step(x: Tensor) -> Any:
        return ops.functional.identity((x, [x * 2]))

    x = Tensor([1.0])
    first, (second,) = (ms.jit(step) if compiled else step)(x)
    assert (first.item(), second.item()) == (1, 2)
    assert ops.functional.identity(x) is not x and ops.functional.identity(3) == 3


@pytest.mark.parametrize(
    ("mode", "options"), [("valid", {}), ("same", {}), ("pad", {"padding": 1})]
)
@pytest.mark.parametrize(
    ("kernel", "stride", "dilation"), [(3, 1, 1), (3, 2, 1), (2, 3, 1), (3, 1, 2)]
)
def test_the_size_of_a_transposed_convolution(
    mode: Any, options: dict[str, Any], kernel: int, stride: int, dilation: int
) -> None:
    layer = nn.Conv2dTranspose(1, 1, kernel, stride, mode, dilation=dilation, **options)
    size = _deconv_output_length(
        mode == "valid", mode == "same", mode == "pad", 5, kernel, stride, dilation,
        2 * options.get("padding", 0),
    )  # fmt: skip
    assert layer(ops.ones((1, 1, 5, 5))).shape == (1, 1, size, size)


def test_pictures_of_numpy() -> None:
    picture = np.arange(24).reshape(2, 3, 4)
    assert is_numpy(picture) and not is_numpy([1])
    assert hwc_to_chw(picture).shape == (4, 2, 3) and hwc_to_chw(picture[0]).shape == (3, 4)
    with pytest.raises(TypeError, match="2 or 3 axes"):
        hwc_to_chw(np.zeros(3))


def test_other_names() -> None:
    assert isinstance(ms.float32, ms.Type) and ms.Type is ms.dtype.Type  # pyright: ignore
    assert isinstance(ops.ones(3).type, ms.TensorType)  # pyright: ignore
    assert (
        nn.probability.distribution.distribution.Distribution
        is ms.nn.probability.distribution.Distribution
    )
    assert _function_forbid_reuse(len) is len
    assert ms.ms_class is ms.jit_class  # pyright: ignore[reportAttributeAccessIssue]

    @grad_scale.register("Tensor", "Tensor")
    def _scaled(scale: Tensor, grad: Tensor) -> Tensor:
        return grad / scale

    assert grad_scale(Tensor(2.0), Tensor(6.0)).item() == 3
    assert isinstance(ops.ones(3), StubTensor) and ops.Tensor is Tensor
    assert nn.EmbeddingLookup(4, 2, slice_mode=nn.EmbeddingLookup.TABLE_ROW_SLICE)(Tensor([1])).size
    assert nn.Dense in AMP_WHITE_LIST and nn.LayerNorm in AMP_BLACK_LIST
