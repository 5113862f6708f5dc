"""Eager operators that take NumPy long get machine code of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, hooks, mint, ops
from tvmgraph.autodiff import derivative, tape
from tvmgraph.compiler import eager
from tvmgraph.core import costly, dispatch
from tvmgraph.core.op import OPS, F
from tvmgraph.errors import NoGradientError, NumericsError, OutOfRangeError
from tvmgraph.ops.loss import ctc


@pytest.fixture(autouse=True)
def switched_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All that takes a microsecond is worth it, and code is always the faster."""
    monkeypatch.setenv(costly.VARIABLE, "1")
    monkeypatch.setattr(costly, "_WORTH", 0.0)
    monkeypatch.setattr(costly, "_WORTH_SMALL", 0.0)
    monkeypatch.setattr(costly, "_WORTH_STARTING", 0.0)
    monkeypatch.setattr(costly, "_CHEAP", 0.0)
    monkeypatch.setattr(costly.Costly, "_pays", lambda self: True)
    _forget()
    yield
    ms.reset_context()
    _forget()


def _forget() -> None:
    for op in OPS.values():
        op.cache.clear()
    derivative._known.clear()


def made(call: Callable[[], Any]) -> Any:
    """Calls until all has machine code; returns the last result."""
    for _ in range(3):
        for _ in range(costly.TRIALS + 2):
            call()
        assert eager.wait(600)  # the compiler has to start, perhaps on a machine with much to do
    return call()


def codes(op: str) -> list[bool]:
    """Whether calls of an operator run machine code."""
    plans = [plan.costly for plan in OPS[op].cache.values()]
    return [c is not None and c.code is not None and c.trials == 0 for c in plans]


def array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_values_stay_and_repeat() -> None:
    x = Tensor(array(97, 101))
    first = ops.softmax(x, -1).asnumpy()
    result = made(lambda: ops.softmax(x, -1)).asnumpy()
    assert codes("softmax") == [True]
    np.testing.assert_allclose(result, first, rtol=1e-5)
    assert all((ops.softmax(x, -1).asnumpy() == result).all() for _ in range(5))


def test_transposed_operands_are_read_as_they_lie_in_memory() -> None:
    a, b = array(7, 60, 50, seed=1), array(7, 60, 50, seed=2)
    operands = Tensor(a), Tensor(b), Tensor(a.transpose(2, 0, 1).copy())

    def call() -> tuple[Tensor, ...]:
        x, y, z = operands
        turned = x.transpose(2, 0, 1), y.transpose(2, 0, 1)
        return ops.exp(turned[0]), ops.silu(turned[0]), ops.atan2(*turned), ops.atan2(turned[0], z)

    results = made(call)
    assert codes("exp") == codes("atan2") == [True]
    kept = [y.array.transpose(1, 2, 0).flags.c_contiguous for y in results]
    assert kept == [True, True, True, False]
    a, b = a.transpose(2, 0, 1), b.transpose(2, 0, 1)
    expected = np.exp(a), a / (1 + np.exp(-a)), np.arctan2(a, b), np.arctan2(a, a)
    for y, known in zip(results, expected):
        np.testing.assert_allclose(y.asnumpy(), known, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128])
def test_fourier_transforms_of_and_to_complex_elements(dtype: type) -> None:
    real = array(9, 1000, seed=1)
    x = real if dtype is np.float32 else (real + 1j * array(9, 1000, seed=2)).astype(dtype)
    result = made(lambda: ops.fft(Tensor(x)))
    assert codes("spectrum") == [True]
    expected = np.fft.fft(x.astype(np.complex128))
    assert result.dtype == (ms.complex128 if dtype is np.complex128 else ms.complex64)
    bound = 1e-13 if dtype is np.complex128 else 2e-6
    assert np.abs(result.asnumpy() - expected).max() < bound * np.abs(expected).max()


