"""What MindSpore keeps private and programs use nevertheless."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, nn, ops
from tvmgraph._c_expression import _truncated_normal, get_code_extra, security  # pyright: ignore
from tvmgraph._extends.parse import compile_config  # pyright: ignore
from tvmgraph._extends.parse.standard_method import ms_len  # pyright: ignore
from tvmgraph.common import np_dtype
from tvmgraph.common._grad_function import _Function  # pyright: ignore
from tvmgraph.common._pijit_context import PIJitCaptureContext  # pyright: ignore
from tvmgraph.common.api import _no_grad  # pyright: ignore
from tvmgraph.nn.wrap.cell_wrapper import _VirtualDatasetCell  # pyright: ignore
from tvmgraph.ops.composite.base import core  # pyright: ignore
from tvmgraph.ops.function.grad.grad_func import custom_vjp  # pyright: ignore
from tvmgraph.ops.operations import _sequence_ops as seq  # pyright: ignore
from tvmgraph.ops.signature import make_sig, sig_dtype, sig_rw  # pyright: ignore
from tvmgraph.train.amp import (  # pyright: ignore
    _add_loss_network,
    _config_level,
    _do_keep_batchnorm_fp32,
    _OutputTo32,
)


def constant_inside(x: Tensor) -> Tensor:
    y = x * x
    with ms._no_grad():  # pyright: ignore
        z = y * 3
    return y + z * x


@pytest.mark.parametrize("function", [constant_inside, ms.jit(constant_inside)])
def test_no_grad_makes_constants(function: Any) -> None:
    assert ms.grad(function)(Tensor(2.0)).item() == 4 + 12


def test_no_grad_decorates() -> None:
    square = _no_grad()(lambda x: x * x)
    assert ms.grad(lambda x: square(x) * x)(Tensor(2.0)).item() == 4


class Product(_Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x)
        return x * y, x

    @staticmethod
    def backward(ctx: Any, first: Tensor, second: Tensor) -> Any:
        return first * ctx.saved_tensors[0] * 3, second * 4


def test_a_function_has_its_own_derivative() -> None:
    x, y = Tensor([2.0]), Tensor([3.0])
    assert [t.item() for t in Product.apply(x, y)] == [6.0, 2.0]
    dx, dy = ops.GradOperation(get_all=True)(Product.apply)(x, y)
    assert (dx.item(), dy.item()) == (6.0, 4.0)


def test_a_function_returns_as_many_gradients_as_it_has_inputs() -> None:
    class Wrong(Product):
        @staticmethod
        def backward(ctx: Any, first: Tensor, second: Tensor) -> Any:
            return first

    with pytest.raises(RuntimeError, match="a wrong number of gradients: 1 for 2"):
        ms.grad(Wrong.apply)(Tensor([2.0]), Tensor([3.0]))


def test_results_may_be_constants() -> None:
    class Marked(Product):
        @staticmethod
        def forward(ctx: Any, x: Tensor, y: Tensor) -> Any:
            first, second = Product.forward(ctx, x, y)
            ctx.mark_non_differentiable(first)
            return first, second

    dx, dy = ops.GradOperation(get_all=True)(Marked.apply)(Tensor([2.0]), Tensor([3.0]))
    assert (dx.item(), dy.item()) == (0.0, 4.0)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("zeros", [True, False])
def test_a_gradient_that_is_missing_is_none_or_zeros(zeros: bool, compiled: bool) -> None:
    missing = []

    class Pair(_Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Any:
            ctx.set_materialize_grads(zeros)
            return x * 2, 5, x * 3

        @staticmethod
        def backward(ctx: Any, first: Any, number: Any, second: Any) -> Any:
            missing[:] = [first is None, second is None]
            return (0 if first is None else first) * 2 + (0 if second is None else second) * 3

    for pick in (0, 2):
        function: Any = ms.grad(lambda x, pick=pick: Pair.apply(x)[pick] * 5)
        assert (ms.jit(function) if compiled else function)(Tensor([1.0])).item() == 5 * (
            2 + pick // 2
        )
        assert missing == [pick == 2 and not zeros, pick == 0 and not zeros]


def test_custom_vjp_takes_its_derivative_later() -> None:
    @custom_vjp
    def line(x: Tensor, y: Tensor) -> Tensor:
        return 2 * x + y

    line.defbwd(lambda x, y, out, dout: (5 * dout, y))
    dx, dy = ms.grad(line, (0, 1))(Tensor(1.0), Tensor(7.0))
    assert (dx.item(), dy.item()) == (5.0, 7.0)
    assert ms.jit(ms.grad(line))(Tensor(1.0), Tensor(7.0)).item() == 5.0


def test_morph_calls_its_function() -> None:
    triple = ops.Morph(lambda x: x * 3, None, None)
    assert ms.grad(triple)(Tensor([2.0])).item() == 3.0
    assert triple(x=Tensor([2.0])).item() == 6.0
    own = ops.Morph(lambda x: x * 3, None, None, lambda x, out, dout: (dout * 7,))
    assert (own(Tensor([2.0])).item(), ms.grad(own)(Tensor([2.0])).item()) == (6.0, 7.0)


SEQUENCES: list[tuple[str, tuple[Any, ...], Any]] = [
    ("SequenceMul", ((1, 2), 2), (1, 2, 1, 2)),
    ("SequenceAdd", ([1], [2]), [1, 2]),
    ("SequenceCount", ((1, 2, 1), 1), 2),
    ("SequenceIndex", ((1, 2, 1), 1, 1), 2),
    ("SequenceSlice", ((1, 2, 3), 0, 3, 2), (1, 3)),
    ("SequenceMax", ((1, 3, 2),), 3),
    ("SequenceMin", ((2, 1, 3),), 1),
    ("InSequence", (2, (1, 2)), True),
    ("ListAppend", ([1], 2), [1, 2]),
    ("ListInsert", ([1, 3], 1, 2), [1, 2, 3]),
    ("TensorToTuple", (Tensor([1, 2]),), (1, 2)),
    ("TensorToList", (Tensor([1, 2]),), [1, 2]),
    ("TensorToScalar", (Tensor(3),), 3),
]


@pytest.mark.parametrize(("name", "given", "expected"), SEQUENCES, ids=[s[0] for s in SEQUENCES])
def test_operators_of_sequences(name: str, given: tuple[Any, ...], expected: Any) -> None:
    assert getattr(seq, name)()(*given) == expected


def test_sequences_become_tensors() -> None:
    assert seq.TupleToTensor()((1, 2), ms.float32).asnumpy().tolist() == [1.0, 2.0]
    assert seq.SequenceAddN()((Tensor([1.0]), Tensor([2.0]))).item() == 3.0
    ints, floats = seq.FlattenConcat()([Tensor([[1], [2]]), Tensor([0.5]), Tensor(3)])
    assert (ints.tolist(), floats.tolist()) == ([1, 2, 3], [0.5])


def test_wrappers_of_networks() -> None:
    net = nn.Dense(2, 2).to_float(ms.float16)
    assert _OutputTo32(net)(ops.ones((1, 2))).dtype == ms.float32
    assert _VirtualDatasetCell(net)(ops.ones((1, 2))).dtype == ms.float16
    assert [p.name for p in _OutputTo32(net).get_parameters()] == ["weight", "bias"]


def test_what_became_of_a_compiled_function() -> None:
    @PIJitCaptureContext()
    def broken(x: Tensor) -> Tensor:
        with _no_grad():
            y = x + 1
        return y * 2

    def plain(x: Tensor) -> Tensor:
        return x + 1

    assert get_code_extra(plain) is None
    whole = ms.jit(plain)
    assert (whole(Tensor([1.0])).item(), broken(Tensor([1.0])).item()) == (2.0, 4.0)
    found = get_code_extra(whole.__wrapped__)
    assert (found["stat"], found["break_count_"]) == ("GRAPH_CALLABLE", 0)
    assert get_code_extra(broken)["break_count_"] > 0


def test_settings_of_the_compiler_are_taken() -> None:
    compile_config.SOME_SWITCH = "1"
    assert compile_config.CHECK_BPROP == "" and not security.enable_security()
    written = make_sig("value", sig_rw.RW_WRITE, dtype=sig_dtype.T)
    assert (written.name, written.rw, written.dtype) == ("value", "RW_WRITE", "T")
    assert ms_len((1, 2)) == 2
    assert core(loop_can_unroll=True)(constant_inside)(Tensor(2.0)).item() == 28


def test_random_arrays_lie_within_limits() -> None:
    drawn, again = np.zeros((2, 500), np.float32)
    _truncated_normal(5, drawn, -1.0, 2.0, 3.0, 0.5)
    _truncated_normal(5, again, -1.0, 2.0, 3.0, 0.5)
    assert (drawn >= 2.5).all() and (drawn <= 4.0).all() and abs(drawn.mean() - 3.1) < 0.1
    np.testing.assert_array_equal(drawn, again)
    assert np.zeros(2, np_dtype.bfloat16).dtype.name == "bfloat16"


def test_a_parameter_s_data_and_name_are_set() -> None:
    p = Parameter(Tensor([1.0]), name="p")
    p.data = Tensor([3.0])
    assert p.item() == 3.0
    p.name = None
    assert p.name == "Parameter"
    with pytest.raises(TypeError, match="requires_grad must be a bool"):
        p.requires_grad = 1  # pyright: ignore


def test_gradients_by_other_means() -> None:
    net = nn.Dense(2, 1, weight_init="ones")
    x = Tensor(np.array([[1.0, 2.0]], np.float32))
    scaled = ops.GradOperation(sens_param=True)(net)(x, sens=Tensor([[3.0]]))
    assert scaled.asnumpy().tolist() == [[3.0, 3.0]]
    assert len(ms.grad(net, None, net.get_parameters())(x)) == 2  # an iterator


class Bare(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(Tensor([2.0]), name="w")

    def construct(self) -> Tensor:
        return self.w * self.w


def test_values_and_gradients_without_inputs() -> None:
    loss, (by_inputs, by_weights) = nn.ForwardValueAndGrad(Bare(), None, True, True)()
    assert (loss.item(), by_inputs, by_weights[0].item()) == (4.0, (), 4.0)
    assert nn.ForwardValueAndGrad(Bare(), get_all=True)()[1] == ()
    value, gradient = nn.ForwardValueAndGrad(lambda x: x * x)(Tensor(3.0))
    assert (value.item(), gradient.item()) == (9.0, 6.0)


def test_the_version_under_the_name_of_mindspore() -> None:
    code = (
        "import sys, tvmgraph as t; own = t.__version__; sys.modules['mindspore'] = t\n"
        "import mindspore as m; print(own, m.__version__)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == [ms.__version__, "2.10.0"]


def test_the_generator_steps() -> None:
    ms.set_seed(3)
    seed, offset = ms.default_generator._step(Tensor(5))
    assert (seed.item(), offset.item(), ms.default_generator.offset) == (3, 0, 5)


def test_a_compiled_dict_has_keys() -> None:
    @ms.jit
    def known(x: Tensor) -> Any:
        found: Any = {"a": x}
        return found.has_key("a"), found.has_key("b")

    assert known(Tensor([1.0])) == (True, False)


def test_settings_of_kinds_of_devices() -> None:
    device = ms.device_context  # pyright: ignore
    device.cpu.op_tuning.threads_num(2)
    assert ms.get_context("runtime_num_threads") == 2
    ms.reset_context()
    device.ascend.op_precision.precision_mode("force_fp16")
    device.gpu.op_tuning.conv_fprop_algo("normal")
    ms.runtime.launch_blocking()
    assert (device.cpu.is_available(), device.cpu.device_count()) == (True, 1)
    assert (device.ascend.is_available(), device.ascend.device_count()) == (False, 0)
    assert not ms.hal.is_available("Ascend")
    assert device.gpu.is_available() == (device.gpu.device_count() > 0)


def test_what_networks_recorded_is_taken_once() -> None:
    from tvmgraph.train.summary.summary_record import _get_summary_tensor_data

    _get_summary_tensor_data()  # what tests before recorded
    ms.jit(lambda x: ops.TensorSummary()("x", x * 2))(Tensor(2.0))
    assert {n: v.item() for n, v in _get_summary_tensor_data().items()} == {"x[:Tensor]": 4}
    assert _get_summary_tensor_data() == {}


def test_whether_processes_were_joined() -> None:
    from tvmgraph.communication import _comm_helper
    from tvmgraph.mint import distributed

    assert _comm_helper._is_initialized() == distributed.is_initialized()


def test_what_levels_of_mixed_precision_set() -> None:
    assert [v["cast_model_type"] for v in _config_level.values()] == [
        ms.float32, ms.float32, ms.float16, ms.float16, ms.float32
    ]  # fmt: skip
    assert [n for n, v in _config_level.items() if v["loss_scale_manager"]] == ["O2"]


def test_a_training_loop_of_one_s_own_sets_a_level() -> None:
    net = nn.SequentialCell(nn.Dense(2, 3), nn.BatchNorm1d(3), nn.Dense(3, 1)).to_float(ms.float16)
    _do_keep_batchnorm_fp32(net)
    x, y = ops.ones((4, 2)), ops.ones((4, 1))
    assert (net(x).dtype, net[1](ops.ones((4, 3), ms.float32)).dtype) == (ms.float16, ms.float16)
    assert _add_loss_network(net, nn.MSELoss(), ms.float16)(x, y).dtype == ms.float32
