"""Products by AMX: right on a model of its registers, and the instructions in the assembly."""

import re
from dataclasses import replace

import numpy as np
import pytest
import tile_model
import tvm
from driver import arrays, call, fused, module
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax
from tvm.relax import op

from tvmgraph.backend.cpu.kernels.gemm import amx
from tvmgraph.backend.cpu.schedule import schedule_cpu
from tvmgraph.backend.target import make_target
from tvmgraph.core.op import OPS
from tvmgraph.machine.processor import cpu_model

#: Every processor with these tiles has vectors of 64 bytes.
pytestmark = pytest.mark.any_processor
_OUT = {"bfloat16": "float32", "int8": "int32"}


def _swap(value):
    rank = len(value.ty.shape)
    return op.permute_dims(value, [*range(rank - 2), rank - 1, rank - 2])


def _product(dtype, right_t, bias):
    def build(bb, x, w, *b):
        y = bb.emit(op.matmul(x, bb.emit(_swap(w)) if right_t else w, out_dtype=_OUT[dtype]))
        return op.nn.relu(bb.emit(op.add(y, b[0]))) if bias else y

    return build


def _run(build, *specs, l1=48 << 10, l2=2 << 20):
    """Runs the kernel of a processor with AMX, on software registers and one thread."""
    model = replace(cpu_model("host", 1), tile_types=frozenset(_OUT), l1_bytes=l1, l2_bytes=l2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(amx, "INSTRUCTIONS", tile_model.LLVM)
        transposed = relax.transform.FuseTransposeMatmul()(module(build, *specs))
        scheduled = schedule_cpu(fused(transposed), model, 2)
        assert "tvmgraph_tile_dot" in scheduled.script()
        built = tvm.compile(scheduled, target=make_target(), relax_pipeline="default_build")
    inputs = arrays(*specs)
    return inputs, call(relax.VirtualMachine(built, tvm.cpu())["main"], inputs)[0]


@settings(max_examples=14, deadline=None, derandomize=True)
@given(
    st.sampled_from([16, 17, 32, 33, 50, 80]), st.sampled_from([5, 31, 32, 64, 100, 256]),
    st.sampled_from([16, 20, 32, 33, 47, 64, 70, 96]), st.booleans(), st.booleans(),
    st.sampled_from(sorted(_OUT)),
)  # fmt: skip
def test_any_size(m, k, n, right_t, bias, dtype):
    specs = [((m, k), dtype), ((n, k) if right_t else (k, n), dtype)]
    specs += [((n,), _OUT[dtype])] if bias else []
    (x, w, *b), got = _run(_product(dtype, right_t, bias), *specs)
    want = x.astype("float64") @ (w.T if right_t else w).astype("float64")
    want = np.maximum(want + b[0], 0) if bias else want
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("right_t", [False, True])
@pytest.mark.parametrize("m, k, n", [(33, 59, 43), (20, 3, 27), (48, 77, 507), (17, 130, 90)])
@pytest.mark.parametrize("dtype", sorted(_OUT))
def test_depths_that_fill_no_tile(dtype, m, k, n, right_t):
    specs = [((m, k), dtype), ((n, k) if right_t else (k, n), dtype)]
    (x, w), got = _run(_product(dtype, right_t, False), *specs)
    want = x.astype("float64") @ (w.T if right_t else w).astype("float64")
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    "size, kernel, stride, pad, dilation",
    [
        ((7, 7), (3, 3), 1, 1, 1),  # windows of a narrow image are copied
        ((8, 35), (3, 2), 1, 1, 1),  # rows of a wide one are not
        ((9, 40), (3, 5), 2, 2, 1),
        ((14, 20), (3, 3), 1, 2, 2),
    ],
)
def test_convolutions(size, kernel, stride, pad, dilation):
    def build(bb, x, w):
        options = dict(strides=stride, padding=pad, dilation=dilation, out_dtype="float32")
        return bb.emit(op.nn.conv2d(x, w, **options))

    specs = ((2, 9, *size), "bfloat16"), ((19, 9, *kernel), "bfloat16")
    (x, w), got = _run(build, *specs)
    want = OPS["convolution"].eager(
        *(v.astype("float64") for v in (x, w)), stride=(stride,) * 2, padding=((pad, pad),) * 2,
        dilation=(dilation,) * 2, groups=1,
    )  # fmt: skip
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", sorted(_OUT))
def test_blocks_of_rows_and_depth(dtype):
    # caches this small make three blocks of K and two of the rows
    specs = [((70, 200), dtype), ((200, 70), dtype)]
    (x, w), got = _run(_product(dtype, False, False), *specs, l1=4 << 10, l2=32 << 10)
    want = x.astype("float64") @ w.astype("float64")
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("m, k, n", [(5, 64, 64), (8, 192, 96), (16, 128, 48), (33, 64, 112)])
@pytest.mark.parametrize("dtype", sorted(_OUT))
def test_a_matrix_of_many_columns_is_read_in_place(dtype, m, k, n, batch):
    specs = [((*batch, m, k), dtype), ((*batch, n, k), dtype), ((n,), _OUT[dtype])]
    (x, w, b), got = _run(_product(dtype, True, True), *specs, l1=4 << 10)
    want = x.astype("float64") @ np.swapaxes(w, -1, -2).astype("float64")
    np.testing.assert_allclose(got, np.maximum(want + b, 0), rtol=1e-5, atol=1e-4)


