"""Tensor: text, conversion, methods, in-place forms, dtypes, Parameter, and the public surface."""

from __future__ import annotations

import contextlib
import copy
import gc
import inspect
import pickle
import re
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Parameter, ParameterTuple, Tensor, dtypes, ops
from tvmgraph.core import tensor as tensor_module
from tvmgraph.core import tensor_access
from tvmgraph.core.tensor_methods import CASTS, IN_PLACE, PLAIN, RENAMED
from tvmgraph.errors import ArgumentError, DeviceError, DTypeError, ShapeError, TvmgraphError


def counting(*shape: int) -> Tensor:
    return Tensor(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


A = counting(2, 3)

# ---- text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (Tensor(1), "Tensor(shape=[], dtype=Int64, value= 1)"),
        (Tensor(1.5), "Tensor(shape=[], dtype=Float32, value= 1.5)"),
        (Tensor(1 / 3), "Tensor(shape=[], dtype=Float32, value= 0.333333)"),
        (Tensor(True), "Tensor(shape=[], dtype=Bool, value= True)"),
        (Tensor([1, 2]), "Tensor(shape=[2], dtype=Int64, value= [1, 2])"),
        (Tensor([1, -100, 7]), "Tensor(shape=[3], dtype=Int64, value= [   1, -100,    7])"),
        (Tensor([1.0, 2.5]),
         "Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.50000000e+00])"),
        (Tensor([True, True]), "Tensor(shape=[2], dtype=Bool, value= [ True,  True])"),
        (Tensor([True, False]), "Tensor(shape=[2], dtype=Bool, value= [ True, False])"),
        (Tensor([1.5, -2], ms.float16),
         "Tensor(shape=[2], dtype=Float16, value= [ 1.5000e+00, -2.0000e+00])"),
        (Tensor([1.5, -2.25], ms.bfloat16),
         "Tensor(shape=[2], dtype=BFloat16, value= [  1.5, -2.25])"),
        (Tensor([float("nan"), float("-inf")]),
         "Tensor(shape=[2], dtype=Float32, value= [            nan,            -inf])"),
        (Tensor([1 + 2j, 3.5j], ms.complex64),
         "Tensor(shape=[2], dtype=Complex64, value= [1+2j, 0+3.5j])"),
        (Tensor([]), "Tensor(shape=[0], dtype=Float32, value= )"),
        (Tensor(np.zeros((0, 3), np.int32)), "Tensor(shape=[0, 3], dtype=Int32, value=\n)"),
        (Tensor([[True], [False]]),
         "Tensor(shape=[2, 1], dtype=Bool, value=\n[[ True],\n [False]])"),
        (counting(2, 2, 1),
         "Tensor(shape=[2, 2, 1], dtype=Float32, value=\n"
         "[[[ 0.00000000e+00],\n  [ 1.00000000e+00]],\n"
         " [[ 2.00000000e+00],\n  [ 3.00000000e+00]]])"),
        (Tensor(np.arange(16).reshape(8, 2)),
         "Tensor(shape=[8, 2], dtype=Int64, value=\n"
         "[[ 0,  1],\n [ 2,  3],\n [ 4,  5],\n ...\n [10, 11],\n [12, 13],\n [14, 15]])"),
        (Tensor(np.arange(1001)),
         "Tensor(shape=[1001], dtype=Int64, value= [   0,    1,    2 ...  998,  999, 1000])"),
        (Tensor(shape=(None, 3), dtype=ms.float32), "Tensor(shape=[-1, 3], dtype=Float32)"),
    ],
    ids=range(20),
)  # fmt: skip
def test_repr(tensor: Tensor, text: str) -> None:
    assert repr(tensor) == text


def test_long_vectors_wrap() -> None:
    lines = repr(Tensor(np.arange(30))).split("\n")
    assert len(lines) == 2
    assert lines[0].endswith("23, ")


def test_str_is_numpy() -> None:
    for t in (Tensor(1.5), Tensor([1.0, 2.5]), A, Tensor([]), Tensor([True, False])):
        assert str(t) == str(t.asnumpy())
    assert str(Tensor([1.5], ms.bfloat16)) == "[1.5]"
    assert f"{Tensor(1.5)} {Tensor([1.5])} {Tensor(1.5):.2f}" == "1.5 [1.5] 1.50"


def test_parameter_text() -> None:
    p = Parameter(Tensor([1.0, 2.0]), name="w", requires_grad=False)
    text = "Parameter (name=w, shape=(2,), dtype=Float32, requires_grad=False)"
    assert repr(p) == str(p) == text
    assert repr(ParameterTuple([p])) == f"({text},)"


# ---- construction and Python protocols -----------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1, "int64", ()), (1.0, "float32", ()), (True, "bool", ()), ([1, 2], "int64", (2,)),
        ([1.0, 2], "float32", (2,)), ([True, 2], "int64", (2,)), ([], "float32", (0,)),
        (np.ones(2), "float64", (2,)), (np.ones(2, np.int16), "int16", (2,)),
        (np.float32(1), "float32", ()), (Tensor([1.0]), "float32", (1,)),
        ([Tensor(1.0), Tensor(2.0)], "float32", (2,)), (2**40, "int64", ()),
    ],
)  # fmt: skip
def test_default_dtypes(data: Any, dtype: str, shape: tuple[int, ...]) -> None:
    t = Tensor(data)
    assert (t.dtype.name, t.shape) == (dtype, shape)