def test_errors_stay() -> None:
    x, good = Tensor(array(97, 103)), Tensor(np.arange(97))
    made(lambda: x[good])
    assert any(codes("index_get"))
    with pytest.raises(OutOfRangeError, match="index 97 is out of range") as e:
        x[Tensor(np.full(97, 97))]
    assert "test_eager_kernels.py" in str(e.value)


@pytest.mark.parametrize("setting", [{"eager_kernels": False}, {"deterministic": "ON"}])
def test_it_can_be_switched_off(setting: dict[str, Any]) -> None:
    x = Tensor(array(97, 107))
    with_code = made(lambda: ops.erf(x))
    assert codes("erf") == [True]
    ms.set_context(**setting)
    plan = next(iter(OPS["erf"].cache.values()))
    assert plan.costly.run((x,)) is None
    expected = OPS["erf"].eager(x.asnumpy())
    assert (ops.erf(x).asnumpy() == expected).all()
    np.testing.assert_allclose(with_code.asnumpy(), expected, rtol=1e-4, atol=1e-6)


def test_small_views_and_slower_code_stay_with_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = Tensor(array(8, 8)), Tensor(array(97, 109))
    made(lambda: (ops.exp(small), large.reshape(109, 97), large.T))
    assert codes("exp") == codes("reshape") == codes("transpose") == [False]
    monkeypatch.setattr(costly.Costly, "_pays", lambda self: False)
    made(lambda: ops.exp(large))
    assert codes("exp") == [False, False]
    monkeypatch.setattr(costly.Costly, "_pays", lambda self: True)
    for _ in range(60):  # it is tried again after as many calls
        ops.exp(large)
    assert codes("exp") == [False, True]


def test_whoever_listens_hears_of_code(monkeypatch: pytest.MonkeyPatch) -> None:
    from tvmgraph.config.flag_registry import active

    x, heard = Tensor(array(97, 113)), []
    made(lambda: ops.exp(x))
    active.listen("test", lambda op, *_: heard.append(op.name))
    try:
        ops.exp(x)
    finally:
        active.ignore("test")
    assert heard == ["exp"]
    ms.set_context(check_numerics=True)
    with pytest.raises(NumericsError):
        ops.exp(x * 1e9)


def _normalized(x: Tensor, w: Tensor) -> Any:
    return (ops.layer_norm(x, w.shape, w, w) ** 2).sum()


