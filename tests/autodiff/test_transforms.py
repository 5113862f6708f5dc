"""vjp, jvp, Jacobians and vmap: against finite differences, NumPy and each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, grad, jit, nn, ops, value_and_grad
from tvmgraph.autodiff import jacfwd, jacrev, jvp, vjp, vmap
from tvmgraph.errors import ArgumentError, CaptureError, ShapeError


def rand(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float64)


def curve(x: Tensor) -> Tensor:
    return ops.tanh(ops.matmul(x, Tensor(rand(3, 4, seed=1)))) * ops.exp(x.sum() * 0.1)


def numeric_jacobian(x: np.ndarray) -> np.ndarray:
    step, columns = 1e-6, []
    for i in range(x.size):
        e = np.zeros(x.size)
        e[i] = step
        e = e.reshape(x.shape)
        up, down = curve(Tensor(x + e)).asnumpy(), curve(Tensor(x - e)).asnumpy()
        columns.append((up - down) / (2 * step))
    return np.stack(columns, -1).reshape(*columns[0].shape, *x.shape)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_jacobian(jacobian: Any, compiled: bool) -> None:
    x = rand(2, 3)
    function = jit(jacobian(curve)) if compiled else jacobian(curve)
    found = function(Tensor(x)).asnumpy()
    assert found.shape == (2, 4, 2, 3)
    np.testing.assert_allclose(found, numeric_jacobian(x), atol=1e-7)


def test_jacobian_by_several_arguments_with_aux() -> None:
    def f(a: Tensor, b: Tensor) -> Any:
        return (a * b, a + b), a

    a, b = rand(3), rand(3, seed=4)
    (first, second), aux = jacrev(f, (0, 1), has_aux=True)(Tensor(a), Tensor(b))
    np.testing.assert_allclose(first[0].asnumpy(), np.diag(b))
    np.testing.assert_allclose(first[1].asnumpy(), np.diag(a))
    np.testing.assert_allclose(second[1].asnumpy(), np.eye(3))
    np.testing.assert_allclose(aux.asnumpy(), a)
    forward, _ = jacfwd(f, (0, 1), has_aux=True)(Tensor(a), Tensor(b))
    np.testing.assert_allclose(forward[0][1].asnumpy(), np.diag(a))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_jvp_and_vjp_agree_with_the_jacobian(compiled: bool) -> None:
    x, v, u = rand(2, 3), rand(2, 3, seed=5), rand(2, 4, seed=6)
    full = numeric_jacobian(x)

    def both(x: Tensor, v: Tensor, u: Tensor) -> Any:
        value, pushed = jvp(curve, x, v)
        again, pull = vjp(curve, x)
        return value, again, pushed, pull(u)[0]

    value, again, pushed, pulled = (jit(both) if compiled else both)(
        Tensor(x), Tensor(v), Tensor(u)
    )
    np.testing.assert_allclose(value.asnumpy(), again.asnumpy())
    np.testing.assert_allclose(pushed.asnumpy(), np.tensordot(full, v, 2), atol=1e-7)
    np.testing.assert_allclose(pulled.asnumpy(), np.tensordot(u, full, 2), atol=1e-7)


def test_vjp_with_weights_and_aux() -> None:
    w = Parameter(Tensor([2.0, 3.0]), name="w")
    out, pull, aux = vjp(lambda x: (x * w, x + 1), Tensor([5.0, 7.0]), weights=[w], has_aux=True)
    (dx,), (dw,) = pull(Tensor([1.0, 10.0]))
    np.testing.assert_allclose(out.asnumpy(), [10, 21])
    np.testing.assert_allclose(dx.asnumpy(), [2, 30])
    np.testing.assert_allclose(dw.asnumpy(), [5, 70])
    np.testing.assert_allclose(aux.asnumpy(), [6, 8])
    *_, several = vjp(lambda x: (x, x + 1, x + 2), Tensor([5.0]), has_aux=True)
    assert [float(a) for a in several] == [6, 7]
    with pytest.raises(ShapeError, match="vjp"):
        pull(Tensor([1.0]))


def test_hessian_by_nesting() -> None:
    def f(x: Tensor) -> Tensor:
        return (x * x * x).sum()

    x = rand(3)
    for hessian in (jacrev(grad(f)), jacfwd(grad(f)), jacrev(jacfwd(f)), jacfwd(jacrev(f))):
        np.testing.assert_allclose(hessian(Tensor(x)).asnumpy(), np.diag(6 * x), atol=1e-12)


# one function per kind of rule: elementwise, reduction, product, axes, shapes, the general way
FUNCTIONS: dict[str, Any] = {
    "broadcast": lambda a, b: a * b[0] + a,
    "scalar": lambda a, b: a.sum() * b,
    "reduction": lambda a, b: (a - a.mean(axis=0)).max(axis=1) + b.sum(),
    "matmul": lambda a, b: ops.matmul(a, b.T),
    "matmul of a vector": lambda a, b: ops.matmul(a, b[0]),
    "softmax": lambda a, b: ops.softmax(a, -1) + ops.softmax(b, 0),
    "concat": lambda a, b: ops.concat((a, b, ops.ones((1, 4), a.dtype)), 0),
    "reshape": lambda a, b: ops.reshape(a, (-1,)) - ops.transpose(b, (1, 0)).reshape(-1),
    "sort": lambda a, b: ops.sort(a)[0] + ops.cumsum(b, 1),
    "indexing": lambda a, b: a[1:, ::2] + b[:2, 1:3],
    "gather": lambda a, b: ops.gather(a, Tensor([2, 0]), 0) * b[1],
    "where": lambda a, b: ops.where(a > 0, b, a),
    "norm": lambda a, b: ops.norm(a - b),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap_equals_a_loop(name: str, compiled: bool) -> None:
    f = FUNCTIONS[name]
    a, b = rand(5, 3, 4), rand(5, 3, 4, seed=2)
    expected = np.stack([f(Tensor(x), Tensor(y)).asnumpy() for x, y in zip(a, b)])
    function = jit(vmap(f)) if compiled else vmap(f)
    np.testing.assert_allclose(function(Tensor(a), Tensor(b)).asnumpy(), expected, rtol=1e-9)
    shared = np.stack([f(Tensor(x), Tensor(b[0])).asnumpy() for x in a])
    found = vmap(f, (0, None))(Tensor(a), Tensor(b[0])).asnumpy()
    np.testing.assert_allclose(found, shared, rtol=1e-9)


def test_vmap_axes() -> None:
    a, b = rand(3, 5), rand(5, 3, seed=2)
    found = vmap(lambda x, y: x * 2 + y, in_axes=(1, 0), out_axes=1)(Tensor(a), Tensor(b))
    np.testing.assert_allclose(found.asnumpy(), a * 2 + b.T)
    nested = vmap(vmap(lambda x, y: x * y), in_axes=(0, None))(Tensor(a), Tensor(a[0]))
    np.testing.assert_allclose(nested.asnumpy(), a * a[0])


@pytest.mark.parametrize("compiled", [False, True])
def test_numbers_among_the_results_get_the_axis_too(compiled: bool) -> None:
    def described(x: Tensor) -> Any:
        return (x + 1, 2), {"rate": 0.5, "known": True}, [3, None]

    x = Tensor([1.0, 2.0, 3.0])
    places = ((0, 0), (0, None), (0, None))

    def run(x: Tensor) -> Any:
        return vmap(described, out_axes=places)(x)

    (moved, two), about, (three, nothing) = (jit(run) if compiled else run)(x)
    assert moved.asnumpy().tolist() == [2.0, 3.0, 4.0]
    assert (two.tolist(), two.dtype) == ([2, 2, 2], ms.int64)
    assert (about["rate"].tolist(), about["rate"].dtype) == ([0.5, 0.5, 0.5], ms.float32)
    assert (about["known"], three.tolist(), nothing) == (True, [3, 3, 3], None)


@pytest.mark.parametrize("compiled", [False, True])
def test_integers_are_pushed_forward_as_they_are_pulled_back(compiled: bool) -> None:
    a, b = Tensor([1, 2, 3]), Tensor([4, 5, 6])

    def both(a: Tensor, b: Tensor) -> Any:
        pushed = jvp(lambda x, y: (x * y, x > y), (a, b), (a, b))[1]
        return pushed, vjp(lambda x, y: x * y, a, b)[1](ops.ones_like(a))

    (pushed, flat), (by_a, by_b) = (jit(both) if compiled else both)(a, b)
    assert pushed.tolist() == (by_a * a + by_b * b).tolist() == [8, 20, 36]
    assert (pushed.dtype, flat.tolist()) == (ms.int64, [False] * 3)


def test_vmap_of_grad_and_grad_of_vmap() -> None:
    ms.set_seed(0)  # some weights give a derivative that cancels, which rounding then decides
    net = nn.SequentialCell(nn.Dense(4, 3), nn.Tanh(), nn.Dense(3, 1))
    x = rand(6, 4).astype(np.float32)

    def loss(row: Tensor) -> Tensor:
        return net(row.reshape(1, -1)).sum()

    per_example = vmap(value_and_grad(loss, 0, net.trainable_params()))(Tensor(x))
    loop = [value_and_grad(loss, 0, net.trainable_params())(Tensor(r)) for r in x]
    for i, (value, (dx, dw)) in enumerate(loop):
        np.testing.assert_allclose(per_example[0].asnumpy()[i], value.asnumpy(), rtol=1e-5)
        np.testing.assert_allclose(per_example[1][0].asnumpy()[i], dx.asnumpy(), rtol=1e-5)
        for whole, one in zip(per_example[1][1], dw):
            np.testing.assert_allclose(whole.asnumpy()[i], one.asnumpy(), rtol=1e-5, atol=1e-6)
    total = grad(lambda v: vmap(loss)(v).sum(), None, net.trainable_params())(Tensor(x))
    for whole, summed in zip(per_example[1][1], total):
        np.testing.assert_allclose(whole.asnumpy().sum(0), summed.asnumpy(), rtol=1e-4, atol=1e-5)


def test_vmap_rejects() -> None:
    x = Tensor(rand(3, 2))
    with pytest.raises(ShapeError, match="common length"):
        vmap(lambda a, b: a)(x, Tensor(rand(4, 2)))
    with pytest.raises(ArgumentError, match="one entry"):
        vmap(lambda a: a, in_axes=(0, 0))(x)
    with pytest.raises(ArgumentError, match="needs an axis"):
        vmap(lambda a: a, in_axes=None)(x)
    with pytest.raises(ShapeError, match="axis 5"):
        vmap(lambda a: a, in_axes=5)(x)
    with pytest.raises(CaptureError):
        vmap(lambda a: a if a.sum() > 0 else -a)(x)
    with pytest.raises(CaptureError):
        vmap(lambda a: ops.zeros(int(a[0])))(x)
    p = Parameter(Tensor([0.0, 0.0]), name="p")
    with pytest.raises(CaptureError, match="batch"):
        vmap(lambda a: ops.assign(p, a.astype(p.dtype)))(x)


@pytest.mark.parametrize("mode", ["ast", "bytecode"])
def test_pieces_send_no_zeros_to_what_has_no_derivative(mode: str) -> None:
    """What a piece computes of sizes that values decide is not differentiated, so neither is it."""

    def f(x: Tensor, v: Tensor) -> Tensor:
        found, _ = ops.unique(x)
        ops.sigmoid(found)
        return ops.log(v)

    arguments = Tensor([1.0, 2.0, 2.0]), Tensor([0.5, 4.0])
    compiled = jit(f, capture_mode=mode)
    for call in (grad(compiled, (0, 1)), jit(grad(f, (0, 1)), capture_mode=mode)):
        dx, dv = call(*arguments)
        assert dx.asnumpy().tolist() == [0, 0, 0] and dv.asnumpy().tolist() == [2, 0.25]


@pytest.mark.parametrize("wrap", [jit, lambda f: f], ids=["all compiled", "eager outside"])
def test_jacobians_of_compiled_functions(wrap: Any) -> None:
    x = Tensor([1.0, 2.0, 3.0])
    cube = jit(lambda v: v**3)
    slopes = np.diag([3.0, 12.0, 27.0])
    for jacobian in (jacrev, jacfwd):
        np.testing.assert_allclose(wrap(jacobian(cube))(x).asnumpy(), slopes)
    curvature = wrap(jacfwd(jacrev(jit(lambda v: (v**3).sum()))))(x)
    np.testing.assert_allclose(curvature.asnumpy(), np.diag([6.0, 12.0, 18.0]))
    batch = vmap(grad(jit(lambda v: (v**2).sum())))(Tensor([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_allclose(batch.asnumpy(), [[2.0, 4.0], [6.0, 8.0]])


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_a_tuple_of_one_position_gives_a_bare_jacobian(jacobian: Any) -> None:
    a, b = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    both = jacobian(lambda x, y: (x * y, x + y), (1,))(a, b)
    assert [j.asnumpy().tolist() for j in both] == [[[1, 0], [0, 2]], [[1, 0], [0, 1]]]
    found, aux = jacobian(lambda x, y: (x * y, x + y), (0,), has_aux=True)(a, b)
    assert found.asnumpy().tolist() == [[3, 0], [0, 4]] and aux.asnumpy().tolist() == [4, 6]
