"""Checks derived from the operator table, for the test-suite and for ``tvmgraph check``."""
