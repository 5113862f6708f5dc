"""DataLoader of ``dataset.dataloader``: what MindSpore 2.10 gives for the same calls."""

from __future__ import annotations

import threading
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor
from tvmgraph.dataset.dataloader import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    TensorDataset,
    default_collate,
    default_convert,
    get_worker_info,
)

A = np.arange(12, dtype=np.float32).reshape(6, 2)
Pair = namedtuple("Pair", "a b")


class Numbers(IterableDataset):
    """Counts; every worker yields its share."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.count, step))

    def __len__(self) -> int:
        return self.count


def plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if type(value) in (list, tuple):
        return [plain(v) for v in value]
    return value


I, F, D = "Int64", "Float32", "Float64"
BATCHES: list[tuple[DataLoader, Any]] = [
    (DataLoader(range(3), 2), [(I, [0, 1]), (I, [2])]),
    (DataLoader(range(3), 2, drop_last=True), [(I, [0, 1])]),
    (DataLoader(range(2), None), [0, 1]),
    (DataLoader([1.5, 2.5], 2), [(D, [1.5, 2.5])]),
    (DataLoader(["a", "b"], 2), [["a", "b"]]),
    (DataLoader([(1, 2.0), (3, 4.0)], 2), [[(I, [1, 3]), (D, [2, 4])]]),
    (DataLoader([{"a": 1, "b": A[0]}], 1), [{"a": (I, [1]), "b": (F, [[0, 1]])}]),
    (DataLoader(A[:2], None), [(F, [0, 1]), (F, [2, 3])]),
    (DataLoader([(A[0], 1)], None), [[(F, [0, 1]), 1]]),
    (DataLoader(TensorDataset(Tensor(A[:2]), Tensor([1, 2])), 2),
     [[(F, [[0, 1], [2, 3]]), (I, [1, 2])]]),
    (DataLoader(range(7), sampler=[3, 1]), [(I, [3]), (I, [1])]),
    (DataLoader(range(7), batch_sampler=[[3, 1], [0]]), [(I, [3, 1]), (I, [0])]),
    (DataLoader(range(3), 3, collate_fn=sum), [3]),
    (DataLoader(Numbers(3), 2), [(I, [0, 1]), (I, [2])]),
    (DataLoader(Numbers(3), 2, drop_last=True), [(I, [0, 1])]),
    (DataLoader(Numbers(2), None), [0, 1]),
    (DataLoader(Numbers(5), 2, num_workers=2), [(I, [0, 2]), (I, [1, 3]), (I, [4])]),
    (DataLoader(range(5), 2, num_workers=3, prefetch_factor=1),
     [(I, [0, 1]), (I, [2, 3]), (I, [4])]),
]  # fmt: skip

MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    "no rows": (lambda: DataLoader(object()), NotImplementedError),  # pyright: ignore
    "no size": (lambda: DataLoader(range(5), 0), ValueError),
    "size of another type": (lambda: DataLoader(range(5), 1.5), TypeError),  # pyright: ignore
    "a number for a flag": (lambda: DataLoader(range(5), drop_last=1), TypeError),  # pyright: ignore
    "two orders": (lambda: DataLoader(range(7), sampler=[3], shuffle=True), ValueError),
    "two sizes": (lambda: DataLoader(range(7), 2, batch_sampler=[[3]]), ValueError),
    "an order of what has none": (lambda: DataLoader(Numbers(5), shuffle=True), ValueError),
    "ahead of nobody": (lambda: DataLoader(range(5), prefetch_factor=2), ValueError),
    "time before now": (lambda: DataLoader(range(5), timeout=-1), ValueError),
    "lengths": (lambda: list(DataLoader([[1, 2], [3]], 2)), RuntimeError),
    "no rule": (lambda: default_collate([None, None]), TypeError),
    "columns of two lengths": (lambda: TensorDataset(Tensor(A), Tensor([1])), ValueError),
    "a part that is not there": (lambda: DistributedSampler(range(5), 2, 2), ValueError),
    "no samples": (lambda: RandomSampler([1, 2], num_samples=0), ValueError),
}  # fmt: skip


@pytest.mark.parametrize("number", range(len(BATCHES)))
def test_batches(number: int) -> None:
    loader, wanted = BATCHES[number]
    assert plain(list(loader)) == wanted == plain(list(loader))


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    make, kind = MISTAKES[name]
    with pytest.raises(kind):
        make()


def test_named_rows_and_single_entries() -> None:
    (found,) = DataLoader([Pair(1, 2), Pair(3, 4)], 2)
    assert isinstance(found, Pair) and plain(found.b) == (I, [2, 4])
    assert plain(default_convert((np.int32(0), "s"))) == [("Int32", 0), "s"]
    assert isinstance(default_convert(np.array(["text"])), np.ndarray)


def test_orders() -> None:
    ms.set_seed(3)
    loader = DataLoader(range(50), 50, shuffle=True)
    first, second = ([int(x) for x in next(iter(loader))] for _ in range(2))
    assert first != second and sorted(first) == sorted(second) == list(range(50))
    ms.set_seed(3)
    assert [int(x) for x in next(iter(DataLoader(range(50), 50, shuffle=True)))] == first
    assert sorted(RandomSampler([1, 2, 3], num_samples=6)) == [0, 0, 1, 1, 2, 2]
    parts = [list(DistributedSampler(range(5), 2, i, shuffle=False)) for i in range(2)]
    assert parts == [[0, 2, 4], [1, 3, 0]]
    assert list(DistributedSampler(range(5), 3, 2, seed=3)) == [1, 4]
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    lengths = [len(x) for x in (DataLoader(range(5), 2), DataLoader(Numbers(5), 2), loader)]
    assert lengths == [3, 3, 1]


def test_workers_read_ahead_and_report_errors() -> None:
    began: list[int] = []
    loader = DataLoader(range(8), 2, num_workers=2, worker_init_fn=began.append)
    assert len(list(loader)) == 4 and sorted(began) == [0, 1]

    class Broken:
        def __getitem__(self, index: int) -> int:
            if index == 3:
                raise KeyError("row 3")
            return index

        def __len__(self) -> int:
            return 5

    with pytest.raises(KeyError, match="row 3"):
        list(DataLoader(Broken(), num_workers=2))
    stuck = threading.Event()
    slow = DataLoader(range(2), num_workers=1, timeout=0.05, collate_fn=lambda b: stuck.wait(9))
    with pytest.raises(RuntimeError, match="no batch came"):
        list(slow)
    stuck.set()
