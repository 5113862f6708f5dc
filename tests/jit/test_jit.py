"""``jit``: caching, guards, effects, errors, differentiation, threads."""

from __future__ import annotations

import copy
import pickle
import threading
from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import JitConfig, Parameter, Tensor, jit, nn, ops
from tvmgraph.errors import ArgumentError, CaptureError, ConfigError, DTypeError, ShapeError

SCALE = 2.0
SETTINGS = SimpleNamespace(shift=1.0)
TABLE = {"k": [1.0, 2.0]}


@pytest.fixture(autouse=True)
def clean_context() -> Iterator[None]:
    yield
    ms.reset_context()


def ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


def first(t: Tensor) -> float:
    return float(t.asnumpy().ravel()[0])


class Affine(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(np.ones(3, np.float32), name="w")
        self.k = 2.0

    def construct(self, x: Tensor) -> Tensor:
        return x * self.w * self.k


# ---- caching ------------------------------------------------------------------------------------


def test_same_kind_of_call_compiles_once() -> None:
    f = jit(lambda x: x * 2 + 1)
    for i in range(4):
        assert first(f(Tensor(np.full(3, i, np.float32)))) == 2 * i + 1
    assert f.compile_count == 1, f.explain()
    f(ones(4))
    f(Tensor(np.ones(4, np.float64)))
    assert f.compile_count == 3
    assert "compiled 3 time(s)" in f.explain()


def test_python_arguments_are_part_of_the_key() -> None:
    f = jit(lambda x, n, mode="add": x + n if mode == "add" else x * n)
    assert first(f(ones(2), 3)) == 4
    assert first(f(ones(2), 4)) == 5
    assert first(f(ones(2), 4, mode="mul")) == 4
    assert first(f(ones(2), True)) == 2
    assert first(f(ones(2), 3)) == 4
    assert f.compile_count == 4


def test_nested_containers_of_tensors() -> None:
    @jit
    def f(pair: tuple[Tensor, list[Tensor]], extra: dict[str, Tensor]) -> dict[str, object]:
        a, (b, c) = pair
        return {"sum": a + b + c, "rest": [extra["z"], (a, None, "text", 3)]}

    one, two, three, four = (Tensor(np.full(2, v, np.float32)) for v in (1, 2, 3, 4))
    r = f((one, [two, three]), {"z": four})
    assert first(r["sum"]) == 6
    assert r["rest"][0] is four
    assert r["rest"][1][0] is one
    assert r["rest"][1][1:] == (None, "text", 3)


def test_equal_graphs_share_one_executable() -> None:
    f, g = jit(lambda x: ops.tanh(x) * 3), jit(lambda y: ops.tanh(y) * 3)
    x = ones(5, 7)
    f(x), g(x)
    assert f.history[0].compile_seconds > 0
    assert g.history[0].compile_seconds == 0


def test_returned_constants_are_fresh() -> None:
    f = jit(lambda x: (x, ops.ones((2,), ms.float32)))
    a = f(ones(1))[1]
    a.asnumpy()[:] = 7
    assert first(f(ones(1))[1]) == 1


# ---- guards: nothing stale ----------------------------------------------------------------------


def test_weights_are_read_at_every_call() -> None:
    net = Affine()
    f = jit(net)
    assert first(f(ones(3))) == 2
    net.w.set_data(Tensor(np.full(3, 5, np.float32)))
    assert first(f(ones(3))) == 10
    net.w[0] = 7
    assert first(f(ones(3))) == 14
    net.w = Tensor(np.full(3, 3, np.float32))
    assert first(f(ones(3))) == 6
    assert f.compile_count == 1
    net.w = Parameter(np.full(3, 4, np.float32), name="w2")
    assert first(f(ones(3))) == 8
    assert f.compile_count == 2


def test_changed_attribute_recompiles() -> None:
    net = Affine()
    f = jit(net)
    assert first(f(ones(3))) == 2
    net.k = 5.0
    assert first(f(ones(3))) == 5
    assert "Affine.k changed" in f.explain()
    net.other = 1  # an attribute nobody read before changes nothing
    f(ones(3))
    assert f.compile_count == 2


def test_changed_global_closure_object_and_container(monkeypatch: pytest.MonkeyPatch) -> None:
    factor = 1.0

    @jit
    def f(x: Tensor) -> Tensor:
        return x * SCALE * factor + SETTINGS.shift + TABLE["k"][1]

    assert first(f(ones(2))) == 5
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert first(f(ones(2))) == 6
    factor = 10.0
    assert first(f(ones(2))) == 33
    monkeypatch.setattr(SETTINGS, "shift", 2.0)
    assert first(f(ones(2))) == 34
    monkeypatch.setitem(TABLE, "k", [1.0, 0.0])
    assert first(f(ones(2))) == 32


def test_class_attribute_and_list_attribute() -> None:
    class Net(nn.Cell):
        gain = 2.0

        def __init__(self) -> None:
            super().__init__()
            self.sizes = [1.0]

        def construct(self, x: Tensor) -> Tensor:
            return x * self.gain * sum(self.sizes)

    net = Net()
    f = jit(net)
    assert first(f(ones(2))) == 2
    Net.gain = 3.0
    assert first(f(ones(2))) == 3
    net.sizes.append(4.0)
    assert first(f(ones(2))) == 15


def test_numpy_argument_and_global_are_seen_when_changed() -> None:
    data = np.ones(2, np.float32)
    f = jit(lambda x: x + Tensor(data))
    assert first(f(ones(2))) == 2
    data[:] = 5
    assert first(f(ones(2))) == 6


def test_train_flag_recompiles() -> None:
    net = nn.Dropout(p=0.5)
    f = jit(net)
    x = ones(1000)
    assert np.array_equal(f(x).asnumpy(), x.asnumpy())
    net.set_train()
    assert 0.3 < float(np.mean(f(x).asnumpy() == 0)) < 0.7
    net.set_train(False)
    assert np.array_equal(f(x).asnumpy(), x.asnumpy())


def test_replaced_sub_cell_is_seen() -> None:
    net = nn.SequentialCell(nn.ReLU())
    f = jit(net)
    assert first(f(Tensor([-1.0]))) == 0
    net[0] = nn.Tanh()
    np.testing.assert_allclose(first(f(Tensor([-1.0]))), np.tanh(-1), rtol=1e-6)


# ---- effects ------------------------------------------------------------------------------------


def test_parameter_writes_are_outputs() -> None:
    class Counter(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.total = Parameter(np.zeros(2, np.float32), name="total")

        def construct(self, x: Tensor) -> Tensor:
            ops.assign(self.total, self.total + x)
            return self.total * 10

    net = Counter()
    f = jit(net)
    values = [first(f(ones(2))) for _ in range(3)]
    assert values == [10, 20, 30]
    assert first(net.total) == 3
    assert f.compile_count == 1


def test_tensor_attribute_written_by_construct() -> None:
    class Memory(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.h = Tensor(np.zeros(2, np.float32))

        @jit
        def construct(self, x: Tensor) -> Tensor:
            self.h = self.h + x
            return self.h * 1

    net = Memory()
    assert [first(net(ones(2))) for _ in range(4)] == [1, 2, 3, 4]
    assert first(net.h) == 4
    assert net.construct.compile_count == 1


def test_python_counter_attribute() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.n = 0

        @jit
        def construct(self, x: Tensor) -> Tensor:
            self.n = self.n + 1
            return x * self.n

    net = Net()
    assert [first(net(ones(2))) for _ in range(3)] == [1, 2, 3]
    assert net.n == 3


def test_in_place_change_of_an_argument() -> None:
    @jit
    def f(x: Tensor) -> Tensor:
        x[0] = 9
        return x * 2

    def g(x: Tensor) -> Tensor:
        x[0] = 9
        return x * 2

    a, b = ones(3), ones(3)
    np.testing.assert_array_equal(f(a).asnumpy(), g(b).asnumpy())
    np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())
    a = ones(3)
    f(a)
    assert a.asnumpy().tolist() == [9, 1, 1]


def test_random_operators_draw_the_eager_stream() -> None:
    def draw(x: Tensor) -> tuple[Tensor, Tensor]:
        return ops.rand(3, 4) + x, ops.dropout(x, p=0.5, training=True)

    x, f = ones(3, 4), jit(draw)
    ms.set_seed(11)
    eager = [t.asnumpy() for _ in range(3) for t in draw(x)]
    ms.set_seed(11)
    compiled = [t.asnumpy() for _ in range(3) for t in f(x)]
    for e, c in zip(eager, compiled):
        np.testing.assert_array_equal(e, c)
    assert f.compile_count == 1


# ---- errors -------------------------------------------------------------------------------------


def test_tracing_a_tensor_dependent_if_is_an_error_with_the_line() -> None:
    def f(x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(CaptureError, match=r"(?s)Python `if`.*test_jit\.py:\d+.*fix:"):
        jit(f, capture_mode="trace")(ones(2))
    assert (jit(f)(ones(2) * -2).asnumpy() == 2).all()


@pytest.mark.parametrize(
    "body",
    [
        lambda x: x.asnumpy(), lambda x: np.sin(x), lambda x: x.tolist(),
        lambda x: [i for i in range(x)], lambda x: 1.0 in x, lambda x: f"{x}", lambda x: object(),
    ],
)  # fmt: skip
def test_what_cannot_be_captured(body: object) -> None:
    with pytest.raises(CaptureError) as info:
        jit(body, fullgraph=True)(ones(1))
    assert "at:  test_jit.py" in str(info.value)
    assert "fix:" in str(info.value)


def test_error_text_is_the_eager_one() -> None:
    def f(a: Tensor, b: Tensor) -> Tensor:
        return ops.matmul(a, b)

    texts = []
    for g in (f, jit(f)):
        with pytest.raises(ShapeError) as info:
            g(ones(2, 3), ones(5, 4))
        texts.append(str(info.value))
    assert texts[0] == texts[1]


def test_error_names_the_function_that_was_called() -> None:
    x, far = ones(2, 3), Tensor([9])
    with pytest.raises(IndexError, match=r"^ops\.gather: index 9 is out of range"):
        ops.gather(x, far, 0)
    with pytest.raises(ShapeError, match=r"^ops\.matmul: inner"):
        ops.matmul(x, x)


def test_refused_constants_name_their_line() -> None:
    with pytest.raises(IndexError, match=r"index 5 is out of range(.|\n)*test_jit\.py"):
        jit(lambda x: ops.gather(ops.arange(3), Tensor([5]), 0) + x)(ones(1))


def test_refused_constants_of_a_branch_do_not_matter_where_it_is_not_taken() -> None:
    def f(x: Tensor) -> Tensor:
        if x.sum() > 100:
            return x + ops.gather(ops.arange(3), Tensor([5]), 0)
        return x * 2

    assert np.array_equal(jit(f)(ones(1)).asnumpy(), f(ones(1)).asnumpy())


def test_a_call_that_raised_leaves_the_function_usable() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.h = 0

        @jit
        def construct(self, x: Tensor) -> Tensor:
            self.h = x * 2
            if x.shape[0] == 3:
                raise ValueError("three")
            return self.h + 1

    net = Net()
    with pytest.raises(ValueError, match="three"):
        net(ones(3))
    assert first(net.h) == 2  # as in plain Python, the write before the exception happened
    assert first(net(ones(2))) == 3
    with pytest.raises(ValueError, match="three"):
        net(ones(3))
    assert first(net(ones(2))) == 3


def test_wrong_arguments() -> None:
    net = Affine()
    for call in (net, jit(net)):
        with pytest.raises(DTypeError, match="x"):
            call()
        with pytest.raises(DTypeError, match=r"construct|Affine"):
            call(ones(3), ones(3))


def test_compatible_syntax_may_run_parts_in_python() -> None:
    assert JitConfig(jit_syntax_level="COMPATIBLE").jit_syntax_level == "LAX"


def test_bad_options_list_the_valid_ones() -> None:
    with pytest.raises(ConfigError, match="O0, O1, O2, O3"):
        JitConfig(jit_level="O7")
    with pytest.raises(ConfigError, match="jit_level, exec_mode"):
        JitConfig(jit_lvl="O1")
    with pytest.raises(ConfigError, match="auto, sink, no_sink"):
        JitConfig(exec_mode="fast")
    with pytest.raises(ArgumentError, match="PSJit"):
        jit(lambda x: x, mode="bogus")
    with pytest.raises(ArgumentError, match="unknown option"):
        jit(lambda x: x, jit_levl="O1")
    with pytest.raises(ConfigError, match="GRAPH_MODE"):
        ms.set_context(mode=2)
    with pytest.raises(ConfigError, match="unknown key"):
        ms.set_context(moed=1)
    with pytest.raises(DTypeError):
        jit(3)


def test_operator_without_lowering_names_the_line() -> None:
    with pytest.raises((CaptureError, ms.errors.CompileError), match=r"test_jit\.py:\d+"):
        jit(lambda x: ops.matrix_exp(x), jit_config=ms.JitConfig(jit_syntax_level="STRICT"))(
            ones(2, 2)
        )


# ---- levels -------------------------------------------------------------------------------------


def test_levels_change_the_number_of_kernels() -> None:
    def f(x: Tensor) -> Tensor:
        return ops.tanh(x * 2 + 1) - x

    x = ones(8, 8)
    counts = {}
    for level in ("O0", "O1", "O2", "O3"):
        g = jit(f, jit_level=level)
        np.testing.assert_allclose(g(x).asnumpy(), f(x).asnumpy(), rtol=1e-5)
        counts[level] = len(g.kernels())
    assert counts == {"O0": 4, "O1": 1, "O2": 1, "O3": 1}


def test_no_sink_runs_node_by_node() -> None:
    f = jit(lambda x: ops.tanh(x) + x, jit_config=JitConfig(exec_mode="no_sink"))
    np.testing.assert_allclose(first(f(ones(2))), np.tanh(1) + 1, rtol=1e-6)


def test_precedence_of_configurations() -> None:
    net = Affine()
    x = ones(3)
    ms.set_context(jit_config=JitConfig(jit_level="O0"))
    f = jit(net)
    f(x)
    assert len(f.kernels()) == 2
    net.set_jit_config(JitConfig(jit_level="O1"))
    f(x)
    assert len(f.kernels()) == 1
    g = jit(net, jit_level="O0")
    g(x)
    assert len(g.kernels()) == 2
    ms.set_context(enable_graph_kernel=True)
    g(x)
    assert len(g.kernels()) == 1


def test_graph_mode_compiles_whole_cells() -> None:
    net = nn.SequentialCell(Affine(), nn.ReLU())
    ms.set_context(mode=ms.GRAPH_MODE)
    assert first(net(ones(3))) == 2
    net[0].k = -1.0
    assert first(net(ones(3))) == 0
    assert net._graph_mode.compile_count == 2


# ---- differentiation ----------------------------------------------------------------------------


def test_gradient_of_compiled_is_gradient_of_eager() -> None:
    w = Parameter(np.arange(6, dtype=np.float32).reshape(3, 2), name="w")

    def loss(x: Tensor) -> Tensor:
        return (ops.tanh(ops.matmul(x, w)) ** 2).sum()

    x = Tensor(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
    eager = ms.value_and_grad(loss, 0, [w])(x)
    f = jit(loss)
    compiled = ms.value_and_grad(f, 0, [w])(x)
    whole = jit(lambda x: ms.value_and_grad(loss, 0, [w])(x))(x)
    for other in (compiled, whole):
        np.testing.assert_allclose(other[0].asnumpy(), eager[0].asnumpy(), rtol=1e-5)
        np.testing.assert_allclose(other[1][0].asnumpy(), eager[1][0].asnumpy(), rtol=1e-4)
        np.testing.assert_allclose(other[1][1][0].asnumpy(), eager[1][1][0].asnumpy(), rtol=1e-4)


def test_second_derivative_through_jit() -> None:
    f = jit(lambda x: x * x * x)
    second = ms.grad(ms.grad(f))
    np.testing.assert_allclose(first(second(Tensor([2.0]))), 12.0, rtol=1e-5)


def test_same_tensor_at_two_positions() -> None:
    dx, dy = ms.grad(lambda x, y: x * x * y, (0, 1))(*[Tensor([3.0])] * 2)
    assert (first(dx), first(dy)) == (18, 9)


# ---- surroundings -------------------------------------------------------------------------------


def test_threads_get_right_answers() -> None:
    f = jit(lambda x: ops.tanh(x) * 2 + 1)
    wrong: list[str] = []

    def work(i: int) -> None:
        for k in range(50):
            x = np.full((4, 1 + (i + k) % 3), i + k, np.float32)
            if not np.allclose(f(Tensor(x)).asnumpy(), np.tanh(x) * 2 + 1, rtol=1e-5):
                wrong.append(f"{i}/{k}")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert f.compile_count <= 3


def test_cells_with_compiled_construct_copy_and_pickle() -> None:
    net = nn.Dense(3, 2)
    f = jit(net)
    f(ones(1, 3))
    twin = copy.deepcopy(net)
    again = pickle.loads(pickle.dumps(net))
    for other in (twin, again):
        np.testing.assert_allclose(
            other(ones(1, 3)).asnumpy(), net(ones(1, 3)).asnumpy(), rtol=1e-6
        )
        other.weight.set_data(other.weight * 0)
    assert np.any(net.weight.asnumpy() != 0)


def test_unaligned_and_strided_inputs() -> None:
    base = np.arange(41, dtype=np.float32)
    f = jit(lambda x: x * 2)
    for view in (base[1:40], base[::2], base[::-1]):
        np.testing.assert_array_equal(f(Tensor.from_numpy(view)).asnumpy(), view * 2)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 4), ()])
def test_empty_and_0d(shape: tuple[int, ...]) -> None:
    x = Tensor(np.ones(shape, np.float32))
    f = jit(lambda x: ops.tanh(x) + x * 2)
    np.testing.assert_allclose(f(x).asnumpy(), np.tanh(x.asnumpy()) + x.asnumpy() * 2, rtol=1e-6)


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.float64, ms.int32, ms.bool_])
def test_dtypes_cross_the_border(dtype: ms.dtype.DType) -> None:
    x = Tensor(np.array([[0, 1, 2]]), dtype)
    r = jit(lambda x: (x == x, ops.concat((x, x), 0)))(x)
    assert r[1].dtype == dtype
    np.testing.assert_array_equal(
        r[1].asnumpy().astype(np.float64), np.concatenate([x.asnumpy()] * 2).astype(np.float64)
    )
    assert r[0].asnumpy().all()