@pytest.mark.parametrize("data", ["a", None, range(3), object(), [1, "a"], np.array("a")])
def test_wrong_data(data: Any) -> None:
    with pytest.raises(TvmgraphError):
        Tensor(data)


def test_ragged_data() -> None:
    with pytest.raises(ShapeError, match="rows of a nested list differ"):
        Tensor([[1], [2, 3]])


def test_data_is_copied() -> None:
    source = np.ones(2, np.float32)
    copied, shared = Tensor(source), Tensor.from_numpy(source)
    source[0] = 5
    assert (copied.tolist(), shared.tolist()) == ([1.0, 1.0], [5.0, 1.0])


def test_python_numbers() -> None:
    assert (int(Tensor(2.7)), float(Tensor([2])), complex(Tensor(2.0))) == (2, 2.0, 2 + 0j)
    assert bool(Tensor([1.0])) and not Tensor(0.0)
    for convert in (bool, int, float):
        with pytest.raises(ValueError):
            convert(A)
    with pytest.raises(TypeError):
        len(Tensor(1.0))
    with pytest.raises(TypeError):
        list(Tensor(1.0))
    with pytest.raises(TypeError):
        [1, 2][Tensor(1.0)]  # pyright: ignore[reportCallIssue, reportArgumentType]


def test_comparison_with_other_things() -> None:
    assert (A == None) is False and (A != None) is True  # noqa: E711
    for other in ("a", [1.0], {}, object(), int, ms.float32):
        assert (A == other) is False and (other == A) is False  # noqa: SIM300
        assert (A != other) is True and (other != A) is True  # noqa: SIM300
    assert [{"a": 1}, "a", Tensor(1), Tensor(2)].count(Tensor(2)) == 1
    assert (A == [1, 2]) is False and (A != (1, 2)) is True
    assert hash(A) == hash(A)
    with pytest.raises(TypeError):
        _ = A < None


@pytest.mark.parametrize(
    ("operate", "dtype", "values"),
    [
        (lambda t: t.__add__([1, 2]), "int64", [2, 4]),
        (lambda t: [5, 5] - t, "int64", [4, 3]),
        (lambda t: t * (0.5, 2), "float32", [0.5, 4.0]),
        (lambda t: t.astype("float16") * [1.5, 2], "float16", [1.5, 4.0]),
        (lambda t: t.astype("int8") // [1, 2], "int8", [1, 1]),
        (lambda t: t * [t[1], 3], "int64", [2, 6]),
        (lambda t: t < [1, 5], "bool", [False, True]),
        (lambda t: t - [[1], [2]], "int64", [[0, 1], [-1, 0]]),
    ],
)
def test_lists_are_operands(operate: Any, dtype: str, values: Any) -> None:
    for run in (operate, ms.jit(operate)):
        y = run(Tensor([1, 2]))
        assert (y.dtype.name, y.tolist()) == (dtype, values)


def test_lists_that_are_no_operands() -> None:
    with pytest.raises(ShapeError):
        _ = A - [1, 2]
    with pytest.raises(DTypeError):
        _ = A - ["a"]
    with pytest.raises(DTypeError, match="not list"):
        ops.matmul(A, [1.0, 2.0, 3.0])  # pyright: ignore[reportArgumentType]


def test_cast_to_the_same_dtype_adds_nothing() -> None:
    same = ops.cast(A, "float32")
    assert same.array is A.array and same is not A
    with pytest.raises(DTypeError):
        ops.cast(A, "float33")
    graph = ms.jit(lambda x: ops.cast(x, ms.float32) + ops.cast(x, ms.int32)).graph(A)
    assert str(graph).count("cast(") == 2  # to int32, and back for the sum


def test_copies_and_pickles() -> None:
    for t in (A, Tensor(True), Tensor([1.5], ms.bfloat16), A.T):
        for other in (copy.deepcopy(t), copy.copy(t), pickle.loads(pickle.dumps(t)), t.copy()):
            assert other is not t and other.aval is t.aval
            np.testing.assert_array_equal(other.asnumpy(), t.asnumpy())
    p = Parameter(Tensor([1.0]), name="x", requires_grad=False)
    for other in (copy.deepcopy(p), pickle.loads(pickle.dumps(p)), p.clone()):
        assert (other.name, other.requires_grad, other.tolist()) == ("x", False, [1.0])


def test_numpy_interoperates() -> None:
    np.testing.assert_array_equal(np.asarray(A) + 1, A.asnumpy() + 1)
    assert isinstance(np.ones(3) * Tensor([1.0, 2.0, 3.0]), Tensor)
    assert isinstance(np.float32(2) * Tensor([1.0]), Tensor)
    np.testing.assert_array_equal(np.from_dlpack(A), A.asnumpy())
    np.testing.assert_array_equal(Tensor.from_dlpack(A).asnumpy(), A.asnumpy())


# ---- what it is ----------------------------------------------------------------------------------


def test_description() -> None:
    assert (A.shape, A.ndim, A.size, A.itemsize, A.nbytes) == ((2, 3), 2, 6, 4, 24)
    assert (A.dim(), A.ndimension(), A.numel(), A.nelement()) == (2, 2, 6, 6)
    assert (A.strides, A.stride(), A.T.stride(0)) == ((12, 4), [3, 1], 1)
    assert A.is_contiguous() and not A.T.is_contiguous() and A.T.contiguous().is_contiguous()
    assert A.is_signed() and not Tensor([1], ms.uint8).is_signed()
    assert A.is_floating_point() and not Tensor(1).is_floating_point()
    assert (A.init, A.has_init, A.data is A) == (None, False, True)
    assert A.dtype == ms.float32 == "float32"
    assert A.get_bytes() == A.asnumpy().tobytes()
    np.testing.assert_array_equal(A.H.asnumpy(), A.asnumpy().T)


@pytest.mark.parametrize(("name", "dtype"), sorted(CASTS.items()))
def test_casts(name: str, dtype: Any) -> None:
    assert getattr(A, name)().dtype is dtype
    assert getattr(A, name)().shape == A.shape


@pytest.mark.parametrize(
    ("wanted", "dtype"),
    [
        ("int32", "int32"), (np.int32, "int32"), (ms.float16, "float16"), (int, "int64"),
        (float, "float64"), ("float", "float64"), ("half", "float16"), (bool, "bool"),
    ],
)  # fmt: skip
def test_astype(wanted: Any, dtype: str) -> None:
    assert A.astype(wanted).dtype.name == dtype


def test_to_and_type() -> None:
    assert A.to(ms.float16).dtype is ms.float16
    assert A.to("CPU").dtype is ms.float32
    assert A.to("CPU", ms.int32).dtype is ms.int32
    assert A.to(Tensor(1)).dtype is ms.int64
    assert A.to(dtype="float64").dtype is ms.float64
    assert A.to(ms.float32) is A
    assert A.to(ms.float32, copy=True) is not A
    assert A.type_as(Tensor(1)).dtype is ms.int64
    with pytest.raises(DeviceError, match=r"no device .Ascend."):
        A.to("Ascend")
    with pytest.raises(DTypeError, match="not a supported dtype"):
        A.astype("foo")


# ---- promotion -----------------------------------------------------------------------------------

NAMES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
         "float64")  # fmt: skip
