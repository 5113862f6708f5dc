"""Batches of any Python collection, as ``mindspore.dataset.dataloader`` makes them.

Workers are threads: reading files and NumPy run at once in them, and nothing is copied between
processes.
"""

from tvmgraph.dataset.dataloader.loader import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    TensorDataset,
    default_collate,
    default_convert,
    get_worker_info,
)

__all__ = [
    "BatchSampler", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset",
    "RandomSampler", "Sampler", "SequentialSampler", "TensorDataset", "default_collate",
    "default_convert", "get_worker_info",
]  # fmt: skip
