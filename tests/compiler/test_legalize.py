"""Loop nests of equal operators are built once, and only where they are the same."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import relax

import tvmgraph as ms
from tvmgraph import Tensor, jit, ops
from tvmgraph.compiler.relax.legalize import legalize_operators


def _module(emit):
    builder = relax.BlockBuilder()
    params = [relax.Var(n, relax.TensorType((6, 7), "float32")) for n in "xyz"]
    with builder.function("main", params):
        with builder.dataflow():
            for left, right in emit(*params):
                last = builder.emit(relax.op.multiply(left, right))
            output = builder.emit_output(last)
        builder.emit_func_output(output)
    return legalize_operators(builder.get())


def _calls(mod):
    bindings = mod["main"].body.blocks[0].bindings
    calls = [b.value for b in bindings if isinstance(b.value, relax.Call)]
    return [(c.args[0].name_hint, [a.name for a in c.args[1].fields]) for c in calls]


def test_equal_products_share_a_loop_nest():
    (first, _), *others = calls = _calls(_module(lambda x, y, z: [(x, y), (y, z), (z, x)]))
    assert [name for name, _ in others] == [first] * 2
    assert [operands for _, operands in calls] == [["x", "y"], ["y", "z"], ["z", "x"]]


@pytest.mark.parametrize("order", [1, -1])
def test_a_square_and_a_product_read_their_own_operands(order):
    pairs = _calls(_module(lambda x, y, z: [(x, x), (x, y), (z, z)][::order]))
    wanted = [["x", "x"], ["x", "y"], ["z", "z"]][::order]
    assert [operands for _, operands in pairs] == wanted


def test_literals_are_told_apart_by_their_bits():
    def scale(x):
        return x * 2.0 + (x * 0.0 - x * -0.0) / -0.0 + 2.0 * x * 3.0, ops.sqrt(x) + x / x

    x = Tensor(np.linspace(-2, 2, 24, dtype="float32").reshape(4, 6))
    for eager, compiled in zip(scale(x), jit(scale)(x)):
        np.testing.assert_array_equal(np.isnan(eager.asnumpy()), np.isnan(compiled.asnumpy()))
        np.testing.assert_allclose(eager.asnumpy(), compiled.asnumpy(), rtol=1e-6)
    signs = jit(lambda x: (1 / (ops.abs(x) * 0.0), 1 / (ops.abs(x) * -0.0)))(ms.ops.ones_like(x))
    assert (signs[0].asnumpy() > 0).all() and (signs[1].asnumpy() < 0).all()
