"""Kernels for processors with narrower vectors and fewer registers than this one."""

import numpy as np
import pytest
from driver import check
from tvm.relax import op

TARGETS = ["x86-64-v2", "x86-64-v3"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "m, k, n, transposed", [(70, 90, 50, True), (70, 90, 50, False), (9, 300, 21, True)]
)
def test_matrix_product(target, m, k, n, transposed):
    def build(bb, x, w, b):
        w = bb.emit(op.permute_dims(w)) if transposed else w
        return op.nn.relu(bb.emit(op.add(bb.emit(op.matmul(x, w)), b)))

    check(
        build,
        lambda x, w, b: np.maximum(x @ (w.T if transposed else w) + b, 0),
        ((m, k), "float32"),
        ((n, k) if transposed else (k, n), "float32"),
        ((n,), "float32"),
        target=target,
    )


@pytest.mark.parametrize("target", TARGETS)
def test_convolution_pooling_softmax_transpose(target):
    def build(bb, x, w):
        y = bb.emit(op.nn.relu(bb.emit(op.nn.conv2d(x, w, padding=1, strides=2))))
        y = bb.emit(op.nn.max_pool2d(y, (2, 2), (2, 2)))
        y = bb.emit(op.nn.softmax(bb.emit(op.reshape(y, (12, 49))), 1))
        return op.permute_dims(bb.emit(op.nn.gelu_tanh(y)))

    def reference(x, w):
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        view = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
        y = np.maximum(np.einsum("ncyxij,fcij->nfyx", view, w), 0)
        y = y.reshape(2, 6, 7, 2, 7, 2).max((3, 5)).reshape(12, 49)
        e = np.exp(y - y.max(1, keepdims=True))
        y = e / e.sum(1, keepdims=True)
        return (0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))).T

    check(build, reference, ((2, 3, 28, 28), "float32"), ((6, 3, 3, 3), "float32"), target=target)
