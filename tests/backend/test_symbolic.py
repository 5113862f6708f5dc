"""Functions with a leading dimension that is known only at run time."""

import re

import numpy as np
import pytest
from driver import arrays, call, compile_module, kernels, module
from tvm import tirx
from tvm.relax import op

import tvmgraph as ms
from tvmgraph import Tensor, ops

_COUNTS = (0, 1, 5, 7, 8, 15, 64, 137)


def _check(build, reference, *specs, tolerance=1e-5):
    """``specs`` start with None where the symbolic extent goes."""
    rows = tirx.Var("n", "int64")
    symbolic = [(tuple(rows if e is None else e for e in shape), dtype) for shape, dtype in specs]
    function = compile_module(module(build, *symbolic))
    for count in _COUNTS:
        fixed = [(tuple(count if e is None else e for e in shape), dtype) for shape, dtype in specs]
        inputs = arrays(*fixed)
        (got,) = call(function, inputs)
        want = reference(*(value.astype("float64") for value in inputs))
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=10 * tolerance)


@pytest.mark.parametrize("transposed", [False, True])
def test_dense_layer(transposed):
    def build(bb, x, w, b):
        w = bb.emit(op.permute_dims(w)) if transposed else w
        return op.nn.relu(bb.emit(op.add(bb.emit(op.matmul(x, w)), b)))

    _check(
        build,
        lambda x, w, b: np.maximum(x @ (w.T if transposed else w) + b, 0),
        ((None, 40), "float32"),
        ((33, 40) if transposed else (40, 33), "float32"),
        ((33,), "float32"),
    )


def test_all_rows_share_a_panel():
    def build(_, x, w):
        return op.matmul(x, w)

    specs = ((None, 310), "float32"), ((310, 400), "float32")
    _check(build, np.matmul, *specs, tolerance=1e-4)
    rows = tirx.Var("n", "int64")
    text = kernels(module(build, ((rows, 310), "float32"), specs[1]))
    assert text.count("T.parallel") == 3  # two of 64 rows, one of 8, 4, 2 and 1


def test_convolution():
    def reference(x, w):
        view = np.lib.stride_tricks.sliding_window_view(
            np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3)
        )
        return np.einsum("ncyxij,fcij->nfyx", view, w)

    _check(
        lambda _, x, w: op.nn.conv2d(x, w, padding=1),
        reference,
        ((None, 3, 9, 9), "float32"),
        ((5, 3, 3, 3), "float32"),
    )


def test_softmax_and_elementwise():
    _check(
        lambda _, x: op.nn.softmax(x),
        lambda x: (e := np.exp(x - x.max(-1, keepdims=True))) / e.sum(-1, keepdims=True),
        ((None, 40), "float32"),
    )
    _check(
        lambda bb, x, y: op.tanh(bb.emit(op.multiply(x, y))),
        lambda x, y: np.tanh(x * y),
        ((None, 7, 9), "float32"),
        ((9,), "float32"),
    )
    _check(lambda _, x: op.exp(x), np.exp, ((None,), "float32"))


def test_rows_that_depend_on_each_other_stay_correct():
    _check(lambda _, x: op.sum(x, 0), lambda x: x.sum(0), ((None, 40), "float32"), tolerance=1e-4)
    _check(lambda _, x: op.flip(x, 0), lambda x: x[::-1], ((None, 40), "float32"))
    _check(
        lambda bb, x: op.matmul(bb.emit(op.permute_dims(x)), x),
        lambda x: x.T @ x,
        ((None, 20), "float32"),
        tolerance=1e-4,
    )


def test_fixed_numbers_of_rows_are_used():
    rows = tirx.Var("n", "int64")
    text = kernels(module(lambda _, x: op.nn.softmax(x), ((rows, 40), "float32")))
    assert "T.vectorized" in text


_PAIRS = ((1, 1), (1, 7), (3, 5), (8, 8), (5, 27), (0, 4), (64, 2))


