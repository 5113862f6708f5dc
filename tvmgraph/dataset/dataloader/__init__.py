"""Batches of any Python collection, as ``mindspore.dataset.dataloader`` makes them.

Workers are threads: reading files and NumPy run at once in them, and nothing is copied between
processes.
"""

from tvmgraph.core.guard import public_names as _public_names
from tvmgraph.dataset.dataloader.loader import *  # noqa: F403

__all__ = _public_names(globals())
