"""Data pipelines: sources, stages, transforms, and iterators that prepare rows ahead."""

from tvmgraph.dataset import config, transforms, vision
from tvmgraph.dataset.base import Dataset
from tvmgraph.dataset.iterator import DatasetIterator
from tvmgraph.dataset.sources import (
    Cifar10Dataset,
    GeneratorDataset,
    MnistDataset,
    NumpySlicesDataset,
)
from tvmgraph.dataset.stages import BatchInfo


def zip(datasets: tuple[Dataset, ...]) -> Dataset:
    """Joins the columns of several datasets; see :meth:`Dataset.zip`."""
    return datasets[0].zip(datasets[1:])


__all__ = [
    "BatchInfo", "Cifar10Dataset", "Dataset", "DatasetIterator", "GeneratorDataset",
    "MnistDataset", "NumpySlicesDataset", "config", "transforms", "vision", "zip",
]  # fmt: skip