# row op column: b bool, u uint8, 1 int8, 2 int16, 4 int32, 8 int64, h half, r bfloat16, f, d
PROMOTED = """
    b u 1 2 4 8 h r f d
    u u 2 2 4 8 h r f d
    1 2 1 2 4 8 h r f d
    2 2 2 2 4 8 h r f d
    4 4 4 4 4 8 h r f d
    8 8 8 8 8 8 h r f d
    h h h h h h h f f d
    r r r r r r f r f d
    f f f f f f f f f d
    d d d d d d d d d d
"""
LETTERS = dict(zip("bu1248hrfd", NAMES))
TABLE = [[LETTERS[c] for c in line.split()] for line in PROMOTED.split("\n") if line.strip()]


def one(name: str) -> Tensor:
    return Tensor([1], dtype=name)


@pytest.mark.parametrize("b", NAMES)
@pytest.mark.parametrize("a", NAMES)
def test_promotion_of_tensors(a: str, b: str) -> None:
    expected = TABLE[NAMES.index(a)][NAMES.index(b)]
    assert TABLE[NAMES.index(b)][NAMES.index(a)] == expected
    x, y = one(a), one(b)
    for function in (ops.add, ops.mul, ops.maximum, lambda p, q: ops.where(Tensor([True]), p, q)):
        assert function(x, y).dtype.name == expected
    quotient = expected if expected in NAMES[6:] else "float32"
    assert (x / y).dtype.name == quotient
    assert (x == y).dtype == (x < y).dtype == ops.logical_and(x, y).dtype == ms.bool_
    if "float" not in expected:
        assert (x & y).dtype.name == expected
    assert ms.record(ops.add, x, y).outputs[0].type.dtype.name == expected


@pytest.mark.parametrize("name", NAMES)
def test_promotion_with_numbers(name: str) -> None:
    x = one(name)
    exact = "float" in name
    with_int = "int64" if name == "bool" else name
    with_float = name if exact else "float32"
    for other, expected in ((True, name), (2, with_int), (2.5, with_float)):
        assert (x + other).dtype.name == (other + x).dtype.name == expected
        assert (x * other).dtype.name == expected
        assert (x / other).dtype.name == (name if exact else "float32")
    assert (x**2).dtype.name == with_int