def test_gradient_does_not_depend_on_where_the_storage_lies() -> None:
    """Compiled code moves unaligned storage; the tape must still know the tensor."""
    base = np.arange(33, dtype=np.float32)
    f = jit(lambda a, b: (a * b).sum())
    for offset in (0, 1, 3):
        x = Tensor.from_numpy(base[offset : offset + 9].reshape(3, 3))
        w = Parameter(np.ones((3, 3), np.float32), name="w")
        w.set_data(Tensor.from_numpy(base[offset + 10 : offset + 19].reshape(3, 3)))
        dx, dw = ms.grad(lambda a, w=w: f(a * 1, w), 0, [w])(x)
        np.testing.assert_array_equal(dx.asnumpy(), w.asnumpy())
        np.testing.assert_array_equal(dw[0].asnumpy(), x.asnumpy())


def test_capture_under_a_profiler() -> None:
    import cProfile

    profiler = cProfile.Profile()
    f = jit(lambda x: x * SCALE)
    assert first(profiler.runcall(f, ones(2))) == SCALE
    assert first(f(ones(2))) == SCALE
    profiler.create_stats()
    assert profiler.stats  # pyright: ignore[reportAttributeAccessIssue]


def test_host_reads_of_an_outer_tensor_are_guarded() -> None:
    gain = Tensor([2.0])
    for read in (float, lambda t: t.item(), lambda t: t.tolist()[0], lambda t: t.asnumpy()[0]):
        f = jit(lambda x, read=read: x * float(read(gain)))
        gain[0] = 2.0
        assert first(f(ones(2))) == 2
        gain[0] = 4.0
        assert first(f(ones(2))) == 4
        gain.asnumpy()[0] = 5.0
        assert first(f(ones(2))) == 5


