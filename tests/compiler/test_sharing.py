"""Kernels that differ in their sizes only are translated once, and compute what they did apart."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import te, tirx

from tvmgraph import JitConfig, Tensor, jit, ops
from tvmgraph.backend.cpu.codegen.pipeline import generate
from tvmgraph.backend.cpu.codegen.sharing import share_kernels
from tvmgraph.backend.cpu.schedule import schedule_cpu
from tvmgraph.backend.target import make_target
from tvmgraph.machine.processor import cpu_model


def _product(name: str, m: int, n: int, k: int):
    m, n, k = (tirx.IntImm("int64", extent) for extent in (m, n, k))  # as those of Relax
    a, b = te.placeholder((m, k), name="a"), te.placeholder((k, n), name="b")
    i = te.reduce_axis((0, k), name="i")
    c = te.compute((m, n), lambda r, s: te.sum(a[r, i] * b[i, s], axis=i), name="c")
    return te.create_prim_func([a, b, c]).with_attr("global_symbol", name)


def _scheduled(*sizes: tuple[int, int, int]) -> tvm.IRModule:
    functions = {f"product{i}": _product(f"product{i}", *size) for i, size in enumerate(sizes)}
    return schedule_cpu(tvm.IRModule(functions), cpu_model(), 2)


def test_products_of_other_depths_are_one_kernel():
    sizes = [(48, 64, k) for k in (96, 160, 192)]
    kernels, instead = share_kernels(_scheduled(*sizes))
    assert instead == {"product1": "product0", "product2": "product0"}
    assert [v.name_hint for v in kernels.functions] == ["product0"]
    run, rng = generate(kernels, make_target())["product0"], np.random.default_rng(0)
    for m, n, k in sizes:
        a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
        c = tvm.runtime.tensor(np.zeros((m, n), np.float32))
        run(tvm.runtime.tensor(a), tvm.runtime.tensor(b), c)
        np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "other",
    [
        (48, 64, 7),  # a loop that LLVM writes out
        (47, 64, 96),  # another tile
        (48, 72, 96),  # another vector at the end
    ],
)
def test_what_makes_a_kernel_fast_is_not_shared(other):
    before = _scheduled((48, 64, 96), other)
    kernels, instead = share_kernels(before)
    assert not instead
    assert len(kernels.functions) == 2


def test_equal_kernels_are_one():
    kernels, instead = share_kernels(_scheduled((48, 64, 96), (48, 64, 96)))
    assert instead == {"product1": "product0"}
    assert len(kernels.functions) == 1


def _plus(name: str, size: int, number: int):
    shape = (tirx.IntImm("int64", size),)
    a = te.placeholder(shape, "int32", name="a")
    b = te.compute(shape, lambda i: a[i] + te.const(number, "int32"), name="b")
    return te.create_prim_func([a, b]).with_attr("global_symbol", name)


def test_numbers_that_are_no_indices_are_not_taken_from_sizes():
    functions = {"first": _plus("first", 512, 512), "second": _plus("second", 1024, 1024)}
    mod = schedule_cpu(tvm.IRModule(functions), cpu_model(), 2)
    assert not share_kernels(mod)[1]


def test_strides_of_arguments_are_no_extents():
    """Blocks with other inner extents: a call tells the extents, and the strides follow."""

    def both(x, y, at):
        added = ops.tensor_scatter_add(x, at, x[:2] * 2.0)
        return added, ops.tensor_scatter_add(y, at, y[:2] * 2.0)

    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((4, 2, 64, n)).astype(np.float32) for n in (8, 4))
    at = np.array([[3], [0]])
    for given, got in zip((x, y), jit(both)(Tensor(x), Tensor(y), Tensor(at))):
        want = given.copy()
        want[at[:, 0]] += given[:2] * 2
        np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-6)


@pytest.mark.parametrize("mode", ["sink", "auto"])
def test_programs_call_the_kernel_that_stands_for_theirs(mode):
    """By machine code, and by bytecode, which finds kernels by their names."""
    rng = np.random.default_rng(1)
    depths = (64, 96, 128, 160)
    first = [Tensor(rng.standard_normal((40, k)).astype(np.float32)) for k in depths]
    second = [Tensor(rng.standard_normal((k, 32)).astype(np.float32)) for k in depths]

    def products(first, second):
        return [ops.softmax(ops.matmul(a, b)).sum(1) for a, b in zip(first, second)]

    compiled = jit(products, jit_config=JitConfig(exec_mode=mode))
    for found, expected in zip(compiled(first, second), products(first, second)):
        np.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), rtol=1e-4, atol=1e-5)
    assert len(compiled.kernels()) > len(depths)
