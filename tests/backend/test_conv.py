"""Convolution and pooling."""

import numpy as np
import pytest
from driver import check
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te, topi
from tvm.relax import op


def _windows(x, size, stride, dilation=1):
    reach = (size - 1) * dilation + 1
    view = np.lib.stride_tricks.sliding_window_view(x, (reach, reach), (2, 3))
    return view[:, :, ::stride, ::stride, ::dilation, ::dilation]


def _pad(x, p, value=0.0):
    return np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)), constant_values=value)


def _conv(x, w, stride, padding, dilation, groups):
    n, c = x.shape[:2]
    view = _windows(_pad(x, padding), w.shape[2], stride, dilation)
    view = view.reshape(n, groups, c // groups, *view.shape[2:])
    weights = w.reshape(groups, -1, *w.shape[1:])
    y = np.einsum("ngcyxij,gfcij->ngfyx", view, weights)
    return y.reshape(n, -1, *y.shape[3:])


def _check_conv(n, c, size, f, k, stride=1, padding=0, dilation=1, groups=1):
    def build(bb, x, w, b):
        y = op.nn.conv2d(x, w, strides=stride, padding=padding, dilation=dilation, groups=groups)
        return op.nn.relu(bb.emit(op.add(bb.emit(y), b)))

    check(
        build,
        lambda x, w, b: np.maximum(_conv(x, w, stride, padding, dilation, groups) + b, 0),
        ((n, c, size, size), "float32"),
        ((f, c // groups, k, k), "float32"),
        ((1, f, 1, 1), "float32"),
    )


@pytest.mark.parametrize(
    "case",
    [
        dict(n=2, c=1, size=32, f=6, k=5),
        dict(n=2, c=6, size=14, f=16, k=5),
        dict(n=1, c=3, size=40, f=16, k=7, stride=2, padding=3),
        dict(n=1, c=20, size=7, f=33, k=3, padding=1),
        dict(n=1, c=16, size=28, f=24, k=1),
        dict(n=2, c=16, size=14, f=24, k=1, stride=2),
        dict(n=2, c=3, size=11, f=5, k=3, stride=2, padding=2, dilation=2),
        dict(n=1, c=4, size=13, f=3, k=3, stride=3, padding=1),
        dict(n=1, c=24, size=20, f=24, k=3, padding=1, groups=24),
        dict(n=1, c=24, size=20, f=24, k=3, padding=1, stride=2, groups=24),
        dict(n=1, c=8, size=12, f=12, k=3, padding=1, groups=2),
        dict(n=1, c=2, size=70, f=7, k=3),
        dict(n=5, c=40, size=7, f=128, k=3, padding=1),  # vectors that end in another image
        dict(n=5, c=16, size=5, f=70, k=3),
        dict(n=8, c=256, size=56, f=4, k=1, stride=2),  # an image larger than the caches
    ],
    ids=lambda case: "-".join(f"{k}{v}" for k, v in case.items()),
)
def test_convolution(case):
    _check_conv(**case)


@pytest.mark.parametrize(
    "shape, kernel, stride, padding, dilation, dtype",
    [
        ((2, 5, 13, 37), (3, 3), 1, (1, 1), 1, "float32"),
        ((1, 7, 31, 66), (3, 3), 2, (1, 1), 1, "float32"),
        ((1, 3, 9, 71), (5, 3), 2, (0, 2), 1, "float32"),
        ((3, 4, 12, 19), (3, 5), 3, (2, 1), 1, "float32"),
        ((1, 6, 17, 23), (3, 3), 2, (2, 3), 2, "float32"),
        ((1, 2, 90, 140), (7, 7), 1, (3, 3), 1, "float32"),
        ((1, 9, 7, 7), (3, 3), 1, (1, 1), 1, "float64"),
        ((2, 3, 11, 40), (3, 3), 2, (1, 1), 1, "float16"),
        ((1, 3, 1, 50), (1, 4), 1, (0, 3), 3, "float32"),
        ((1, 1, 20, 300), (2, 2), 2, (0, 0), 1, "float32"),
    ],
)
def test_depthwise_planes(shape, kernel, stride, padding, dilation, dtype):
    wide = "float32" if dtype == "float16" else dtype

    def build(bb, x, w):
        y = op.nn.conv2d(x, w, strides=stride, padding=padding, dilation=dilation,
                         groups=shape[1], out_dtype=wide)  # fmt: skip
        return op.nn.relu(bb.emit(y))

    def reference(x, w):
        x = np.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding)))
        reach = [(k - 1) * dilation + 1 for k in kernel]
        view = np.lib.stride_tricks.sliding_window_view(x, reach, (2, 3))
        view = view[:, :, ::stride, ::stride, ::dilation, ::dilation]
        return np.maximum(np.einsum("ncyxab,cab->ncyx", view, w[:, 0]), 0)

    check(build, reference, (shape, dtype), ((shape[1], 1, *kernel), dtype),
          tolerance=1e-12 if dtype == "float64" else 1e-5)  # fmt: skip