@pytest.mark.parametrize(
    ("number", "python"),
    [(np.float64(2), 2.0), (np.float32(2), 2.0), (np.float16(2), 2.0), (np.int64(2), 2),
     (np.uint8(2), 2), (np.bool_(True), True)],
)  # fmt: skip
def test_numbers_of_numpy_count_as_those_of_python(number: Any, python: Any) -> None:
    def uses(x: Tensor, n: Any) -> tuple[Tensor, ...]:
        return x * n, x - n, x**n, ops.maximum(x, n), ops.where(x > 1, x, n), x == n

    for name in ("uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"):
        x = Tensor([1, 2, 3], getattr(ms, name))
        expected = uses(x, python)
        for found in (
            uses(x, number),
            ms.jit(lambda x: uses(x, number))(x),
            ms.jit(uses)(x, number),
        ):
            assert [y.dtype for y in found] == [y.dtype for y in expected]
            for y, z in zip(found, expected):
                np.testing.assert_array_equal(y.asnumpy(), z.asnumpy())
    assert Tensor(number).dtype == dtypes.dtype_of(number.dtype)
    x = Tensor([1, 9])
    assert ops.clamp(x, max=number).dtype is ops.clamp(x, max=python).dtype


def test_a_number_of_numpy_that_does_not_fit_is_an_error() -> None:
    for run in (lambda x, n: x * n, ms.jit(lambda x, n: x * n)):
        with pytest.raises(ArgumentError, match="does not fit uint8"):
            run(Tensor([1], ms.uint8), np.int64(300))


@pytest.mark.parametrize("name", [n for n in NAMES if n != "bfloat16"])
def test_dtypes_of_results(name: str) -> None:
    x = Tensor([[1, 2], [0, 1]], dtype=name)
    exact = "float" in name
    assert x.sum().dtype.name == x.prod().dtype.name == (name if exact else "int64")
    assert x.argmax().dtype is ms.int64
    assert x.argmin().dtype is ms.int32
    assert x.argsort().dtype is ms.int32
    assert x.sort()[1].dtype is ms.int32
    assert x.nonzero().dtype is ms.int64
    assert x.all().dtype is ms.bool_
    assert x.any().dtype is (ms.uint8 if name == "uint8" else ms.bool_)  # as MindSpore's
    assert ops.exp(x).dtype.name == (name if exact else "float32")
    if name != "bool":
        assert x.max(0)[0].dtype.name == name and x.max(0)[1].dtype is ms.int64
        assert x.topk(1)[1].dtype is ms.int32
        assert x.std().dtype.name == (name if exact else "float32")
        assert ops.neg(x).dtype.name == name


# ---- methods with their own argument forms -------------------------------------------------------


