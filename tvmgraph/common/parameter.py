"""MindSpore's ``mindspore.common.parameter``."""

from tvmgraph.core.parameter import Buffer, Parameter, ParameterTuple

_Buffer = Buffer

__all__ = ["Parameter", "ParameterTuple"]
