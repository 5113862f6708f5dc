"""Matrix products in every operand order, with and without an epilogue."""

import numpy as np
import pytest
from driver import arrays, check, kernels, module
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax, te, tirx
from tvm.relax import op

import tvmgraph as ms
from tvmgraph import Tensor, jit, ops
from tvmgraph.backend.loop_ir.choice import deciding
from tvmgraph.config import context

_SIZES = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 33, 48, 64, 65, 97])


def _swap(value: relax.Expr) -> relax.Expr:
    rank = len(value.ty.shape)
    return op.permute_dims(value, [*range(rank - 2), rank - 1, rank - 2])


def _check_product(m, k, n, *, left_t=False, right_t=False, dtype="float32", bias=True, **options):
    def build(bb, x, w, *b):
        x = bb.emit(_swap(x)) if left_t else x
        w = bb.emit(_swap(w)) if right_t else w
        y = bb.emit(op.matmul(x, w))
        return op.nn.relu(bb.emit(op.add(y, b[0]))) if bias else y

    def reference(x, w, *b):
        y = (x.T if left_t else x) @ (w.T if right_t else w)
        return np.maximum(y + b[0], 0) if bias else y

    specs = [((k, m) if left_t else (m, k), dtype), ((n, k) if right_t else (k, n), dtype)]
    check(build, reference, *specs, *([((n,), dtype)] if bias else []), **options)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(_SIZES, _SIZES, _SIZES, st.booleans(), st.booleans(), st.booleans())
def test_any_size_and_operand_order(m, k, n, left_t, right_t, bias):
    _check_product(m, k, n, left_t=left_t, right_t=right_t, bias=bias)


@pytest.mark.parametrize(
    "m, k, n, right_t",
    [
        (64, 784, 512, True),  # panels divided among workers
        (300, 5000, 20, True),  # depth in blocks
        (300, 5000, 20, False),
        (257, 300, 24, False),  # one panel: rows divided
        (33, 301, 49, True),
        (1, 784, 512, True),  # dot products
        (30, 401, 37, True),
        (4, 785, 515, True),
        (1, 300, 1000, False),  # in place
        (6, 300, 1003, False),
        (1, 301, 3001, False),  # streams
        (2, 205, 4099, False),
        (2, 8, 70000, False),
        (131, 300, 223, False),  # the last rows and columns are computed twice
        (131, 300, 223, True),
        (103, 700, 1003, False),
    ],
)
def test_every_strategy(m, k, n, right_t):
    _check_product(m, k, n, right_t=right_t)


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_other_types(dtype):
    _check_product(37, 53, 65, dtype=dtype, bias=dtype != "int32", tolerance=1e-12)
    _check_product(5, 53, 9, dtype=dtype, bias=False, right_t=True, tolerance=1e-12)