class Slotted:
    __slots__ = ("a",)


def test_sets_queues_and_slots_are_guarded() -> None:
    numbers, queue, holder = {1.0}, deque([1.0]), Slotted()
    holder.a = 1.0
    f = jit(lambda x: x + len(numbers) + queue[0] + holder.a)
    assert first(f(ones(2))) == 4
    numbers.add(2.0)
    assert first(f(ones(2))) == 5
    queue[0] = 10.0
    assert first(f(ones(2))) == 14
    holder.a = 100.0
    assert first(f(ones(2))) == 113


def helper(x: Tensor, by: float = 1.0) -> Tensor:
    return x * by


def test_changed_function_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    f = jit(lambda x: helper(x))
    assert first(f(ones(2))) == 1
    monkeypatch.setattr(helper, "__defaults__", (5.0,))
    assert first(f(ones(2))) == 5


def test_class_method() -> None:
    class Holder:
        k = 2.0

        @classmethod
        @jit
        def scale(cls, x: Tensor) -> Tensor:
            return x * cls.k

    assert first(Holder.scale(ones(2))) == 2
    Holder.k = 3.0
    assert first(Holder.scale(ones(2))) == 3


@jit
def doubled(x: Tensor) -> Tensor:
    return x * 2


class HoldsJit(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(np.ones(1, np.float32), name="w")
        self.f = jit(self.h)

    def h(self, x: Tensor) -> Tensor:
        return x * self.w

    def construct(self, x: Tensor) -> Tensor:
        return self.f(x)


def test_copies_of_compiled_functions_belong_to_the_copied_cell() -> None:
    net = HoldsJit()
    assert first(net(ones(2))) == 1
    twin, wrapped = copy.deepcopy(net), copy.deepcopy(jit(Affine()))
    twin.w.set_data(Tensor(np.full(1, 100, np.float32)))
    assert first(twin(ones(2))) == 100
    assert first(net(ones(2))) == 1
    assert first(wrapped(ones(3))) == 2


def test_compiled_functions_pickle() -> None:
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    f = pickle.loads(pickle.dumps(jit(Affine())))
    assert first(f(ones(3))) == 2


def test_parameter_tuple_is_registered() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.pair = ms.ParameterTuple(Parameter(Tensor([v]), name=f"t{v}") for v in (1.0, 2.0))

        def construct(self, x: Tensor) -> Tensor:
            return x * self.pair[0] * self.pair[1]

    net = Net()
    assert [p.name for p in net.get_parameters()] == ["t1.0", "t2.0"]
    f = jit(net)
    assert first(f(ones(1))) == 2
    net.pair[0].set_data(Tensor([5.0]))
    assert first(f(ones(1))) == 10


def test_compiled_floats_are_not_real_numbers() -> None:
    """Rounding, NaN and infinities survive compilation: no algebra on floats."""
    values = np.array([1.0, np.nan, np.inf, -3.0], np.float32)
    x = Tensor(values)
    cases = [
        lambda x: x * 0.0, lambda x: ops.exp(x) * 0.0, lambda x: (x + 1e8) - 1e8,
        lambda x: (x + x * 3) - x * 3, lambda x: (x + 1.0) - x, lambda x: x / (x * 0.0),
        lambda x: x * x - x * x, lambda x: ops.logical_not(x < 1.0),
        lambda x: (x * 0.0).sum(),
    ]  # fmt: skip
    for level in ("O0", "O2"):
        for i, f in enumerate(cases):
            actual = jit(f, jit_level=level)(x).asnumpy()
            np.testing.assert_array_equal(actual, f(x).asnumpy(), err_msg=f"case {i} at {level}")


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x @ x.T, lambda x: ops.matmul(x * 2, (x * 2).T),
        lambda x: ops.softmax(x @ x.T) @ x, lambda x: ops.relu(x @ x.T) @ x,
    ],
)  # fmt: skip
def test_products_with_the_own_transpose(f: object) -> None:
    x = Tensor(np.random.default_rng(0).random((3, 4)).astype(np.float32))
    np.testing.assert_allclose(jit(f)(x).asnumpy(), f(x).asnumpy(), rtol=1e-5)
    g = ms.grad(lambda x: f(x).sum())
    np.testing.assert_allclose(jit(g)(x).asnumpy(), g(x).asnumpy(), rtol=1e-4, atol=1e-5)


