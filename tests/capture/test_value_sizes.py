"""Sizes that only the values decide are symbols of a graph: one capture serves every size."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnxruntime
import pytest

import tvmgraph as ms
from tvmgraph import JitConfig, Tensor, jit, nn, ops
from tvmgraph.errors import CaptureError, TvmgraphError

STRICT = JitConfig(jit_syntax_level="STRICT")
_MODES = {"LAX": "PSJit", "PIJit": "PIJit"}
Function = Callable[[Tensor], Any]
#: Some elements, others, none, all.
INPUTS = [np.random.RandomState(i).randn(3, 4).astype(np.float32) for i in (0, 1)]
INPUTS += [np.zeros((3, 4), np.float32), np.abs(INPUTS[0]) + 1]


def _store(x: Tensor) -> Any:
    x = x * 1
    x[x > 0] = x[x > 0] * 3
    x[ops.nonzero(x < 0, as_tuple=True)] += 1
    return x


def _branch(x: Tensor) -> Any:
    y = x[x > 0]
    if y.shape[0] == 0:
        return x.sum()
    return y.sum() / y.shape[0]


def _loop(x: Tensor) -> Any:
    while x.sum() < 20:
        x = ops.abs(x) + x[x > 0].sum() + 1
    return x


def _unrolled(x: Tensor) -> Any:
    total = x.sum()
    for i in range(3):
        total = total + x[x > i * 0.3].sum()
    return total


def _rows(x: Tensor) -> Any:
    at = ops.nonzero(x[:, 0] > 0)[:, 0]
    return x[at].mean(0), ops.matmul(x[at], ops.ones((4, 5))) + 1, x[x[:, 0] > 0, 1], x[at].T


def _numbers(x: Tensor) -> Any:
    y = x[x > 0]
    return y.shape[0] * 2, y.size, len(y), y.shape[0] > 3, y.mean()


FUNCTIONS: dict[str, Function] = {
    "nonzero": ops.nonzero,
    "nonzero_tuple": lambda x: ops.nonzero(x, as_tuple=True),
    "argwhere": lambda x: ops.argwhere(x > 0) + 1,
    "masked_select": lambda x: ops.masked_select(x, x > 0.5),
    "mask": lambda x: ops.exp(x[x > 0]) * 2,
    "equal_masks": lambda x: (x[x > 0] - ops.tanh(x[x > 0]), ops.stack([x[x > 0], x[x > 0]])),
    "two_sizes": lambda x: ops.concat([x[x > 0], x[x <= 0]]),
    "store": _store,
    "unique": lambda x: (*ops.unique((x * 2).astype(ms.int32)), ops.unique(x[x > 0])[0].sum()),
    "unique_consecutive": lambda x: ops.unique_consecutive(x.astype(ms.int32), True, True),
    "bincount": lambda x: ops.bincount(ops.abs(x).astype(ms.int32).reshape(-1), minlength=3),
    "repeat": lambda x: ops.repeat_interleave(x, ops.abs(x[:, 0] * 2).astype(ms.int32), 0),
    "slices": lambda x: (x[x > 0][:2], x[x > 0][-3:-1], x[x > 0][::-1], x[x > 0][5:0:-2]),
    "sorted": lambda x: (*ops.sort(x[x > 0]), ops.cumsum(x[x > 0], 0)),
    "made": lambda x: ops.zeros(x[x > 0].shape, ms.float32) + x[x > 0],
    "branch": _branch, "loop": _loop, "unrolled": _unrolled, "rows": _rows, "numbers": _numbers,
}  # fmt: skip
GRADIENTS: dict[str, Function] = {
    "mask": lambda x: (x[x > 0] ** 2).sum(),
    "mean": lambda x: ops.masked_select(x, x > 0.1).mean() * ops.exp(x).sum(),
    "repeat": lambda x: ops.repeat_interleave(x * x, ops.abs(x[:, 0]).astype(ms.int32), 0).sum(),
    "store": lambda x: (_store(x) ** 2).sum(),
    "rows": lambda x: (ops.matmul(x[x[:, 0] > 0], ops.ones((4, 3))) ** 2).sum(),
    "branch": _branch,
    "sorted": lambda x: (ops.sort(x[x > 0])[0] * ops.cumsum(x[x > 0], 0)).sum(),
    "slice": lambda x: (x[x > 0][:3] ** 2).sum(),
    "unique": lambda x: (ops.unique(x[x > 0])[0] ** 2).sum(),
    "runs": lambda x: (ops.unique_consecutive(x, dim=0)[-1] * x[0]).sum(),
    "top": lambda x: ops.topk(ops.cat((x[x > 0], x[0])), 2)[0].sum(),
}


def _set_last(x: Tensor) -> Any:
    y = x[x > 0] * 1
    y[-1] = 5
    return y


#: What is possible, or another result, from some number of elements on; calls check that.
ENOUGH: dict[str, Function] = {
    "max": lambda x: max(x[x > 0]),
    "min": lambda x: (min(x[x > 0]), x[x > 0].max(), ops.logsumexp(x[x > 0], 0)),
    "last": lambda x: x[x > 0][-1],
    "second": lambda x: x[x > 0][1] * x[x > 0][-2],
    "row": lambda x: (x[x[:, 0] > 0][-1], x[x[:, 0] > 0][0, -1]),
    "largest": lambda x: x.sum() / max(x[x > 0].shape[0], 3),
    "smallest": lambda x: (x[x > 0][: min(x[x > 0].shape[0], 3)], abs(x[x > 0].shape[0] - 5)),
    "padded": lambda x: ops.concat([x[x > 0], ops.zeros(max(9, x[x > 0].shape[0]))]),
    "to_ten": lambda x: ops.concat([x[x > 0], ops.zeros(10 - x[x > 0].shape[0])]),
    "builtins": lambda x: (any(x[x > 0] > 1), all(x[x > 0] > 0.3), sum(x[x > 0])),
    "fraction": lambda x: (x * (x[x > 0].shape[0] / 2), float(len(x[x > 0]))),
    "set_last": _set_last,
}


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):
        for v in value:
            yield from _flat(v)
    else:
        yield value


def _same(found: Any, wanted: Any) -> None:
    for f, w in zip(_flat(found), _flat(wanted), strict=True):
        assert type(f) is type(w)
        if isinstance(w, Tensor):
            assert f.aval is w.aval
            np.testing.assert_allclose(f.asnumpy(), w.asnumpy(), 1e-5, 1e-5)
        else:
            assert f == w


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_graph_serves_every_size(name: str) -> None:
    run = jit(FUNCTIONS[name], jit_config=STRICT)
    for a in INPUTS:
        _same(run(Tensor(a)), FUNCTIONS[name](Tensor(a)))
    assert len(run.history) == 1


@pytest.mark.parametrize("name", GRADIENTS)
def test_derivatives(name: str) -> None:
    inside = jit(ms.grad(GRADIENTS[name]), jit_config=STRICT)
    outside = jit(GRADIENTS[name], jit_config=STRICT)
    for a in INPUTS:
        wanted = ms.grad(GRADIENTS[name])(Tensor(a))
        _same(inside(Tensor(a)), wanted)
        _same(ms.grad(outside)(Tensor(a)), wanted)
    assert len(inside.history) == len(outside.history) == 1


def _result(run: Function, x: Tensor) -> Any:
    try:
        return run(x)
    except (TvmgraphError, ValueError) as e:
        return [type(e).__name__, *str(e).split("\n  at:")[:1]]


@pytest.mark.parametrize("mode", ["STRICT", "LAX", "PIJit"])
@pytest.mark.parametrize("name", ENOUGH)
def test_too_few_elements_are_as_in_plain_python(name: str, mode: str) -> None:
    f = ENOUGH[name]
    run = jit(f, jit_config=STRICT) if mode == "STRICT" else jit(f, mode=_MODES[mode])
    for a in (*INPUTS, -INPUTS[3]):
        wanted = _result(f, Tensor(a))
        _same(_result(run, Tensor(a)), wanted)
    assert len(run.history) == 1
    assert "in pieces" not in run.explain()


@pytest.mark.parametrize("name", ["max", "second", "largest", "to_ten", "set_last"])
def test_derivatives_where_there_are_enough_elements(name: str) -> None:
    def total(x: Tensor) -> Any:
        return ENOUGH[name](x).sum()

    runs = [jit(ms.grad(total), jit_config=STRICT), ms.grad(jit(total, jit_config=STRICT))]
    for a in (*INPUTS[:2], -INPUTS[3]):
        wanted = _result(ms.grad(total), Tensor(a))
        for run in runs:
            _same(_result(run, Tensor(a)), wanted)


def test_too_few_elements_leave_parameters_and_random_numbers_alone() -> None:
    weight = ms.Parameter(Tensor([1.0, 2.0]), name="w")

    def f(x: Tensor) -> Any:
        weight.set_data(weight * 2)
        noise = ops.rand(2)
        return x[x > 0].max() * noise, weight + 0

    found = []
    for run in (f, jit(f, jit_config=STRICT)):
        ms.set_seed(3)
        weight.set_data(Tensor([1.0, 2.0]))
        found.append([_result(run, Tensor(a)) for a in INPUTS] + [weight + 0])
    _same(found[1], found[0])


def test_levels_agree() -> None:
    for level in ("O0", "O1", "O3"):
        config = JitConfig(jit_syntax_level="STRICT", jit_level=level)
        for name in ("rows", "unrolled", "store"):
            run = jit(FUNCTIONS[name], jit_config=config)
            for a in INPUTS[1:3]:
                _same(run(Tensor(a)), FUNCTIONS[name](Tensor(a)))


def test_sizes_of_arguments_and_of_values_together() -> None:
    def f(x: Tensor) -> Any:
        y = x[x[:, 0] > 0]
        return y * 2, y.sum(0), y.shape, x[x > 1].sum() + x.shape[0]

    run = jit(f, dynamic=1, jit_config=STRICT)
    for rows in (3, 7, 12):
        x = Tensor(np.random.RandomState(rows).randn(rows, 4).astype(np.float32))
        _same(run(x), f(x))
    assert len(run.history) == 1


@pytest.mark.parametrize("mode", ["PSJit", "PIJit"])
def test_no_mode_has_a_break(mode: str) -> None:
    for name in ("mask", "store", "unique", "branch"):
        run = jit(FUNCTIONS[name], mode=mode)
        for a in INPUTS:
            _same(run(Tensor(a)), FUNCTIONS[name](Tensor(a)))
        assert len(run.history) == 1
        assert "in pieces" not in run.explain()


class _Select(nn.Cell):
    def construct(self, x: Tensor) -> Any:
        counts = (x[:, 1] > 0).astype(ms.int32) + 1
        return (
            ops.relu(x[x[:, 0] > 0]), ops.nonzero(x), ops.masked_select(x, x > 0),
            ops.repeat_interleave(x, counts, 0), *ops.unique(x.astype(ms.int32)),
        )  # fmt: skip


def test_files(tmp_path: pathlib.Path) -> None:
    cell, first = _Select(), Tensor(INPUTS[0])
    ms.export(cell, first, file_name=str(tmp_path / "a.tvm"), file_format="TVM")
    ms.export(cell, first, file_name=str(tmp_path / "a.onnx"), file_format="ONNX")
    module = ms.load(str(tmp_path / "a.tvm"))
    session = onnxruntime.InferenceSession(tmp_path / "a.onnx")
    for a in INPUTS:
        wanted = cell(Tensor(a))
        _same(tuple(map(Tensor, module(Tensor(a)))), wanted)
        feed = {session.get_inputs()[0].name: a}
        _same(tuple(map(Tensor, session.run(None, feed))), wanted)  # pyright: ignore


ONNX: dict[str, Function] = {
    **{n: f for n, f in FUNCTIONS.items() if n in ("rows", "made", "branch", "sorted", "loop")},
    **ENOUGH,
    "fraction": lambda x: x[x > 0].sum() / x[x > 0].shape[0],
    "arange": lambda x: (ops.arange(len(x[x > 0])) * 2, ops.arange(1, 2 * len(x[x > 0]) + 3, 2)),
    "shapes": lambda x: ops.ones((len(x[x > 0]) // 2, 2)) + len(x[x > 0]) % 3,
    "expanded": lambda x: ops.broadcast_to(x[0], (len(x[x > 0]), 4)),
}


@pytest.mark.filterwarnings("ignore")
def test_onnx_files_declare_sizes_of_values_by_name(tmp_path: pathlib.Path) -> None:
    file = str(tmp_path / "chosen.onnx")
    ms.export(lambda x: (x[x > 0], x + 1), Tensor(shape=[None]), file_name=file, file_format="ONNX")
    session = onnxruntime.InferenceSession(file)
    shapes = [o.shape for o in session.get_outputs()]
    assert all(isinstance(size, str) for (size,) in shapes) and shapes[0] != shapes[1]


@pytest.mark.parametrize("name", ONNX)
def test_numbers_of_sizes_are_computed_in_onnx_files(name: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "a.onnx"
    ms.export(jit(ONNX[name]), Tensor(INPUTS[0]), file_name=str(file), file_format="ONNX")
    session = onnxruntime.InferenceSession(file)
    for a in INPUTS:
        wanted = _result(ONNX[name], Tensor(a))
        if not isinstance(wanted, list):  # ONNX Runtime has errors of its own
            found: Any = session.run(None, {session.get_inputs()[0].name: a})
            for f, w in zip(found, _flat(wanted), strict=True):
                np.testing.assert_allclose(f, np.asarray(w), 1e-5, 1e-5)


def test_graph_mode() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        for a in INPUTS:
            found = _Select()(Tensor(a))
            ms.set_context(mode=ms.PYNATIVE_MODE)
            _same(found, _Select()(Tensor(a)))
            ms.set_context(mode=ms.GRAPH_MODE)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_what_needs_the_number_is_an_error_or_a_break() -> None:
    def f(x: Tensor) -> Any:
        return x[x > 0].reshape(-1).max() + sum(range(x[x > 0].shape[0]))

    with pytest.raises(CaptureError, match="depends on values") as error:
        jit(f, jit_config=STRICT)(Tensor(INPUTS[0]))
    assert "test_value_sizes.py" in str(error.value)
    run = jit(f)
    for a in INPUTS[:2]:
        _same(run(Tensor(a)), f(Tensor(a)))


def test_sizes_in_loops_of_files_and_rolls(tmp_path: pathlib.Path) -> None:
    def counts(x: Tensor) -> Tensor:
        _, _, found = ops.unique_consecutive(x, True, True)
        n = ops.cast(x[0], ms.int64) * 0 + 2
        while n > 0:
            found = ops.flip(found, (0,)) + 1
            n = n - 1
        return ops.roll(found, 3, 0)

    x = Tensor([1, 1, 2, 3, 3, 3, 4])
    compiled = ms.jit(counts, fullgraph=True)
    assert compiled(x).tolist() == counts(x).tolist() == np.roll([4, 3, 5, 3], 3).tolist()
    ms.export(compiled, x, file_name=tmp_path / "counts.graph", file_format="GRAPH")
    for y in (x, Tensor([5] * 7)):
        assert ms.load(tmp_path / "counts.graph")(y).tolist() == counts(y).tolist()


@pytest.mark.parametrize("add", [
    lambda x, rows, y: ops.zeros_like(x).index_add(0, rows, y),
    lambda x, rows, y: ops.tensor_scatter_add(ops.zeros_like(x), rows.unsqueeze(-1), y),
], ids=["index_add", "tensor_scatter_add"])  # fmt: skip
def test_rows_of_an_expert_are_added_back(add):
    """A mixture of experts: the rows that chose one are computed, and added where they stood."""

    def loss(x, weight, chosen):
        rows = ops.nonzero(chosen == 1)[:, 0]
        return (add(x, rows, ops.matmul(x[rows], weight)) ** 2).sum()

    rng = np.random.default_rng(0)
    x, weight = (Tensor(rng.standard_normal((n, 4)).astype(np.float32)) for n in (7, 4))
    compiled = jit(ms.value_and_grad(loss, (0, 1)), fullgraph=True)
    with ms.assert_max_compiles(1):
        for chosen in ([0, 1, 1, 0, 1, 2, 0], [1] * 7, [0] * 7):
            (got, got_grads), (want, want_grads) = (
                f(x, weight, Tensor(chosen)) for f in (compiled, ms.value_and_grad(loss, (0, 1)))
            )
            for a, b in zip((got, *got_grads), (want, *want_grads)):
                np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-5)


def _mean_if_any(x: Tensor) -> Tensor:
    chosen = x[x > 0.5]
    if chosen.shape[0] == 0:
        return x.sum()
    return (chosen * chosen).mean()


def _mean_if_positive(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return (x * x).mean() * x.shape[0]
    return x.sum()


def _means(x: Tensor) -> Tensor:
    k = 0
    while x.sum() < 10 and k < 3:
        x = x + x.mean()
        k += 1
    return x.mean()


@pytest.mark.parametrize("f", [_mean_if_any, _mean_if_positive, _means])
def test_derivatives_of_branches_and_loops_serve_every_size(f: Function) -> None:
    """A mean divides by its size, which a branch or the body of a loop knows from its operands."""
    inside = jit(ms.value_and_grad(f), jit_config=STRICT, dynamic=1)
    outside = ms.value_and_grad(jit(f, jit_config=STRICT, dynamic=1))
    for n in (5, 3, 4):
        for x in (np.linspace(-1, 2, n), np.linspace(-2, 0, n)):
            wanted = ms.value_and_grad(f)(Tensor(x.astype(np.float32)))
            for run in (inside, outside):
                _same(run(Tensor(x.astype(np.float32))), wanted)
    assert len(inside.history) == 1


#: Of a size that the values decide, a number that differs from call to call, and another size.
ARITHMETIC: dict[str, Callable[[Any, Any, Any], Any]] = {
    "+": lambda n, k, m: n + k, "-": lambda n, k, m: k - n, "*": lambda n, k, m: n * k,
    "/": lambda n, k, m: n / k, "//": lambda n, k, m: n // k, "%": lambda n, k, m: n % k,
    "by a size": lambda n, k, m: k / n, "fraction": lambda n, k, m: n * (k + 0.5),
    "of sizes": lambda n, k, m: (m / n, m // n, m % n), "&": lambda n, k, m: n & 1,
    "|^": lambda n, k, m: (n | k) ^ 2, "min": lambda n, k, m: min(n, k),
    "max": lambda n, k, m: max(k, n), "bits of a number": lambda n, k, m: (k & 1, k << 1, n),
}  # fmt: skip


@pytest.mark.parametrize("mode", ["STRICT", "LAX", "PIJit"])
@pytest.mark.parametrize("name", ARITHMETIC)
def test_one_graph_computes_with_a_size_and_a_number(name: str, mode: str) -> None:
    compute = ARITHMETIC[name]

    def f(x: Tensor, k: int) -> Any:
        return compute(x[x > 0].shape[0], k, x.shape[0])

    run: Any = jit(f, jit_config=STRICT) if mode == "STRICT" else jit(f, mode=_MODES[mode])
    compiles = []
    for a, k in zip([*INPUTS, *INPUTS[::-1], INPUTS[0]], (2, 3, 4, 5, 7, 0, 6, 0, 8)):
        given = Tensor(a.reshape(-1)), k
        results: list[Any] = []
        for function in (f, run):
            try:
                results.append(function(*given))
            except ZeroDivisionError as e:
                results.append(str(e))
        wanted, found = results
        assert found == wanted and type(found) is type(wanted), (k, *results)
        compiles.append(run.compile_count)
    assert compiles[1] == compiles[4], "compiled again for another number"


class _Experts(nn.Cell):
    """Counts the rows that it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.load_a = self.load_b = 0

    def construct(self, x: Tensor) -> Tensor:
        first = x[x[:, 0] > 0]
        self.load_a += first.shape[0]
        if first.shape[0] > 1:
            self.load_b += first.shape[0] * 2
        return first.sum()


def test_a_counter_of_sizes_does_not_compile_again() -> None:
    plain, net = _Experts(), _Experts()
    run = jit(net, jit_config=STRICT)
    for i in range(8):
        x = Tensor(np.random.RandomState(i).randn(5, 4).astype(np.float32))
        _same(run(x), plain(x))
        assert (net.load_a, net.load_b) == (plain.load_a, plain.load_b)
    assert run.compile_count == 2