def test_compositions_are_fused_with_their_derivatives() -> None:
    x, w = Tensor(array(89, 127)), Tensor(array(127))
    step = ms.value_and_grad(_normalized, (0, 1))
    value, (dx, dw) = step(x, w)
    value, dx, dw = value.asnumpy(), dx.asnumpy(), dw.asnumpy()
    found, (gx, gw) = made(lambda: step(x, w))
    np.testing.assert_allclose(found.asnumpy(), value, rtol=1e-5)
    np.testing.assert_allclose(gx.asnumpy(), dx, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(gw.asnumpy(), dw, rtol=1e-3, atol=1e-3)


def test_second_derivatives_of_fusions() -> None:
    x = Tensor(array(83, 131))
    slope = ms.grad(lambda x: (mint.norm(x, dim=1) ** 3).sum())
    twice = ms.grad(lambda x: (slope(x) ** 2).sum())
    expected = twice(x).asnumpy()
    np.testing.assert_allclose(made(lambda: twice(x)).asnumpy(), expected, rtol=1e-3, atol=1e-3)


def test_training_statistics_are_those_of_numpy() -> None:
    x, ones = Tensor(array(8, 16, 13, 17)), np.ones(16, np.float32)
    states: list[Any] = []
    for wanted in (False, True):
        ms.set_context(eager_kernels=wanted)
        mean, variance = Tensor(ones), Tensor(ones)
        call = lambda m=mean, v=variance: ops.batch_norm(x, m, v, None, None, True)  # noqa: E731
        y = made(call) if wanted else [call() for _ in range(3 * (costly.TRIALS + 2) + 1)][-1]
        states.append([t.asnumpy() for t in (y, mean, variance)])
    for a, b in zip(*states):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_indices_of_a_composition_are_its_own() -> None:
    image, grid = Tensor(array(2, 8, 19, 23)), Tensor(array(2, 19, 23, 2, seed=1))
    expected = ops.grid_sample(image, grid).asnumpy()
    result = made(lambda: ops.grid_sample(image, grid)).asnumpy()
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_a_forked_child_asks_again() -> None:
    x = Tensor(array(97, 137))
    for _ in range(3):
        ops.tanh(x)
    child = os.fork()
    if not child:
        code = 1
        try:
            made(lambda: ops.tanh(x))
            code = int(not any(codes("tanh")))
        finally:
            os._exit(code)  # whatever happens: no second process may go on with the tests
    assert os.waitpid(child, 0)[1] == 0
    made(lambda: ops.tanh(x))


_PROGRAM = """
import numpy as np, sys, time
import tvmgraph as ms
from tvmgraph import ops, Tensor
x = Tensor(np.linspace(-1, 1, 300_000, dtype=np.float32).reshape(300, 1000))
end = time.monotonic() + 60
from tvmgraph.core.op import OPS, F
while time.monotonic() < end:
    ops.gelu(x)
    [plan] = OPS["gelu"].cache.values()
    if plan.costly is None or plan.costly.code:
        break
print("tvm" in sys.modules, plan.costly is not None and plan.costly.code is not None)
"""


def test_no_compiler_comes_into_the_process_and_nothing_is_waited_for_at_the_end() -> None:
    env = {**os.environ, costly.VARIABLE: "1"}
    command = [sys.executable, "-c", _PROGRAM]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"], done.stderr
    start = time.monotonic()
    ends = _PROGRAM.replace("if plan.costly is None or plan.costly.code:", "if plan.costly.asked:")
    subprocess.run(
        [sys.executable, "-c", ends.rpartition("print")[0].replace("300", "301")], env=env,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert time.monotonic() - start < 30


def _gradient(name: str) -> tuple[Callable[[Tensor], Any], Tensor]:
    x = Tensor(3 * array(97, 101))
    return ms.grad(lambda x: (getattr(ops, name)(x) * x).sum()), x


@pytest.mark.parametrize("name", ["gelu", "silu", "relu", "softmax"])
def test_derivatives_of_several_operators_are_fused(name: str) -> None:
    gradient, x = _gradient(name)
    first = gradient(x).asnumpy()
    np.testing.assert_allclose(made(lambda: gradient(x)).asnumpy(), first, rtol=1e-4, atol=1e-5)
    fusions = [d._fused for (op, *_), d in derivative._known.items() if op.name == name]
    assert fusions and all(f._costly.code is not None for f in fusions if f is not None)
    second = ms.grad(lambda x: gradient(x).sum())
    fused = second(x).asnumpy()
    ms.set_context(eager_kernels=False)
    np.testing.assert_allclose(fused, second(x).asnumpy(), rtol=1e-3, atol=1e-4)


def test_independent_products_stay_apart() -> None:
    """A fusion is one choice for all its operators; products have one each."""
    x, w, b = Tensor(array(97, 101)), Tensor(array(89, 101)), Tensor(array(89))
    gradient = ms.grad(lambda x, w, b: (ops.dense(x, w, b) ** 2).sum(), (0, 1, 2))
    first = [g.asnumpy() for g in gradient(x, w, b)]
    for got, want in zip(made(lambda: gradient(x, w, b)), first, strict=True):
        np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-4, atol=1e-3)
    assert all(d._fused is None for (op, *_), d in derivative._known.items() if op.name == "matmul")


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_steps_of_optimizers_are_fused(momentum: float) -> None:
    def steps(kernels: bool) -> np.ndarray:
        ms.set_context(eager_kernels=kernels)
        w = ms.Parameter(Tensor(array(97, 101)), name="w")
        make = ms.nn.Momentum if momentum else ms.nn.SGD
        optimizer = make([w], 0.1, momentum) if momentum else make([w], 0.1)
        for i in range(30):
            optimizer((Tensor(array(97, 101, seed=i)),))
            eager.wait(120)
        return w.asnumpy()

    np.testing.assert_allclose(steps(True), steps(False), rtol=1e-4, atol=1e-5)


def test_gradients_compute_what_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What no trained parameter depends on has no derivative, neither operators nor operands."""
    x, w = Tensor(array(61, 67)), ms.Parameter(Tensor(array(67, 71)), name="w")
    asked: list[tuple[str, Any]] = []

    def noted(op: Any, attrs: Any, cotangents: Any, results: Any, inputs: Any, wanted: Any) -> Any:
        asked.append((op.name, wanted))
        return derivative.derivative(op, attrs, cotangents, results, inputs, wanted)

    monkeypatch.setattr(tape, "derivative", noted)

    def loss(x: Tensor) -> Tensor:
        return ops.matmul(ops.exp(x), w).sum()

    by_weight = ms.value_and_grad(loss, None, [w])
    (_, (result,)), (_, (_, (expected,))) = by_weight(x), ms.value_and_grad(loss, 0, [w])(x)
    np.testing.assert_allclose(result.asnumpy(), expected.asnumpy(), rtol=1e-6)
    assert [name for name, _ in asked] == ["reduce_sum", "matmul", "reduce_sum", "matmul", "exp"]
    assert asked[1] == ("matmul", (False, True))
    by_weight(x)
    found = [d for key, d in derivative._known.items() if key[-1] == (False, True)]
    assert [n.op.name for n in found[0]._fused.args[0].nodes].count("matmul") == 1


def test_gradients_ask_what_programs_wrote() -> None:
    """Functions of the user are called, and missing derivatives are told, wherever they are."""
    x, w = Tensor(array(5, 7)), ms.Parameter(Tensor(array(7, 3)), name="w")
    called: list[object] = []
    hook = ops.HookBackward(lambda g: called.append(g))
    ms.grad(lambda x: ops.matmul(hook(ops.exp(x)), w).sum(), None, [w])(x)
    assert len(called) == 1
    with pytest.raises(NoGradientError):
        ms.grad(lambda x: ops.matmul(F.trigamma(x), w).sum(), None, [w])(x)


def test_losses_of_small_batches_are_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small operators: their calls alone take long. What they refuse is refused."""
    x, weight = Tensor(array(64, 10)), Tensor(np.linspace(0.5, 2, 10, dtype=np.float32))
    index = np.arange(64) % 10
    index[::7] = -100
    target = Tensor(index)
    gradient = ms.value_and_grad(lambda x: ops.cross_entropy(x, target, weight))
    loss, slope = gradient(x)
    calls: list[str] = []
    made_loss, made_slope = made(lambda: gradient(x))
    np.testing.assert_allclose(made_loss.asnumpy(), loss.asnumpy(), rtol=1e-5)
    np.testing.assert_allclose(made_slope.asnumpy(), slope.asnumpy(), rtol=1e-4, atol=1e-7)
    run = dispatch._run_eager
    monkeypatch.setattr(
        dispatch, "_run_eager", lambda op, *rest: calls.append(op.name) or run(op, *rest)
    )
    gradient(x)
    assert calls
    assert "log_softmax" not in calls and "scatter_along" not in calls
    with pytest.raises(OutOfRangeError, match="index 10 is out of range") as e:
        ops.cross_entropy(x, Tensor(np.where(index < 0, 10, index)), weight)
    assert "test_eager_kernels.py" in str(e.value)


#: Functions that are compositions, of float tensors that derivatives are taken of.
_PIECES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "addcdiv": (lambda x: ops.addcdiv(x, x, Tensor(np.full(93, 1.5, np.float32))), ((89, 93),)),
    "addcmul": (lambda x, y: ops.addcmul(x, x, y, 0.5), ((89, 94), (89, 94))),
    "addr": (lambda x, v, w: ops.addr(x, v, w, beta=2), ((89, 119), (89,), (119,))),
    "binary_cross_entropy_with_logits": (
        lambda x, y: ops.binary_cross_entropy_with_logits(x, y, reduction="sum"),
        ((89, 123), (89, 123)),
    ),
    "cdist": (ops.cdist, ((67, 71), (59, 71))),
    "cosine_similarity": (ops.cosine_similarity, ((89, 95), (89, 95))),
    "cross": (lambda x, y: ops.cross(x, y, dim=0), ((3, 4111), (3, 4111))),
    "cummax": (lambda x: ops.cummax(x, 1)[0], ((89, 97),)),
    "diff": (lambda x: ops.diff(x, 2), ((89, 115),)),
    "frac": (ops.frac, ((89, 120),)),
    "glu": (ops.glu, ((89, 98),)),
    "huber_loss": (ops.huber_loss, ((89, 101), (89, 101))),
    "hardtanh": (lambda x: ops.hardtanh(x, -0.5, 0.7), ((89, 121),)),
    "hardshrink": (ops.hardshrink, ((89, 102),)),
    "l1_loss": (ops.l1_loss, ((89, 103), (89, 103))),
    "lerp": (lambda x, y: ops.lerp(x, y, 0.3), ((89, 104), (89, 104))),
    "logsumexp": (lambda x: ops.logsumexp(x, 1), ((89, 106),)),
    "max": (lambda x: ops.max(x, 1)[0], ((89, 108),)),
    "nansum": (lambda x: ops.nansum(x, 1), ((89, 122),)),
    "nll_loss": (lambda x: ops.nll_loss(x, Tensor(np.arange(89) % 64)), ((89, 64),)),
    "prelu": (ops.prelu, ((9, 16, 117), (16,))),
    "renorm": (lambda x: ops.renorm(x, 2, 0, 9.0), ((89, 105),)),
    "rms_norm": (lambda x, w: ops.rms_norm(x, w)[0], ((89, 107), (107,))),
    "smooth_l1_loss": (ops.smooth_l1_loss, ((89, 109), (89, 109))),
    "softshrink": (ops.softshrink, ((89, 111),)),
    "softsign": (ops.softsign, ((89, 112),)),
    "swiglu": (ops.swiglu, ((89, 110),)),
    "tanhshrink": (ops.tanhshrink, ((89, 116),)),
    "threshold": (lambda x: ops.threshold(x, 0.1, 0.5), ((89, 118),)),
    "trapz": (ops.trapz, ((89, 113),)),
    "var": (lambda x: ops.var(x, axis=1, ddof=1), ((89, 125),)),
    "triplet_margin_loss": (ops.triplet_margin_loss, ((89, 114),) * 3),
}


