"""Forms of arguments that MindSpore's programs use and NumPy's do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, ops
from tvmgraph.errors import ArgumentError
from tvmgraph.ops import functional as F

X = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
LINE = Tensor(np.arange(4, dtype=np.float32).reshape(1, 1, 4))
AXES = Tensor([0, 1])
TIES = Tensor([4.0, 1.0, 5.0]), Tensor([4.0])
KINK = Tensor([[0.0, 1.0, -1.0]]), Tensor([0.5])
#: What is computed (MindSpore 2.10 was asked for the results).
CASES: dict[str, tuple[Callable[[], Any], Any]] = {
    "axes in a tensor": (lambda: [ops.sum(X, AXES), X.mean(AXES), ops.ReduceMax()(X, AXES)],
                         [15.0, 2.5, 5.0]),
    "an index in a list": (lambda: [X[[Tensor([True, False]), 0]], X[[Tensor(1), 1]],
                                    X[[slice(None), 1]], X[[None, 1]]],
                           [[0.0], 4.0, [1.0, 4.0], [[3.0, 4.0, 5.0]]]),
    "padding that cuts": (lambda: [ops.pad(LINE, (-1, 2), mode) for mode in
                                   ("reflect", "replicate")],
                          [[[[1.0, 2, 3, 2, 1]]], [[[1.0, 2, 3, 3, 3]]]]),
    "ties of fmax": (lambda: ms.grad(ops.fmax, (0, 1))(*TIES), [[1.0, 0.0, 1.0], [1.0]]),
    "ties of fmin": (lambda: ms.grad(ops.fmin, (0, 1))(*TIES), [[1.0, 1.0, 0.0], [1.0]]),
    "prelu at 0": (lambda: ms.grad(ops.prelu, (0, 1))(*KINK), [[[0.5, 1.0, 0.5]], [-1.0]]),
    "relu6 at 6": (lambda: ms.grad(ops.relu6)(Tensor([0.0, 6.0, 7.0])), [0.0, 1.0, 0.0]),
    "leaky_relu at 0": (lambda: ms.grad(ops.leaky_relu)(Tensor([-1.0, 0.0, 1.0]), 0.2),
                        [0.2, 0.6, 1.0]),
    "hardtanh at its ends": (lambda: ms.grad(ops.hardtanh)(Tensor([-1.0, 0.0, 1.0, 2.0])),
                             [0.5, 1.0, 0.5, 0.0]),
    "rrelu at 0": (lambda: ms.grad(ops.rrelu)(Tensor([-1.0, 0.0, 1.0]), 0.2, 0.2),
                   [0.2, 0.0, 1.0]),
    "margin_ranking_loss of equals": (lambda: ms.grad(ops.margin_ranking_loss)(
        Tensor([2.0]), Tensor([2.0]), Tensor([1.0])), [-1.0]),
    "hinge_embedding_loss at the margin": (lambda: ms.grad(ops.hinge_embedding_loss)(
        Tensor([1.0]), Tensor([-1.0])), [-0.5]),
    "a placeholder": (lambda: ms.tensor(shape=(2,), dtype=ms.float32, init="ones"), [1.0, 1.0]),
    "methods' own names": (lambda: [X[0].float_power(other=2), X[0].multiply(value=X[1]),
                                    X.reverse_sequence(Tensor([2, 1, 1]), batch_dim=1)],
                           [[0.0, 1.0, 4.0], [0.0, 4.0, 10.0], [[3.0, 1.0, 2.0], [0.0, 4.0, 5.0]]]),
    "a slice replaced": (lambda: ops.operations._inner_ops.TensorCopySlices()(
        X, Tensor([9.0]), (0, 1), (1, 2), (1, 1)), [[0.0, 9.0, 2.0], [3.0, 4.0, 5.0]]),
    "clipped": (lambda: ops.operations._inner_ops.ClipByNorm()(Tensor([3.0, 4.0]), 1.0),
                [0.6, 0.8]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_form(name: str) -> None:
    compute, wanted = CASES[name]
    for found in (compute(), ms.jit(compute)()):
        if not isinstance(found, (list, tuple)):
            found, want = [found], [wanted]
        else:
            want = wanted
        for f, w in zip(found, want, strict=True):
            np.testing.assert_allclose(f.asnumpy(), np.array(w, np.float32), rtol=1e-6)


def test_shapes_are_known() -> None:
    assert not F.is_sequence_value_unknown(X.shape)
    assert ms.jit(lambda x: x * 2 if F.is_sequence_value_unknown(x.shape) else x)(X) is not None


def test_the_axis_of_a_single_result_may_be_in_a_tuple() -> None:
    def twice(x: Tensor) -> Tensor:
        return ops.vmap(lambda row: row * 2, 1, (0,))(x)

    for function in (twice, ms.jit(twice)):
        assert function(X).tolist() == [[0.0, 6.0], [2.0, 8.0], [4.0, 10.0]]


def test_results_have_the_dtypes_and_forms_of_mindspore() -> None:
    small, large = Tensor([1, 5], ms.int32), Tensor([1.5, 2.5])
    assert ops.clamp(small, Tensor([2.5])).dtype == ms.float32
    assert ops.clamp(large, None, Tensor([2.0], ms.float64)).dtype == ms.float64
    assert ops.lcm(small, 3).dtype == ms.int32
    assert str(ops.sign(Tensor([float("nan"), -2.0]))) == "[ 0. -1.]"
    assert Tensor([[1.0, 2.0], [4.0, 3.0]]).max((0, 1)).tolist() == 4.0
    assert Tensor([5, 7]).subtract(2, 2).tolist() == [1, 3]
    assert isinstance(ops.clip_by_norm([large, large], 1.0), tuple)
    assert isinstance(ops.clip_by_value([large], 0, 1), tuple)
    assert str(ops.bincount(Tensor([2, 0, 2]))) == "[1. 0. 2.]"
    assert ms.mint.bincount(Tensor([2, 0, 2])).dtype == ms.int64
    assert ms.mint.normal(Tensor([0.0, 1.0]), 2.0).shape == (2,)
    assert ops.cross(Tensor([[1.0, 0, 0], [0, 1.0, 0]]), Tensor([0.0, 0, 1.0])).shape == (2, 3)


def test_primitives_take_the_settings_of_graphs() -> None:
    relu = ops.ReLU().recompute().set_stage(1)
    assert relu.place("MS_WORKER", 0)(Tensor([-1.0, 2.0])).tolist() == [0, 2]


def test_images_are_transformed_on_the_processor_only() -> None:
    invert = ms.dataset.vision.Invert().device("CPU")
    assert invert(np.zeros((2, 2, 3), np.uint8)).min() == 255
    with pytest.raises(ArgumentError, match="not on 'Ascend'"):
        invert.device("Ascend")


def test_real_div_of_integers_rounds_to_0() -> None:
    x, y = Tensor([7, -7], ms.int32), Tensor([2, 2], ms.int32)
    for divide in (ops.RealDiv(), ms.jit(lambda x, y: ops.RealDiv()(x, y))):
        assert divide(x, y).tolist() == divide(x, 2).tolist() == [3, -3]
        assert divide(x, y).dtype is ms.int32
        assert divide(x, 2.0).tolist() == divide(x, Tensor([2.0])).tolist() == [3.5, -3.5]


def test_regions_of_float16_are_averaged_in_float32() -> None:
    image = Tensor(np.arange(2048, 2084).reshape(1, 1, 6, 6), ms.float16)
    rois = Tensor([[0, -2.0, -2.0, 22.0, 22.0]], ms.float16)
    found = ops.ROIAlign(2, 2, 0.25, 2, 1)(image, rois)
    wanted = ops.ROIAlign(2, 2, 0.25, 2, 1)(image.astype(ms.float32), rois.astype(ms.float32))
    assert found.dtype is ms.float16
    assert found.tolist() == wanted.astype(ms.float16).tolist()


FACTORS = [
    ("float16", "float32", "float16"), ("float16", "float64", "float16"),
    ("bfloat16", "float32", "bfloat16"), ("float32", "float16", "float32"),
    ("int8", "int64", "int8"), ("int32", "int64", "int32"), ("int32", "float32", "float32"),
    ("float16", "int64", "float16"), ("bool", "int32", "int32"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "factor", "wanted"), FACTORS)
def test_a_factor_without_axes_does_not_widen_what_it_scales(
    kind: str, factor: str, wanted: str
) -> None:
    x = Tensor(np.ones(2)).astype(kind)
    s = Tensor(np.array(1)).astype(factor)

    def scale(x: Tensor, s: Tensor) -> tuple[Tensor, ...]:
        return x * s, s * x, ops.mul(x, s), x.mul(s)

    for products in (scale(x, s), ms.jit(scale)(x, s)):
        assert {p.dtype.name for p in products} == {wanted}
    assert (x * s.reshape(1)).dtype is ms.dtypes.promote(x.dtype, s.dtype)  # an axis counts
    if x.dtype.is_float and s.dtype.is_float:
        for quotients in ((x / s, s / x), ms.jit(lambda x, s: (x / s, s / x))(x, s)):
            assert {q.dtype.name for q in quotients} == {wanted}
        gradients = ms.grad(lambda x, s: (x * s).sum(), (0, 1))(x, s)
        assert [g.dtype.name for g in gradients] == [kind, factor]
