"""Data pipelines: sources, stages, transforms, and iterators that prepare rows ahead."""

from typing import Any

from tvmgraph.compat.paths import look
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.guard import public_names as _public_names
from tvmgraph.dataset import audio, config, dataloader, stages, text, transforms, vision  # noqa: F401
from tvmgraph.dataset.base import Dataset
from tvmgraph.dataset.files import *  # noqa: F403
from tvmgraph.dataset.iterator import DatasetIterator as DatasetIterator
from tvmgraph.dataset.loaders import SOURCES
from tvmgraph.dataset.mindrecord import MindDataset as MindDataset
from tvmgraph.dataset.samplers import *  # noqa: F403
from tvmgraph.dataset.schema import *  # noqa: F403
from tvmgraph.dataset.sources import *  # noqa: F403
from tvmgraph.dataset.stages import BatchInfo as BatchInfo
from tvmgraph.dataset.tfrecord import *  # noqa: F403


def zip(datasets: tuple[Dataset, ...]) -> Dataset:
    """Joins the columns of several datasets; see :meth:`Dataset.zip`.

    Args:
        datasets: The datasets, at least one.
    """
    return datasets[0].zip(datasets[1:])


globals().update(SOURCES)


def __getattr__(name: str) -> Any:
    return look(__name__, name, __all__)


__all__ = _public_names(
    globals(), "audio", "config", "dataloader", "text", "transforms", "vision", "zip", *SOURCES
)

#: MindSpore's kinds of sources, of which programs ask ``isinstance``: here all are pipelines.
AudioBaseDataset = MappableDataset = SourceDataset = TextBaseDataset = Dataset
UnionBaseDataset = VisionBaseDataset = Dataset

#: Kinds of pipelines and iterators, named in annotations.
BatchDataset, ConcatDataset, MapDataset = (
    stages.BatchDataset,
    stages.ConcatDataset,
    stages.MapDataset,
)
RepeatDataset, ShuffleDataset, ZipDataset = (
    stages.RepeatDataset, stages.ShuffleDataset, stages.ZipDataset,
)  # fmt: skip
DictIterator = TupleIterator = DatasetIterator

_guard_module(globals(), "dataset")


def __dir__() -> list[str]:
    return list(__all__)
