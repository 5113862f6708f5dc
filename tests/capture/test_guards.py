"""What a compiled function read is guarded, read by read; ``ms_function`` guards nothing."""

from __future__ import annotations

import functools
import importlib
import re
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest

import tvmgraph as ms
import tvmgraph.capture.guards
import tvmgraph.capture.sources
from tests.capture import test_contents
from tvmgraph import JitConfig, Parameter, Tensor, jit, nn, ops
from tvmgraph.capture import capture, cell_state
from tvmgraph.capture.cell_state import CellState
from tvmgraph.capture.guards import Guards
from tvmgraph.errors import CaptureError, TvmgraphError
from tvmgraph.jit.entry import Entry
from tvmgraph.jit.function import JitFunction

ONE = Tensor([1.0])


def fresh() -> Any:
    """Returns the programs with nothing changed yet."""
    sys.modules.pop("tests.capture.guarded", None)
    return importlib.import_module("tests.capture.guarded")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", fresh().PROGRAMS)
def test_every_change_outside_is_seen(name: str) -> None:
    function, changes = fresh().PROGRAMS[name]
    compiled = jit(function)
    for change in [lambda: None, *changes]:
        change()
        for _ in range(3):  # the third call is the quick one
            np.testing.assert_allclose(compiled(ONE).asnumpy(), function(ONE).asnumpy())
    assert compiled.compile_count <= len(changes) + 1 and compiled.churned is None


def test_training_mode_is_seen() -> None:
    net = nn.SequentialCell(nn.Dropout(p=0.5))
    x = Tensor(np.ones(64, np.float32))
    for compiled in (jit(net), ms.ms_function(net)):
        net.set_train(False)
        assert (compiled(x).asnumpy() == 1).all()
        net.set_train(True)
        assert (compiled(x).asnumpy() == 0).any()


def test_what_is_not_read_does_not_compile_again() -> None:
    cell = fresh().Net()
    compiled = jit(cell)
    for i in range(4):
        cell.note = f"epoch {i}"
        cell.fresh = i
        cell.history.append(i)
        compiled(ONE)
    assert compiled.compile_count == 1


