"""Mixed precision: types inside the graph, accuracy, loss scalers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, amp, jit, nn, ops, record, value_and_grad
from tvmgraph.errors import ArgumentError, DTypeError


def make_net() -> nn.Cell:
    ms.set_seed(0)
    return nn.SequentialCell(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dense(4 * 36, 5)
    )


X = np.random.default_rng(0).normal(size=(3, 1, 6, 6)).astype(np.float32)


def types_of(net: nn.Cell) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for node in record(net, Tensor(X)).nodes:
        found.setdefault(node.op.name, set()).add(node.outputs[0].type.dtype.name)
    return found


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16], ids=["float16", "bfloat16"])
def test_levels_choose_types(dtype: Any) -> None:
    short = dtype.name
    assert types_of(amp.auto_mixed_precision(make_net(), "O0"))["matmul"] == {"float32"}
    for level, norm in (("O1", "float32"), ("O2", "float32"), ("O3", short)):
        net = amp.auto_mixed_precision(make_net(), level, dtype)
        types = types_of(net)
        assert types["matmul"] == types["convolution"] == {short}
        scopes = {
            n.inputs[0].type.dtype.name for n in record(net, Tensor(X)).nodes
            if n.op.name == "rsqrt"
        }  # fmt: skip
        assert scopes <= {norm, "float32"}
        assert net(Tensor(X)).dtype == ms.float32
        assert all(p.dtype == ms.float32 for p in net.get_parameters())


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
def test_results_and_gradients_stay_close(level: str, dtype: Any) -> None:
    exact, short = make_net(), amp.auto_mixed_precision(make_net(), level, dtype)
    tolerance = 0.01 if dtype is ms.float16 else 0.06

    def both(net: nn.Cell) -> Any:
        def loss(x: Tensor) -> Tensor:
            return ops.mean(ops.square(ops.cast(net(x), ms.float32)))

        return jit(value_and_grad(loss, None, net.trainable_params()))(Tensor(X))

    (expected, wanted), (value, found) = both(exact), both(short)
    assert value.item() == pytest.approx(expected.item(), rel=tolerance)
    for g, w in zip(found, wanted):
        assert g.dtype == ms.float32
        scale = np.abs(w.asnumpy()).max()
        np.testing.assert_allclose(g.asnumpy(), w.asnumpy(), atol=2 * tolerance * scale)


def test_products_accumulate_in_float32() -> None:
    net = amp.auto_mixed_precision(nn.Dense(4096, 1, weight_init="ones", has_bias=False), "O3")
    x = Tensor(np.full((1, 4096), 0.25, np.float32))
    # a float16 sum of 4096 terms would stop growing at 512
    assert net(x).asnumpy().astype(np.float32).item() == 1024
    assert jit(net)(x).asnumpy().astype(np.float32).item() == 1024


def test_master_weights_keep_small_updates() -> None:
    net = amp.auto_mixed_precision(nn.Dense(1, 1, weight_init="ones", has_bias=False), "O3")
    optimizer = nn.SGD(net.trainable_params(), 1.0)
    for _ in range(10):  # each step is below float16's resolution at 1
        optimizer((Tensor([[1e-4]]),))
    assert net.weight.asnumpy().item() == pytest.approx(1 - 1e-3, abs=1e-6)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_dynamic_scaler(compiled: bool) -> None:
    scaler = amp.DynamicLossScaler(8.0, 2, 2)

    def adjust(fine: Tensor) -> Tensor:
        scaler.adjust(fine)
        return scaler.scale(Tensor(1.0))

    run = jit(adjust) if compiled else adjust
    fine, bad = Tensor(True), Tensor(False)
    events = (fine, fine, fine, bad, fine, fine, bad, bad, bad, bad, bad)
    assert [run(f).item() for f in events] == [8, 16, 16, 8, 8, 16, 8, 4, 2, 1, 1]
    assert scaler.unscale((Tensor([4.0]), [Tensor(8.0)]))[1][0].item() == 8


def test_static_scaler_in_a_step() -> None:
    scaler, net = amp.StaticLossScaler(1024.0), nn.Dense(3, 2)
    x = ops.ones((4, 3))
    _, plain = value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())(x)
    _, grads = value_and_grad(
        lambda x: scaler.scale(net(x).sum()), None, net.trainable_params()
    )(x)  # fmt: skip
    assert amp.all_finite(grads).item()
    for a, b in zip(scaler.unscale(grads), plain):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-6)


def test_arguments() -> None:
    with pytest.raises(ArgumentError, match="O7"):
        amp.auto_mixed_precision(nn.ReLU(), "O7")
    with pytest.raises(ArgumentError, match="float64"):
        amp.auto_mixed_precision(nn.ReLU(), "O2", ms.float64)
    with pytest.raises(DTypeError):
        amp.auto_mixed_precision(3, "O2")
    with pytest.raises(ArgumentError):
        amp.StaticLossScaler(0)
    with pytest.raises(ArgumentError, match="either"):
        amp.custom_mixed_precision(nn.ReLU())
    for lists in ({"white_list": [nn.Dense, 1]}, {"black_list": [nn.ReLU()]}):
        with pytest.raises(DTypeError, match="a list must hold classes"):
            amp.custom_mixed_precision(nn.ReLU(), **lists)


def test_the_network_that_is_built_trains() -> None:
    net = nn.SequentialCell(nn.Dense(2, 2), nn.BatchNorm1d(2))
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    for manager in (None, ms.FixedLossScaleManager(8.0, False), ms.FixedLossScaleManager(8.0)):
        net.set_train(False)
        step = ms.amp.build_train_network(
            net, optimizer, nn.MSELoss(), level="O0", loss_scale_manager=manager
        )
        assert step.training and net[1].training
    net.set_train(False)
    ms.Model(net, nn.MSELoss(), optimizer)
    assert net[1].training
