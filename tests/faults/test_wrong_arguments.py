"""Wrong arguments of public functions are errors of the project with a name and a line."""

# pyright: reportArgumentType=false, reportReturnType=false

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
import tvmgraph.dataset as ds
from tests.faults.wrong_arguments import CIRCLE, targets
from tvmgraph import JitConfig, Tensor, grad, jit, nn, ops
from tvmgraph.core import storage
from tvmgraph.errors import OutOfMemoryError, TvmgraphError

X = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))


GROUPS = (("ops", "tensor"), ("nn", "calls", "rest", "more"))  # two processes: imports take a while


@pytest.mark.parametrize("groups", GROUPS, ids=" ".join)
def test_the_zoo_of_wrong_values_meets_errors_of_the_project(groups: tuple[str, ...]) -> None:
    program = [sys.executable, "-m", "tests.faults.wrong_arguments", *groups]
    root = Path(__file__).parents[2]
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        program, cwd=root, env=env, capture_output=True, text=True, timeout=600, check=False
    )
    assert not done.returncode, done.stderr[-2000:]
    assert not done.stdout, done.stdout[:4000]


def test_the_walk_sees_the_public_functions() -> None:
    names = {t.name for groups in GROUPS for group in groups for t in targets(group)}
    assert len(names) > 1700
    assert names >= {"nn.Adam()", "nn.BCELoss()", "grad(f)", "jit().export", "vjp(f, x)[1]"}
    assert names >= {"ops.topk", "Tensor.item", "nn.Dense", "ms.grad", "train.load_checkpoint"}


