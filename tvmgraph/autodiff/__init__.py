"""Reverse-mode differentiation over recorded operators, and what is built on it."""

from tvmgraph.autodiff.custom import custom_vjp, recompute
from tvmgraph.autodiff.grad import GradOperation, get_grad, grad, value_and_grad
from tvmgraph.autodiff.hooks import HookBackward, InsertGradientOf
from tvmgraph.autodiff.tape import GradTape, backward
from tvmgraph.autodiff.transforms import jacfwd, jacrev, jvp, vjp
from tvmgraph.autodiff.vmap import vmap

__all__ = [
    "GradOperation", "GradTape", "HookBackward", "InsertGradientOf", "backward", "custom_vjp",
    "get_grad", "grad", "jacfwd", "jacrev", "jvp", "recompute", "value_and_grad", "vjp", "vmap",
]  # fmt: skip