@pytest.mark.parametrize("name", _PIECES)
def test_compositions_call_no_operator(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and first and second derivatives are those of NumPy."""
    function, shapes = _PIECES[name]
    x, *rest = [Tensor(array(*shape, seed=i)) for i, shape in enumerate(shapes)]
    slope = ms.grad(lambda x: (function(x, *rest) ** 2).sum())
    bend = ms.grad(lambda x: (slope(x) ** 2).sum())

    def results() -> list[Tensor]:
        return [function(x, *rest), slope(x), bend(x)]

    ms.set_context(eager_kernels=False)
    expected = [t.asnumpy() for t in results()]
    ms.set_context(eager_kernels=True)
    for a, b in zip(made(results), expected):
        np.testing.assert_allclose(a.asnumpy(), b, rtol=1e-4, atol=1e-5 * np.abs(b).max())
    called: list[str] = []
    run = dispatch._run_eager
    monkeypatch.setattr(
        dispatch, "_run_eager", lambda op, *rest: called.append(op.name) or run(op, *rest)
    )
    function(x, *rest)
    assert not called


@pytest.mark.parametrize("name", ["clamp", "layer_norm", "logsumexp", "norm"])
def test_small_compositions_are_fused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls of their operators are what takes long."""
    x = Tensor(array(3, 5))
    calls: dict[str, Callable[[], Tensor]] = {
        "clamp": lambda: ops.clamp(x, -0.5, 0.5), "layer_norm": lambda: ops.layer_norm(x, (5,)),
        "logsumexp": lambda: ops.logsumexp(x, 0), "norm": lambda: mint.norm(x, dim=1),
    }  # fmt: skip
    expected = calls[name]().asnumpy()
    np.testing.assert_allclose(made(calls[name]).asnumpy(), expected, rtol=1e-5, atol=1e-6)
    called: list[str] = []
    run = dispatch._run_eager
    monkeypatch.setattr(
        dispatch, "_run_eager", lambda op, *rest: called.append(op.name) or run(op, *rest)
    )
    calls[name]()
    assert not called


def test_small_compositions_are_asked_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costly, "_WORTH_SMALL", 1e9)
    small, large = Tensor(array(3, 7)), Tensor(array(97, 117))
    asked: list[Any] = []
    monkeypatch.setattr(hooks.eager_kernel, "function", asked.append)
    for _ in range(5):
        ops.clamp(small, -0.5, 0.5)
        ops.clamp(large, -0.5, 0.5)
    assert asked
    assert not any(a._small for a in asked)


