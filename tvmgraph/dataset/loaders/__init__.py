"""Sources of well-known sets of data in local files."""

from tvmgraph.dataset.loaders import annotated, images, sounds, texts  # noqa: F401
from tvmgraph.dataset.loaders.table import SOURCES as SOURCES
