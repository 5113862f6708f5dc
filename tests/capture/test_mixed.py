"""Compiled pieces in eager code: what may be compiled, gradients through both, falling back."""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import functools
import gc
import inspect
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, jit, nn, ops
from tvmgraph.errors import CaptureError

X = Tensor([1.0, 2.0])


class Add(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        x = x + x
        x = x + x
        return x


class Mul(nn.Cell):
    @jit
    def construct(self, x: Tensor) -> Tensor:
        x = x * x
        x = x * x
        return x


class Chain(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.add, self.mul = Add(), Mul()

    def construct(self, x: Tensor) -> Tensor:
        return self.add(self.mul(self.add(x)))


def test_the_tutorial_gives_1024_and_4096() -> None:
    x = Tensor(np.ones((3, 3), np.float32))
    net = Chain()
    assert (net(x).asnumpy() == 1024).all()
    for gradient in (ms.grad(net), ms.GradOperation()(net), jit(ms.grad(net)), ms.grad(jit(net))):
        for _ in range(2):
            assert (gradient(x).asnumpy() == 4096).all()
    assert net.mul.construct.compile_count == 1


def test_graph_mode_of_whole_nets() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.dense = nn.Dense(2, 2)
            self.k = 3

        def construct(self, x: Tensor, mask: Any = None, *, scale: float = 1.0) -> Any:
            if mask is not None:
                x = x * mask
            return {"y": self.dense(x) * scale, "nothing": None, "k": self.k}

    net, x = Net(), Tensor([[1.0, 2.0]])
    plain = [net(x), net(x, x), net(x, mask=x, scale=2.0)]
    gradient = ms.grad(lambda v: net(v)["y"].sum())(x)
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        compiled = [net(x), net(x, x), net(x, scale=2.0, mask=x)]
        np.testing.assert_allclose(
            ms.grad(lambda v: net(v)["y"].sum())(x).asnumpy(), gradient.asnumpy(), rtol=1e-5
        )
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    for a, b in zip(plain, compiled, strict=True):
        assert list(a) == list(b)
        assert (b["nothing"], b["k"]) == (None, 3)
        np.testing.assert_allclose(a["y"].asnumpy(), b["y"].asnumpy(), rtol=1e-5)


class Holder:
    k = 3

    def __init__(self) -> None:
        self.own = 2

    @staticmethod
    @jit
    def static(x: Tensor) -> Tensor:
        return x * 2

    @classmethod
    @jit
    def shared(cls, x: Tensor) -> Tensor:
        return x * cls.k

    @jit
    def method(self, x: Tensor) -> Tensor:
        return x * self.own * self.k

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.own if x.sum() > 0 else x


class Slots:
    __slots__ = ("k",)

    @jit
    def method(self, x: Tensor) -> Tensor:
        return x * self.k


def test_kinds_of_callables() -> None:
    holder, slots = Holder(), Slots()
    slots.k = 2
    with ms.assert_max_compiles(7):
        for _ in range(3):
            assert Holder.static(X).tolist() == [2, 4]
            assert Holder.shared(X).tolist() == holder.shared(X).tolist() == [3, 6]
            assert holder.method(X).tolist() == [6, 12]
            assert slots.method(X).tolist() == [2, 4]
    partial = jit(functools.partial(lambda x, k: x * k, k=5))
    assert partial(X).tolist() == [5, 10]
    assert jit(holder)(X).tolist() == [2, 4]


def test_inherited_construct_and_decorators_on_top() -> None:
    class Base(nn.Cell):
        @jit
        def construct(self, x: Tensor) -> Tensor:
            return self.f(x)

        def f(self, x: Tensor) -> Tensor:
            return x + 1

    class Derived(Base):
        def f(self, x: Tensor) -> Tensor:
            return super().f(x) * 2

    def plus(f: Any) -> Any:
        @functools.wraps(f)
        def wrapped(*args: Any) -> Any:
            return f(*args) + 1

        return wrapped

    assert Derived()(X).tolist() == [4, 6]
    assert Base()(X).tolist() == [2, 3]
    assert plus(jit(lambda x: x * 2))(X).tolist() == [3, 5]
    assert jit(plus(lambda x: x * 2))(X).tolist() == [3, 5]


@dataclasses.dataclass
class Data:
    a: Tensor
    k: float


class Mode(enum.Enum):
    SUM = 1
    PRODUCT = 2


Pair = collections.namedtuple("Pair", "a b")


def test_arguments_and_results_of_many_classes() -> None:
    @jit
    def by_mode(p: Pair, mode: Mode) -> Pair:
        return Pair(p.a + p.b, 1) if mode is Mode.SUM else Pair(p.a * p.b, None)

    result = by_mode(Pair(X, X), Mode.SUM)
    assert isinstance(result, Pair)
    assert (result.a.tolist(), result.b) == ([2, 4], 1)
    assert by_mode(Pair(X, X), Mode.PRODUCT).b is None

    scaled = jit(lambda d: Data(d.a * d.k, d.k))
    data = Data(X, 2.0)
    assert scaled(data).a.tolist() == [2, 4]
    data.k = 3.0
    assert scaled(data) is not scaled(data)
    assert scaled(data).a.tolist() == [3, 6]


def test_a_data_class_from_outside_is_returned_itself() -> None:
    """What was given, or read, comes back: not a copy of what it held while compiling."""

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.kept = Data(X, 1.0)

        def construct(self, x: Tensor, given: Data) -> Any:
            given.k += 1
            given.a = x * given.k
            return x * self.kept.k, given, [self.kept]

    net, given = Net(), Data(X, 0.0)
    f = jit(net)
    for i in range(4):
        y, same, (kept,) = f(X, given)
        assert same is given and kept is net.kept
        assert (given.k, given.a.tolist(), y.tolist()) == (
            i + 1,
            [i + 1, 2 * i + 2],
            [i + 1, 2 * i + 2],
        )
        net.kept.k += 1

    @jit
    def dicts(x: Tensor) -> Any:
        found = collections.defaultdict(list)
        found["x"].append(x * 2)
        return found, collections.OrderedDict(b=x, a=1)

    grouped, ordered = dicts(X)
    assert grouped["x"][0].tolist() == [2, 4]
    assert grouped["new"] == []
    assert list(ordered) == ["b", "a"]

    @jit
    def keywords(x: Tensor, *, a: Any = None, b: Any = None) -> Any:
        return None if a is None else a - b

    assert keywords(X) is None
    assert keywords(X, a=X, b=X * 2).tolist() == keywords(X, b=X * 2, a=X).tolist() == [-1, -2]


def test_gradients_through_nested_pieces_both_ways() -> None:
    inner = jit(lambda x, w: ops.tanh(x * w))

    def outer(x: Tensor, w: Tensor) -> Tensor:
        return (inner(x, w) ** 2).sum() * 2

    expected = ms.grad(lambda x, w: (ops.tanh(x * w) ** 2).sum() * 2, (0, 1))(X, X)
    for f in (ms.grad(outer, (0, 1)), jit(ms.grad(outer, (0, 1))), ms.grad(jit(outer), (0, 1))):
        for a, b in zip(f(X, X), expected, strict=True):
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-3)


def test_methods_of_cells_copy_with_their_cell() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = Parameter(Tensor([2.0, 2.0]), name="w")

        @jit
        def helper(self, x: Tensor) -> Tensor:
            return x * self.w

        def construct(self, x: Tensor) -> Tensor:
            return self.helper(x) + 1

    net = Net()
    assert net(X).tolist() == [3, 5]
    twin = copy.deepcopy(net)
    twin.w.set_data(Tensor([0.0, 0.0]))
    assert (twin(X).tolist(), net(X).tolist()) == ([1, 1], [3, 5])
    assert ms.grad(lambda x: net(x).sum(), None, net.trainable_params())(X)[0].tolist() == [1, 2]


def test_cells_among_arguments_are_not_kept_alive() -> None:
    call = jit(lambda net, x: net(x))
    net = Add()
    for _ in range(3):
        call(net, X)
    ref = weakref.ref(net)
    del net
    gc.collect()
    assert ref() is None
    assert call(Add(), X).tolist() == [4, 8]


def test_a_module_is_not_kept_alive_by_the_objects_that_its_functions_were_called_with() -> None:
    names: dict[str, Any] = {"nn": nn, "jit": jit}
    exec(OBJECTS, names)
    call, objects = names["call"], [names["net"], names["box"]]
    for _ in range(3):
        assert call(*objects, X).tolist() == [6, 12]
    gone = [weakref.ref(o) for o in (*objects, names["Net"], names["Box"], call)]
    del names, call, objects
    keeping = getattr(inspect, "_shadowed_dict_from_mro_tuple", None)  # of getattr_static, 3.12.1
    if keeping is not None:
        keeping.cache_clear()
    gc.collect()
    assert not [r for r in gone if r() is not None]


OBJECTS = """
class Net(nn.Cell):
    def construct(self, x):
        return x * 3

class Box:
    factor = 2

net, box = Net(), Box()

@jit(capture_mode="bytecode")
def call(net, box, x):
    return net(x) * box.factor
"""


def test_code_that_raises_does_what_it_does_in_python() -> None:
    seen: list[int] = []

    @jit
    def f(x: Tensor, n: int) -> Tensor:
        seen.append(n)
        if n > 1:
            raise ValueError(n)
        return x * n

    with pytest.raises(ValueError, match="2"):
        f(X, 2)
    assert seen == [2]
    assert f(X, 1).tolist() == [1, 2]
    assert seen == [2, 1]


# ---- PIJit ---------------------------------------------------------------------------------------


class Broken(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Add(), nn.Dense(2, 2)
        self.seen: list[float] = []

    def construct(self, x: Tensor) -> Tensor:
        x = self.first(x)
        try:
            largest = float(x.asnumpy().max())
            self.seen.append(largest)
        finally:
            x = x + 1
        return self.second(x) * largest


def test_what_cannot_be_one_graph_runs_between_compiled_cells() -> None:
    plain, net = Broken(), Broken()
    ms.load_param_into_net(net, plain.parameters_dict())
    x = Tensor([[1.0, 2.0]])
    with pytest.raises(CaptureError, match="`try` is not supported"):
        jit(net, fullgraph=True)(x)
    run = jit(net, mode="PIJit")
    for _ in range(3):
        np.testing.assert_allclose(run(x).asnumpy(), plain(x).asnumpy(), rtol=1e-5)
    assert net.seen == plain.seen
    text = run.explain()
    assert "graph break: construct: `try`" in text
    assert text.count("operator(s)") == 3  # the first Cell, x + 1, the second Cell
    a, b = (ms.grad(lambda v, f=f: f(v).sum())(x).asnumpy() for f in (run, plain))
    np.testing.assert_allclose(a, b, rtol=1e-5)


def test_bytecode_mode_compiles_what_it_can() -> None:
    whole = jit(lambda x: x * 2 if x.sum() > 0 else x, capture_mode="bytecode")
    assert whole(X).tolist() == [2, 4]
    assert whole.compile_count == 1
    value = jit(lambda x: x * int(x.sum()), capture_mode="bytecode")
    assert [value(X).tolist(), value(X + 1).tolist()] == [[3, 6], [10, 15]]
    with pytest.raises(CaptureError, match="tolist"):
        jit(lambda x: x * x.tolist()[0], mode="PIJit", fullgraph=True)(X)


def test_modes_are_checked() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="mode cannot be 'Other'"):
            jit(mode="Other")


@pytest.mark.parametrize("mode", ["ast", "bytecode"])
def test_attributes_of_tensors_are_kept(mode: str) -> None:
    """What compiled code sets on an argument or a result is there after the call."""

    @jit(capture_mode=mode)
    def f(x: Any) -> Any:
        x.tag = "given"
        y = x + 1
        y.tag = "made"
        return y

    x: Any = Tensor([1.0])
    y = f(x)
    assert (x.tag, y.tag) == ("given", "made")
