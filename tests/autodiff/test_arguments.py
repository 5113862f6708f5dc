"""Argument forms of the gradient functions, as MindSpore 2.10 answers them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, jit, nn, ops
from tvmgraph.errors import ArgumentError, DTypeError

X, Y = Tensor([1.0, -2.0, 3.0]), Tensor([2.0, 2.0, -1.0])
DX, DY = [2.0, 2.0, -1.0], [1.0, -2.0, 3.0]


def f(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum()


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(Tensor([1.0, 2.0, 3.0]), name="w")
        self.fixed = Parameter(Tensor([1.0, 1.0, 1.0]), name="fixed", requires_grad=False)

    def construct(self, x: Tensor) -> Any:
        return x * self.w * self.fixed


def plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.asnumpy().tolist()
    return tuple(plain(v) for v in value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_positions_and_identifiers(compiled: bool) -> None:
    wrap = jit if compiled else (lambda g: g)
    assert plain(wrap(ms.grad(f, (0,)))(X, Y)) == DX  # a single one comes bare
    assert plain(wrap(ms.grad(f, (1, 0)))(X, Y)) == (DY, DX)
    assert plain(wrap(ms.grad(f, (0, 1), return_ids=True))(X, Y)) == ((0, DX), (1, DY))
    net = Net()
    found = wrap(ms.grad(net, (0,), [net.w], return_ids=True))(X)
    assert plain(found) == ((0, [1.0, 2.0, 3.0]), (("w", [1.0, -2.0, 3.0]),))
    assert plain(ms.get_grad(found, net.w)) == [1.0, -2.0, 3.0]
    assert plain(ms.get_grad(found, 0)) == [1.0, 2.0, 3.0]
    assert plain(wrap(ms.grad(net, None, [net.fixed]))(X)) == ([0.0, 0.0, 0.0],)


def test_bad_positions() -> None:
    for positions in ((0, 0), (), 2, -1):
        with pytest.raises(ArgumentError, match="grad_position"):
            ms.grad(f, positions)(X, Y)
    for positions in ([0, 1], "a", (0, "1")):
        with pytest.raises(DTypeError, match="grad_position"):
            ms.grad(f, positions)(X, Y)
    with pytest.raises(ArgumentError, match="has_aux"):
        ms.grad(f, has_aux=True)(X, Y)
    with pytest.raises(ArgumentError, match="no gradient for 1"):
        ms.get_grad(ms.grad(f, return_ids=True)(X, Y), 1)
    with pytest.raises(DTypeError, match="identifier"):
        ms.get_grad((), 1.5)  # pyright: ignore


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_hooks(compiled: bool) -> None:
    wrap = jit if compiled else (lambda g: g)
    twice, five = ops.InsertGradientOf(lambda g: g * 2), ops.HookBackward(lambda g: g[0] * 5)
    assert plain(wrap(ms.grad(lambda x: twice(x) * 3))(X)) == [6.0] * 3
    assert plain(wrap(ms.grad(lambda x: five(x) * 3))(X)) == [15.0] * 3
    both = ops.HookBackward(lambda g: (g[1], g[0]))
    swapped = wrap(ms.grad(lambda x, y: both(x, y)[0] * 2 + both(x, y)[1] * 7, (0, 1)))(X, Y)
    assert plain(swapped) == ([7.0] * 3, [2.0] * 3)
    seen: list[Any] = []
    look = ops.HookBackward(seen.append)
    assert plain(ms.grad(lambda x: look(x) * 3)(X)) == [3.0] * 3
    np.testing.assert_array_equal(seen[0][0].asnumpy(), [3.0] * 3)
    with pytest.raises(DTypeError, match="HookBackward needs a function"):
        ops.HookBackward(3)  # pyright: ignore


def test_soft_margin_loss_has_its_derivative_at_zero() -> None:
    loss = nn.SoftMarginLoss("sum")
    found = ms.grad(lambda x: loss(x, Tensor([1.0, -1.0])))(Tensor([0.0, 0.0]))
    np.testing.assert_allclose(found.asnumpy(), [-0.5, 0.5])


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize(
    "function",
    [lambda x: x > 0, lambda x: ops.argmax(x), lambda x: (3.0, x > 0)],
    ids=["comparison", "position", "number beside it"],
)
def test_results_without_a_derivative_have_gradient_zero(function: Any, compiled: bool) -> None:
    g = ms.grad(function)
    assert plain((jit(g) if compiled else g)(X)) == [0.0, 0.0, 0.0]
    assert plain(ms.GradOperation()(function)(X)) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("value", [None, "text", (), {"a": None}, 3.0, 5, [1, True]], ids=str)
def test_results_without_a_tensor_are_errors(value: Any, compiled: bool) -> None:
    def forgetful(x: Tensor) -> Any:
        return value

    for g in (ms.grad(forgetful), ms.value_and_grad(forgetful), ms.GradOperation()(forgetful)):
        with pytest.raises(DTypeError, match="forgetful returned") as caught:
            (jit(g) if compiled else g)(X)
        assert "test_arguments.py" in str(caught.value)


def test_integer_outputs_beside_the_loss_count() -> None:
    both = ms.grad(lambda x: (x * 2, ops.cast(x, ms.int32)))(X)
    assert plain(both) == [3.0, 3.0, 3.0]
    labels = ms.grad(lambda x: (x * 2, ops.argmax(x)))(X)
    assert plain(labels) == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_get_by_list_of_a_function(compiled: bool) -> None:
    net = Net()

    def loss(x: Tensor) -> Tensor:
        return net(x).sum()

    for g in (
        ms.GradOperation(get_all=True, get_by_list=True)(loss),
        ms.GradOperation(True, True)(loss, net.trainable_params()),
    ):
        found = (jit(g) if compiled else g)(X)
        assert plain(found) == (([1.0, 2.0, 3.0],), ([1.0, -2.0, 3.0],))
    alone = ms.GradOperation(get_by_list=True)(net, net.w)
    assert plain(alone(X)) == [1.0, -2.0, 3.0]


def test_get_all_includes_keywords() -> None:
    assert plain(ms.GradOperation(get_all=True)(f)(X, y=Y)) == (DX, DY)
    assert plain(ms.GradOperation()(f)(X, y=Y)) == DX


def test_sensitivity_as_a_number_and_of_grad() -> None:
    assert plain(ms.GradOperation(sens_param=True)(f)(X, Y, 2.0)) == [2 * d for d in DX]
    assert plain(ms.grad(f, (0, 1), sens_param=True)(X, Y, Tensor(3.0))) == (
        [3 * d for d in DX], [3 * d for d in DY],
    )  # fmt: skip
    value, _ = ms.value_and_grad(lambda x: x * 2, sens_param=True)(X, Y)
    assert plain(value) == [2.0, -4.0, 6.0]
    with pytest.raises(ms.errors.ShapeError, match="sensitivity"):
        ms.grad(f, sens_param=True)(X, Y, X)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_hook_of_a_tensor(compiled: bool) -> None:
    wrap = jit if compiled else (lambda g: g)

    def hooked(x: Tensor) -> Tensor:
        y = x * 2
        y.register_hook(lambda g: g * 10)
        kept = y.register_hook(lambda g: None)
        removed = y.register_hook(lambda g: g * 100)
        removed.remove()
        assert kept is not None
        return (y * y).sum()

    assert plain(wrap(ms.grad(hooked))(X)) == [80.0, -160.0, 240.0]
    assert plain(ms.grad(wrap(hooked))(X)) == [80.0, -160.0, 240.0]
    with pytest.raises(DTypeError, match="needs a function"):
        X.register_hook(3)


def doubled_if_small(g: Tensor) -> Tensor:
    if g[0] < 100:
        return g * 2
    return g * 3


@pytest.mark.parametrize("hook", [lambda g: g * 2, doubled_if_small], ids=["simple", "branch"])
@pytest.mark.parametrize("wrap", [lambda g: g, jit], ids=["eager", "compiled"])
def test_hook_of_a_tensor_that_is_registered_before_it_is_used(wrap: Any, hook: Any) -> None:
    x, other = Tensor([1.0, -2.0, 3.0]), Tensor([1.0, -2.0, 3.0])

    def square(x: Tensor) -> Tensor:
        return (x * x).sum()

    def hooked(x: Tensor) -> Tensor:
        y = x * 1
        y.register_hook(hook)
        return (y * y).sum()

    calls = [ms.grad(wrap(square)), wrap(ms.grad(square))] * 2
    assert [plain(call(x)) for call in calls] == [[2.0, -4.0, 6.0]] * 4
    handle = x.register_hook(hook=hook)
    assert [plain(call(other)) for call in calls] == [[2.0, -4.0, 6.0]] * 4
    assert [plain(call(x)) for call in calls] == [[4.0, -8.0, 12.0]] * 4
    assert plain(ms.grad(wrap(hooked))(other)) == [4.0, -8.0, 12.0]
    handle.remove()
    assert [plain(call(x)) for call in calls] == [[2.0, -4.0, 6.0]] * 4


def test_gradients_by_the_first_keyword() -> None:
    def product(*, a: Tensor, b: Tensor) -> Tensor:
        return a * b

    assert plain(ops.GradOperation()(product)(a=X, b=Tensor([3.0]))) == [3.0, 3.0, 3.0]


def test_hook_and_freezing_of_a_parameter_reach_compiled_code() -> None:
    net = Net()
    eager = ms.grad(lambda x: net(x).sum(), None, [net.w])
    compiled = jit(eager)

    def both(*expected: float) -> None:
        for g in (eager, compiled):
            np.testing.assert_allclose(g(X)[0].asnumpy(), expected)

    both(1, -2, 3)
    handle = net.w.register_hook(hook_fn=lambda g: g * 3)
    assert net.w.hooks() == [handle.hook]
    both(3, -6, 9)
    handle.remove()
    both(1, -2, 3)
    net.w.requires_grad = False
    both(0, 0, 0)


def test_one_tensor_in_two_positions_has_two_derivatives() -> None:
    x = Tensor([3.0])

    def square_times(a: Tensor, b: Tensor) -> Tensor:
        return a * a * b

    for pair in (
        ms.jacfwd(square_times, (0, 1))(x, x),
        ms.jacrev(square_times, (0, 1))(x, x),
        ms.grad(square_times, (0, 1))(x, x),
    ):
        assert [float(d.asnumpy().item()) for d in pair] == [18.0, 9.0]


def test_a_pull_back_inside_a_graph_tells_positions_of_one_value_apart() -> None:
    from tvmgraph.autodiff.reverse import reverse
    from tvmgraph.core.op import OPS
    from tvmgraph.eager import evaluate

    case_op = OPS["recurrent_gradient"].fn
    rng = np.random.default_rng(0)
    shapes = ((3, 2, 20), (1, 20, 16), (3, 2, 5), (2, 5), (2, 5))
    arrays = [rng.uniform(-1, 1, s) for s in shapes]

    def f(*xs: Tensor) -> Tensor:
        return case_op(*xs, xs[-1], mode="lstm", reverse=False)[0]

    graph = jit(f).graph(*map(Tensor, arrays))
    ones = np.ones(graph.outputs[0].type.static_shape)
    (slope,) = evaluate(reverse(graph, [4], [0]), [*arrays, ones])
    way = rng.standard_normal((2, 5))
    up, down = (evaluate(graph, [*arrays[:4], arrays[4] + h * way])[0].sum() for h in (1e-6, -1e-6))
    np.testing.assert_allclose((slope * way).sum(), (up - down) / 2e-6, rtol=1e-6)


def test_xlogy_has_a_slope_at_zero() -> None:
    x, y = Tensor([0.0, 0.0, 2.0]), Tensor([2.0, 0.0, 2.0])
    slope = ms.grad(lambda a: ops.xlogy(a, y).sum())(x).asnumpy()
    np.testing.assert_allclose(slope, [np.log(2), 0, np.log(2)], rtol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_of_containers_have_their_structure(compiled: bool) -> None:
    def g(d: dict, x: Tensor) -> Tensor:
        return d["a"] * d["b"][0] * d["b"][1] * x

    wrap = jit if compiled else lambda g: g
    t, x = Tensor(3.0), Tensor(5.0)
    d, dx = wrap(ms.grad(g, (0, 1)))({"a": t, "b": [t, 2]}, x)  # one tensor at two places
    assert (float(d["a"]), float(d["b"][0]), d["b"][1], float(dx)) == (30.0, 30.0, 0, 18.0)
    pair = ms.mutable((Tensor(2.0), Tensor(4.0)))
    found = wrap(lambda z: ops.GradOperation()(lambda p: p[0] * p[1] * p[1])(z))(pair)
    assert [float(g) for g in found] == [16.0, 16.0]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("kind", [tuple, list, lambda items: dict(enumerate(items))])
def test_all_inputs_are_tensors_and_marked_containers(kind: Any, compiled: bool) -> None:
    def g(items: Any, x: Tensor) -> Tensor:
        return items[0] * items[1] * x

    given = kind([Tensor(2.0), Tensor(3.0)])
    by_all = ops.GradOperation(get_all=True)(g)
    by_all = jit(by_all) if compiled else by_all
    (dx,) = by_all(given, Tensor(5.0))  # as MindSpore, which takes other containers for constants
    both, dx_too = by_all(ms.mutable(given), Tensor(5.0))
    assert float(dx) == float(dx_too) == 6.0
    assert isinstance(both, type(given)) and (float(both[0]), float(both[1])) == (15.0, 10.0)
    assert ops.GradOperation(get_all=True)(lambda a: a[0] * a[1])(given) == ()
    assert float(ops.GradOperation()(g)(given, Tensor(5.0))[1]) == 10.0  # the first, whatever it is


def test_numbers_of_marked_numbers_have_gradients_of_0() -> None:
    def add(x: int, y: int) -> int:
        return x + y

    marked = ms.mutable(1), ms.mutable(2)
    assert ops.GradOperation(get_all=True, sens_param=True)(add)(*marked, 3) == (0, 0)
    assert ops.GradOperation()(add)(*marked) == ms.grad(add)(*marked) == 0
    with pytest.raises(DTypeError, match="returned 3, which has no derivative"):
        ops.GradOperation()(lambda x: 3)(Tensor(1.0))


@pytest.mark.parametrize("wrap", [lambda g: g, jit], ids=["eager", "compiled"])
def test_integer_parameters_have_integer_gradients(wrap: Any) -> None:
    class Line(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = Parameter(Tensor([6]), name="w")
            self.b = Parameter(Tensor([2]), name="b")

        def construct(self, x: Tensor) -> Tensor:
            return self.w * x + self.b

    net = Line()
    assert plain(wrap(ms.grad(net, None, net.trainable_params()))(Tensor([10]))) == ([10], [1])


def test_classes_of_errors() -> None:
    with pytest.raises(IndexError, match="grad_position 2"):
        ms.grad(f, (0, 2))(X, Y)
    with pytest.raises(RuntimeError, match="no gradient for 1"):
        ms.get_grad(ms.grad(f, return_ids=True)(X, Y), 1)


@pytest.mark.parametrize("wrap", [lambda g: g, jit], ids=["eager", "compiled"])
def test_derivatives_by_several_inputs(wrap: Any) -> None:
    def both(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x * x * y, ops.sin(y)

    value, third = wrap(lambda x, y: ops.derivative(both, (x, y), 3))(X, Y)
    np.testing.assert_allclose(value[0].asnumpy(), X.asnumpy() ** 2 * Y.asnumpy())
    np.testing.assert_allclose(third[0].asnumpy(), np.full(3, 6.0))
    np.testing.assert_allclose(third[1].asnumpy(), -np.cos(Y.asnumpy()), rtol=1e-6)
    with pytest.raises(ArgumentError, match="an order of at least 1"):
        ops.derivative(both, (X, Y), 0)


@pytest.mark.parametrize("wrap", [lambda g: g, jit], ids=["eager", "compiled"])
def test_positions_without_tensors_are_left_out_of_several(wrap: Any) -> None:
    def scaled(x: Tensor, factor: int, y: Tensor, how: str) -> Tensor:
        return x * y * (factor if how == "scaled" else 1)

    found = wrap(lambda x, y: ms.grad(scaled, (0, 1, 2, 3))(x, 3, y, "scaled"))(X, Y)
    np.testing.assert_allclose(found[0].asnumpy(), 3 * Y.asnumpy())
    np.testing.assert_allclose(found[1].asnumpy(), 3 * X.asnumpy())
    alone = wrap(lambda x, y: ms.grad(scaled, (2, 3))(x, 3, y, "scaled"))(X, Y)
    np.testing.assert_allclose(alone.asnumpy(), 3 * X.asnumpy())  # bare, as in MindSpore
    for positions in (1, (1, 3)):
        with pytest.raises(DTypeError, match=r"argument 1 \(factor\) is a int"):
            wrap(lambda x, y, p=positions: ms.grad(scaled, p)(x, 3, y, "scaled"))(X, Y)


def test_frozen_parameters_take_no_hooks() -> None:
    frozen = Parameter(Tensor(1.0), name="p", requires_grad=False)
    with pytest.raises(RuntimeError, match="requires_grad"):
        frozen.register_hook(lambda g: g)


class _Inner(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = Parameter(Tensor(2.0)), Parameter(Tensor(3.0))

    def construct(self, x: Tensor) -> Tensor:
        return x * self.b * self.a


class _Outer(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.last, self.first = Parameter(Tensor(5.0)), Parameter(Tensor(7.0))
        self.unread, self.stopped = Parameter(Tensor(1.0)), Parameter(Tensor(1.0))
        self.inner = _Inner()

    def construct(self, x: Tensor) -> Tensor:
        return ops.stop_gradient(self.stopped) * self.inner(x * self.first) * self.last


def test_get_by_list_of_a_cell_without_weights_is_in_the_order_of_use() -> None:
    net, x = _Outer(), Tensor(1.0)
    by_list = ms.GradOperation(get_by_list=True)
    for _ in range(2):
        assert plain(by_list(net)(x)) == (30.0, 70.0, 105.0, 42.0)
    assert plain(by_list(net, net.trainable_params())(x)) == (42.0, 30.0, 0.0, 0.0, 105.0, 70.0)
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        assert plain(by_list(net)(x)) == (42.0, 30.0, 0.0, 0.0, 105.0, 70.0)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_get_by_list_has_a_parameter_that_is_the_result() -> None:
    class Held(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w, self.v = Parameter(Tensor(3.0)), Parameter(Tensor(4.0))

        def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return self.w, self.v * x

    assert plain(ms.GradOperation(get_by_list=True)(Held())(Tensor(2.0))) == (2.0, 1.0)
