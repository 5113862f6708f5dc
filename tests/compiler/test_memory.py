"""Where intermediate tensors live, and when parameters are replaced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tvmgraph as ms
from tests.optim.test_in_place import OPTIMIZERS, is_written_in_place, make
from tvmgraph import Parameter, Tensor, jit, nn, ops
from tvmgraph.backend.memory import Interval, place

INTERVALS = st.lists(
    st.builds(
        lambda size, first, length: Interval(size, first, first + length),
        st.integers(0, 5000), st.integers(0, 20), st.integers(0, 8),
    ),
    max_size=40,
)  # fmt: skip


@given(INTERVALS)
def test_tensors_that_live_together_do_not_overlap(tensors: list[Interval]) -> None:
    offsets, total = place(tensors)
    spans = [(o, o + t.size, t) for o, t in zip(offsets, tensors)]
    for i, (start, end, t) in enumerate(spans):
        assert start % 64 == 0 and end <= total
        for other_start, other_end, other in spans[:i]:
            if t.first <= other.last and other.first <= t.last:
                assert end <= other_start or other_end <= start or not t.size * other.size


def test_a_chain_needs_two_tensors_at_a_time() -> None:
    chain = [Interval(640, i, i + 1) for i in range(10)]
    assert place(chain)[1] == 1280
    assert place([]) == ([], 0)


def test_tensors_of_all_kinds_share_one_block() -> None:
    """Kernels begin at the offset of their tensors, whatever the dtype and however it is read."""

    def f(x: Tensor, i: Tensor) -> Any:
        logits = ops.softmax(ops.matmul(x, x.T))
        keep = ops.logical_not(logits > 0.5)
        order = ops.argsort(ops.matmul(logits, x), axis=1)
        picked = ops.gather_elements(ops.matmul(logits, x), 1, order)
        spread = ops.tensor_scatter_elements(picked, order, ops.relu(picked), axis=1)
        half = ops.matmul(spread, x.T).astype(ms.float16)
        return ops.cumsum(half * half, 0), keep.astype(ms.int64).sum(1), ops.sort(spread)[0][i]

    rng = np.random.default_rng(0)
    given = Tensor(rng.normal(size=(7, 13)).astype(np.float32)), Tensor(np.array([3, 0, 6]))
    for a, b in zip(jit(f)(*given), f(*given)):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=2e-3, atol=1e-5)


def test_results_do_not_share_memory_with_later_calls() -> None:
    f = jit(lambda x: (ops.softmax(ops.matmul(x, x)), ops.tanh(ops.matmul(x, x) + 1)))
    first = f(ops.ones((16, 16)))
    kept = [t.asnumpy().copy() for t in first]
    f(ops.zeros((16, 16)))
    for t, k in zip(first, kept):
        np.testing.assert_array_equal(t.asnumpy(), k)


class Reshaped(nn.Cell):
    """Reads a parameter in other shapes before and after it is replaced."""

    def __init__(self) -> None:
        super().__init__()
        self.p = Parameter(Tensor(np.arange(48, dtype=np.float32).reshape(6, 8)), name="p")
        self.q = Parameter(ops.ones((6, 8)), name="q")

    def construct(self, x: Tensor) -> tuple[Tensor, ...]:
        old = ops.reshape(self.p, (8, 6))
        ops.assign(self.p, self.p * 2 + 1)
        turned = ops.reshape(ops.reshape(self.q, (8, 6)), (48,))[::-1]
        ops.assign(self.q, self.q + ops.reshape(turned, (6, 8)))
        y = ops.matmul(x, old)
        return y, ops.matmul(x[:, :4], ops.reshape(self.p, (4, 12)))


def test_tensors_in_another_shape_are_not_copied_and_keep_their_elements() -> None:
    eager, net = Reshaped(), Reshaped()
    compiled, x = jit(net), Tensor(np.random.default_rng(0).standard_normal((3, 8)).astype("f"))
    for _ in range(2):
        for got, want in zip(compiled(x), eager(x)):
            np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-4)
    for got, want in zip(net.get_parameters(), eager.get_parameters()):
        np.testing.assert_array_equal(got.asnumpy(), want.asnumpy())
    y = ops.ones((4, 6, 6))
    chain = jit(lambda x: ops.matmul(ops.reshape(ops.matmul(x, x), (6, 24)), ops.ones((24, 2))))
    names = [kernel.name for kernel in chain.profile(y).kernels]
    assert len(names) == 2 and not any(name.startswith("reshape") for name in names), names


def test_updates_do_not_wait_for_all_gradients() -> None:
    """Of ten layers, the gradients of one or two live at the same time."""
    net = nn.SequentialCell(*[nn.Dense(96, 96) for _ in range(10)])
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params()))
    x = ops.ones((4, 96))
    memory = jit(step.set_train()).memory(x, x)
    gradients = 10 * 96 * 96 * 4
    assert memory.planned < 0.2 * gradients


def test_weights_of_convolutions_are_replaced_in_place() -> None:
    """The derivative by the input reads the weight in another order, before it is replaced."""
    net = nn.SequentialCell(*[nn.Conv2d(32, 32, 3) for _ in range(3)])
    optimizer = OPTIMIZERS["adam"](net.trainable_params())
    step = jit(nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer).set_train())
    x = ops.ones((1, 32, 6, 6))
    weights = 3 * 32 * 32 * 9 * 4
    assert step.memory(x, x).planned < weights


def test_the_order_of_updates_keeps_their_results() -> None:
    net, _, step, batch = make(OPTIMIZERS["momentum"])
    same, _, eager, _ = make(OPTIMIZERS["momentum"])
    run = jit(step)
    for _ in range(4):
        run(*batch), eager(*batch)
    for a, b in zip(net.get_parameters(), same.get_parameters()):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("batch, wide, high", [(1, 3, 5), (7, 17, 31), (64, 96, 80), (3, 130, 65)])
@pytest.mark.parametrize("name", ["sgd", "momentum"])
def test_products_write_updates_over_their_weights(
    name: str, batch: int, wide: int, high: int
) -> None:
    rng = np.random.default_rng(0)
    x = Tensor(rng.normal(size=(batch, wide)).astype(np.float32))
    y = Tensor(rng.normal(size=(batch, high)).astype(np.float32))
    weight = Tensor(rng.normal(size=(high, wide)).astype(np.float32))
    nets = [nn.Dense(wide, high, weight_init=weight, bias_init="zeros") for _ in range(2)]
    steps = [
        nn.TrainOneStepCell(
            nn.WithLossCell(net, nn.MSELoss()), OPTIMIZERS[name](net.trainable_params())
        ).set_train()
        for net in nets
    ]
    compiled = jit(steps[0])
    for _ in range(3):
        compiled(x, y), steps[1](x, y)
    assert is_written_in_place(compiled, (x, y), nets[0].weight)
    steps[1](x, y), steps[1](x, y), steps[1](x, y)  # as often as it was asked
    np.testing.assert_allclose(
        nets[0].weight.asnumpy(), nets[1].weight.asnumpy(), rtol=1e-4, atol=1e-5
    )


def test_the_old_value_of_a_parameter_is_a_result_of_its_own() -> None:
    w = Parameter(Tensor([1.0, 2.0]), name="w")
    kept = Parameter(Tensor([0.0, 0.0]), name="kept")

    @jit
    def step(x: Tensor) -> Any:
        old = w.copy()
        ops.assign(kept, w)
        ops.assign(w, w + x)
        return old, w > 2.5, ops.isnan(w)

    for i in range(3):
        old, large, missing = step(Tensor([1.0, 1.0]))
        np.testing.assert_array_equal(old.asnumpy(), [1 + i, 2 + i])
        np.testing.assert_array_equal(kept.asnumpy(), [1 + i, 2 + i])
        np.testing.assert_array_equal(large.asnumpy(), [2 + i > 2.5, True])
        assert not missing.asnumpy().any()


def test_a_formula_behind_a_condition_keeps_its_bindings() -> None:
    def f(x: Tensor) -> Tensor:
        y = ops.exp((x > 0).astype(ms.float32))
        y[0] = 0.5
        return y

    for n in (2, 6, 9):
        x = ops.ones((n, n))
        np.testing.assert_allclose(jit(f)(x).asnumpy(), f(x).asnumpy(), rtol=1e-6)
