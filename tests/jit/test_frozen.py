"""Frozen graphs: weights are prepared once per version, and every change of a weight is seen."""

import gc
import threading

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, jit, nn, ops
from tvmgraph.backend.cpu.kernels.gemm.plan import panel_columns
from tvmgraph.backend.loop_ir.gemm_shape import GemmShape
from tvmgraph.config.options import CompileOptions
from tvmgraph.core import storage
from tvmgraph.jit.frozen import FrozenExecutable
from tvmgraph.machine.processor import cpu_model
from tvmgraph.machine.targets import HOST, target_names
from tvmgraph.ops.internal.matmul_panels import to_panels
from tvmgraph.passes.freeze import freeze


class Block(nn.Cell):
    """A convolution with a batch norm, then a wide product."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.flatten = nn.Flatten()
        self.dense = nn.Dense(8 * 25, 70)

    def construct(self, x):
        return self.dense(self.flatten(ops.relu(self.norm(self.conv(x)))))


def fill(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def block():
    net = Block().set_train(False)
    for i, p in enumerate(net.get_parameters()):
        value = fill(*p.shape, seed=i) * 0.3
        p.set_data(Tensor(np.abs(value) + 0.5 if "variance" in p.name else value))
    return net


def executable(function):
    (entries,) = function.entries.values()
    return entries[0].compiled.executable


def check(function, net, x):
    np.testing.assert_allclose(function(x).asnumpy(), net(x).asnumpy(), rtol=2e-4, atol=2e-4)


X = Tensor(fill(6, 3, 5, 5, seed=99))


def test_what_parameters_decide_leaves_the_graph():
    net = block()
    frozen = freeze(jit(net).graph(X))
    names = [node.op.name for node in frozen.main.nodes]
    assert "matmul_panels" in names
    assert "rsqrt" not in names
    assert "mul" not in names  # the scale went into the weights
    arrays = [p.value.type for p in frozen.main.params]
    assert len(arrays) == len(frozen.kept) + len(frozen.prepared)


def prepared(net, x, cpu):
    """The nodes that run for a processor, by name, and the shapes of what is prepared for it."""
    found = freeze(jit(net.set_train(False)).graph(x), CompileOptions(target=cpu))
    nodes = () if found is None else found.main.nodes
    shapes = [] if found is None else [v.type.static_shape for v in found.prepared]
    return [node.op.name for node in nodes], shapes


@pytest.mark.parametrize("cpu", target_names("llvm"))
def test_layouts_are_those_of_the_processor(cpu):
    model = cpu_model(cpu, 1)
    x = Tensor(fill(64, 512))
    for columns in (16, 32, 64, 512):
        names, shapes = prepared(nn.Dense(512, columns), x, cpu)
        assert ("matmul_panels" in names) == (columns >= 4 * model.lanes)
        width = panel_columns(GemmShape(64, columns, 512, 1, 4, 2048), model)
        assert not names or shapes == [(-(-columns // width), 512, width)]
    image, alone = Tensor(fill(1, 64, 14, 14)), nn.Conv2d(64, 32, 1)
    assert ("conv_nchwc" in prepared(alone, image, cpu)[0]) == (model.lanes > 14)
    # four times the transformed weights are read as fast as fewer products take
    _, shapes = prepared(nn.Conv2d(256, 256, 3), Tensor(fill(1, 256, 14, 14)), cpu)
    assert (shapes[-1][0] == 36) == (model.flops_per_cycle < 64)


@pytest.mark.parametrize(
    "rows, size, packed", [(0, 300, False), (1, 96, False), (1, 300, True), (2, 96, True)]
)
def test_few_rows_read_panels_where_the_matrix_is_read_often_or_large(rows, size, packed):
    net = nn.Dense(size, size)
    net.set_train(False)
    x = Tensor(fill(rows, size, seed=3))
    frozen = freeze(jit(net).graph(x))
    nodes = () if frozen is None else frozen.main.nodes
    assert any(node.op.name == "matmul_panels" for node in nodes) == packed
    check(jit(net), net, x)


def test_frozen_agrees_with_eager_and_prepares_once():
    net = block()
    function = jit(net)
    for _ in range(5):
        check(function, net, X)
    assert isinstance(executable(function), FrozenExecutable)
    assert executable(function).versions == 1


@pytest.mark.parametrize(
    "name", ["conv.weight", "norm.gamma", "norm.moving_variance", "dense.weight"]
)
@pytest.mark.parametrize("how", ["set_data", "assign", "item", "assign_value"])
def test_every_write_is_seen(name, how):
    net = block()
    function = jit(net)
    check(function, net, X)
    before = function(X).asnumpy().copy()
    parameter = next(p for p in net.get_parameters() if p.name == name)
    if how == "set_data":
        parameter.set_data(parameter * 1.5 + 0.25)
    elif how == "assign":
        ops.assign_add(parameter, ops.ones_like(parameter))
    elif how == "item":
        parameter[0] = 2.5
    else:
        parameter.assign_value(Tensor(fill(*parameter.shape, seed=7) ** 2 + 1))
    assert np.abs(function(X).asnumpy() - before).max() > 1e-3
    check(function, net, X)


@pytest.mark.parametrize("when", ["before", "after"])
def test_writes_through_numpy_are_seen(when):
    net = block()
    function = jit(net)
    weight = net.dense.weight
    if when == "before":
        array = weight.asnumpy()
    function(X)
    if when == "after":
        array = weight.asnumpy()
    array[:] = 1.0
    check(function, net, X)
    array[:] = -2.0
    check(function, net, X)
    assert isinstance(executable(function), FrozenExecutable)


def test_memory_shared_with_an_array_of_the_user():
    array = storage.aligned_copy(fill(80, 64))
    weight = Parameter(Tensor.from_numpy(array), name="w")
    function = jit(lambda x: ops.matmul(x, weight))
    x = Tensor(fill(8, 80, seed=3))
    function(x)
    array *= 2.0
    np.testing.assert_allclose(
        function(x).asnumpy(), ops.matmul(x, weight).asnumpy(), rtol=1e-4, atol=1e-4
    )


def test_training_mode_and_back():
    net = block()
    function = jit(net)
    check(function, net, X)
    net.set_train()
    trained = function(X)
    assert trained.shape == (6, 70)
    net.set_train(False)
    check(function, net, X)


def test_gradients_of_a_frozen_function():
    net = block()
    function = jit(net)
    function(X)
    weights = tuple(net.trainable_params())
    got = ms.grad(lambda x: function(x).sum(), None, weights)(X)
    want = ms.grad(lambda x: net(x).sum(), None, weights)(X)
    for a, b in zip(got, want):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=2e-3, atol=2e-3)


def test_weights_that_change_all_the_time_are_not_prepared():
    net = block()
    function = jit(net)
    for step in range(12):
        net.dense.weight.set_data(Tensor(fill(70, 200, seed=step)))
        check(function, net, X)
    assert executable(function).versions < 8


def test_lower_levels_keep_the_graph_as_it_is():
    net = block()
    function = jit(net, jit_level="O1")
    check(function, net, X)
    assert not isinstance(executable(function), FrozenExecutable)


@pytest.mark.parametrize(("k", "n", "width"), [(3, 5, 4), (1, 4, 4), (7, 64, 16), (2, 3, 16)])
def test_panels_hold_every_column_once(k, n, width):
    weight = fill(k, n)
    panels = to_panels(weight, width)
    assert panels.shape == (-(-n // width), k, width)
    np.testing.assert_array_equal(panels.transpose(1, 0, 2).reshape(k, -1)[:, :n], weight)
    assert not panels.transpose(1, 0, 2).reshape(k, -1)[:, n:].any()


@pytest.mark.parametrize("m", [1, 5, 13, 64, 100])
@pytest.mark.parametrize(("k", "n"), [(1, 64), (37, 65), (256, 190), (300, 129)])
def test_odd_products(m, k, n):
    x, w = fill(m, k), fill(k, n, seed=1)
    weight = Parameter(Tensor(w), name="w")
    got = jit(lambda x: ops.relu(ops.matmul(x, weight)))(Tensor(x)).asnumpy()
    want = np.maximum(x.astype(np.float64) @ w, 0)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


def test_lent_arrays_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch):
    array = np.zeros(3)
    storage.lend(array)
    assert storage.is_lent(array)
    count = storage.lendings
    storage.lend(array)
    assert storage.lendings == count
    ref = storage._lent[id(array)]
    del array
    gc.collect()
    monkeypatch.setattr(storage, "_crowded", 0)
    others = [np.zeros(3) for _ in range(2)]
    for other in others:
        storage.lend(other)
    assert ref not in storage._lent.values()
    assert all(map(storage.is_lent, others))


class Narrow(nn.Cell):
    """A layer with weights of two bytes, or of one with sums in int32."""

    def __init__(self, dtype, depth, columns):
        super().__init__()
        values = np.random.default_rng(0).integers(-9, 10, (columns, depth)) / 8
        values = values * 8 if dtype is ms.int8 else values
        self.weight = Parameter(Tensor(values.astype(np.float32)).astype(dtype), name="weight")

    def construct(self, x):
        if x.dtype == ms.int8:
            return ops.matmul(x.astype(ms.int32), self.weight.astype(ms.int32).T)
        return ops.relu(ops.matmul(x, self.weight.T))


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.int8])
@pytest.mark.parametrize("rows, depth, columns", [(33, 77, 130), (7, 50, 64)])
def test_narrow_weights_are_panels(dtype, rows, depth, columns):
    net = Narrow(dtype, depth, columns)
    net.set_train(False)
    x = Tensor(np.random.default_rng(1).integers(-9, 10, (rows, depth)).astype(np.float32))
    x, function = x.astype(dtype), jit(net)
    model, frozen = cpu_model(HOST), freeze(function.graph(x))
    if dtype is ms.float16 or dtype.name in model.dot_types | model.tile_types:
        names = [node.op.name for node in frozen.main.nodes]
        assert "matmul_panels" in names and "matmul_integer" not in names
    else:  # the kernel reads rows as they are
        assert frozen is None
    for factor in (1, 2):  # the second time with panels of new weights
        net.weight.set_data(net.weight * factor)
        got, want = (y.asnumpy().astype("float64") for y in (function(x), net(x)))
        np.testing.assert_allclose(got, want, rtol=1e-2)


def compiled_meanwhile(monkeypatch, meanwhile):
    """Where weights were prepared, with something done while the graph is compiled."""
    from tvmgraph import compiler
    from tvmgraph.passes.freeze import Frozen

    threads, compute, compile_graph = [], Frozen.prepare, compiler.compile_graph
    here = threading.current_thread()

    def prepare(frozen, arrays):
        threads.append(threading.current_thread() is here)
        return compute(frozen, arrays)

    def compile_slowly(*args, **kwargs):
        meanwhile()
        return compile_graph(*args, **kwargs)

    monkeypatch.setattr(Frozen, "prepare", prepare)
    monkeypatch.setattr(compiler, "compile_graph", compile_slowly)
    return threads


def test_weights_are_prepared_while_the_graph_is_compiled(monkeypatch):
    threads = compiled_meanwhile(monkeypatch, lambda: None)
    net = block()
    function = jit(net)
    check(function, net, X)
    check(function, net, X)
    assert threads == [False]  # once, by another thread


def test_weights_that_change_during_the_compile_are_prepared_again(monkeypatch):
    net = block()
    changes = [lambda: net.dense.weight.set_data(Tensor(fill(*net.dense.weight.shape, seed=7)))]
    threads = compiled_meanwhile(monkeypatch, lambda: changes and changes.pop()())
    check(jit(net), net, X)
    assert threads == [False, True]
