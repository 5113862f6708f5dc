"""Names that model zoos import at the top of their files, whatever they use of them later."""

from __future__ import annotations

import importlib
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
    assert isinstance(ops.ones(3).aval, ms.TensorType)  # pyright: ignore
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


def test_dtypes_are_of_kinds() -> None:
    kinds = importlib.import_module("tvmgraph._c_expression.typing")
    found = {
        kind: [d.name for d in ms.common.dtype.all_types if isinstance(d, getattr(kinds, kind))]
        for kind in ("Bool", "Int", "UInt", "Float", "BFloat", "Complex")
    }
    assert found == {
        "Bool": ["bool"],
        "Int": ["int8", "int16", "int32", "int64"],
        "UInt": ["uint8", "uint16", "uint32", "uint64"],
        "Float": ["float16", "float32", "float64"],
        "BFloat": ["bfloat16"],
        "Complex": ["complex64", "complex128"],
    }
    assert (ms.int_, ms.float, ms.mint.functional.softmax) == (
        ms.int32, ms.float32, ms.mint.nn.functional.softmax,
    )  # fmt: skip


def test_what_mindspore_tells_its_compiler_is_kept() -> None:
    amp = importlib.import_module("tvmgraph._c_expression.amp")
    context = importlib.import_module("tvmgraph._c_expression").MSContext.get_instance()
    net = nn.Dense(2, 2)
    net.amp_strategy = amp.create_amp_strategy(amp.AmpLevel.AmpO3, ms.float16, [], [])
    assert net.amp_strategy.get_amp_dtype() == ms.float16
    assert (context.get_ascend_soc_version(), ms.context._get_mode()) == (
        "", ms.get_context("mode"),
    )  # fmt: skip


def test_black_lists_compute_in_float32_and_return_the_short_type() -> None:
    amp = importlib.import_module("tvmgraph.train.amp")
    net = nn.SequentialCell(nn.Dense(2, 3), nn.LayerNorm((3,)))
    net = amp._auto_black_list(net, [nn.LayerNorm], ms.float16)
    assert (net(ops.ones((1, 2))).dtype, net[0](ops.ones((1, 2))).dtype) == (ms.float16,) * 2
    assert net[1](ops.ones((1, 3), ms.float16)).dtype == ms.float16
    assert net[1]._to_float == ms.float32


def test_pieces_of_attention() -> None:
    functions = importlib.import_module("tvmgraph.ops.function.nn_func")
    rng = np.random.default_rng(0)
    x, w, b = (Tensor(rng.standard_normal(s).astype("f4")) for s in ((2, 1, 4), (12, 4), (12,)))
    want = np.split(x.asnumpy() @ w.asnumpy().T + b.asnumpy(), 3, -1)
    for same in (True, False):
        found = functions._in_projection_packed(x, x, x, w, b, same, same)
        for part, value in zip(found, want):
            np.testing.assert_allclose(part.asnumpy(), value, rtol=1e-5, atol=1e-6)
    found = functions._in_projection(x, x, x, *w.split(4), *b.split(4))
    np.testing.assert_allclose(found[2].asnumpy(), want[2], rtol=1e-5, atol=1e-6)
    mask = functions._inner_pad(Tensor(np.array([[True, False]])), (0, 1))
    assert mask.asnumpy().tolist() == [[True, False, False]]
    assert functions._check_qkv_shape(3, 3, 3)
    with pytest.raises(ValueError, match="query, key and value"):
        functions._check_qkv_shape(3, 2, 3)
    with pytest.raises(ValueError, match="weights of the key"):
        functions._in_projection(x, x, x, w[:4], w, w[:4])


@pytest.mark.parametrize("rows", [False, True])
def test_attention_of_given_weights_is_that_of_the_layer(rows: bool) -> None:
    forward = importlib.import_module("tvmgraph.ops.function.nn_func").multi_head_attention_forward
    net = nn.MultiheadAttention(8, 2, add_bias_kv=rows, add_zero_attn=rows).set_train(False)
    rng = np.random.default_rng(0)
    x, y = (Tensor(rng.standard_normal((n, 3, 8)).astype("f4")) for n in (5, 4))
    mask = Tensor(rng.random((5, 4)) > 0.8)
    hidden = Tensor(np.array([[False, False, False, True]] * 3))
    rest = (net.bias_k, net.bias_v, rows, 0.0, net.out_proj.weight, net.out_proj.bias, False)
    given = (8, 2, net.in_proj_weight, net.in_proj_bias, *rest, hidden, mask)
    for found, want in zip(forward(x, y, y, *given, k_is_v=True), net(x, y, y, hidden, True, mask)):
        np.testing.assert_allclose(found.asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-6)