def same(actual: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        for a, e in zip(actual, expected, strict=True):
            same(a, e)
        return
    if isinstance(expected, bool):
        assert actual is expected
        return
    assert actual.shape == np.shape(expected)
    np.testing.assert_allclose(actual.asnumpy(), expected, rtol=1e-6)


N = A.asnumpy()
CASES: list[tuple[str, Any, Any]] = [
    ("sum-dim", lambda: A.sum(0, True), N.sum(0, keepdims=True)),
    ("sum-keywords", lambda: A.sum(dim=1, keepdim=True), N.sum(1, keepdims=True)),
    ("sum-axis", lambda: A.sum(axis=(0, 1), keepdims=False, initial=2.0), N.sum() + 2),
    ("sum-dtype", lambda: A.sum(0, ms.float64), N.sum(0, dtype=np.float64)),
    ("mean-keep_dims", lambda: A.mean(axis=1, keep_dims=True), N.mean(1, keepdims=True)),
    ("mean-dim", lambda: A.mean(dim=0), N.mean(0)),
    ("max", lambda: A.max(), N.max()),
    ("max-axis", lambda: A.max(axis=0), N.max(0)),
    ("max-positional", lambda: A.max(1, True),
     (N.max(1, keepdims=True), N.argmax(1, keepdims=True))),
    ("max-dim", lambda: A.max(dim=0), (N.max(0), N.argmax(0))),
    ("max-return_indices", lambda: A.max(axis=0, return_indices=True), (N.max(0), N.argmax(0))),
    ("max-initial", lambda: A.max(axis=0, initial=4.5), N.max(0, initial=4.5)),
    ("min-axis", lambda: A.min(axis=1, keepdims=True), N.min(1, keepdims=True)),
    ("argmax-with-value", lambda: A.argmax_with_value(1), (N.max(1), N.argmax(1))),
    ("std", lambda: A.std(), N.std()),
    ("std-ddof", lambda: A.std(0, 1), N.std(0, ddof=1)),
    ("std-axis", lambda: A.std(axis=0), N.std(0)),
    ("std-dim", lambda: A.std(dim=1), N.std(1, ddof=1)),
    ("var-correction", lambda: A.var(dim=0, correction=0, keepdim=True), N.var(0, keepdims=True)),
    ("ptp", lambda: A.ptp(1), np.ptp(N, 1)),
    ("cumsum", lambda: A.cumsum(), N.cumsum()),
    ("cumsum-dim", lambda: A.cumsum(dim=1), N.cumsum(1)),
    ("trace", lambda: A.trace(), np.trace(N)),
    ("trace-offset", lambda: A.trace(1), np.trace(N, 1)),
    ("all-dim", lambda: (A > 0).all(dim=1, keepdim=True), (N > 0).all(1, keepdims=True)),
    ("sort-descending", lambda: A.sort(descending=True)[0], -np.sort(-N)),
    ("searchsorted", lambda: counting(4).searchsorted(Tensor([1.5, 3.0]), "right"), [2, 4]),
    ("reshape-list", lambda: A.reshape([3, 2]), N.reshape(3, 2)),
    ("view", lambda: A.view(3, 2), N.reshape(3, 2)),
    ("reshape_as", lambda: A.reshape_as(counting(3, 2)), N.reshape(3, 2)),
    ("resize-smaller", lambda: A.resize(2, 2), N.ravel()[:4].reshape(2, 2)),
    ("resize-larger", lambda: A.resize((2, 4)), [[0, 1, 2, 3], [4, 5, 0, 0]]),
    ("transpose-two", lambda: A.transpose(0, 1), N.T),
    ("transpose-tuple", lambda: A.transpose((1, 0)), N.T),
    ("transpose-three", lambda: counting(2, 3, 4).transpose(2, 0, 1),
     counting(2, 3, 4).asnumpy().transpose(2, 0, 1)),
    ("transpose-keywords", lambda: A.transpose(dim0=0, dim1=1), N.T),
    ("permute", lambda: A.permute(1, 0), N.T),
    ("squeeze-dim", lambda: A[None].squeeze(dim=0), N),
    ("flatten-start", lambda: counting(2, 3, 4).flatten(1), counting(2, 12).asnumpy()),
    ("flatten-order", lambda: A.flatten("F"), N.flatten("F")),
    ("expand", lambda: A.expand(4, -1, 3), np.broadcast_to(N, (4, 2, 3))),
    ("broadcast_to", lambda: A.broadcast_to(4, 2, 3), np.broadcast_to(N, (4, 2, 3))),
    ("expand_as", lambda: A.expand_as(x=counting(4, 2, 3)), np.broadcast_to(N, (4, 2, 3))),
    ("sum_to_size", lambda: A.sum_to_size((1, 3)), N.sum(0, keepdims=True)),
    ("sum_to_size-lead", lambda: A.sum_to_size(3), N.sum(0)),
    ("tile", lambda: A.tile(reps=(2, 1)), np.tile(N, (2, 1))),
    ("repeat", lambda: A.repeat(2, 1, 2), np.tile(N, (2, 1, 2))),
    ("repeat axis", lambda: A.repeat(2, axis=1), np.repeat(N, 2, 1)),
    ("repeat axis by slice", lambda: A.repeat([2, 0], axis=0), np.repeat(N, [2, 0], 0)),
    ("repeat_interleave", lambda: A.repeat_interleave(2, dim=0), np.repeat(N, 2, 0)),
    ("split", lambda: A.split(split_size=2, dim=1), (N[:, :2], N[:, 2:])),
    ("chunk", lambda: A.chunk(2, dim=1), (N[:, :2], N[:, 2:])),
    ("gather-slices", lambda: A.gather(Tensor([1, 0]), 0), N[[1, 0]]),
    ("gather-elements", lambda: A.gather(1, Tensor([[0], [2]])), [[0], [5]]),
    ("gather-keywords", lambda: A.gather(dim=1, index=Tensor([[0], [2]])), [[0], [5]]),
    ("index_select", lambda: A.index_select(dim=1, index=Tensor([2, 0])), N[:, [2, 0]]),
    ("take-clip", lambda: A.take(Tensor([7, -1])), [5, 0]),
    ("take-wrap", lambda: A.take(Tensor([7, -1]), mode="wrap"), [1, 5]),
    ("take-axis", lambda: A.take(Tensor([0, 2]), 1), N[:, [0, 2]]),
    ("select-slice", lambda: A.select(0, 1), N[1]),
    ("select-where", lambda: A.select(A > 2, 0.0), np.where(N > 2, N, 0)),
    ("where", lambda: A.where(A > 2, 0.0), np.where(N > 2, N, 0)),
    ("choose", lambda: Tensor([[0, 1], [1, 0]]).choose([[1, 2], [4, 5]]), [[1, 5], [4, 2]]),
    ("scatter", lambda: A.scatter(1, Tensor([[0], [1]]), Tensor([[8.0], [9.0]])),
     [[8, 1, 2], [3, 9, 5]]),
    ("scatter_add-slices", lambda: A.scatter_add(Tensor([[0, 1]]), Tensor([5.0])),
     [[0, 6, 2], [3, 4, 5]]),
    ("scatter_add-elements",
     lambda: A.scatter_add(1, Tensor([[0, 0]]), Tensor([[5.0, 6.0]])), [[11, 1, 2], [3, 4, 5]]),
    ("scatter_max", lambda: A.scatter_max(Tensor([[0, 1]]), Tensor([5.0])),
     [[0, 5, 2], [3, 4, 5]]),
    ("index_add", lambda: A.index_add(1, Tensor([0, 0]), counting(2, 2), alpha=2),
     [[2, 1, 2], [13, 4, 5]]),
    ("index_add-old", lambda: A.index_add(Tensor([0]), counting(1, 3), 0), [[0, 2, 4], [3, 4, 5]]),
    ("index_put", lambda: A.index_put((Tensor([0, 1]), Tensor([1, 2])), Tensor([7.0, 8.0])),
     [[0, 7, 2], [3, 4, 8]]),
    ("index_put-accumulate",
     lambda: A.index_put((Tensor([0, 0]),), Tensor([1.0]), accumulate=True),
     [[2, 3, 4], [3, 4, 5]]),
    ("unique", lambda: Tensor([3, 1, 3]).unique(), [1, 3]),
    ("unique-all", lambda: Tensor([[3, 1, 3]]).unique(True, True, True),
     (np.array([1, 3]), np.array([[1, 0, 1]]), np.array([1, 2]))),
    ("unique-order", lambda: Tensor([3, 1, 3]).unique(sorted=False), [3, 1]),
    ("fill_diagonal", lambda: A.fill_diagonal(9.0), [[9, 1, 2], [3, 9, 5]]),
    ("add-alpha", lambda: A.add(A, alpha=2), 3 * N),
    ("sub-alpha", lambda: A.sub(1.0, alpha=2), N - 2),
    ("round", lambda: Tensor([1.26]).round(decimals=1), [1.3]),
    ("isclose", lambda: A.isclose(x2=A + 1e-9), np.ones((2, 3), bool)),
    ("allclose", lambda: A.allclose(A + 1), False),
    ("diag-offset", lambda: A.diag(1), [1, 5]),
    ("fill", lambda: A.fill(3), np.full((2, 3), 3.0)),
    ("new_zeros", lambda: A.new_zeros((2,)), np.zeros(2)),
    ("new_ones", lambda: A.new_ones(2, 2, dtype=ms.int32), np.ones((2, 2))),
    ("new_full", lambda: A.new_full((2,), 7), [7, 7]),
    ("itemset", lambda: A.itemset((1, 2), 9.0), [[0, 1, 2], [3, 4, 9]]),
    ("plain", lambda: A.clip(1, 3), N.clip(1, 3)),
    ("plain-two", lambda: A.matmul(A.T), N @ N.T),
]  # fmt: skip


@pytest.mark.parametrize(("call", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_method(call: Any, expected: Any) -> None:
    same(call(), expected)


def test_method_errors() -> None:
    with pytest.raises(DTypeError, match="the same argument"):
        A.sum(dim=0, axis=1)
    with pytest.raises(ShapeError, match="1 repeats for 2 axes"):
        A.repeat(2)
    with pytest.raises(ShapeError, match="does not broadcast"):
        A.sum_to_size(2)
    with pytest.raises(ArgumentError, match="mode must be"):
        A.take(Tensor([0]), mode="bounce")
    with pytest.raises(ArgumentError, match="dim must be None"):
        A.unique(dim=0)
    with pytest.raises(TypeError):
        A.tanh(1)
    with pytest.raises(AttributeError, match="no_such_method"):
        _ = A.no_such_method


# ---- in place ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda t: t.add_(1), N + 1), (lambda t: t.sub_(1, alpha=2), N - 2),
        (lambda t: t.mul_(Tensor([2.0])), N * 2), (lambda t: t.div_(2), N / 2),
        (lambda t: t.exp_(), np.exp(N)), (lambda t: t.clamp_(1, 3), N.clip(1, 3)),
        (lambda t: t.fill_(7), np.full((2, 3), 7.0)), (lambda t: t.zero_(), np.zeros((2, 3))),
        (lambda t: t.copy_(Tensor([1, 2, 3])), np.tile([1, 2, 3], (2, 1))),
        (lambda t: t.masked_fill_(t > 2, 0.0), np.where(N > 2, 0, N)),
        (lambda t: t.floor_divide_(2), N // 2), (lambda t: t.remainder_(2), N % 2),
        (lambda t: t.index_fill_(0, Tensor([1]), 9.0), [[0, 1, 2], [9, 9, 9]]),
        (lambda t: t.index_copy_(1, Tensor([2]), Tensor([[8.0], [9.0]])), [[0, 1, 8], [3, 4, 9]]),
        (lambda t: t.put_(Tensor([0, 5]), Tensor([8.0, 9.0])), [[8, 1, 2], [3, 4, 9]]),
        (lambda t: t.scatter_(1, Tensor([[0], [1]]), 8.0), [[8, 1, 2], [3, 8, 5]]),
        (lambda t: t.scatter_(1, Tensor([[0], [1]]), 8.0, reduce="add"), [[8, 1, 2], [3, 12, 5]]),
        (lambda t: t.add_(Tensor([1.0], ms.float64)), N + 1),
    ],
    ids=range(18),
)  # fmt: skip
def test_in_place(change: Any, expected: Any) -> None:
    t = Tensor(N)
    alias, view = t, t[...]
    assert change(t) is t
    assert t.dtype is ms.float32
    np.testing.assert_allclose(alias.asnumpy(), expected, rtol=1e-6)
    np.testing.assert_array_equal(view.asnumpy(), N)


def _chain(t: Tensor) -> Any:
    t = t * 1
    t[0][1] = 5
    return t


def _stale_view(t: Tensor) -> Any:
    t = t * 1
    row = t[0]
    row[0] = 7
    t[0, 1] = 9
    row[2] = 8  # keeps what was written to t meanwhile
    return t, row


def _rows(t: Tensor) -> Any:
    t = t * 1
    for row in t:
        row[0] = 7
    return t


def _view_of_view(t: Tensor) -> Any:
    t = t * 1
    part = t[1:][0]
    part[1:] = 3
    part += 1  # a new tensor, as in MindSpore
    return t, part


def _masked(t: Tensor) -> Any:
    t = t * 1
    t[0][t[0] > 1] = 0
    t[1].add_(1)
    return t


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (_chain, ([[0, 5, 2], [3, 4, 5]],)),
        (_stale_view, ([[7, 9, 8], [3, 4, 5]], [7, 9, 8])),
        (_rows, ([[7, 1, 2], [7, 4, 5]],)),
        (_view_of_view, ([[0, 1, 2], [3, 3, 3]], [4, 4, 4])),
        (_masked, ([[0, 1, 0], [4, 5, 6]],)),
    ],
)
@pytest.mark.parametrize("run", [lambda f: f, ms.jit], ids=["eager", "compiled"])
def test_writing_to_a_slice_writes_to_its_tensor(run: Any, program: Any, expected: Any) -> None:
    found = run(program)(Tensor(N))
    found = found if isinstance(found, tuple) else (found,)
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got.asnumpy(), want)