def test_padding_after_a_product() -> None:
    rng = np.random.default_rng(0)
    w, x = (Tensor(rng.random((3, 3)).astype(np.float32)) for _ in range(2))
    f = lambda x: ((w @ x[:, :2]) ** 2).sum()  # noqa: E731
    for g in (ms.grad(f), lambda x: ops.pad(w @ x, (0, 1)), lambda x: ops.pad(w @ x, (2, 1, 1, 3))):
        np.testing.assert_allclose(jit(g)(x).asnumpy(), g(x).asnumpy(), rtol=1e-5)


def test_options_that_contradict_each_other() -> None:
    def f(x: Tensor) -> Tensor:
        return x

    here = "test_jit.py"
    with pytest.raises(ArgumentError, match=r"jit_level='O0' contradicts jit_config") as level:
        ms.jit(f, jit_level="O0", jit_config=ms.JitConfig(jit_level="O2"))
    assert here in str(level.value)
    ms.jit(f, jit_level="O0", jit_config=ms.JitConfig(exec_mode="no_sink"))  # it names no level
    ms.jit(f, jit_level="O2", jit_config=ms.JitConfig(jit_level="O2"))
    with pytest.raises(ArgumentError, match="mode='PIJit' contradicts capture_mode='ast'"):
        ms.jit(f, mode="PIJit", capture_mode="ast")
    with pytest.raises(ArgumentError, match="mode='PSJit' contradicts capture_mode='trace'"):
        ms.jit(f, mode="PSJit", capture_mode="trace")
    with pytest.raises(ArgumentError, match="unknown option 'debug_level'"):
        ms.jit(f, debug_level=9)
    for value in (9, 0):
        with pytest.raises(ConfigError, match="debug_level must be a string, not int"):
            ms.JitConfig(debug_level=value)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="jit_level cannot be 'O4'") as unknown:
        ms.jit(f, jit_level="O4")
    assert here in str(unknown.value)
    with pytest.raises(DTypeError, match="not the class Plain") as plain:
        ms.jit(type("Plain", (), {}))
    assert here in str(plain.value)


