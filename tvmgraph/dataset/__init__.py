"""Data pipelines: sources, stages, transforms, and iterators that prepare rows ahead."""

from typing import Any

from tvmgraph.compat.paths import look
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.dataset import audio, config, dataloader, text, transforms, vision
from tvmgraph.dataset.base import Dataset
from tvmgraph.dataset.files import (
    Cifar10Dataset,
    Cifar100Dataset,
    CSVDataset,
    FashionMnistDataset,
    ImageFolderDataset,
    KMnistDataset,
    MnistDataset,
    Shuffle,
    TextFileDataset,
)
from tvmgraph.dataset.iterator import DatasetIterator
from tvmgraph.dataset.loaders import SOURCES
from tvmgraph.dataset.mindrecord import MindDataset
from tvmgraph.dataset.samplers import (
    DistributedSampler,
    IterSampler,
    PKSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)
from tvmgraph.dataset.schema import Schema
from tvmgraph.dataset.sources import GeneratorDataset, NumpySlicesDataset, PaddedDataset
from tvmgraph.dataset.stages import BatchInfo
from tvmgraph.dataset.tfrecord import TFRecordDataset


def zip(datasets: tuple[Dataset, ...]) -> Dataset:
    """Joins the columns of several datasets; see :meth:`Dataset.zip`.

    Args:
        datasets: The datasets, at least one.
    """
    return datasets[0].zip(datasets[1:])


#: MindSpore's kinds of sources, of which programs ask ``isinstance``: here all are pipelines.
AudioBaseDataset = MappableDataset = SourceDataset = TextBaseDataset = Dataset
UnionBaseDataset = VisionBaseDataset = Dataset

globals().update(SOURCES)


def __getattr__(name: str) -> Any:
    return look(__name__, name, __all__)


__all__ = [
    "BatchInfo", "CSVDataset", "Cifar10Dataset", "Cifar100Dataset", "Dataset", "DatasetIterator",
    "DistributedSampler", "FashionMnistDataset", "GeneratorDataset", "ImageFolderDataset",
    "IterSampler", "KMnistDataset", "MindDataset", "MnistDataset", "NumpySlicesDataset",
    "PKSampler", "PaddedDataset", "RandomSampler", "Sampler", "Schema", "SequentialSampler",
    "Shuffle", "SubsetRandomSampler", "SubsetSampler", "TFRecordDataset", "TextFileDataset",
    "WeightedRandomSampler", "audio", "config", "dataloader", "text", "transforms",
    "vision", "zip", *SOURCES,
]  # fmt: skip

_guard_module(globals(), "dataset")