def test_gradient_through_a_written_slice() -> None:
    def loss(t: Tensor) -> Tensor:
        t = t * 1
        t[0][1] = t[1][2] * 2
        return (t * t).sum()

    expected = [[0, 0, 4], [6, 8, 50]]
    np.testing.assert_array_equal(ms.grad(loss)(Tensor(N)).asnumpy(), expected)
    np.testing.assert_array_equal(ms.jit(ms.grad(loss))(Tensor(N)).asnumpy(), expected)


def test_in_place_keeps_the_type() -> None:
    integers = Tensor([1, 2])
    with pytest.raises(DTypeError, match="must keep shape and dtype"):
        integers.add_(0.5)
    with pytest.raises(ShapeError):
        integers.add_(Tensor([[1, 2], [3, 4]]))
    assert integers.tolist() == [1, 2]


def test_in_place_is_recorded_and_differentiated() -> None:
    def f(x: Tensor) -> Tensor:
        y = x * 1
        y.mul_(3).add_(1)
        return y.sum()

    assert ms.jit(f)(A).item() == 3 * N.sum() + 6
    assert ms.grad(f)(A).tolist() == np.full((2, 3), 3.0).tolist()


def test_random_in_place() -> None:
    ms.set_seed(1)
    t = Tensor(np.zeros(4000, np.float32))
    assert abs(float(t.normal_(2.0, 3.0).mean()) - 2) < 0.3
    assert 0.9 < float(t.uniform_(0.0, 2.0).mean()) < 1.1
    assert set(t.random_(0, 3).tolist()) == {0.0, 1.0, 2.0}
    assert set(t.bernoulli_(0.5).tolist()) == {0.0, 1.0}
    assert 0.4 < float(t.exponential_(2.0).mean()) < 0.6


