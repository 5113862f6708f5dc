"""What MindSpore's users write in compiled code, and about it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, nn, ops


class Scale(nn.Cell):
    def __init__(self, by: list[float]) -> None:
        super().__init__()
        self.by = Parameter(Tensor(by))

    def construct(self, x: Tensor) -> Tensor:
        return x * self.by


class Pick(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.CellList([nn.ReLU(), nn.Tanh(), nn.ReLU6()])

    def construct(self, which: Tensor, x: Tensor) -> Tensor:
        return self.layers[which](x)


def test_a_list_of_models_takes_one_element_each() -> None:
    models, x = nn.CellList([Scale([1, 2]), Scale([3, 4])]), Tensor([[1.0, 2], [3, 4]])
    assert ms.vmap(models)(x).tolist() == [[1, 4], [9, 16]]
    assert ms.jit(lambda x: ms.vmap(models, None, 1)(x))(x).shape == (2, 2, 2)
    with pytest.raises(ValueError, match="2 models"):
        ms.vmap(models)(ops.ones((3, 2)))
    with pytest.raises(ValueError, match="parameters"):
        ms.vmap(nn.CellList([Scale([1]), nn.ReLU()]))(x)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_tensor_chooses_a_cell(mode: int) -> None:
    ms.set_context(mode=mode)
    try:
        net, x = Pick(), Tensor([-1.0, 9.0])
        assert [net(Tensor(i, ms.int32), x).tolist()[1] for i in (0, 2, 1)] == pytest.approx(
            [9, 6, 1]
        )
        with pytest.raises(IndexError):
            net(Tensor(5, ms.int32), x)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_numbers_that_vary_have_no_gradient() -> None:
    assert ms.jit(lambda t: ms.grad(lambda v: v * v)(t))(ms.mutable(3.0)) == 0
    x, both = Tensor(2.0), ms.jit(lambda x, t: ms.grad(lambda a, b: a * b, (0, 1))(x, t))
    dx, number = both(x, ms.mutable(3.0))
    assert dx.item() == 3 and number == 0


def test_wrong_settings_are_errors_of_both_kinds() -> None:
    for wrong in (lambda: ms.grad(lambda x: x, ()), lambda: ms.jit(lambda x: x, backend="no")):
        for kind in (RuntimeError, ValueError):
            with pytest.raises(kind):
                wrong()


def test_levels_and_back_ends_of_mindspore() -> None:
    try:
        ms.set_context(jit_level="O1")
        assert ms.get_context("jit_level") == "O1"
        assert ms.get_context("jit_config") == {"jit_level": "O1"}
    finally:
        ms.reset_context()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert ms.jit(lambda x: x + 1, backend="GE")(Tensor([1.0])).item() == 2
    assert "Ascend" in str(found[0].message)


def test_the_processor_has_finished_and_holds_no_memory_of_a_gpu() -> None:
    if ms.hal.is_available("GPU"):  # other tests may play one
        pytest.skip("a GPU has memory of its own")
    assert ms.runtime.synchronize() is None and ms.hal.synchronize() is None
    assert ms.runtime.memory_stats()["total_allocated_memory"] == 0
    assert ms.runtime.max_memory_allocated() == ms.runtime.memory_reserved() == 0
    assert isinstance(ms.hal.memory_summary(), str)


class Broken(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return x + float(ops.exp(x).asnumpy().sum())


class Marked(nn.Cell):
    @ms.jit(mode="PIJit")
    def construct(self, x: Tensor) -> Tensor:
        return x + float(ops.exp(x).asnumpy().sum())


class Drawer(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.graph = "own"

    def draw(self) -> str:
        return "own"

    def construct(self, x: Tensor) -> Tensor:
        return x if hasattr(self, "explain") else x * 2


@pytest.fixture
def graph_mode() -> Iterator[None]:
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def test_a_cell_of_graph_mode_shows_what_it_was_compiled_to(graph_mode: None) -> None:
    net, x = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU()), ops.ones((1, 3))
    for ask in (net.graph, net.draw):
        with pytest.raises(ms.errors.CompileError, match="nothing was compiled yet"):
            ask()
    assert "compiled 0 time" in net.explain()
    net(x)
    net(x)
    assert [n.op.name for n in net.graph().nodes] == [n.op.name for n in ms.jit(net).graph(x).nodes]
    assert "compiled 1 time" in net.explain() and "relu" in net.draw().svg
    assert net.graph(ops.ones((2, 3))).outputs[0].type.shape == (2, 4)


@pytest.mark.parametrize("cell", [Broken, Marked])
def test_a_cell_with_graph_breaks_shows_its_segments(graph_mode: None, cell: type[nn.Cell]) -> None:
    net = cell()
    net(ops.ones(3))
    assert "compiled segments" in net.explain() and "asnumpy" in net.draw().svg
    with pytest.raises(ms.errors.CompileError, match="graph breaks"):
        net.graph()


def test_an_eager_cell_has_nothing_to_show() -> None:
    net, x = nn.ReLU(), ops.ones(3)
    net(x)
    for name in ("graph", "explain", "draw"):
        assert not hasattr(net, name)
        with pytest.raises(AttributeError, match=rf"(?s)nothing of this Cell.*jit\(net\)\.{name}"):
            getattr(net, name)
    net.compile(x)
    assert "compiled 1 time" in net.explain()


def test_names_of_a_class_come_before_those_of_compiled_code(graph_mode: None) -> None:
    net = Drawer()
    assert [net(ops.ones(1)).item(), net(ops.ones(1)).item()] == [2, 2]
    assert net.graph == net.draw() == "own" and "compiled 1 time" in net.explain()
    held = nn.CellDict({"graph": nn.ReLU(), "explain": nn.ReLU()})
    held.register_buffer("draw", ops.ones(2))
    assert isinstance(held["graph"], nn.ReLU) and held.draw.shape == (2,)
    with pytest.raises(KeyError, match="is taken"):
        held.register_buffer("graph", ops.ones(1))


def _next(x: Tensor) -> Tensor:
    return x + 1


def _double(x: Tensor) -> Tensor:
    return x * 2


class Chooser(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense, self.relu = nn.Dense(2, 2, weight_init="ones", bias_init="ones"), nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        layer = self.dense if x.sum() > 0 else self.relu
        return layer(x)


@ms.jit(fullgraph=True)
def _chosen(x: Tensor, times: int = 1) -> Tensor:
    if x.sum() > 0:  # noqa: SIM108
        f = _next
    else:
        f = _double
    for _ in range(times):
        x = f(x)
    return x


def test_a_tensor_chooses_a_function() -> None:
    x = Tensor([1.0, 2.0])
    assert _chosen(x).tolist() == [2, 3] and _chosen(-x).tolist() == [-2, -4]
    assert _chosen(x, 3).tolist() == [4, 5] and _chosen(-x, 3).tolist() == [-8, -16]
    slope = ms.grad(lambda x: _chosen(x, 2).sum())
    assert slope(x).tolist() == [1, 1] and slope(-x).tolist() == [4, 4]
    net = Chooser()
    whole = ms.jit(net, fullgraph=True)
    for value in (x[None], -x[None]):
        assert whole(value).tolist() == net(value).tolist()
    weights = ms.jit(ms.grad(lambda x: whole(x).sum(), None, net.trainable_params()))
    assert weights(x[None])[0].tolist() == [[1, 2], [1, 2]]
    assert weights(-x[None])[0].tolist() == [[0, 0], [0, 0]]


def _of_four(x: Tensor) -> Tensor:
    total = x.sum()
    if total > 10:
        f = _next
    elif total > 0:
        f = ops.neg
    elif total > -10:
        f = _double
    else:
        inner = x.max()
        f = _next if inner > -5 else _double
    return f(f(x))


def _by_nested_branches(x: Tensor) -> Tensor:
    if x[0] > 0:
        if x[1] > 0:  # noqa: SIM108
            f = _next
        else:
            f = _double
        x = x + 1
    elif x[1] > 0:
        f = ops.neg
    else:
        f = _next
    return f(x)


class _Experts(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.CellList([nn.Dense(2, 2, "ones"), nn.Dense(2, 2, "zeros"), nn.ReLU()])

    def construct(self, x: Tensor) -> Tensor:
        first, second, third = self.experts
        if x.sum() > 4:
            expert = first
        elif x.sum() > 0:
            expert = second
        else:
            expert = third
        return expert(x)


def test_tensors_choose_one_of_several_functions() -> None:
    samples = ([6.0, 7.0], [1.0, 2.0], [-1.0, -2.0], [-3.0, -20.0], [-8.0, -9.0], [1.0, -3.0])
    strict, nested = ms.jit(_of_four, fullgraph=True), ms.jit(_by_nested_branches, fullgraph=True)
    net = _Experts()
    experts = ms.jit(net, fullgraph=True)
    for sample in samples:
        x = Tensor(sample)
        assert strict(x).tolist() == _of_four(x).tolist()
        assert nested(x).tolist() == _by_nested_branches(x).tolist()
        for function in (_of_four, _by_nested_branches):
            slope = ms.grad(lambda x, f=function: f(x).sum())
            assert ms.jit(slope, fullgraph=True)(x).tolist() == slope(x).tolist()
        assert experts(x[None]).tolist() == net(x[None]).tolist()


def _by_expressions(x: Tensor) -> Tensor:
    x = (_next if x.sum() > 4 else (_double if x.sum() > 0 else ops.neg))(x)
    x = ((ops.relu if x[0] > 3 else _double) if x[1] > 0 else _next)(x)
    f = _next if x.sum() > 4 else _double if x.max() > 0 else _next
    return f(f(x))


class _ByExpressions(_Experts):
    def construct(self, x: Tensor) -> Tensor:
        e = self.experts
        return (e[0] if x.sum() > 4 else (e[1] if x.sum() > 0 else e[2]))(x)


def test_conditional_expressions_choose_functions() -> None:
    strict, net = ms.jit(_by_expressions, fullgraph=True), _ByExpressions()
    experts = ms.jit(net, fullgraph=True)
    for sample in ([6.0, 7.0], [1.0, 2.0], [-1.0, -2.0], [1.0, -3.0], [5.0, -1.0]):
        x = Tensor(sample)
        assert strict(x).tolist() == _by_expressions(x).tolist()
        slope = ms.grad(lambda x: _by_expressions(x).sum())
        assert ms.jit(slope, fullgraph=True)(x).tolist() == slope(x).tolist()
        assert experts(x[None]).tolist() == net(x[None]).tolist()


def _sized(x: Tensor, n: Tensor) -> tuple[Tensor, ...]:
    rows = ops.ones((n, 3), ms.float32) * x.sum()
    pair = ops.zeros(ops.stack([n, n - 1]), ms.int32)
    return rows, ops.full((n + 1,), n), pair, ops.zeros(n)


def test_tensors_are_sizes_of_new_tensors() -> None:
    strict = ms.jit(_sized, fullgraph=True)
    x = Tensor([1.0, 2.0])
    for n in (4, 2, 1, 7):  # below 0 they are 0
        found, wanted = strict(x, Tensor(n)), _sized(x, Tensor(n))
        assert [f.tolist() for f in found] == [w.tolist() for w in wanted]
        assert [f.dtype for f in found] == [w.dtype for w in wanted]
    slope = ms.grad(lambda x, n: ops.square(_sized(x, n)[0]).sum())
    assert ms.jit(slope, fullgraph=True)(x, Tensor(4)).tolist() == slope(x, Tensor(4)).tolist()
    assert len(strict.history) == 1
    weight = Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    def computed(n: Tensor) -> Tensor:
        y = ops.relu(ops.ones((n, 3)) @ weight)
        return ops.concat([y, ops.softmax(y, 0)])

    assert ms.jit(computed, fullgraph=True)(Tensor(3)).tolist() == computed(Tensor(3)).tolist()


def test_a_function_that_a_tensor_chose_is_only_called() -> None:
    def asks(x: Tensor) -> Tensor:
        f = _next if x.sum() > 0 else _double
        return f(x) if f is _next else -f(x)

    x = Tensor([1.0])
    assert [ms.jit(asks)(v).item() for v in (x, -x)] == [2, 2]  # by Python, between segments
    with pytest.raises(ms.errors.CaptureError, match="'f' cannot be read here"):
        ms.jit(asks, fullgraph=True)(x)


def _reshaped(x: Tensor, n: Tensor) -> tuple[Tensor, ...]:
    flat = x.reshape(-1)
    pair = ops.stack([n, n - n - 1])
    return (
        flat.reshape((n, -1)), flat.reshape(n, 12 // n), ops.reshape(flat, pair),
        ops.tile(x, (n, 2)), x.tile((n, 1, 1)), ops.broadcast_to(x, (n, -1, 4)),
        x[:, :1].broadcast_to((3, n)), ops.Tile()(x, ops.stack([n, n])),
        ops.topk(x, n)[0], ops.one_hot(x.astype(ms.int32) - 3, n, 1.0, 0.0),
    )  # fmt: skip


def _counted(x: Tensor, n: Tensor) -> tuple[Tensor, ...]:
    y = x * 1
    y[:n, n - 1] = 7
    z = x * 1
    z[n - 1 : n + 1] = z[:1] * 2
    return (
        ops.arange(n), ops.arange(n, 9, n), ops.arange(9, 0, -n), ops.arange(0, n * 0.5, 0.25),
        ops.eye(n), ops.eye(3, n, ms.int32), ops.linspace(0.0, 1.0, n), y, z,
    )  # fmt: skip


def _sliced(x: Tensor, n: Tensor) -> tuple[Tensor, ...]:
    return (
        x[:n], x[n:], x[-n:], x[n - 1 : n + 1, 1:], x[1, :n], x[:n, None, n:], x[: n * 10, ..., -1],
        ops.slice(x, (0, n - 1), (1, -1)), ops.strided_slice(x, (0, 0), (n, 4), (1, 2)),
    )  # fmt: skip


@pytest.mark.parametrize("function", [_reshaped, _counted, _sliced])
def test_tensors_are_sizes_and_bounds(function: Callable[..., tuple[Tensor, ...]]) -> None:
    strict = ms.jit(function, fullgraph=True)
    x = Tensor(np.arange(12.0, dtype=np.float32).reshape(3, 4))
    for n in (2, 1, 3, 4):
        found, wanted = strict(x, Tensor(n)), function(x, Tensor(n))
        for f, w in zip(found, wanted, strict=True):
            assert f.dtype is w.dtype and f.shape == w.shape
            assert np.allclose(f.asnumpy(), w.asnumpy())
    assert len(strict.history) == 1
    if function is not _counted:
        slope = ms.grad(lambda x, n: sum(ops.square(y).sum() for y in function(x, n)))
        found, wanted = ms.jit(slope, fullgraph=True)(x, Tensor(2)), slope(x, Tensor(2))
        assert np.allclose(found.asnumpy(), wanted.asnumpy())


def test_sizes_that_do_not_fit_raise_when_the_graph_runs() -> None:
    x = Tensor(np.arange(12.0, dtype=np.float32).reshape(3, 4))
    for function in (lambda x, s: x.reshape(s), lambda x, s: ops.broadcast_to(x, s)):
        strict = ms.jit(function, fullgraph=True)
        assert strict(x, Tensor([3, 4])).tolist() == x.tolist()
        assert strict(x, Tensor([-1, 4])).tolist() == x.tolist()
        for call in (strict, ms.jit(function), function):  # as Python says it
            with pytest.raises(ms.errors.ShapeError, match="do not"):
                call(x, Tensor([2, 4]))


def test_a_tensor_of_a_tensor_is_a_part_of_the_graph_without_its_gradients() -> None:
    def made(x: Tensor) -> tuple[Tensor, ...]:
        y = Tensor(x)
        y[0] = 9
        return x, y, Tensor(x, ms.int32), ms.tensor(x * 2, dtype=ms.float16)

    x = Tensor([1.5, -2.0])
    for found, wanted in zip(ms.jit(made, fullgraph=True)(x), made(x), strict=True):
        assert (found.dtype, found.tolist()) == (wanted.dtype, wanted.tolist())
    assert ms.jit(ms.grad(lambda x: (Tensor(x) * x).sum()), fullgraph=True)(x).tolist() == [1.5, -2]
