"""Names that do not exist: why, or which one was meant."""

from __future__ import annotations

import pytest

import tvmgraph as ms
from tvmgraph import mint, nn, ops
from tvmgraph.errors import NotFoundError, NotFoundImportError


@pytest.mark.parametrize(
    "room, name, why",
    [
        (ms, "shard", "several devices"),
        (ms, "CSRTensor", "sparse tensors"),
        (ops, "coo_abs", "use dense ones"),
        (ops, "AllReduce", "several devices"),
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
    with pytest.raises(NotFoundImportError, match=r"'shard': it needs several devices"):
        from tvmgraph import shard  # noqa: F401  # pyright: ignore
    with pytest.raises(ImportError, match=r"did you mean Conv2d\?"):
        from tvmgraph.nn import Conv2D  # noqa: F401  # pyright: ignore
    with pytest.raises(ModuleNotFoundError):
        import tvmgraph.shard  # noqa: F401  # pyright: ignore
