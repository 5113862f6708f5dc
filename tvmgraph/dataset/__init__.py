"""Data pipelines: sources, stages, transforms, and iterators that prepare rows ahead."""

from typing import Any

from tvmgraph.compat.paths import look
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.dataset import config, transforms, vision
from tvmgraph.dataset.base import Dataset
from tvmgraph.dataset.files import (
    Cifar10Dataset,
    Cifar100Dataset,
    CSVDataset,
    FashionMnistDataset,
    ImageFolderDataset,
    MnistDataset,
    Shuffle,
    TextFileDataset,
)
from tvmgraph.dataset.iterator import DatasetIterator
from tvmgraph.dataset.samplers import (
    DistributedSampler,
    PKSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)
from tvmgraph.dataset.sources import GeneratorDataset, NumpySlicesDataset
from tvmgraph.dataset.stages import BatchInfo


def zip(datasets: tuple[Dataset, ...]) -> Dataset:
    """Joins the columns of several datasets; see :meth:`Dataset.zip`."""
    return datasets[0].zip(datasets[1:])


def __getattr__(name: str) -> Any:
    return look(__name__, name, __all__)


__all__ = [
    "BatchInfo", "CSVDataset", "Cifar10Dataset", "Cifar100Dataset", "Dataset", "DatasetIterator",
    "DistributedSampler", "FashionMnistDataset", "GeneratorDataset", "ImageFolderDataset",
    "MnistDataset", "NumpySlicesDataset", "PKSampler", "RandomSampler", "Sampler",
    "SequentialSampler", "Shuffle", "SubsetRandomSampler", "SubsetSampler", "TextFileDataset",
    "WeightedRandomSampler", "config", "transforms", "vision", "zip",
]  # fmt: skip

_guard_module(globals(), "dataset")