class HoldsItself(nn.Cell):
    """A network that is its own part."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(2, 2)
        self.me = self


_WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "fraction": (lambda: ops.topk(X, 1.5), "k must be an int, not float"),
    "fraction in a tuple": (lambda: ops.slice(X, (0, 0.5), (1, 1)), "begin must hold integers"),
    "signature": (lambda: jit(lambda x: x, input_signature=5), "input_signature must be"),
    "gradient of a number": (lambda: grad(5), "fn must be a function or a Cell, not int"),
    "weights": (lambda: grad(lambda x: x.sum(), weights=5), "weights must be Parameters"),
    "position": (lambda: grad(lambda x: x, "a"), "grad_position must be an int or a tuple"),
    "own part": (HoldsItself, "a Cell cannot hold itself: 'me'"),
    "circle": (lambda: Tensor(CIRCLE), "input_data holds itself"),
    "circle to jit": (lambda: jit(lambda x: x)(CIRCLE), "x holds itself"),
    "nothing": (lambda: nn.Dense(4, 4)(None), "x must be a Tensor, not NoneType"),
    "end of a range": (lambda: ops.arange(0, float("nan")), "end=nan"),
    "zeros": (lambda: ops.zeros((2**40,)), "needs 4,096.0 GiB"),
    "power": (lambda: ops.scalar_pow(3, 2**40), "more than 1,048,576 bits"),
    "eye": (lambda: ops.eye(2**31), "needs more than any memory"),
    "sizes": (lambda: ops.broadcast_to(X, (-1, -1, -1)), "shape=(-1, -1, -1)"),
    "negative size": (lambda: Tensor(shape=(2, -5)), "negative size -5"),
    "item": (lambda: X.item(99), "index=(99,)"),
    "options": (lambda: JitConfig(options=5), "options must be a dict, not int"),  # pyright: ignore
    "export": (lambda: ms.export(None, X, file_name="a"), "net=None"),
    "no file": (lambda: ms.export(nn.Dense(3, 3), X, file_name="a\0"), "cannot be the name"),
    "axes": (lambda: ms.export(nn.Dense(3, 3), X, file_name="a", dynamic=5), "dynamic"),
    "checkpoint": (lambda: ms.load_checkpoint(None), "ckpt_file_name=None"),
    "ragged": (lambda: ds.NumpySlicesDataset([[1, [2]], [3]]), "data=[[1, [2]], [3]]"),
    "array as an attribute": (lambda: ops.one_hot(Tensor([1]), 3, axis=np.ones(2)), "axis"),
    "random": (lambda: ops.randn(2**62), "size"),
    "one_hot": (lambda: ops.one_hot(Tensor([1, 2]), 2**40), "needs 16,384.0 GiB"),
    "gradient of what is no tensor": (lambda: grad(lambda x: 5)(X), "returned 5, which has no"),
    "bprop": (lambda: ms.custom_vjp(5), "bprop must be a function"),
    "array": (lambda: ms.numpy.arange(0, float("nan")), "stop=nan"),
    "arrays": (lambda: ms.numpy.concatenate(5), "arrays"),
    "no array": (lambda: ms.from_numpy(5), "array must be a NumPy array, not int"),
    "mesh": (lambda: ms.Layout(5, 5), "device_matrix=5"),
    "sections": (lambda: ms.numpy.split(X, 0), "sections=0"),
    "words": (lambda: ds.text.Vocab.from_list(5), "word_list"),
    "image": (lambda: ds.vision.Rotate("a"), "degrees must be"),
    "schedule": (lambda: ms.experimental.optim.lr_scheduler.StepLR(5, 3), "optimizer"),
    "group": (lambda: ms.mint.distributed.new_group("a"), "ranks must be a list"),
    "backend": (lambda: ms.mint.distributed.init_process_group(5), "backend"),
    "reduced": (lambda: ms.mint.distributed.all_reduce(5), "tensor=5"),
    "child": (lambda: nn.Dense(2, 2).insert_child_to_cell(5, nn.ReLU()), "child_name must be"),
    "prefix": (lambda: nn.Dense(2, 2).update_parameters_name(5), "prefix must be a string"),
    "compiled": (lambda: nn.Dense(2, 2).compile("a"), "args"),
    "pixels": (lambda: ds.vision.encode_png(np.ones((2, 2))), "image must be uint8"),
    "applied": (lambda: nn.Dense(2, 2).apply(5), "fn must be a function"),
    "module": (lambda: ms.runtime.load(5), "path must name a file"),
    "row": (lambda: [*ds.GeneratorDataset([(1, 2)], ["a"]).create_tuple_iterator()], "2 entries"),
}  # fmt: skip


@pytest.mark.parametrize("name", _WRONG)
def test_an_error_names_the_argument_and_the_line(name: str) -> None:
    call, text = _WRONG[name]
    with pytest.raises(TvmgraphError) as caught:
        call()
    assert text in str(caught.value)
    assert (caught.value.at or "").startswith("test_wrong_arguments.py")


def test_a_refused_draw_leaves_the_random_stream() -> None:
    ms.set_seed(3)
    expected = ops.randn(4).asnumpy()
    ms.set_seed(3)
    for _ in range(20):
        with pytest.raises(TvmgraphError):
            ops.randn(2**60)
    np.testing.assert_array_equal(ops.randn(4).asnumpy(), expected)


def test_memory_is_asked_for_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_available", lambda: 1 << 29)
    with pytest.raises(OutOfMemoryError, match=r"float32\[300000001\] needs 1\.1 GiB; 0\.5 GiB"):
        ops.zeros((300000001,))
    with pytest.raises(MemoryError):
        Tensor(shape=(300000001,), dtype=ms.float32)


def test_errors_of_user_code_pass_through() -> None:
    mine = ValueError("mine")

    def fails(x: Tensor) -> Tensor:
        raise mine

    class Net(nn.Cell):
        """A network that fails."""

        def construct(self, x: Tensor) -> Tensor:
            return fails(x)

    for call in (lambda: grad(fails)(X), lambda: Net()(X), lambda: ms.vmap(fails)(X),
                 lambda: ms.vjp(fails, X)):  # fmt: skip
        with pytest.raises(ValueError, match="mine") as caught:
            call()
        assert caught.value is mine


def test_recursion_of_the_user_stays_a_recursion_error() -> None:
    def deep(x: Tensor) -> Tensor:
        return deep(ops.softmax(x, -1))

    with pytest.raises(RecursionError):
        deep(X)


def test_a_guarded_function_is_the_one_that_was_written() -> None:
    import inspect

    source = inspect.getsource(ops.softmax)
    assert source.startswith("def softmax(") and '"""' in source
    assert list(inspect.signature(ops.softmax).parameters) == ["input", "axis", "dtype"]
    with pytest.raises(TypeError, match=r"softmax\(\) missing 1 required positional argument"):
        ops.softmax()  # pyright: ignore[reportCallIssue]


def test_errors_inside_captured_code_name_the_arguments_too() -> None:
    @jit
    def f(x: Tensor) -> Tensor:
        return ops.split(x, object())  # pyright: ignore[reportArgumentType]

    with pytest.raises(TvmgraphError, match="split_size_or_sections") as caught:
        f(X)
    assert (caught.value.at or "").startswith("test_wrong_arguments.py")
