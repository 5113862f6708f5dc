"""Batches of any Python collection, as ``mindspore.dataset.dataloader`` makes them.

Workers are threads: reading files and NumPy run at once in them, and nothing is copied between
processes.
"""

from tvmgraph.dataset.dataloader.loader import DataLoader, get_worker_info
from tvmgraph.dataset.dataloader.rows import (
    Dataset,
    IterableDataset,
    TensorDataset,
    default_collate,
    default_convert,
)
from tvmgraph.dataset.dataloader.samplers import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
)

__all__ = [
    "BatchSampler", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset",
    "RandomSampler", "Sampler", "SequentialSampler", "TensorDataset", "default_collate",
    "default_convert", "get_worker_info",
]  # fmt: skip
