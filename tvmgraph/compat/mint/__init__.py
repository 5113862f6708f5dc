"""MindSpore's ``mindspore.mint``: operators with PyTorch's argument names and meanings.

A function that means the same in both is the one of :mod:`tvmgraph.ops`; the others are written in
:mod:`.values`, :mod:`.shapes` and :mod:`.creation` in terms of it.
"""

from __future__ import annotations

import importlib
from typing import Any

from tvmgraph.compat.absent import not_found
from tvmgraph.compat.mint import creation, shapes, values

#: Functions of :mod:`tvmgraph.ops` that are PyTorch's as they are.
SHARED = """
abs acos acosh addbmm addcdiv addcmul addmm addmv arange arccos arccosh arcsin arcsinh arctan
arctan2 arctanh argmax asin asinh atan atan2 atanh baddbmm bitwise_and bitwise_not
bitwise_or bitwise_xor broadcast_to ceil clamp clip cos cosh cross cumprod div divide dstack
einsum empty empty_like eq erf erfc erfinv exp exp2 expm1 eye fix flip float_power floor
floor_divide fmod full_like gcd ge greater greater_equal gt histc hstack imag inverse isclose
isfinite isinf isneginf kthvalue le lerp less less_equal linspace log log10 log1p log2 logaddexp
logaddexp2 logical_and logical_not logical_or logical_xor logsumexp lt masked_select maximum
minimum mm mul nan_to_num ne neg negative nonzero not_equal ones_like outer polar pow ravel real
reciprocal remainder reshape roll round rsqrt searchsorted sigmoid sign sin sinc sinh square sum
swapaxes t take tan tanh tile trace triangular_solve tril triu trunc unbind unique_consecutive
unsqueeze xlogy zeros_like
""".split()  # noqa: SIM905  (one word each)

_WRITTEN = (values, shapes, creation)
_PACKAGES = ("distributed", "linalg", "nn", "optim", "special")

__all__ = sorted({*SHARED, *_PACKAGES, *(n for m in _WRITTEN for n in m.__all__)})


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    for module in _WRITTEN:
        if name in module.__all__:
            return getattr(module, name)
    if name in SHARED:
        from tvmgraph import ops

        return getattr(ops, name)
    raise not_found("tvmgraph.mint", name, __all__)


def __dir__() -> list[str]:
    return list(__all__)