def test_batches():
    specs = [((3, 20, 40), "bfloat16"), ((3, 40, 33), "bfloat16")]
    (x, w), got = _run(_product("bfloat16", False, False), *specs)
    want = x.astype("float64") @ w.astype("float64")
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("rows, k_size", [(33, 128), (33, 100), (5, 70)])
@pytest.mark.parametrize("dtype, group", [("bfloat16", 2), ("int8", 4)])
def test_weights_that_are_stored_as_panels(dtype, group, rows, k_size):
    def product(a, b):
        k = tvm.te.reduce_axis((0, k_size), name="k")
        return tvm.te.compute(
            (rows, 70),
            lambda i, j: tvm.te.sum(
                a[i, k].astype(_OUT[dtype])
                * b[j // 64, k // group, j % 64, k % group].astype(_OUT[dtype]),
                axis=k,
            ),
        )

    specs = [((rows, k_size), dtype), ((2, 128 // group, 64, group), dtype)]
    (x, panels), got = _run(lambda bb, *xs: bb.emit_te(product, *xs), *specs)
    w = panels.astype("float64").transpose(1, 3, 0, 2).reshape(128, 128)[:k_size, :70]
    np.testing.assert_allclose(got, x.astype("float64") @ w, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype, dot", [("bfloat16", "tdpbf16ps"), ("int8", "tdpbssd")])
def test_a_tile_that_is_loaded_is_used_twice(dtype, dot):
    specs = [((256, 1024), dtype), ((1024, 256), dtype)]
    name = "sapphirerapids"
    model = cpu_model(name, 2)
    scheduled = schedule_cpu(fused(module(_product(dtype, False, False), *specs)), model, 2)
    kernels = {v: f for v, f in scheduled.functions.items() if isinstance(f, tvm.tirx.PrimFunc)}
    functions = {v: f.with_attr("global_symbol", v.name_hint) for v, f in kernels.items()}
    text = tvm.tirx.build(tvm.IRModule(functions), make_target(name)).inspect_source("asm")
    # two tiles of rows and two of columns per four products, without reuse it were eight; sums
    # that were begun before are loaded once
    loops = [loop for loop in _loops(text) if re.search(rf"{dot}\s.*%tmm3$", loop, re.M)]
    assert loops
    shortest = min(loops, key=len)
    assert 4 * shortest.count("tileloadd") <= 5 * shortest.count(dot)


def _loops(text):
    """The instructions from every label to the jumps back to it."""
    lines = text.splitlines()
    labels = {m[1]: i for i, line in enumerate(lines) if (m := re.match(r"(\.L\w+):", line))}
    for end, line in enumerate(lines):
        jump = re.match(r"\s+j\w+\s+(\.L\w+)", line)
        if jump and labels.get(jump[1], end) < end:
            yield "\n".join(lines[labels[jump[1]] : end])