# ---- Parameter -----------------------------------------------------------------------------------


def test_parameter() -> None:
    p = Parameter([1.0, 2.0], name="w")
    p.set_data(Tensor([3.0, 4.0]))
    p.add_(1)
    assert (p.tolist(), p.name, p.requires_grad) == ([4.0, 5.0], "w", True)
    assert type(p + 1) is type(p.value()) is Tensor
    assert p.requires_grad_(False) is p and not p.requires_grad
    with pytest.raises(DTypeError):
        A.requires_grad_()
    with pytest.raises(ShapeError, match="slice_shape"):
        p.set_data(Tensor([1.0]))
    before = p.value()
    p.zero_()
    assert (before.tolist(), p.tolist()) == ([4.0, 5.0], [0.0, 0.0])


def test_a_copy_of_a_parameter_is_one() -> None:
    p = Parameter([1.0, 2.0], name="w", requires_grad=False)
    twin = p.copy()
    assert isinstance(twin, Parameter) and (twin.name, twin.requires_grad) == ("w", False)
    twin[0] = 5.0
    assert (p.tolist(), twin.tolist()) == ([1.0, 2.0], [5.0, 2.0])
    gradient = ms.grad(lambda: (p.copy() * 3).sum(), None, [p.requires_grad_()])
    assert gradient()[0].tolist() == [3.0, 3.0]


def test_parameters_take_numbers_only() -> None:
    assert Parameter([1.0], name="").name == Parameter([1.0]).name
    for value in (None, "1"):
        with pytest.raises(DTypeError, match="a tensor or numbers are needed"):
            Parameter(1.0).set_data(value)


# ---- the surface ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*PLAIN, *RENAMED])
def test_plain_method_is_the_function(name: str) -> None:
    assert getattr(Tensor, name) is getattr(ops, RENAMED.get(name, name))


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_method_has_a_base(name: str) -> None:
    assert callable(getattr(Tensor, name))
    assert getattr(Tensor, f"{name}_").__doc__