@pytest.mark.parametrize("steps", [1, 4])
def test_ctc_loss_is_computed_in_chunks(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four steps the first comes before the chunks, and the last is one of its own."""
    monkeypatch.setattr(ctc, "_STEPS", 2)
    scores = Tensor(array(steps, 3, 7))
    targets, lengths = Tensor(np.array([[1, 1, 2], [3, 6, 0], [5, 5, 5]])), Tensor([3, 2, 1])
    taken = Tensor([steps, steps, max(steps - 3, 1)])

    def loss(scores: Tensor) -> Tensor:
        logp = ops.log_softmax(scores, -1)
        return ops.ctc_loss(logp, targets, taken, lengths, zero_infinity=True)[0]

    step = ms.value_and_grad(loss)
    value, slope = [t.asnumpy() for t in step(scores)]
    found, made_slope = made(lambda: step(scores))
    np.testing.assert_allclose(found.asnumpy(), value, rtol=1e-5)
    np.testing.assert_allclose(made_slope.asnumpy(), slope, rtol=1e-4, atol=1e-6)
    called: list[str] = []
    run = dispatch._run_eager
    monkeypatch.setattr(
        dispatch, "_run_eager", lambda op, *rest: called.append(op.name) or run(op, *rest)
    )
    loss(scores)
    assert "exp" not in called and "gather_elements" not in called
    with pytest.raises(OutOfRangeError):
        ops.ctc_loss(scores, Tensor(np.full((3, 3), 7)), taken, lengths)


def test_counts_and_choices_are_fused() -> None:
    x, labels = Tensor(array(97, 127)), Tensor(np.arange(997) % 31 - 1)
    calls: list[Callable[[], Tensor]] = [
        lambda: ops.histc(x, 30, -2.0, 2.5), lambda: ops.one_hot(labels, 30),
        lambda: ops.multinomial(ops.abs(x), 7, seed=3), lambda: ops.cummin(x, 0)[1],
    ]  # fmt: skip
    expected = [call().asnumpy() for call in calls]
    for call, wanted in zip(calls, expected):
        result = made(call)
        assert result.dtype == wanted.dtype
        # sums in another order move a draw that falls between two of them
        assert (result.asnumpy() != wanted).mean() <= 0.01


def test_bincount_of_ones_counts() -> None:
    x = np.array([3, 0, 3, 1], np.int32)
    found = ops.bincount(Tensor(x), minlength=6)
    assert found.dtype is ms.float32
    assert found.asnumpy().tolist() == np.bincount(x, minlength=6).tolist()
    assert ops.bincount(Tensor(x[:0]), minlength=2).asnumpy().tolist() == [0, 0]
