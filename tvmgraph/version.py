"""The version of MindSpore whose names and results are here: programs choose by it what to call."""

__version__ = "2.10.0"