def _check_pairs(build, reference, *specs):
    """``specs`` have "b" and "t" where the symbolic extents go."""
    names = {name: tirx.Var(name, "int64") for name in "bt"}
    symbolic = [(tuple(names.get(e, e) for e in shape), dtype) for shape, dtype in specs]
    function = compile_module(module(build, *symbolic))
    for pair in _PAIRS:
        sizes = dict(zip("bt", pair))
        inputs = arrays(*((tuple(sizes.get(e, e) for e in s), dtype) for s, dtype in specs))
        (got,) = call(function, inputs)
        want = reference(*(value.astype("float64") for value in inputs))
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    return kernels(module(build, *symbolic))


def test_two_dimensions_that_follow_each_other_are_one():
    """A batch and the steps of its sequences: a kernel per number of rows, not per pair of them."""
    text = _check_pairs(
        lambda bb, x, w, y: op.nn.relu(bb.emit(op.add(bb.emit(op.matmul(x, w)), y))),
        lambda x, w, y: np.maximum(x @ w + y, 0),
        (("b", "t", 40), "float32"), ((40, 33), "float32"), (("b", "t", 33), "float32"),
    )  # fmt: skip
    sizes = set(re.findall(r"([bt*]+) - T.int64\((\d+)\)", text.replace("b * t", "b*t")))
    assert sizes == {("b*t", str(rows)) for rows in (512, 64, 8, 4, 2, 1)}
    _check_pairs(
        lambda _, x: op.nn.softmax(x),
        lambda x: (e := np.exp(x - x.max(-1, keepdims=True))) / e.sum(-1, keepdims=True),
        (("b", "t", 40), "float32"),
    )
    _check_pairs(
        lambda bb, x, y: op.tanh(bb.emit(op.multiply(x, y))), lambda x, y: np.tanh(x * y),
        ((2, "b", "t", 9), "float32"), (("b", "t", 9), "float32"),
    )  # fmt: skip


def test_two_dimensions_apart_stay_two():
    _check_pairs(
        lambda _, x: op.permute_dims(x, [0, 2, 1, 3]), lambda x: x.swapaxes(1, 2),
        (("b", "t", 4, 20), "float32"),
    )  # fmt: skip
    _check_pairs(
        lambda _, x, y: op.add(x, y), np.add, (("b", "t", 20), "float32"), (("b", 1, 20), "float32")
    )
    _check_pairs(
        lambda _, x, y: op.add(x, y), np.add, (("b", "t", 20), "float32"), (("t", 20), "float32")
    )


def test_rows_whose_number_is_a_product():
    """What x.reshape(-1, n) and x.reshape(-1, 4, n) leave: their kernels are those of one size."""
    rng = np.random.default_rng(0)
    w = Tensor(rng.standard_normal((24, 33)).astype(np.float32))

    def rows(x):
        return ops.relu(ops.matmul(x.reshape(-1, 24), w)).reshape(*x.shape[:2], 4, 33)

    def windows(x):
        y = ops.matmul(x.reshape(-1, 4, 24), w)
        return ops.softmax(y.reshape(-1, 12, 4, 33), -1)

    for function, free in ((rows, (0, 1)), (windows, (0,))):
        compiled = ms.jit(function)
        for b, t in ((2, 6), (3, 7), (5, 27), (8, 4), (2, 2), (64, 5)):
            x = rng.standard_normal((b, t if 1 in free else 12, 4, 24)).astype(np.float32)
            got, want = (f(Tensor(x)).asnumpy() for f in (compiled, function))
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
        said = compiled.explain(kernels=True)
        plain = re.findall(r"^(\w+) -> loops", said, re.MULTILINE)
        assert "symbolic: axis 0" in said and all("reshape" in name for name in plain), plain


def test_products_whose_sizes_are_all_unknown():
    text = _check_pairs(
        lambda bb, x, y: op.tanh(bb.emit(op.matmul(x, y))), lambda x, y: np.tanh(x @ y),
        (("b", "t", 12), "float32"), (("b", 12, "t"), "float32"),
    )  # fmt: skip
    update = text[text.index("matmul_update") - 200 : text.index("matmul_update")]
    assert re.search(r"T.grid\(T.int64\(12\), t\)", update), "rows are added, not numbers"
    _check_pairs(
        lambda _, x, y: op.matmul(x, y), np.matmul,
        (("b", 12, "t"), "float32"), (("b", "t", 12), "float32"),
    )  # fmt: skip
