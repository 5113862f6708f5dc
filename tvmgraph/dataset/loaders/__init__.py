"""Sources of well-known sets of data in local files."""

from tvmgraph.dataset.loaders import annotated, images, sounds, texts

SOURCES = {
    name: getattr(room, name)
    for room in (annotated, images, sounds, texts)
    for name in room.__all__
}
