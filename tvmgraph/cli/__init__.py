"""The command line ``tvmgraph``."""

from tvmgraph.cli.app import app

__all__ = ["app"]