def test_convolutions_of_mint_have_their_settings() -> None:
    mint = ms.mint
    net = mint.nn.Conv2d(2, 4, 3, stride=(1, 2), padding=1, padding_mode="reflect", groups=2)
    settings = (net.kernel_size, net.stride, net.padding, net.dilation, net.output_padding)
    assert settings == ((3, 3), (1, 2), (1, 1), (1, 1), (0, 0))
    assert (net.in_channels, net.out_channels, net.groups) == (2, 4, 2)
    x = Tensor(np.random.default_rng(0).standard_normal((1, 2, 5, 6)).astype("f4"))
    padded = mint.nn.functional.pad(x, net._reversed_padding, mode="reflect")
    same = net.conv2d(padded, net.weight, net.bias, net.stride, (0, 0), net.dilation, net.groups)
    np.testing.assert_allclose(same.asnumpy(), net(x).asnumpy(), rtol=1e-6)


class Activated(nn.GroupNorm):
    def construct(self, x: Tensor) -> Tensor:
        return ops.relu(self._cal_output(x))


def test_normalization_of_groups_is_extended() -> None:
    x = Tensor(np.random.default_rng(0).standard_normal((2, 4, 3, 3)).astype("f4"))
    want = np.maximum(nn.GroupNorm(2, 4)(x).asnumpy(), 0)
    np.testing.assert_allclose(Activated(2, 4)(x).asnumpy(), want, rtol=1e-6)


def test_sizes_by_name_and_quotients_that_stay_whole() -> None:
    assert ms.mint.ones(size=(2, 1)).shape == ms.mint.zeros(2, 1).shape == (2, 1)
    found = ops.div(Tensor([7, -7]), 2, rounding_mode="trunc")
    assert (found.dtype, found.asnumpy().tolist()) == (ms.int64, [3, -3])
    assert ms.mint.div(12, 8, rounding_mode="trunc").dtype == ms.int64
    assert ops.div(Tensor([7.0]), 2, rounding_mode="trunc").dtype == ms.float32


def test_attention_wants_its_weights() -> None:
    forward = importlib.import_module("tvmgraph.ops.function.nn_func").multi_head_attention_forward
    x, w = ops.ones((2, 1, 4)), ops.ones((4, 4))
    with pytest.raises(ValueError, match="weights of the projections are missing"):
        forward(x, x, x, 4, 2, None, None, None, None, False, 0.0, w, None)


@pytest.mark.parametrize(("layer", "sizes"), [(nn.Conv1d, (5, 5)), (nn.Conv1dTranspose, (17, 16))])
def test_convolutions_of_sequences_tell_of_images_of_one_row(layer: Any, sizes: Any) -> None:
    for given, padding, size in zip((1, (1, 2)), ((0, 0, 1, 1), (0, 0, 1, 2)), sizes):
        net = layer(2, 4, 3, 2, "pad", given)
        assert (net.kernel_size, net.stride, net.dilation) == ((1, 3), (1, 2), (1, 1))
        assert (net.padding, net.data_format) == (padding, "NCHW")
        assert net(Tensor(np.ones((1, 2, 9), "f4"))).shape == (1, 4, size)


@pytest.mark.parametrize("layer", [nn.Conv1d, nn.Conv1dTranspose])
def test_weights_of_sequences_are_given_without_the_row(layer: Any) -> None:
    weight = np.random.default_rng(0).standard_normal((4, 4, 3)).astype("f4")
    net = layer(4, 4, 3, weight_init=Tensor(weight))
    np.testing.assert_array_equal(net.weight.asnumpy(), weight[:, :, None])


class Slotted(nn.Cell):
    __slots__ = ("inner", "sizes", "weight")

    def __init__(self) -> None:
        super().__init__()
        self.sizes: tuple[int, ...] = (2, 3)
        self.weight = ms.Parameter(ops.ones(2))
        self.inner = nn.ReLU()


def test_attributes_of_a_cell_may_have_slots() -> None:
    net = Slotted()
    assert net.sizes == (2, 3)
    net.sizes = (4,)
    assert net.sizes == (4,)
    assert [p.name for p in net.get_parameters()] == ["weight"] and net.weight.shape == (2,)
    assert list(net.cells()) == [net.inner]


