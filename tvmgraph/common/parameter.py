"""MindSpore's ``mindspore.common.parameter``."""

from tvmgraph.core.parameter import Parameter, ParameterTuple

__all__ = ["Parameter", "ParameterTuple"]
