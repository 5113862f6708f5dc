"""Names around training that one process has: communication, sinks, conversions of checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, communication, dataset, nn, ops, train
from tvmgraph.errors import ArgumentError, ConfigError


def test_one_process_is_its_own_group() -> None:
    communication.init()
    assert (communication.get_rank(), communication.get_group_size()) == (0, 1)
    communication.create_group("mine", [0])
    assert communication.get_world_rank_from_group_rank("mine", 0) == 0
    communication.destroy_group("mine")
    with pytest.raises(ArgumentError, match="no group 'mine'"):
        communication.get_rank("mine")
    with pytest.raises(ArgumentError, match="different numbers from 0 to 0"):
        communication.create_group("two", [0, 1])


def batches() -> dataset.Dataset:
    return dataset.NumpySlicesDataset(np.arange(6, dtype=np.float32), shuffle=False).batch(2)


def test_a_sink_takes_batches_and_begins_again() -> None:
    seen = []
    sink = train.data_sink(lambda x: seen.append(x.asnumpy().tolist()), batches(), sink_size=2)
    sink()
    sink()
    assert seen == [[0, 1], [2, 3], [4, 5], [0, 1]]
    helper = train.DatasetHelper(batches(), sink_size=2)
    assert [b[0].asnumpy().tolist() for b in helper] == [[0, 1], [2, 3]]
    net = nn.Dense(1, 1)
    assert train.connect_network_with_dataset(net, helper) is net
    with pytest.raises(ArgumentError, match="sink_size"):
        train.data_sink(print, batches(), 0)


def test_checkpoints_change_their_format(tmp_path: Path) -> None:
    net = nn.Dense(2, 3)
    ms.save_checkpoint(net, str(tmp_path / "a.ckpt"))
    train.ckpt_to_safetensors(tmp_path / "a.ckpt", tmp_path / "b", {"weight": "w"})
    train.safetensors_to_ckpt(tmp_path / "b")
    found = train.load_checkpoint_async(str(tmp_path / "b" / "a.ckpt")).result()
    assert set(found) == {"w", "bias"}
    np.testing.assert_array_equal(found["w"].asnumpy(), net.weight.asnumpy())
    with pytest.raises(ArgumentError, match=r"no \.ckpt files"):
        train.ckpt_to_safetensors(tmp_path / "b", file_name_regex="nothing")


def test_small_names() -> None:
    assert ms.frombuffer(np.arange(4, dtype=np.int32).tobytes(), dtype=ms.int32,
                         offset=4).asnumpy().tolist() == [1, 2, 3]  # fmt: skip
    assert ms.get_py_obj_dtype(Tensor(1, ms.int8)) is ms.int8
    assert ms.common.dtype.get_py_obj_dtype(1.5) is ms.float64
    kinds = [ms.get_py_obj_dtype(value) for value in ("a", (1,), [1], None)]
    assert kinds == [ms.string, ms.tuple_, ms.list_, ms.type_none]
    assert [str(kind) for kind in kinds] == ["String", "Tuple", "List", "None"]
    assert ms.jit(lambda x: x if ms.tuple_ == ms.int32 else x + 1)(Tensor([1])).tolist() == [2]
    assert ms.get_current_device().device_target == "CPU"
    state = ms.get_rng_state()
    ms.seed()
    assert ms.initial_seed() == ms.default_generator.initial_seed()
    ms.set_rng_state(state)

    class Net(nn.Cell):
        @ms.lazy_inline
        def __init__(self) -> None:
            super().__init__()
            self.d = nn.Dense(2, 2)

    assert Net().d.weight.shape == (2, 2)
    ms.set_recursion_limit(500)
    assert ms.get_context("max_call_depth") == 500
    ms.set_context(runtime_num_threads=3)
    assert ms.get_context("runtime_num_threads") == ms.get_context("thread_num") == 3
    ms.set_deterministic(True)
    assert ms.get_context("deterministic") == "ON"
    ms.reset_context()


def test_metrics_called_and_rearranged() -> None:
    accuracy = nn.Accuracy()
    assert accuracy(Tensor([[0.1, 0.9], [0.8, 0.2]]), Tensor([1, 1])) == 0.5

    class Order(nn.Metric):
        def clear(self) -> None:
            self.seen: tuple[object, ...] = ()

        @nn.rearrange_inputs
        def update(self, *inputs: object) -> None:
            self.seen = inputs

        def eval(self) -> tuple[object, ...]:
            return self.seen

    order = Order().set_indexes([2, 0])
    order.update("a", "b", "c")
    assert order.eval() == ("c", "a")
    assert sorted(nn.get_metrics({"loss"})) == ["loss"]


def test_layers_of_gradients() -> None:
    net, x, y = nn.Dense(3, 2), ops.ones((4, 3)), ops.zeros((4, 2))
    found = nn.WithGradCell(net, nn.MSELoss())(x, y)
    want = ms.grad(lambda: nn.MSELoss()(net(x), y), None, net.trainable_params())()
    for a, b in zip(found, want):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-6)
    a, b = Tensor([2.0]), Tensor([3.0])
    value, change = nn.Jvp(ops.mul)(a, b, (Tensor([1.0]), Tensor([10.0])))
    assert (value.item(), change.item()) == (6.0, 23.0)
    value, (da, db) = nn.Vjp(ops.mul)(a, b, Tensor([2.0]))
    assert (value.item(), da.item(), db.item()) == (6.0, 6.0, 4.0)


def test_layers_that_mindspore_has_for_other_devices() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((3, 3)).astype(np.float32)
    spd = Tensor(a @ a.T + np.eye(3, dtype=np.float32))
    for layer, want in ((nn.MatDet(), np.linalg.det), (nn.MatInverse(), np.linalg.inv)):
        np.testing.assert_allclose(layer(spd).asnumpy(), want(spd.asnumpy()), rtol=1e-4)
    stacked = rng.standard_normal((2, 3, 3)).astype(np.float32)
    diagonal = np.diagonal(stacked, 0, 1, 2)
    np.testing.assert_array_equal(nn.MatrixDiagPart()(Tensor(stacked)).asnumpy(), diagonal)
    made = nn.MatrixDiag()(Tensor(diagonal.copy()))
    np.testing.assert_array_equal(made.asnumpy(), np.stack([np.diag(d) for d in diagonal]))
    again = nn.MatrixSetDiag()(made, Tensor(diagonal * 2))
    np.testing.assert_array_equal(again.asnumpy(), made.asnumpy() * 2)


def test_similarity_is_that_of_windows() -> None:
    rng = np.random.default_rng(0)
    one, two = (rng.random((1, 1, 5, 5)).astype(np.float32) for _ in range(2))
    line = np.exp(-np.array([1, 0, 1]) / (2 * 1.5**2))
    window = np.outer(line, line) / np.outer(line, line).sum()
    found = []
    for i, j in np.ndindex(3, 3):
        a, b = (t[0, 0, i : i + 3, j : j + 3] for t in (one, two))
        ma, mb = (window * a).sum(), (window * b).sum()
        va, vb = (window * a * a).sum() - ma**2, (window * b * b).sum() - mb**2
        shared = (window * a * b).sum() - ma * mb
        found.append((2 * ma * mb + 1e-4) * (2 * shared + 9e-4)
                     / ((ma**2 + mb**2 + 1e-4) * (va + vb + 9e-4)))  # fmt: skip
    got = nn.SSIM(filter_size=3)(Tensor(one), Tensor(two))
    np.testing.assert_allclose(got.asnumpy(), [np.mean(found)], rtol=1e-4)
    scaled = ms.jit(nn.MSSSIM(power_factors=(1.0,), filter_size=3))(Tensor(one), Tensor(two))
    np.testing.assert_allclose(scaled.asnumpy(), np.maximum(got.asnumpy(), 0), rtol=1e-4)


def test_leaders_are_those_of_the_optimizer() -> None:
    rng = np.random.default_rng(0)
    start, accum, linear, grad = (rng.standard_normal((2, 3)).astype(np.float32) for _ in range(4))
    p = ms.Parameter(Tensor(start.copy()), name="p")
    ftrl = nn.FTRL([p], initial_accum=0.5, learning_rate=0.1, l1=0.2, l2=0.3)
    ftrl((Tensor(grad),))
    place, total, line = (
        ms.Parameter(Tensor(v)) for v in (start, np.full_like(accum, 0.5), np.zeros_like(linear))
    )
    found = ops.ApplyFtrl()(place, total, line, Tensor(grad), 0.1, 0.2, 0.3, -0.5)
    np.testing.assert_allclose(found.asnumpy(), p.asnumpy(), rtol=1e-5)
    assert place.asnumpy().tolist() == found.asnumpy().tolist()
    sums = ms.Parameter(Tensor(linear)), ms.Parameter(Tensor(np.abs(accum)))
    ops.ApplyAdagradDA()(place, *sums, Tensor(grad), 0.1, 0.2, 0.3, 2)
    g, s = linear + grad, np.abs(accum) + grad**2
    want = -0.1 * np.sign(g) * np.maximum(np.abs(g) - 0.4, 0) / (np.sqrt(s) + 0.06)
    np.testing.assert_allclose(place.asnumpy(), want, rtol=1e-4, atol=1e-6)


#: Operators on rows, the dense one, how many variables they have, and their numbers.
ROWS = {
    "FusedSparseAdam()": ("Adam()", 3, (0.9, 0.99, 0.1, 0.9, 0.99, 1e-8)),
    "FusedSparseFtrl(0.1, 0.2, 0.3, -0.5)": ("ApplyFtrl()", 3, ()),
    "FusedSparseLazyAdam(use_nesterov=True)": (
        "Adam(use_nesterov=True)",
        3,
        (0.9, 0.99, 0.1, 0.9, 0.99, 1e-8),
    ),
    "FusedSparseProximalAdagrad()": ("ApplyProximalAdagrad()", 2, (0.1, 0.2, 0.3)),
    "SparseApplyAdadelta(1e-6)": ("ApplyAdadelta()", 3, (0.1, 0.9)),
    "SparseApplyAdagrad(0.1)": ("ApplyAdagrad()", 2, ()),
    "SparseApplyFtrl(0.1, 0.2, 0.3, -0.5)": ("ApplyFtrl()", 3, ()),
    "SparseApplyProximalAdagrad()": ("ApplyProximalAdagrad()", 2, (0.1, 0.2, 0.3)),
    "SparseApplyProximalGradientDescent()": ("ApplyProximalGradientDescent()", 1, (0.1, 0.2, 0.3)),
}
#: What the dense operators take otherwise.
DENSE: dict[str, Any] = {
    "ApplyFtrl()": lambda op, variables, g: op(*variables, g, 0.1, 0.2, 0.3, -0.5),
    "ApplyAdadelta()": lambda op, variables, g: op(*variables, 0.1, 0.9, 1e-6, g),
    "ApplyAdagrad()": lambda op, variables, g: op(*variables, 0.1, g),
}


@pytest.mark.parametrize("sparse", ROWS)
def test_steps_of_rows_are_those_of_the_whole(sparse: str) -> None:
    dense, count, numbers = ROWS[sparse]
    rng = np.random.default_rng(0)
    start = [rng.uniform(0.1, 1, (4, 2)).astype(np.float32) for _ in range(count)]
    gradient = rng.standard_normal((3, 2)).astype(np.float32)
    named = np.array([3, 0, 3], np.int32)
    total = np.zeros((4, 2), np.float32)
    np.add.at(total, named, gradient)
    whole, eager, compiled = ([ms.Parameter(Tensor(a)) for a in start] for _ in range(3))
    by_rows = eval(f"ops.{sparse}")
    usual = DENSE.get(dense, lambda op, variables, g: op(*variables, *numbers, g))
    usual(eval(f"ops.{dense}"), whole, Tensor(total))
    by_rows(*eager, *numbers, Tensor(gradient), Tensor(named))
    ms.jit(lambda g, i: by_rows(*compiled, *numbers, g, i))(Tensor(gradient), Tensor(named))
    for before, want, *found in zip(start, whole, eager, compiled, strict=True):
        expected = want.asnumpy()
        if "FusedSparseAdam" not in sparse:  # there the averages of other rows decay
            expected[1:3] = before[1:3]
        for f in found:
            np.testing.assert_allclose(f.asnumpy(), expected, rtol=1e-5, atol=1e-6)


def test_functions_that_mindspore_has_for_other_devices() -> None:
    rng = np.random.default_rng(0)
    x, y, g = (rng.standard_normal((2, 4)).astype(np.float32) for _ in range(3))
    total = x + y
    found = ops.add_layer_norm(Tensor(x), Tensor(y), Tensor(g[0]), Tensor(g[1]), 1e-5, True)
    mean, rate = total.mean(-1, keepdims=True), 1 / np.sqrt(total.var(-1, keepdims=True) + 1e-5)
    for got, want in zip(found, ((total - mean) * rate * g[0] + g[1], mean, rate, total)):
        np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-4, atol=1e-5)
    root = 1 / np.sqrt((total**2).mean(-1, keepdims=True) + 1e-6)
    found = ops.add_rms_norm(Tensor(x), Tensor(y), Tensor(g[0]))
    for got, want in zip(found, (total * root * g[0], root, total)):
        np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-4, atol=1e-5)
    angle = rng.uniform(-3, 3, (2, 2)).astype(np.float32)
    both = np.tile(angle, 2)
    turned = ops.rotary_position_embedding(Tensor(x), Tensor(np.cos(both)), Tensor(np.sin(both)))
    pairs = (x[:, :2] + 1j * x[:, 2:]) * np.exp(1j * angle)
    np.testing.assert_allclose(
        turned.asnumpy(), np.concatenate([pairs.real, pairs.imag], 1), rtol=1e-4, atol=1e-5
    )
    both = np.repeat(angle, 2, 1)
    turned = ops.rotary_position_embedding(Tensor(x), Tensor(np.cos(both)), Tensor(np.sin(both)), 1)
    pairs = (x[:, ::2] + 1j * x[:, 1::2]) * np.exp(1j * angle)
    np.testing.assert_allclose(turned.asnumpy()[:, ::2], pairs.real, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(turned.asnumpy()[:, 1::2], pairs.imag, rtol=1e-4, atol=1e-5)
    assert (
        ops.mse_loss_ext(Tensor(x), Tensor(y)).item() == ops.mse_loss(Tensor(x), Tensor(y)).item()
    )
    np.testing.assert_array_equal(ops.diff_ext(Tensor(x)).asnumpy(), np.diff(x))


def test_the_context_tells_what_it_was_given() -> None:
    assert ms.context.get_jit_config() == {}
    with pytest.raises(ConfigError, match="RELEASE"):
        ms.set_context(debug_level=7)
    with pytest.raises(TypeError, match="RELEASE"):
        ms.set_context(debug_level="DEBUG")
    for device in ("Ascend", "Davinci"):  # a device that MindSpore knows, which is not here
        with pytest.raises(RuntimeError, match="device_target must be one of"):
            ms.set_context(device_target=device)
    with pytest.raises(ConfigError) as caught:
        ms.set_context(device_target="abacus")
    assert not isinstance(caught.value, RuntimeError)
    try:
        ms.set_context(jit_config={"jit_level": "O0"}, debug_level=ms.context.DEBUG)
        assert ms.context.get_jit_config() == {"jit_level": "O0"}
        assert ms.get_context("debug_level") == 1
    finally:
        ms.reset_context()


def test_a_place_among_all_elements_has_no_axis_to_keep() -> None:
    x = Tensor(np.array([[3.0, 1.0], [2.0, 5.0]], np.float32))
    for find in (
        lambda x: ops.argmax(x, None, True), lambda x: x.argmax(keepdims=True),
        lambda x: ms.mint.argmax(x, keepdim=True),
    ):  # fmt: skip
        for run in (find, ms.jit(find)):
            assert (run(x).shape, int(run(x))) == ((), 3)
    assert ops.argmin(x, keepdims=True).shape == x.argmin(keepdims=True).shape == ()


def test_sizes_may_be_a_tensor_and_a_weight_of_another_float() -> None:
    sizes = Tensor([2, 3])
    for fill in (ms.mint.ones, ms.mint.zeros):
        assert fill(sizes).shape == ms.jit(lambda f=fill: f(sizes))().shape == (2, 3)
    x, half = Tensor([1.0, 2.0]), Tensor(0.5, ms.float64)
    found = ops.lerp(x, x + 1, half)
    assert (found.dtype, found.tolist()) == (ms.float32, [1.5, 2.5])
    assert ops.lerp(Tensor([1, 2]), Tensor([3, 4]), Tensor(0.5)).tolist() == [2.0, 3.0]
    assert ms.grad(lambda w: ops.lerp(x, x + 1, w).sum())(half).dtype is ms.float64