def test_settings_that_are_given_stay_so() -> None:
    config = ms.JitConfig(exec_mode="no_sink").replace(debug_level="DEBUG")
    assert config.given == {"exec_mode", "debug_level"}
    assert config.replace(jit_level="O0").jit_level == "O0"
    assert config == ms.JitConfig(exec_mode="no_sink", debug_level="DEBUG")


def test_a_cell_whose_construct_is_its_own_compiled_form() -> None:
    class Net(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            if x.ndim == 2:
                raise ValueError("a row is needed")
            return x * 2

    net = Net()
    net.construct = jit(net)
    assert net(Tensor([1.0])).asnumpy().tolist() == [2.0]
    assert len(net.construct.history) == 1  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ValueError, match="a row is needed"):
        net(Tensor([[1.0]]))


def test_calls_nest_as_deeply_as_the_context_says() -> None:
    def deep(x: Tensor, n: int) -> Tensor:
        return x if n == 0 else deep(x, n - 1) + 1

    ms.set_context(max_call_depth=5)
    try:
        assert ms.jit(lambda x: deep(x, 3), fullgraph=True)(Tensor([0.0])).asnumpy() == [3]
        with pytest.raises(CaptureError, match="recursion deeper than 5 calls"):
            ms.jit(lambda x: deep(x, 7), fullgraph=True)(Tensor([0.0]))
    finally:
        ms.reset_context()
