"""``python -m tvmgraph``: the same as the command ``tvmgraph``."""

from tvmgraph.cli import app

app()
