"""Collections of rows, and rows made tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tvmgraph.core.tensor import Tensor
from tvmgraph.dataset.base import reject
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, either


class Dataset:
    """Base of collections whose rows have numbers: derive a class, write ``__getitem__`` (and
    ``__len__``)."""

    def __getitem__(self, index: int) -> object:
        raise NotImplementedError(f"{type(self).__name__} needs __getitem__")


class IterableDataset(Dataset):
    """Base of collections that can only be iterated: derive a class and write ``__iter__``.

    Every worker iterates the whole; :func:`get_worker_info` tells it which share to yield.
    """

    def __iter__(self) -> Iterator[object]:
        raise NotImplementedError(f"{type(self).__name__} needs __iter__")


class TensorDataset(Dataset):
    """Rows of tensors: the first axis counts them.

    Args:
        tensors: Tensors of one length.

    Raises:
        ArgumentError: if the lengths differ.

    Example:
        >>> rows = dataset.dataloader.TensorDataset(Tensor([0, 1]), Tensor([2, 3]))
        >>> [int(a) + int(b) for a, b in rows]
        [2, 4]
    """

    def __init__(self, *tensors: Tensor) -> None:
        if len({t.shape[0] for t in tensors}) > 1:
            reject(ArgumentError, "TensorDataset", "the tensors must have one length")
        self.tensors = tensors

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"row {index} is outside the {len(self)} rows")
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


def default_convert(data: object) -> object:
    """Makes tensors of the arrays and NumPy numbers in a row, also inside lists and dicts.

    Args:
        data: A row; a tuple becomes a list, what is not numeric stays.

    Example:
        >>> dataset.dataloader.default_convert({"x": np.arange(2), "name": "a"})
        {'x': Tensor(shape=[2], dtype=Int64, value= [0, 1]), 'name': 'a'}
    """
    if isinstance(data, (np.number, np.bool_)):
        return Tensor(data)
    if isinstance(data, np.ndarray):
        return data if data.dtype.kind in "SUO" else Tensor(data)
    if isinstance(data, Mapping):
        return {k: default_convert(v) for k, v in data.items()}
    if isinstance(data, (str, bytes)) or not isinstance(data, Sequence):
        return data
    parts = [default_convert(v) for v in data]
    return type(data)(*parts) if hasattr(data, "_fields") else parts


def default_collate(batch: Sequence[object]) -> object:
    """Stacks rows of one kind: arrays and numbers to tensors, tuples and dicts entry by entry.

    Args:
        batch: The rows.

    Raises:
        ShapeError: if tuples or lists differ in length.
        DTypeError: if there is no rule for such rows.

    Example:
        >>> dataset.dataloader.default_collate([(1, "a"), (2, "b")])
        [Tensor(shape=[2], dtype=Int64, value= [1, 2]), ('a', 'b')]
    """
    first = batch[0]
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, float) and not isinstance(first, np.floating):
        return Tensor(np.asarray(batch, np.float64))
    if isinstance(first, (int, np.number, np.bool_)):
        return Tensor(np.asarray(batch))
    if isinstance(first, Tensor) or (isinstance(first, np.ndarray) and first.dtype.kind in "biufc"):
        return Tensor(np.stack([np.asarray(row) for row in batch]))
    if isinstance(first, Mapping):
        return {k: default_collate([row[k] for row in batch]) for k in first}  # pyright: ignore
    if not isinstance(first, Sequence):
        reject(DTypeError, "default_collate", f"{type(first).__name__} cannot be stacked",
               "pass collate_fn")  # fmt: skip
    if len({len(row) for row in batch}) > 1:  # pyright: ignore[reportArgumentType]
        reject(either(ShapeError, RuntimeError), "default_collate", "rows differ in length")
    parts = [default_collate(column) for column in zip(*batch)]  # pyright: ignore
    return type(first)(*parts) if hasattr(first, "_fields") else parts


__all__ = ["Dataset", "IterableDataset", "TensorDataset", "default_collate", "default_convert"]
