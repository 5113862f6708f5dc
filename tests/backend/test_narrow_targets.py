"""Kernels for processors with narrower vectors and fewer registers than this one."""

import re

import numpy as np
import pytest
import tvm
from driver import THREADS, check, fused, module
from tvm.relax import op

from tvmgraph.backend.cpu.schedule import schedule_cpu
from tvmgraph.backend.target import make_target
from tvmgraph.machine.processor import cpu_model

pytestmark = pytest.mark.any_processor

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


def _assembly(build, *specs, target):
    """The machine code of a function for a processor that need not be this one."""
    scheduled = schedule_cpu(fused(module(build, *specs)), cpu_model(target, THREADS), 2)
    executable = tvm.compile(scheduled, target=make_target(target), relax_pipeline="default_build")
    found, todo = [], [executable.mod]
    while todo:
        library = todo.pop()
        todo += list(library.imports)
        if library.kind == "llvm":
            found.append(library.inspect_source("asm"))
    return "\n".join(found)


@pytest.mark.parametrize("m, k, n", [(64, 96, 64), (1, 256, 64), (37, 51, 29)])
def test_products_for_neon_use_its_registers(m, k, n):
    text = _assembly(
        lambda _, x, w: op.matmul(x, w), ((m, k), "float32"), ((k, n), "float32"), target="aarch64"
    )
    by_element = re.findall(r"fmla\s+v\d+\.4s, v\d+\.4s, v\d+\.", text)
    assert len(by_element) >= 8  # vectors of sums, fused multiply-adds
    loop = max(re.split(r"^\.LBB", text, flags=re.MULTILINE), key=lambda part: part.count("fmla"))
    assert not re.search(r"str\s+q\d+, \[sp", loop)  # the sums stay in registers


def test_passes_for_neon():
    big = ((2048, 2048), "float32")
    text = _assembly(lambda _, x: op.nn.softmax(x), big, target="aarch64")
    assert re.search(r"fmla\s+v\d+\.4s", text)
    assert "bl\texpf" not in text