@pytest.mark.parametrize(
    "shape, kernel, stride, padding, dtype",
    [
        ((3, 5, 13, 37), (3, 3), 1, 1, "float32"),
        ((2, 3, 21, 50), (5, 5), 2, 2, "float32"),
        ((1, 4, 9, 18), (7, 7), 1, 3, "float64"),
        ((2, 6, 11, 7), (3, 1), 1, 0, "float32"),
        ((2, 3, 16, 16), (2, 3), 3, 0, "float16"),
    ],
)
def test_gradient_of_depthwise_weights(shape, kernel, stride, padding, dtype):
    n, c, *size = shape
    out = [(s + 2 * padding - k) // stride + 1 for s, k in zip(size, kernel)]
    wide = "float32" if dtype == "float16" else dtype

    def gradient(data, grad):
        p = [0, 0, padding, padding]
        data = topi.nn.pad(data, p, p, 0.0) if padding else data
        i, y, x = (te.reduce_axis((0, extent)) for extent in (n, *out))

        def element(o, _, a, b):
            pixel = data[i, o, y * stride + a, x * stride + b].astype(wide)
            return te.sum(grad[i, o, y, x].astype(wide) * pixel, axis=[i, y, x])

        return te.compute((c, 1, *kernel), element)

    def reference(x, g):
        x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
        view = np.lib.stride_tricks.sliding_window_view(x, kernel, (2, 3))
        view = view[:, :, ::stride, ::stride]
        return np.einsum("ncyx,ncyxab->cab", g, view)[:, None]

    check(lambda bb, x, g: bb.emit_te(gradient, x, g), reference,
          (shape, dtype), ((n, c, *out), dtype),
          tolerance=1e-12 if dtype == "float64" else 1e-5)  # fmt: skip


def test_several_results_of_a_channel():
    _check_conv(n=2, c=5, size=19, f=15, k=3, padding=1, groups=5)


def test_depthwise_rows_of_one_dimension():
    def build(bb, x, w):
        return op.nn.conv1d(x, w, strides=2, padding=2, groups=6)

    def reference(x, w):
        view = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (2, 2))), 5, 2)
        return np.einsum("ncxa,ca->ncx", view[:, :, ::2], w[:, 0])

    check(build, reference, ((3, 6, 75), "float32"), ((6, 1, 5), "float32"))


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    st.integers(1, 3),
    st.sampled_from([1, 3, 8]),
    st.integers(5, 19),
    st.sampled_from([1, 2, 7, 9, 20]),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(0, 2),
)
def test_any_convolution(n, c, size, f, k, stride, padding):
    _check_conv(n, c, size, f, k, stride, padding)


@pytest.mark.parametrize(
    "n, c, size, f, k, stride, padding, dilation",
    [
        (3, 5, 9, 6, 3, 1, 1, 1),
        (2, 3, 13, 7, 3, 2, 1, 1),
        (2, 3, 13, 7, 2, 1, 0, 2),
        (1, 20, 40, 9, 5, 1, 2, 1),
        (2, 40, 33, 9, 1, 1, 0, 1),
    ],
)
def test_gradient_of_the_weights(n, c, size, f, k, stride, padding, dilation):
    out = (size + 2 * padding - (k - 1) * dilation - 1) // stride + 1

    def gradient(data, grad):
        p = [0, 0, padding, padding]
        data = topi.nn.pad(data, p, p, 0.0) if padding else data
        i, y, x = (te.reduce_axis((0, extent)) for extent in (n, out, out))

        def element(o, ch, a, b):
            pixel = data[i, ch, y * stride + a * dilation, x * stride + b * dilation]
            return te.sum(grad[i, o, y, x] * pixel, axis=[i, y, x])

        return te.compute((f, c, k, k), element)

    check(
        lambda bb, x, g: bb.emit_te(gradient, x, g),
        lambda x, g: np.einsum(
            "nfyx,ncyxab->fcab", g, _windows(_pad(x, padding), k, stride, dilation)
        ),
        ((n, c, size, size), "float32"),
        ((n, f, out, out), "float32"),
    )


def test_convolution_in_one_dimension():
    def reference(x, w):
        view = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1))), 3, 2)
        return np.einsum("ncxi,fci->nfx", view, w)

    check(
        lambda _, x, w: op.nn.conv1d(x, w, padding=1),
        reference,
        ((2, 8, 50), "float32"),
        ((12, 8, 3), "float32"),
    )


def test_transposed_convolution():
    def reference(x, w):
        n, _, h, v = x.shape
        y = np.zeros((n, w.shape[1], 2 * h + 1, 2 * v + 1))
        for i in range(3):
            for j in range(3):
                y[:, :, i : i + 2 * h : 2, j : j + 2 * v : 2] += np.einsum(
                    "nchw,cf->nfhw", x, w[:, :, i, j]
                )
        return y[:, :, 1:-1, 1:-1]

    check(
        lambda _, x, w: op.nn.conv2d_transpose(x, w, strides=2, padding=1),
        reference,
        ((2, 6, 9, 9), "float32"),
        ((6, 5, 3, 3), "float32"),
    )


@pytest.mark.parametrize(
    "size, k, stride, padding", [(28, 2, 2, 0), (30, 3, 2, 1), (14, 3, 1, 1), (9, 3, 3, 0)]
)
def test_pooling(size, k, stride, padding):
    spec = ((2, 5, size, size), "float32")
    options = ((k, k), (stride, stride), (padding, padding))
    check(
        lambda _, x: op.nn.max_pool2d(x, *options),
        lambda x: _windows(_pad(x, padding, -np.inf), k, stride).max((4, 5)),
        spec,
    )
    check(
        lambda _, x: op.nn.avg_pool2d(x, *options, count_include_pad=True),
        lambda x: _windows(_pad(x, padding), k, stride).mean((4, 5)),
        spec,
    )


def test_global_pooling():
    check(
        lambda _, x: op.nn.adaptive_avg_pool2d(x, (1, 1)),
        lambda x: x.mean((2, 3), keepdims=True),
        ((3, 40, 7, 7), "float32"),
    )