class Phased(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ReLU()
        self.phase = "other"

    def construct(self, x: Tensor) -> Tensor:
        return x if self.phase == "train" else ops.softmax(x)


def test_the_phase_of_a_cell_is_set_by_set_train() -> None:
    net, x = Phased(), Tensor(np.ones(4, "f4"))
    assert (net.phase, net.inner.phase, nn.ReLU().phase) == ("other", "train", "train")
    for mode, phase, value in ((True, "train", 1.0), (False, "predict", 0.25)):
        net.set_train(mode)
        assert (net.phase, net.inner.phase) == (phase, "train")
        for call in (net, ms.jit(net)):
            np.testing.assert_allclose(call(x).asnumpy(), value)


def test_files_of_layers_have_all_that_mindspore_has_there() -> None:
    """A file of this package that is called like one of MindSpore's does not hide the path."""
    assert nn.layer.activation.Tanh is nn.Tanh  # pyright: ignore
    assert nn.layer.activation.Softmax is nn.Softmax  # pyright: ignore
    assert nn.layer.conv.Conv2d is nn.Conv2d  # pyright: ignore


def test_widths_of_quantization() -> None:
    from tvmgraph.common.dtype import QuantDtype

    assert ms.QuantDtype is QuantDtype and len(QuantDtype) == 32
    assert str(QuantDtype["INT8"]) == "INT8" and QuantDtype(7) is QuantDtype["INT8"]
    assert (QuantDtype["INT8"].value(), QuantDtype["UINT16"].value()) == (7, 115)


def test_helpers_of_numpy() -> None:
    from tvmgraph.numpy import math_ops, utils, utils_const  # pyright: ignore

    one, two = utils._to_tensor(1, [0.5, 2])
    assert (one.dtype, two.dtype, two.shape) == (ms.int32, ms.float32, (2,))
    assert utils._to_tensor(2.5).item() == 2.5
    assert utils._expand(two, 3).shape == (1, 1, 2)
    assert utils._broadcast_to_shape(two, [3, 2]).shape == (3, 2)
    assert utils_const._canonicalize_axis((-1, 0), 3) == (2, 0)
    assert utils_const._infer_out_shape((3, 1), (2,)) == (3, 2)
    assert utils_const._promote(ms.int32, ms.float16) == ms.numpy.promote_types(
        ms.int32, ms.float16
    )
    with pytest.raises(ValueError, match="no such axis 3"):
        utils_const._raise_value_error("no such axis ", 3)
    with pytest.raises(TypeError, match="no array"):
        utils_const._raise_type_error("no array")
    assert math_ops.add(1, 2).item() == 3
    assert ms.numpy.round([2.567], 1).item() == pytest.approx(2.6)


def test_gradients_that_overflow_are_found() -> None:
    from tvmgraph.nn.wrap.loss_scale import _grad_overflow  # pyright: ignore

    for value, expected in ((1.0, 0), (np.inf, 1), (np.nan, 1)):
        assert _grad_overflow(Tensor([value, 2.0])).asnumpy().tolist() == [expected]


def test_operators_of_ascend_are_imported_and_made_everywhere() -> None:
    from tvmgraph.ops.auto_generate import GroupedMatmul, MoeFinalizeRouting  # pyright: ignore
    from tvmgraph.ops.operations._infer_ops import QuantV2  # pyright: ignore

    grouped = GroupedMatmul(split_item=3, group_type=0)
    assert isinstance(grouped, ops.Primitive) and grouped.name == "GroupedMatmul"
    for call in (grouped, MoeFinalizeRouting(), QuantV2()):
        with pytest.raises(RuntimeError, match="Ascend processors only"):
            call(ops.ones(2), None)
    with pytest.raises(AttributeError, match="Ascend processors only"):
        getattr(ops, "GroupTopk")  # noqa: B009  (types do not know it)


def test_kinds_of_pipelines() -> None:
    rows = ms.dataset.NumpySlicesDataset([1, 2, 3, 4])
    assert isinstance(rows.batch(2), ms.dataset.BatchDataset)
    assert isinstance(rows.repeat(2), ms.dataset.RepeatDataset)
    assert isinstance(rows + rows, ms.dataset.ConcatDataset)
    assert isinstance(rows.create_tuple_iterator(), ms.dataset.TupleIterator)


def test_settings_of_pipelines_by_name() -> None:
    config = ms.dataset.config
    before = config.get_enable_autotune(), config.get_callback_timeout()
    try:
        config.set_enable_autotune(True, filepath_prefix="config")
        config.set_callback_timeout(timeout=30)
        assert (config.get_enable_autotune(), config.get_callback_timeout()) == (True, 30)
        with pytest.raises(TypeError, match="'seconds'"):
            config.set_callback_timeout(seconds=3)
        with pytest.raises(TypeError, match="must be a bool"):
            config.set_enable_autotune()
    finally:
        config.set_enable_autotune(before[0])
        config.set_callback_timeout(before[1])


def test_checks_take_their_arguments_by_mindspores_names() -> None:
    from tvmgraph import _checkparam as check  # pyright: ignore

    assert check.check_positive_int(arg_value=3, arg_name="n", prim_name="net") == 3
    given = {"lower_limit": 0.0, "upper_limit": 1.0, "rel": check.INC_BOTH, "arg_name": "p"}
    assert check.check_float_range(arg_value=0.5, **given) == 0.5
    with pytest.raises(ValueError, match="p must be in"):
        check.check_float_range(arg_value=1.5, **given)
    assert check.check_int(arg_value=3, value=4, rel=check.LT) == 3
    assert check.check_value_type(arg_name="n", arg_value=3, valid_types=int) == 3


def test_windows_of_mints_layer_come_in_mindspores_order() -> None:
    pool = ms.mint.nn.MaxPool2d(2, 2, 0, 1, True)
    values, places = pool(ops.arange(16.0).reshape(1, 1, 4, 4))
    assert values.asnumpy().ravel().tolist() == places.asnumpy().ravel().tolist() == [5, 7, 13, 15]
