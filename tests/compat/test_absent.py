"""Names that do not exist: why, or which one was meant."""

from __future__ import annotations

import pickle

import pytest

import tvmgraph as ms
from tests.compat.names import recorded, room_of, works
from tvmgraph import mint, nn, ops
from tvmgraph.compat.absent import ABSENT, explanation
from tvmgraph.errors import NotFoundError, NotFoundImportError


@pytest.mark.parametrize(
    "room, name, why",
    [
        (ms, "load_distributed_checkpoint", "set_auto_parallel_context"),
        (ms, "SparseTensor", "gradients are dense"),
        (ops, "SubAndFilter", "gradients are dense"),
        (ops, "AlltoAllVC", "ms.shard"),
        (ops.operations, "PagedAttention", "Ascend"),
        (nn, "Conv2dThor", "Ascend"),
        (mint, "npu_gelu", "Ascend"),
    ],
)
def test_the_reason(room: object, name: str, why: str) -> None:
    with pytest.raises(NotFoundError, match=rf"has no '{name}': .*{why}") as caught:
        getattr(room, name)
    assert caught.value.at and caught.value.at.startswith("test_absent.py:")
    assert not hasattr(room, name)


@pytest.mark.parametrize(
    "room, name, meant",
    [
        (ms, "tensr", "tensor"),
        (ms, "LossMonitr", "LossMonitor"),
        (ops, "rellu", "relu"),
        (ops.operations, "Relu", "ReLU"),
        (nn, "Conv2D", "Conv2d"),
        (nn, "sequentialcell", "SequentialCell"),
        (mint, "mat_mul", "matmul"),
        (mint.nn, "linear", "Linear"),
    ],
)
def test_the_nearest_name(room: object, name: str, meant: str) -> None:
    with pytest.raises(NotFoundError, match=f"has no '{name}'") as caught:
        getattr(room, name)
    assert caught.value.fix == f"did you mean {meant}?"


def test_imports_say_it_too() -> None:
    with pytest.raises(NotFoundImportError, match=r"'SparseTensor': gradients are dense"):
        from tvmgraph import SparseTensor  # noqa: F401  # pyright: ignore
    with pytest.raises(ImportError, match=r"did you mean Conv2d\?"):
        from tvmgraph.nn import Conv2D  # noqa: F401  # pyright: ignore
    with pytest.raises(ModuleNotFoundError):
        import tvmgraph.shard  # noqa: F401  # pyright: ignore


def test_every_reason_is_needed() -> None:
    spaces = {n.room for n in recorded()}
    lost = {part for s in spaces if room_of(s) is None for part in (s, s.split(".")[-1])}
    lost |= {s.rsplit(".", 1)[0] for s in spaces if room_of(s) is None}
    used = {explanation(n.name, n.room) for n in recorded() if not works(n)}
    used |= {explanation(s) for s in lost}
    idle = [p for why, patterns in ABSENT.items() for p in patterns if (why, p) not in used]
    assert idle == [], "these names exist, or another row explains them before"


@pytest.mark.parametrize(
    "owner, name, fix",
    [
        (nn.Dense(2, 2), "wieght", "did you mean weight?"),
        (nn.SequentialCell(nn.ReLU()), "set_trian", "did you mean set_train?"),
        (nn.Dense(2, 2), "parameters", "call trainable_params(), or get_parameters() for all"),
        (nn.Dense(2, 2), "eval", "call set_train(False)"),
        (nn.SGD([ms.Parameter(ops.ones(2))], 0.1), "step", "optimizer(gradients)"),
        (nn.SGD([ms.Parameter(ops.ones(2))], 0.1), "zero_grad", "nothing accumulates"),
        (ops.ones(2), "backward", "ms.value_and_grad(fn"),
        (ms.Parameter(ops.ones(2)), "grad", "gradients are not kept on tensors"),
        (ms, "no_grad", "leave it out"),
        (ms, "relu", "it is ops.relu"),
        (nn, "Module", "derive from nn.Cell"),
        (nn, "ModuleList", "use nn.CellList"),
    ],
)
def test_names_of_pytorch_say_what_to_use(owner: object, name: str, fix: str) -> None:
    assert not hasattr(owner, name)
    with pytest.raises(AttributeError) as caught:
        getattr(owner, name)
    assert "\n  at:  test_absent.py:" in str(caught.value)
    assert fix in str(caught.value).split("fix: ")[1]
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_an_attribute_without_a_near_name() -> None:
    with pytest.raises(NotFoundError) as caught:
        nn.Dense(2, 2).zzzzzz
    assert "fix" not in str(caught.value)
