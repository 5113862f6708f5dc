"""Derivatives of their own: ``bprop`` of a Cell, ``custom_vjp``, recomputation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tvmgraph import Tensor, float32, grad, int64, jit, nn, ops, recompute, set_seed, value_and_grad
from tvmgraph.autodiff import custom_vjp
from tvmgraph.errors import DTypeError, ShapeError

MODES: dict[str, Callable[[Any], Any]] = {
    "eager": lambda f: grad(f),
    "eager around compiled": lambda f: grad(jit(f)),
    "compiled": lambda f: jit(grad(f)),
}


class Hundred(nn.Cell):
    """Squares, with a wrong derivative that can be told apart."""

    def construct(self, x: Tensor) -> Tensor:
        return x * x

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        return (dout * 100 + out * 0,)


class Reversal(nn.Cell):
    """Returns its input; the gradient changes its sign."""

    def construct(self, x: Tensor) -> Tensor:
        return x

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        return (-dout,)


@pytest.mark.parametrize("mode", MODES)
def test_bprop_of_a_cell(mode: str) -> None:
    cell, x = Hundred(), np.array([1.0, 2.0], np.float32)

    def around(x: Tensor) -> Tensor:
        return ops.sin(cell(x * 2))

    found = MODES[mode](around)(Tensor(x)).asnumpy()
    np.testing.assert_allclose(found, 2 * 100 * np.cos(4 * x * x), rtol=1e-5)
    np.testing.assert_allclose(cell(Tensor(x)).asnumpy(), x * x)


class Chosen(nn.Cell):
    """Is a step of one input, without a slope, and reads nothing of the other."""

    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        return ops.sign(x)

    def bprop(self, x: Tensor, y: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor, Tensor]:
        return dout * 3, dout + y


@pytest.mark.parametrize("mode", MODES)
def test_bprop_has_gradients_of_what_the_result_does_not_depend_on(mode: str) -> None:
    inner, x, y = Chosen(), Tensor([1.0, -2.0]), Tensor([4.0, 5.0])

    def around(both: tuple[Tensor, Tensor]) -> Tensor:
        return inner(*both) * 2

    dx, dy = MODES[mode](around)((x, y))
    np.testing.assert_array_equal(dx.asnumpy(), [6, 6])
    np.testing.assert_array_equal(dy.asnumpy(), [6, 7])


@pytest.mark.parametrize("mode", MODES)
def test_bprop_of_an_identity(mode: str) -> None:
    cell = Reversal()
    found = MODES[mode](lambda x: cell(x) + x * 3)(Tensor([1.0, 2.0]))
    np.testing.assert_allclose(found.asnumpy(), [2, 2])


@pytest.mark.parametrize("mode", MODES)
def test_custom_vjp_of_a_function(mode: str) -> None:
    @custom_vjp(lambda pair, scale, out, dout: ((dout * scale, None), None))
    def weighted(pair: tuple[Tensor, Tensor], scale: float) -> Tensor:
        return pair[0] * scale + pair[1]

    def f(x: Tensor) -> Tensor:
        return weighted((x, x), 3.0)

    np.testing.assert_allclose(MODES[mode](f)(Tensor([1.0, 2.0])).asnumpy(), [3, 3])


def test_second_order_goes_through_the_bprop() -> None:
    @custom_vjp(lambda x, out, dout: (dout * x * x * x,))
    def f(x: Tensor) -> Tensor:
        return x

    assert grad(grad(f))(Tensor(2.0)).item() == pytest.approx(3 * 2.0**2)
    assert jit(grad(grad(f)))(Tensor(2.0)).item() == pytest.approx(3 * 2.0**2)


def test_wrong_bprops_are_named() -> None:
    two = custom_vjp(lambda x, y, out, dout: (dout,))(lambda x, y: x * y)
    with pytest.raises(DTypeError, match="one gradient per input"):
        grad(two)(Tensor(1.0), Tensor(2.0))
    wide = custom_vjp(lambda x, out, dout: (ops.ones((3,)),))(lambda x: x * 2)
    with pytest.raises(ShapeError, match="another shape"):
        grad(wide)(Tensor(1.0))


def test_recompute_gives_the_same_gradients_and_keeps_less() -> None:
    from tvmgraph.autodiff.tape import GradTape, recording

    net = nn.SequentialCell(nn.Dense(3, 4), nn.Dropout(p=0.5), nn.Tanh(), nn.Dense(4, 2))
    net.set_train()
    x = Tensor(np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32))

    def run() -> tuple[list[np.ndarray], int]:
        set_seed(3)
        value, (dx, dw) = value_and_grad(lambda x: net(x).sum(), 0, net.trainable_params())(x)
        tape = GradTape()
        with recording(tape):
            net(x)
        return [t.asnumpy() for t in (value, dx, *dw)], len(tape.entries)

    plain, kept = run()
    net.recompute()
    again, fewer = run()
    assert fewer == 1 < kept
    for a, b in zip(plain, again):
        np.testing.assert_array_equal(a, b)
    net.recompute(mode=False)
    assert run()[1] == kept


def test_gradients_of_integers_unused_and_stopped() -> None:
    x, i = Tensor([1.0, 2.0]), Tensor([3, 4])
    assert grad(lambda x, i: x * i, (0, 1))(x, i)[1].dtype == i.dtype
    np.testing.assert_array_equal(grad(lambda x, y: x, 1)(x, x).asnumpy(), [0, 0])
    np.testing.assert_array_equal(grad(lambda x: ops.stop_gradient(x) * x)(x).asnumpy(), [1, 2])
    dense = nn.Dense(2, 1)
    dense.weight.requires_grad = False
    assert [p.name for p in dense.trainable_params()] == ["bias"]


def test_integer_arguments_have_integer_gradients() -> None:
    found = grad(lambda x: (x**2).sum())(Tensor([1, 2]))
    assert str(found.dtype) == "Int64"
    np.testing.assert_array_equal(found.asnumpy(), [2, 4])


def block(features: int) -> nn.Cell:
    return nn.SequentialCell(
        nn.Dense(features, 4 * features), nn.BatchNorm1d(4 * features), nn.Tanh(),
        nn.Dropout(p=0.3), nn.Dense(4 * features, features),
    )  # fmt: skip


def test_recompute_in_a_compiled_step_needs_less_memory() -> None:
    x = Tensor(np.random.default_rng(0).normal(size=(256, 16)).astype(np.float32))

    def train(recomputing: bool) -> tuple[list[np.ndarray], int]:
        set_seed(0)
        net = nn.SequentialCell(*[block(16) for _ in range(8)]).set_train()
        if recomputing:
            for cell in net:
                cell.recompute()
        optimizer = nn.SGD(net.trainable_params(), 0.1, momentum=0.9)
        gradient = value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)

        @jit
        def step(x: Tensor) -> Tensor:
            loss, gradients = gradient(x)
            optimizer(gradients)
            return loss

        losses = [step(x) for _ in range(3)]
        results = [t.asnumpy() for t in (*losses, *net.get_parameters())]
        return results, step.memory(x).peak

    (plain, most), (again, less) = train(False), train(True)
    for a, b in zip(plain, again):  # moving averages of batch norms included
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert less < 0.8 * most


def test_recompute_of_a_function_and_of_a_cell() -> None:
    x = Tensor([0.5, -1.0])
    net = nn.Dense(2, 2)
    for wrap in (lambda f: f, jit):
        dx = wrap(grad(lambda x: recompute(lambda y, scale=1.0: ops.sin(y) * scale, x, scale=2.0)))
        np.testing.assert_allclose(dx(x).asnumpy(), 2 * np.cos(x.asnumpy()), rtol=1e-5)
        dw = wrap(grad(lambda x: recompute(net, x).sum(), None, net.weight))
        np.testing.assert_allclose(dw(x).asnumpy(), [[0.5, -1.0]] * 2, rtol=1e-6)
    with pytest.raises(DTypeError, match="block must be"):
        recompute(3, x)


def test_a_gradient_that_broadcasts_is_summed_and_cast() -> None:
    class Add(nn.Cell):
        def construct(self, x: Tensor, y: Tensor) -> Tensor:
            return x + y

        def bprop(self, *_: Any) -> tuple[Tensor, Tensor]:
            return ops.ones((2, 3), int64), ops.ones((2, 3), int64)

    x, y = Tensor([1.0, 2.0, 3.0]), ops.ones((2, 3))
    a, b = grad(Add(), (0, 1))(x, y)
    assert a.dtype == b.dtype == float32
    assert a.asnumpy().tolist() == [2, 2, 2] and b.shape == (2, 3)
    with pytest.raises((ValueError, RuntimeError), match="another shape"):
        grad(Add())(ops.ones((2, 1, 1)), y)
