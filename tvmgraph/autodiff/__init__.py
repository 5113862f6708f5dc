"""Reverse-mode differentiation over recorded operators."""

from tvmgraph.autodiff.grad import GradOperation, grad, value_and_grad
from tvmgraph.autodiff.tape import GradTape, backward

__all__ = ["GradOperation", "GradTape", "backward", "grad", "value_and_grad"]
