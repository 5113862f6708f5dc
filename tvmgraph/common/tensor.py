"""MindSpore's ``mindspore.common.tensor``."""

from tvmgraph.core.tensor import Tensor, tensor

__all__ = ["Tensor", "tensor"]
