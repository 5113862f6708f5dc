"""A convolution with a batch norm by its running statistics is one convolution kernel."""

import numpy as np
import pytest
from driver import check, fused, module
from test_conv import _conv
from tvm import relax
from tvm.relax import op

from tvmgraph.backend.loop_ir.contraction import match_contraction, prepare_first
from tvmgraph.backend.loop_ir.inline import inline
from tvmgraph.backend.loop_ir.program import parse
from tvmgraph.backend.loop_ir.types import Func

EPS = 1e-3


def _build(bb, x, w, mean, var, gamma, beta, *residual, padding):
    def emit(value):
        return bb.emit(value)

    y = emit(op.nn.conv2d(x, w, padding=padding))
    wide = [emit(op.reshape(v, (-1, 1, 1))) for v in (mean, var, gamma, beta)]
    scale = emit(
        op.multiply(emit(op.rsqrt(emit(op.add(wide[1], relax.const(EPS, "float32"))))), wide[2])
    )
    y = emit(op.add(emit(op.multiply(emit(op.subtract(y, wide[0])), scale)), wide[3]))
    for other in residual:
        y = emit(op.add(y, other))
    return op.nn.relu(y)


def _specs(n, c, size, f, k, residual):
    channel = [((f,), "float32")] * 4
    out = [((n, f, size, size), "float32")] if residual else []
    return [((n, c, size, size), "float32"), ((f, c, k, k), "float32"), *channel, *out]


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize(("size", "k", "padding"), [(14, 3, 1), (9, 1, 0), (13, 5, 2)])
def test_batch_norm_joins_the_convolution(size, k, padding, residual):
    specs = _specs(2, 5, size, 7, k, residual)

    def build(bb, *values):
        return _build(bb, *values, padding=padding)

    def reference(x, w, mean, var, gamma, beta, *other):
        y = _conv(x, w, 1, padding, 1, 1)
        mean, var, gamma, beta = (v.reshape(-1, 1, 1) for v in (mean, var, gamma, beta))
        y = (y - mean) / np.sqrt(var + EPS) * gamma + beta
        return np.maximum(y + sum(other), 0)

    rng = np.random.default_rng(1)
    inputs = [rng.standard_normal(shape).astype("float32") for shape, _ in specs]
    inputs[3] = np.abs(inputs[3]) + 0.1
    check(build, reference, *specs, inputs=inputs, tolerance=2e-5)
    products = [
        match_contraction(prepare_first(inline(program)))
        for func in fused(module(build, *specs)).functions.values()
        if isinstance(func, Func) and (program := parse(func)) is not None
    ]
    assert any(found is not None and found.flops > 0 for found in products)