def test_a_container_that_is_appended_to_is_the_one_of_the_call() -> None:
    class Log(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.log: list[Any] = []

        def construct(self, x: Tensor) -> Tensor:
            self.log.append(x.shape)
            return x

    cell = Log()
    compiled = jit(cell)
    for _ in range(3):
        cell.log = old = []
        compiled(ONE)
        assert cell.log == [(1,)]
        assert old is cell.log


def test_a_container_that_is_read_and_appended_to_is_the_one_of_the_call() -> None:
    class Log(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            self.log.append(1)
            return x * len(self.log)

    cell = Log()
    compiled = jit(cell)
    for _ in range(3):
        cell.log = old = []
        assert compiled(ONE).item() == 1
        assert old == [1]


@pytest.mark.parametrize("level", ("LAX", "STRICT"))
def test_a_memoized_function_is_asked_at_every_call(level: str) -> None:
    made: list[int] = []

    @functools.lru_cache
    def mask(size: int) -> Tensor:
        made.append(size)
        return Tensor(np.full(size, len(made), np.float32))

    compiled = jit(lambda x: x * mask(x.shape[0]), jit_config=JitConfig(jit_syntax_level=level))
    for size, times in ((1, 1), (1, 1), (2, 2), (1, 1)):
        np.testing.assert_array_equal(compiled(Tensor(np.ones(size, np.float32))).asnumpy(), times)
    assert made == [1, 2] and compiled.compile_count == 2 and mask.cache_info().misses == 2
    mask.cache_clear()
    assert compiled(ONE).asnumpy().tolist() == [3] and made == [1, 2, 1]
    assert compiled.compile_count == 3 and "break" not in compiled.explain()


def test_a_memoized_function_that_only_computes_serves_every_size() -> None:
    @functools.lru_cache
    def mask(size: int) -> Tensor:
        return ops.arange(size) + 1

    compiled = jit(lambda x: x * mask(x.shape[0]))
    for size in range(1, 7):
        x = Tensor(np.ones(size, np.float32))
        np.testing.assert_array_equal(compiled(x).asnumpy(), np.arange(size) + 1)
    assert compiled.compile_count == 2


@pytest.mark.parametrize("level", ("LAX", "STRICT"))
def test_a_cached_property_is_computed_once(level: str) -> None:
    class Model(nn.Cell):
        made = 0

        @functools.cached_property
        def mask(self) -> Tensor:
            Model.made += 1
            return ops.ones(1) * Model.made

        def construct(self, x: Tensor) -> Tensor:
            return x * self.mask

    model = Model()
    compiled = jit(model, jit_config=JitConfig(jit_syntax_level=level))
    for _ in range(3):
        assert compiled(ONE).asnumpy().tolist() == [1]
    assert Model.made == compiled.compile_count == 1
    model.mask = ops.ones(1) * 5
    assert compiled(ONE).asnumpy().tolist() == [5] and Model.made == 1
    del model.mask
    assert compiled(ONE).asnumpy().tolist() == model(ONE).asnumpy().tolist() == [2]


def test_items_of_containers_are_appended_to() -> None:
    class Log(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.history = {"loss": [], "more": [[]]}

        def construct(self, x: Tensor) -> Tensor:
            self.history["loss"].append(x.sum())
            self.history["more"][0].append(1)
            return x

    cell = Log()
    compiled = jit(cell)
    for _ in range(6):
        compiled(ONE)
    assert compiled.compile_count == 1
    assert [len(cell.history["loss"]), len(cell.history["more"][0])] == [6, 6]
    for kept in (cell.history, cell.history, {"loss": [], "more": [[]]}):
        cell.history = kept
        kept["loss"], kept["more"][0] = loss, more = [], []
        for _ in range(2):
            compiled(ONE)
        assert [len(loss), len(more)] == [2, 2]


def test_length_after_append_is_current() -> None:
    items: list[int] = []

    @jit
    def f(x: Tensor) -> Tensor:
        items.append(1)
        return x * len(items)

    assert [f(ONE).item() for _ in range(4)] == [1, 2, 3, 4]


# ---- dropping any guard must fail a test ---------------------------------------------------------

_IGNORED = property(lambda self: mock.ANY, lambda self, value: None)
MUTATIONS = {
    "global": ("global", "builtin that becomes a global", "function of the module"),
    "closure": ("closure",),
    "function": ("default",),
    "attribute": ("object", "cell", "member of a module"),
    "class": ("object", "cell"),
    "object": ("object that C code reads",),
    "code": ("function that C code calls",),
    "result": ("variable of the environment",),
    "given": ("object of a library",),
    "value": ("value of a tensor",),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("category", MUTATIONS)
def test_each_category_of_guards_is_needed(category: str, monkeypatch: Any) -> None:
    settle = Guards.settle

    def forgetful(self: Guards) -> None:
        settle(self)
        kept = {k: g for k, g in self._always.items() if k[0] != category}
        self._always.clear()
        self._always.update(kept)

    monkeypatch.setattr(Guards, "settle", forgetful)
    for name in MUTATIONS[category]:
        with pytest.raises(AssertionError):
            test_every_change_outside_is_seen(name)


def test_every_category_of_guards_is_dropped_once() -> None:
    files = tvmgraph.capture.guards.__file__, tvmgraph.capture.sources.__file__
    text = "".join([Path(f).read_text() for f in files])
    kinds = re.findall(r'\(\("([\w ]+)", |key = \("(\w+)", |member\([^)]*, [^)]*, "(\w+)"\)', text)
    found = {kind for group in kinds for kind in group if kind} | {"attribute"}
    elsewhere = {"setting", "item", "memoized"}  # see below
    elsewhere |= {"weak", "class of"}  # see test_changed_outside
    assert found - elsewhere == MUTATIONS.keys()


#: What else is looked at before a call, what makes it forgotten, and tests that fail then.
FORGOTTEN = {
    "the state of cells": (
        Guards, "_cell_change", lambda self, flags_only=False: None,
        lambda: test_every_change_outside_is_seen("cell"), lambda: test_training_mode_is_seen(),
    ),
    "attributes of cells": (
        CellState, "note", lambda self, cell, name: None,
        lambda: test_every_change_outside_is_seen("cell"),
    ),
    "parameters of cells": (
        CellState, "params", _IGNORED, lambda: test_every_change_outside_is_seen("cell"),
    ),
    "cells in cells": (
        CellState, "cells", _IGNORED, lambda: test_a_cell_in_a_cell_is_seen(),
    ),
    "buffers": (CellState, "buffers", _IGNORED, lambda: test_buffers_are_seen()),
    "flags of cells": (
        CellState, "flag_difference", lambda self, cell: None,
        lambda: test_training_mode_is_seen(),
    ),
    "which container it is": (
        Guards, "_pinned", lambda self, identity, same: same,
        lambda: test_a_container_that_is_read_and_appended_to_is_the_one_of_the_call(),
    ),
    "items": (
        Guards, "add_item", lambda self, owner, index, value: None,
        lambda: test_items_of_containers_are_appended_to(),
    ),
    "results of memoized functions": (
        Guards, "add_memoized", lambda self, key, label, read, value: None,
        lambda: test_a_memoized_function_is_asked_at_every_call("LAX"),
    ),
    "changes by native code": (
        Guards, "look_again", lambda self: None,
        lambda: test_contents.test_explain_names_what_is_changed_natively(),
    ),
    "one tensor twice": (
        JitFunction, "_aliases", lambda self, leaves: None,
        lambda: test_a_tensor_passed_twice_stays_one(),
        lambda: test_a_parameter_that_is_passed_and_written(),
        lambda: test_it_is_asked_whether_two_tensors_are_one(),
    ),
    "one container twice": (
        Entry, "aliasing", lambda self, given: None,
        lambda: test_contents.test_a_list_that_is_passed_twice(),
    ),
    "types of captured tensors": (
        Entry, "_argument_failure", lambda self, config: None,
        lambda: test_a_captured_tensor_of_another_type_is_seen(),
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", FORGOTTEN)
def test_everything_else_that_is_looked_at_is_needed(what: str, monkeypatch: Any) -> None:
    owner, name, forgetful, *tests = FORGOTTEN[what]
    monkeypatch.setattr(owner, name, forgetful, raising=False)
    for test in tests:
        with pytest.raises((AssertionError, TvmgraphError)):
            test()


def test_a_cell_in_a_cell_is_seen() -> None:
    class Chain(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            for cell in self.cells():
                x = cell(x)
            return x

    net = Chain()
    compiled = jit(net)
    for layer in (nn.ReLU(), nn.Tanh(), nn.Sigmoid()):
        net.layer = layer
        for _ in range(2):
            np.testing.assert_allclose(compiled(ONE).asnumpy(), layer(ONE).asnumpy(), rtol=1e-5)


def test_a_captured_tensor_of_another_type_is_seen() -> None:
    p = Parameter(Tensor([1.0, 2.0]), name="p")
    compiled = jit(lambda x: x * p)
    for size in (2, 3, 1):
        p.set_data(Tensor(np.arange(size, dtype=np.float32)), slice_shape=True)
        for _ in range(2):
            assert compiled(ONE).shape == (size,)


# ---- guards that are switched off ----------------------------------------------------------------


class Func:
    def __init__(self) -> None:
        self.value = 5

    @ms.ms_function
    def old(self) -> int:
        return self.value + 1

    @jit
    def new(self) -> int:
        return self.value + 1

    @jit(attr_guard=False)
    def fixed(self) -> int:
        return self.value + 1


def test_ms_function_compiles_once_and_says_so_once() -> None:
    func = Func()
    assert (func.old(), func.new(), func.fixed()) == (6, 6, 6)
    func.value = 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            assert (func.old(), func.new(), func.fixed()) == (6, 2, 6)
    texts = [str(w.message) for w in caught]
    assert len(texts) == 2
    assert "Func.value changed: 5 -> 1" in texts[0]
    assert "test_guards.py:" in texts[0]
    assert "ms_function" in texts[0]
    assert "Use jit" in texts[0]
    assert func.old.compile_count == func.fixed.compile_count == 1


def test_ms_function_reads_weights_and_compiles_per_kind() -> None:
    cell = fresh().Net()
    f = ms.ms_function(cell)
    before = f(ONE).item()
    cell.weight.set_data(Tensor([4.0]))
    assert f(ONE).item() == 2 * before
    assert f(Tensor([[1.0], [1.0]])).shape == (2, 1)
    assert f.compile_count == 2


# ---- writes to globals ---------------------------------------------------------------------------

COUNTER = 0


@pytest.fixture(autouse=True)
def counter() -> Any:
    globals()["COUNTER"] = 0
    ms.set_context(global_writes="warn")
    yield
    ms.set_context(global_writes="")


def count(x: Tensor) -> Tensor:
    global COUNTER
    COUNTER = COUNTER + 1
    return x * COUNTER


def test_global_writes_are_replayed_on_demand() -> None:
    f = jit(count, global_writes="replay")
    assert [f(ONE).item() for _ in range(4)] == [1, 2, 3, 4]
    assert COUNTER == 4


def test_global_writes_are_refused_on_demand() -> None:
    with pytest.raises(CaptureError, match=r"writing the global 'COUNTER'.*not supported"):
        jit(count, global_writes="error")(ONE)
    ms.set_context(global_writes="error")
    with pytest.raises(CaptureError, match="COUNTER"):
        jit(count)(ONE)
    assert COUNTER == 0


def test_a_setting_that_was_read_is_looked_at(monkeypatch: Any) -> None:
    ms.set_context(global_writes="replay")
    f = jit(count)
    f(ONE)
    ms.set_context(global_writes="error")
    with pytest.raises(CaptureError, match="COUNTER"):
        f(ONE)
    monkeypatch.setattr(Guards, "add_setting", lambda self, name: None)
    ms.set_context(global_writes="replay")
    f = jit(count)
    for _ in range(2):
        f(ONE)
    ms.set_context(global_writes="error")
    f(ONE)  # without the guard nobody sees it


def test_global_writes_warn_and_do_not_leak() -> None:
    f = jit(count)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [f(ONE).item() for _ in range(3)] == [1, 1, 1]
    assert COUNTER == 0
    assert all("COUNTER" in str(w.message) for w in caught)


def test_the_context_decides_where_jit_does_not() -> None:
    f = jit(count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f(ONE)
    assert COUNTER == 0
    ms.set_context(global_writes="replay")
    assert [f(ONE).item(), f(ONE).item(), COUNTER] == [1, 2, 2]


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="global_writes cannot be 'maybe'"):
        jit(count, global_writes="maybe")
    with pytest.raises(ValueError, match="attr_guard cannot be 1"):
        jit(count, attr_guard=1)
    with pytest.raises(ValueError, match="global_writes must be one of"):
        ms.set_context(global_writes="no")


# ---- one tensor that comes in several ways -------------------------------------------------------


def test_a_tensor_passed_twice_stays_one() -> None:
    @jit
    def f(x: Tensor, y: Tensor) -> Tensor:
        x[0] = 5
        return y + 0

    for _ in range(3):
        a, b = Tensor([1.0]), Tensor([3.0])
        assert f(a, b).item() == 3
        assert a.item() == 5
        c = Tensor([1.0])
        assert f(c, c).item() == 5
    assert f.compile_count == 2


def test_a_view_that_is_passed_with_its_tensor_stays_a_view() -> None:
    def written(x: Tensor, row: Tensor) -> Tensor:
        row[1] = 9
        return x.sum()

    def read(x: Tensor, row: Tensor) -> Tensor:
        x[0, 1] = 9
        row += 1
        return row.sum() + x.sum()

    for fn in (written, read):
        f = jit(fn)
        for apart in (False, True, False, True):
            x, y = (Tensor(np.arange(6, dtype=np.float32).reshape(2, 3)) for _ in range(2))
            row, its = (Tensor([1.0, 2.0, 3.0]), Tensor([1.0, 2.0, 3.0])) if apart else (x[0], y[0])
            assert f(x, row).item() == fn(y, its).item()
            np.testing.assert_array_equal(x.asnumpy(), y.asnumpy())
            np.testing.assert_array_equal(row.asnumpy(), its.asnumpy())
        assert f.compile_count == 2


def test_a_parameter_that_is_passed_and_written() -> None:
    p = Parameter(Tensor([1.0]), name="p")

    @jit
    def f(x: Tensor) -> Tensor:
        ops.assign(p, p + 1)
        return x * 1

    for i in range(3):
        assert f(p).item() == i + 2
        p.set_data(Tensor([float(i + 2)]))
        assert f(Tensor([9.0])).item() == 9
        p.set_data(Tensor([float(i + 2)]))


def test_gradients_of_parameters_that_are_passed() -> None:
    p, q = (Parameter(Tensor([v]), name=f"p{v}") for v in (2.0, 3.0))

    @jit(jit_config=JitConfig(jit_syntax_level="STRICT"))
    def f(weights: tuple[Parameter, ...], x: Tensor) -> tuple[Tensor, ...]:
        found = ms.grad(lambda x: p * p * q * x, None, weights)(x)
        ops.assign(p, p + 1)
        return found

    for value in (2.0, 3.0):
        assert f((p, q), ONE)[0].item() == 2 * value * 3
    assert f((q,), ONE)[0].item() == 16
    assert (f.compile_count, len(f.history)) == (2, 2)  # none of what is found to be of no use


def test_it_is_asked_whether_two_tensors_are_one() -> None:
    f = jit(lambda x, y: (x is y, x + y))
    for _ in range(3):
        assert f(ONE, Tensor([1.0]))[0] is False
        assert f(ONE, ONE)[0] is True
    assert f.compile_count == 2


def test_reading_twice_is_one_compile() -> None:
    @jit
    def f(x: Tensor, y: Tensor) -> Tensor:
        return x + y

    a = Tensor([1.0])
    assert [f(a, a).item(), f(a, ONE).item(), f(a, a).item()] == [2, 2, 2]
    assert f.compile_count <= 2


def test_the_captured_reads_are_few() -> None:
    found = capture(lambda x: ops.exp(x) * COUNTER, (ONE,), {}).guards
    assert {k[-1] for k in found._always if k[0] == "global"} == {"ops", "COUNTER"}


def test_code_without_source_below_layers_of_the_package():
    space = {"scale": 2.0}
    exec("def native(x): return x * scale", space)

    class Inner(nn.Cell):
        def construct(self, x):
            return space["native"](x)

    compiled = jit(nn.SequentialCell(nn.ReLU(), Inner(), nn.ReLU()))
    x = Tensor(np.ones(3, np.float32))
    assert compiled(x).asnumpy().tolist() == [2.0] * 3
    space["scale"] = 5.0
    assert compiled(x).asnumpy().tolist() == [5.0] * 3


def test_a_capture_gives_the_profiler_its_place_back():
    seen = []
    sys.setprofile(lambda frame, event, _: seen.append(event))
    profiler = sys.getprofile()
    try:
        jit(nn.SequentialCell(nn.ReLU())).graph(Tensor(np.ones(3, np.float32)))
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(None)
    assert "call" in seen


def test_layers_need_no_condition_of_their_own() -> None:
    def conditions(layers: int) -> int:
        net = nn.SequentialCell(*[nn.SequentialCell(nn.Dense(2, 2)) for _ in range(layers)])
        x = Tensor(np.ones((1, 2), np.float32))
        return len(list(capture(net, (x,), {}).guards.conditions(repr)))

    assert conditions(1) == conditions(9)


def test_buffers_are_seen() -> None:
    class Masked(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            for buffer in self.buffers():
                x = x + buffer
            return x

    net = Masked()
    compiled = jit(net)
    for count in range(3):
        for _ in range(3):
            assert compiled(ONE).asnumpy().tolist() == [1.0 + count]
        net.register_buffer(f"b{count}", Tensor([1.0]))  # a buffer of its own


def test_a_cell_that_gets_the_id_of_another_is_seen(monkeypatch: Any) -> None:
    net = nn.SequentialCell(nn.ReLU())
    compiled = jit(net)
    monkeypatch.setattr(cell_state, "id", lambda value: 7, raising=False)
    for layer in (nn.ReLU(), nn.Tanh(), nn.Sigmoid()):
        net[0] = layer
        np.testing.assert_allclose(compiled(ONE).asnumpy(), layer(ONE).asnumpy(), rtol=1e-6)


class _Scaled(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.scale = Tensor([2.0, 3.0])

    def construct(self, x: Tensor) -> Tensor:
        return x * self.scale


@pytest.mark.parametrize("make", [_Scaled, lambda: nn.OneHot(depth=2)], ids=["own", "library"])
def test_what_a_cell_made_at_every_call_holds_is_no_condition(make):
    x = Tensor([1, 0])

    @jit
    def f(x):
        return make()(x)

    with ms.assert_max_compiles(1):
        for _ in range(3):
            assert f(x).asnumpy().tolist() == make()(x).asnumpy().tolist()


class Pair(NamedTuple):
    first: Tensor
    second: Tensor


def test_explain_names_what_the_user_wrote_of_a_named_tuple() -> None:
    double = ms.jit(lambda x: Pair(x * 2, x))
    assert double(Tensor([1.0])).first.item() == 2.0
    assert "'Pair'" in double.explain() and "_tuple_new" not in double.explain()


@pytest.mark.parametrize("fullgraph", [False, True])
def test_attributes_of_a_class_of_cells_are_written_and_become_symbols(fullgraph: bool) -> None:
    class Counting(nn.Cell):
        calls = 0
        last: Any = None

        def construct(self, x: Tensor) -> Tensor:
            Counting.calls += 1
            type(self).last = x.sum()
            return x * Counting.calls

    f = jit(Counting(), fullgraph=fullgraph)
    for i in range(1, 5):
        assert f(Tensor([1.0, i])).tolist() == [i, i * i]
        assert (Counting.calls, Counting.last.item()) == (i, 1 + i)
    assert f.compile_count == 2
    Counting.calls = 9
    assert f(Tensor([1.0, 2.0])).tolist() == [10, 20]
    assert f.compile_count == 2


def _returned(cell: Any, old: Tensor) -> object:
    return old


def _returned_inside(cell: Any, old: Tensor) -> object:
    return {"old": [old], "n": 1}


def _stored(cell: Any, old: Tensor) -> object:
    cell.previous = old
    return cell.previous * 1


def _appended(cell: Any, old: Tensor) -> object:
    cell.log.append(old)
    return len(cell.log)


def _printed(cell: Any, old: Tensor) -> object:
    print(old)
    return None


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("leave", [_returned, _returned_inside, _stored, _appended, _printed])
def test_the_tensor_that_an_attribute_held_before_it_was_replaced_leaves_the_call(
    leave: Any, fullgraph: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    class State(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.now = Tensor([0.0])
            self.previous: Any = None
            self.log: list[Tensor] = []

        def construct(self, x: Tensor) -> Any:
            old = self.now
            self.now = old + x
            return leave(self, old)

    shown: list[object] = []
    for make in (lambda cell: cell, lambda cell: jit(cell, fullgraph=fullgraph)):
        cell = State()
        f = make(cell)
        results = [str(f(Tensor([1.0 + i]))) for i in range(5)]
        shown += [(results, str(cell.previous), str(cell.log), capsys.readouterr().out)]
    assert shown[0] == shown[1]