@pytest.mark.parametrize("dtype, out", [("float16", "float32"), ("int8", "int32")])
def test_narrow_operands_with_wide_sums(dtype, out):
    check(
        lambda _, x, w: op.matmul(x, w, out_dtype=out),
        lambda x, w: x.astype("float64") @ w.astype("float64"),
        ((33, 70), dtype),
        ((70, 41), dtype),
        tolerance=1e-6,
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_products_are_summed_in_float32(dtype):
    check(
        lambda _, x, w: op.matmul(x, w),
        np.matmul,
        ((30, 4000), dtype),
        ((4000, 20), dtype),
        tolerance=1e-3 if dtype == "float16" else 1e-2,
    )


@pytest.mark.parametrize(
    "left, right",
    [
        ((12, 33, 20), (12, 20, 17)),
        ((2, 3, 12, 77), (77, 30)),
        ((2, 3, 12, 77), (1, 3, 77, 30)),
        ((2, 1, 9, 8), (1, 3, 8, 7)),
        ((5, 7), (2, 7, 9)),
        ((9, 8), (8,)),
        ((8,), (8, 9)),
        ((8,), (8,)),
        ((4, 1, 64), (4, 64, 33)),
        ((3, 4, 1, 77), (1, 4, 77, 1050)),
        ((300,), (300, 2050)),
    ],
)
def test_batched_and_vector_products(left, right):
    check(lambda _, x, w: op.matmul(x, w), np.matmul, (left, "float32"), (right, "float32"))


@pytest.mark.parametrize("channels", [1, 2])
def test_few_channels_of_a_large_map(channels):
    def classify(bb, x, w):
        def element(x, w):
            k = te.reduce_axis((0, x.shape[0]), name="k")
            shape = (w.shape[0], *x.shape[1:])
            return te.compute(shape, lambda o, i, j: te.sum(w[o, k] * x[k, i, j], axis=k))

        return bb.emit_te(element, x, w)

    specs = ((70, 101, 67), "float32"), ((channels, 70), "float32")
    check(classify, lambda x, w: np.einsum("kij,ok->oij", x, w), *specs)


@pytest.mark.parametrize("is_transposed", [True, False])
@pytest.mark.parametrize(
    "images, pixels, rows, columns",
    [
        (2, (26, 26), 48, 256),  # images are no whole number of vectors
        (8, (7, 7), 13, 40),
        (6, (14, 14), 70, 33),
        (3, (5, 3), 20, 17),
        (2, (1, 2917), 30, 70),  # a prime number of steps
        (3, (1, 6000), 25, 24),  # an image in blocks
        (7, (1, 1000), 9, 100),  # blocks of one image
        (5, (4, 1), 20, 20),  # shorter than a vector
    ],
)
def test_products_summed_over_images(images, pixels, rows, columns, is_transposed):
    def build(bb, x, g):
        def product(x, g):
            extents = (images, *pixels)
            n, i, j = (te.reduce_axis((0, extent)) for extent in extents)

            def element(r, c):
                other = g[n, c, i, j] if is_transposed else g[n, i, j, c]
                return te.sum(x[n, r, i, j] * other, axis=[n, i, j])

            return te.compute((rows, columns), element)

        return op.multiply(bb.emit_te(product, x, g), bb.emit(relax.const(2.0)))

    right = (images, columns, *pixels) if is_transposed else (images, *pixels, columns)
    order = "ncij" if is_transposed else "nijc"
    specs = ((images, rows, *pixels), "float32"), (right, "float32")
    check(build, lambda x, g: 2 * np.einsum(f"nrij,{order}->rc", x, g), *specs)


@pytest.mark.parametrize("shape", [(4, 8, 33, 16), (2, 1, 16)])
def test_batched_product_with_transposed_operand(shape):
    other = (*shape[:-2], 29, 16)
    check(
        lambda bb, q, k: op.matmul(q, bb.emit(_swap(k))),
        lambda q, k: q @ np.swapaxes(k, -1, -2),
        (shape, "float32"),
        (other, "float32"),
    )


def test_a_sum_of_products_that_overwrites_what_it_adds_to_counts_every_product_once():
    total = ms.Parameter(np.zeros((131, 223), np.float32))

    @jit
    def add(x, y):
        ops.assign(total, total + ops.matmul(x, y))
        return total

    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((131, 300), (300, 223)))
    for _ in range(2):
        add(Tensor(x), Tensor(y))
    np.testing.assert_allclose(total.asnumpy(), 2 * (x @ y), atol=1e-3)


def test_gelu_and_residual_run_on_the_tile():
    def build(bb, x, w, b, r):
        y = bb.emit(op.add(bb.emit(op.matmul(x, w)), b))
        return op.add(bb.emit(op.nn.gelu_tanh(y)), r)

    def reference(x, w, b, r):
        y = x @ w + b
        return 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3))) + r

    specs = [
        ((50, 40), "float32"),
        ((40, 70), "float32"),
        ((70,), "float32"),
        ((50, 70), "float32"),
    ]
    check(build, reference, *specs)
    assert kernels(module(build, *specs)).count("T.prim_func") == 1


@pytest.mark.parametrize("columns, width", [(16, 16), (64, 64), (10, 16), (70, 32)])
def test_panels_are_read_as_they_are_stored(columns, width):
    def build(bb, x, panels):
        def product(a, b):
            k = te.reduce_axis((0, 40))

            def element(i, j):
                place = (tirx.floordiv(j, width), k, tirx.floormod(j, width))
                return te.sum(a[i, k] * b[place], axis=k)

            return te.compute((33, columns), element)

        return bb.emit_te(product, x, panels)

    def reference(x, panels):
        return (x @ panels.transpose(1, 0, 2).reshape(40, -1))[:, :columns]

    specs = [((33, 40), "float32"), ((-(-columns // width), 40, width), "float32")]
    with deciding() as decisions:
        check(build, reference, *specs)
    assert "panel rows" in decisions.found  # even where the only one needs no number


@pytest.mark.parametrize("m, k, n", [(33, 59, 59), (48, 77, 507)])
def test_an_odd_depth_of_bfloat16(m, k, n, monkeypatch):
    monkeypatch.setattr(context, "thread_num", 1)
    x, w = (Tensor(a).astype(ms.bfloat16) for a in arrays(((m, k), "float32"), ((k, n), "float32")))
    got = jit(ops.matmul)(x, w).astype(ms.float32).asnumpy()
    want = x.astype(ms.float32).asnumpy() @ w.astype(ms.float32).asnumpy()
    np.testing.assert_allclose(got, want, rtol=2**-7, atol=1e-2)