def test_operators_resolve_in_the_table() -> None:
    source = inspect.getsource(tensor_module) + inspect.getsource(tensor_access)
    names = set(re.findall(r'\b(?:binary|unary)\("(\w+)"', source))
    names |= set(re.findall(r"\bF\.(\w+)", source))
    assert {"add", "matmul", "neg", "getitem"} <= names
    for name in names:
        assert callable(getattr(ops, name)), f"Tensor needs ops.{name}"


def test_methods_call_known_functions() -> None:
    from tvmgraph.core import tensor_access, tensor_methods, tensor_overloads, tensor_reductions

    for module in (tensor_access, tensor_methods, tensor_overloads, tensor_reductions):
        for name in set(re.findall(r"\bF\.([a-z_]\w*)", inspect.getsource(module))):
            assert callable(getattr(ops, name)), f"{module.__name__} needs ops.{name}"


def test_methods_are_documented() -> None:
    for name in dir(Tensor):
        if not name.startswith("_"):
            assert inspect.getdoc(getattr(Tensor, name)), f"Tensor.{name} has no documentation"


def public_functions() -> list[str]:
    return [n for n in dir(ops) if not n.startswith("_") and n.islower()
            and inspect.isfunction(getattr(ops, n, None))]  # fmt: skip


@pytest.mark.parametrize("name", public_functions())
def test_function_is_documented(name: str) -> None:
    function = getattr(ops, name)
    doc = inspect.getdoc(function) or ""
    assert len(doc) > 20, f"ops.{name} has no documentation"
    for parameter in inspect.signature(function).parameters:
        assert not parameter.startswith("__")


def test_import_loads_no_operator_and_no_compiler() -> None:
    code = "import sys, tvmgraph; print([m for m in ('tvm', 'onnx') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_dtype_objects() -> None:
    assert dtypes.promote(ms.int8, ms.uint8) is ms.int16
    assert pickle.loads(pickle.dumps(ms.float32)) is ms.float32


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.bool_])
@pytest.mark.parametrize("shape", [(700, 401), (3, 257, 256), (130, 2048)])
def test_copies_of_large_transposed_tensors(shape: tuple[int, ...], dtype: Any) -> None:
    array = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    x = Tensor(array).swapaxes(-1, -2)
    copied = x.copy()
    assert copied.is_contiguous() and copied.dtype == x.dtype
    assert (copied.asnumpy() == array.swapaxes(-1, -2)).all()


def test_a_caught_error_keeps_no_variables() -> None:
    class Large:
        pass

    def caught() -> weakref.ref[Large]:
        large = Large()
        with contextlib.suppress(ShapeError):
            Tensor([1.0, 2.0, 3.0]).reshape(7)
        return weakref.ref(large)

    gc.disable()
    try:
        assert caught()() is None
    finally:
        gc.enable()


def test_type_names_the_dtype_or_converts() -> None:
    x = ms.Tensor(np.array([1.5, -2.5], np.float32))
    assert x.type() == "Float32" and x.astype(ms.bfloat16).type() == "BFloat16"

    def as_integers(x: ms.Tensor) -> ms.Tensor:
        return x.type(ms.int32) + (1 if x.type() == "Float32" else 0)  # pyright: ignore

    for f in (as_integers, ms.jit(as_integers)):
        y = f(x)
        assert y.dtype == ms.int32 and y.asnumpy().tolist() == [2, -1]
    assert x.type(dtype="float16").dtype == ms.float16  # pyright: ignore
    with pytest.raises(TypeError, match=r"Tensor\.type: 3 is not"):
        x.type(3)  # pyright: ignore


@pytest.mark.parametrize("index", [1.0, Tensor([0, 1])])
def test_select_of_an_axis_needs_an_int(index: Any) -> None:
    with pytest.raises(DTypeError, match="with an axis, index must be an int"):
        Tensor([1.0, 2.0]).select(0, index)
    assert Tensor([1.0, 2.0]).select(0, Tensor(1)).item() == 2.0


@pytest.mark.parametrize("compiled", [False, True])
def test_a_pair_of_extremes_stands_for_its_values(compiled: bool) -> None:
    def marked(x: Tensor) -> tuple[Any, ...]:
        high = x.max(1) < 3.0, x.max(1) >= x.min(1), x.max(-1).expand_dims(0)
        low = x.min(0) > 0.5, x.min(0) <= 1.0
        values, indices = x.max(1)
        return *high, *low, values, indices, x.max(1)[1], x.max(1)

    run = ms.jit(marked) if compiled else marked
    results: tuple[Any, ...] = run(Tensor([[1.0, 2.0], [4.0, 0.5]]))
    parts, pair = results[:-1], results[-1]
    want = [
        [True, False], [True, True], [[2.0, 4.0]], [True, False], [True, True],
        [2.0, 4.0], [1, 0], [1, 0],
    ]  # fmt: skip
    for part, expected in zip(parts, want, strict=True):
        np.testing.assert_array_equal(part.asnumpy(), expected)
    assert issubclass(type(pair), tuple) and repr(pair) == repr(tuple(pair)) and pair.shape == (2,)
    assert copy.copy(pair).asnumpy().tolist() == [2.0, 4.0]
    with pytest.raises(AttributeError, match="'Extremes' object has no attribute '_absent'"):
        _ = pair._absent
