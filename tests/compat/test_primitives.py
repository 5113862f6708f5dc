"""Operator classes, HyperMap, MultitypeFuncGraph and the namespaces they are reached by."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, nn, ops
from tvmgraph.compat.primitives.base import KINDS, functions_of, parse_rows
from tvmgraph.eager import evaluate
from tvmgraph.errors import ArgumentError, DTypeError, NotFoundError, ShapeError
from tvmgraph.ops import composite as C
from tvmgraph.ops import functional as F
from tvmgraph.ops import operations as P

RNG = np.random.default_rng(0)


def floats(*shape: int) -> Tensor:
    return Tensor(RNG.uniform(0.5, 2.0, shape).astype(np.float32))


X, Y, V, IMAGE = floats(2, 3), floats(2, 3), floats(3), floats(1, 2, 4, 4)
I = Tensor(np.array([1, 0]))

# class call, the same as a function call, whether it has a derivative by the first tensor
PAIRS: list[tuple[str, Callable[[Any], Any], Callable[[Any], Any], bool]] = [
    ("Add", lambda x: P.Add()(x, Y), lambda x: ops.add(x, Y), True),
    ("Sub", lambda x: P.Sub()(x, Y), lambda x: ops.sub(x, Y), True),
    ("Mul", lambda x: P.Mul()(x, Y), lambda x: ops.mul(x, Y), True),
    ("RealDiv", lambda x: P.RealDiv()(x, Y), lambda x: ops.div(x, Y), True),
    ("Pow", lambda x: P.Pow()(x, 2), lambda x: ops.pow(x, 2), True),
    ("Maximum", lambda x: P.Maximum()(x, Y), lambda x: ops.maximum(x, Y), True),
    ("Exp", lambda x: P.Exp()(x), ops.exp, True),
    ("Tanh", lambda x: P.Tanh()(x), ops.tanh, True),
    ("ReLU", lambda x: P.ReLU()(x), ops.relu, True),
    ("Softmax", lambda x: P.Softmax(axis=0)(x), lambda x: ops.softmax(x, 0), True),
    ("LogSoftmax", lambda x: P.LogSoftmax(0)(x), lambda x: ops.log_softmax(x, 0), True),
    ("Greater", lambda x: P.Greater()(x, Y), lambda x: ops.greater(x, Y), False),
    ("LogicalNot", lambda x: P.LogicalNot()(x > 1), lambda x: ops.logical_not(x > 1), False),
    ("Select", lambda x: P.Select()(x > Y, x, Y), lambda x: ops.where(x > Y, x, Y), True),
    ("MatMul", lambda x: P.MatMul(False, True)(x, Y), lambda x: ops.matmul(x, Y.T), True),
    ("BatchMatMul", lambda x: P.BatchMatMul(transpose_a=True)(x[None], Y[None]),
     lambda x: ops.matmul(x.T, Y)[None], True),
    ("BiasAdd", lambda x: P.BiasAdd()(x, V), lambda x: ops.add(x, V), True),
    ("ReduceSum", lambda x: P.ReduceSum(keep_dims=True)(x, 1), lambda x: x.sum(1, True), True),
    ("ReduceMean", lambda x: P.ReduceMean(True)(x, 1), lambda x: ops.mean(x, 1, True), True),
    ("ReduceMax", lambda x: P.ReduceMax()(x, (0, 1)), lambda x: ops.amax(x), True),
    ("ReduceAll", lambda x: P.ReduceAll()(x > 1, 0), lambda x: ops.all(x > 1, 0), False),
    ("ArgMaxWithValue", lambda x: P.ArgMaxWithValue(1)(x)[1], lambda x: ops.amax(x, 1), True),
    ("CumSum", lambda x: P.CumSum()(x, 1), lambda x: ops.cumsum(x, 1), True),
    ("TopK", lambda x: P.TopK()(x, 2)[0], lambda x: ops.topk(x, 2)[0], True),
    ("Sort", lambda x: P.Sort(0, True)(x)[0], lambda x: ops.sort(x, 0, True)[0], True),
    ("Reshape", lambda x: P.Reshape()(x, (3, 2)), lambda x: ops.reshape(x, (3, 2)), True),
    ("Transpose", lambda x: P.Transpose()(x, (1, 0)), lambda x: x.T, True),
    ("ExpandDims", lambda x: P.ExpandDims()(x, 0), lambda x: ops.expand_dims(x, 0), True),
    ("Squeeze", lambda x: P.Squeeze(0)(x[None]), lambda x: x * 1, True),
    ("Concat", lambda x: P.Concat(1)((x, Y)), lambda x: ops.concat((x, Y), 1), True),
    ("Stack", lambda x: P.Stack(1)((x, Y)), lambda x: ops.stack((x, Y), 1), True),
    ("Split", lambda x: P.Split(1, 3)(x)[2], lambda x: x[:, 2:], True),
    ("Tile", lambda x: P.Tile()(x, (2, 1)), lambda x: ops.tile(x, (2, 1)), True),
    ("BroadcastTo", lambda x: P.BroadcastTo((4, 2, 3))(x),
     lambda x: ops.broadcast_to(x, (4, 2, 3)), True),
    ("Gather", lambda x: P.Gather()(x, I, 0), lambda x: ops.gather(x, I, 0), True),
    ("OneHot", lambda x: P.OneHot()(I, 3, Tensor(1.0), Tensor(0.0)) * x,
     lambda x: ops.one_hot(I, 3, Tensor(1.0), Tensor(0.0)) * x, True),
    ("StridedSlice", lambda x: P.StridedSlice(shrink_axis_mask=1)(x, (1, 0), (2, 3), (1, 1)),
     lambda x: x[1], True),
    ("Slice", lambda x: P.Slice()(x, (0, 1), (2, 2)), lambda x: x[:, 1:], True),
    ("Pad", lambda x: P.Pad(((1, 0), (0, 2)))(x), lambda x: ops.pad(x, (0, 2, 1, 0)), True),
    ("Cast", lambda x: P.Cast()(x, ms.float16), lambda x: ops.cast(x, ms.float16), False),
    ("L2Normalize", lambda x: P.L2Normalize(1)(x),
     lambda x: x / ops.sqrt(ops.square(x).sum(1, keepdims=True)), True),
    ("SparseGatherV2", lambda x: P.SparseGatherV2()(x, I, 0), lambda x: ops.gather(x, I, 0),
     True),
    ("LayerNorm", lambda x: P.LayerNorm(1, 1, 1e-5)(x, V, V)[0],
     lambda x: ops.layer_norm(x, (3,), V, V, 1e-5), True),
    ("ZerosLike", lambda x: P.ZerosLike()(x) + x, lambda x: x * 1, True),
    ("Fill", lambda x: P.Fill()(ms.float32, (2, 3), 2) * x, lambda x: 2 * x, True),
    ("SquaredDifference", lambda x: P.SquaredDifference()(x, Y), lambda x: (x - Y) ** 2, True),
    ("SparseSoftmaxCrossEntropyWithLogitsV2",
     lambda x: P.nn_ops.SparseSoftmaxCrossEntropyWithLogitsV2()(x, I)[0],
     lambda x: ops.cross_entropy(x, I, reduction="none"), True),
    ("SparseSoftmaxCrossEntropyWithLogitsV2-gradient",
     lambda x: P.nn_ops.SparseSoftmaxCrossEntropyWithLogitsV2()(x, I)[1],
     lambda x: ops.stop_gradient(ms.grad(lambda y: ops.cross_entropy(y, I, reduction="sum"))(x)),
     False),
    ("DivNoNan", lambda x: P.DivNoNan()(x, Y), lambda x: x / Y, True),
]  # fmt: skip


@pytest.mark.parametrize(("by_class", "by_function", "smooth"), [p[1:] for p in PAIRS],
                         ids=[p[0] for p in PAIRS])  # fmt: skip
def test_class_is_the_function(by_class: Any, by_function: Any, smooth: bool) -> None:
    """Eagerly, recorded and differentiated."""
    expected = by_function(X)
    actual = by_class(X)
    assert actual.aval is expected.aval
    np.testing.assert_allclose(actual.asnumpy(), expected.asnumpy(), rtol=1e-5)
    graph = ms.record(by_class, X)
    others = [p.value for p in graph.params][1:]
    if not others:  # no captured tensors besides the argument
        np.testing.assert_array_equal(evaluate(graph, [X.asnumpy()])[0], actual.asnumpy())
    if smooth:
        np.testing.assert_allclose(
            ms.grad(by_class)(X).asnumpy(), ms.grad(by_function)(X).asnumpy(), rtol=1e-4, atol=1e-6
        )


def test_compiled_and_differentiated() -> None:
    matmul, mean = P.MatMul(transpose_b=True), P.ReduceMean(keep_dims=True)

    def loss(x: Tensor) -> Tensor:
        return mean(P.Softmax()(matmul(x, Y)), 0)

    np.testing.assert_allclose(ms.jit(loss)(X).asnumpy(), loss(X).asnumpy(), rtol=1e-5)
    np.testing.assert_allclose(
        ms.grad(ms.jit(loss))(X).asnumpy(), ms.grad(loss)(X).asnumpy(), atol=1e-6
    )


# ---- every row -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(P.ROWS))
def test_row(name: str) -> None:
    cls = getattr(ops, name)
    assert cls is getattr(P, name)
    assert issubclass(cls, P.Primitive)
    assert cls.__name__ == name
    assert cls.__doc__ and name in cls.__doc__
    for function in functions_of(P.ROWS[name][3]):
        assert callable(getattr(ops, function)), f"{name} needs ops.{function}"
    parameters = list(inspect.signature(cls).parameters.values())
    if all(p.default is not p.empty for p in parameters):
        made = cls()
        assert made.name == name
        assert repr(made).startswith(f"Prim[{name}]")
        assert repr(pickle.loads(pickle.dumps(made))) == repr(copy.deepcopy(made)) == repr(made)


@pytest.mark.parametrize("name", sorted(P.ROWS))
def test_wrong_constructor_arguments_are_rejected(name: str) -> None:
    cls = getattr(P, name)
    with pytest.raises(TypeError):
        cls(no_such_argument=1)
    parameters = inspect.signature(cls).parameters.values()
    checked = [p for p in parameters if isinstance(p.default, (bool, str)) and p.default != ""]
    for p in checked:
        needed = {q.name: 1 for q in parameters if q.default is q.empty}
        with pytest.raises((DTypeError, ArgumentError), match=p.name):
            cls(**needed | {p.name: 1.5})


# ---- the base class ------------------------------------------------------------------------------


def test_repr_and_attributes() -> None:
    conv = ops.Conv2D(3, (2, 2), pad_mode="same")
    assert repr(ops.Add()) == "Prim[Add]"
    assert repr(ops.ReduceMean(keep_dims=True)) == "Prim[ReduceMean]<keep_dims=True>"
    assert (conv.name, conv.out_channel, conv.pad_mode) == ("Conv2D", 3, "same")
    assert conv.attrs["kernel_size"] == (2, 2)
    assert conv.add_prim_attr("note", 1) is conv and conv.note == 1 and conv.attrs["note"] == 1
    conv.init_prim_io_names(["x", "w"], ["y"])
    assert conv.input_names == ["x", "w"]
    assert "input_names" not in repr(conv)
    assert not hasattr(conv.del_prim_attr("note"), "note")


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (ops.Softmax(), {"axis": (-1,)}),
        (ops.Squeeze(1), {"axis": (1,)}),
        (
            ops.Conv2D(3, 3, stride=2, dilation=(1, 2)),
            {
                "kernel_size": (3, 3),
                "stride": (1, 1, 2, 2),
                "pad": (0,) * 4,
                "dilation": (1, 1, 1, 2),
            },
        ),
        (
            ops.Conv2DTranspose(3, (3, 2), pad_mode="pad", pad=1),
            {"kernel_size": (3, 2), "stride": (1,) * 4, "pad": (1,) * 4},
        ),
        (ops.Conv3D(3, 2), {"kernel_size": (2, 2, 2), "stride": (1,) * 5, "pad": (0,) * 6}),
        (ops.MaxPool(2, (1, 1, 2, 3)), {"kernel_size": (1, 1, 2, 2), "strides": (1, 1, 2, 3)}),
        (ops.AvgPool(2, 3), {"kernel_size": (2, 2), "strides": (3, 3)}),
    ],
    ids=lambda v: getattr(v, "name", ""),
)
def test_sizes_are_kept_as_in_mindspore(made: Any, expected: dict[str, object]) -> None:
    assert {name: getattr(made, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("make", "error", "rule"),
    [
        (lambda: ops.Softmax("a"), DTypeError, "axis must be an int or a tuple of ints, not str"),
        (lambda: ops.MatMul(1), DTypeError, "transpose_a must be a bool, not int"),
        (lambda: ops.Conv2D(0, 3), ArgumentError, "out_channel must be at least 1, not 0"),
        (lambda: ops.Conv2D(1, 3, pad_mode="around"), ArgumentError,
         "pad_mode must be 'same' or 'valid' or 'pad', not 'around'"),
        (lambda: ops.Argmax(output_type="int33"), DTypeError, "'int33' is not a supported dtype"),
    ],
)  # fmt: skip
def test_constructor_errors_say_the_rule(make: Any, error: type[Exception], rule: str) -> None:
    with pytest.raises(error) as info:
        make()
    assert rule in str(info.value)


def test_constructor_error_names_the_line() -> None:
    with pytest.raises(ArgumentError) as info:
        ops.MaxPool(kernel_size=0)
    assert "ops.MaxPool: " in str(info.value)
    assert "at:  test_primitives.py:" in str(info.value)


def test_own_operator_class() -> None:
    class Scale(ops.Primitive):
        @ops.prim_attr_register
        def __init__(self, factor: float = 2.0) -> None:
            self.calls = 0

        def __call__(self, x: Tensor) -> Tensor:
            return x * self.factor

    assert repr(Scale(3.0)) == "Prim[Scale]<factor=3.0>"
    assert Scale()(Tensor(2.0)).item() == 4.0
    with pytest.raises(NotFoundError, match="no implementation"):
        ops.Primitive("nothing")(X)


def test_primitives_without_a_call_compute_what_their_name_says() -> None:
    class Shift(ops.PrimitiveWithInfer):
        @ops.prim_attr_register
        def __init__(self, periods: int = 1, axis: int = -1) -> None:
            pass

    x = Tensor([[1.0, 2.0, 3.0]])
    assert Shift()(x, 0.0).tolist() == [[0.0, 1.0, 2.0]]
    assert ms.jit(Shift(-2))(x, 9.0).tolist() == [[3.0, 9.0, 9.0]]
    assert Shift(7)(x, 4.0).tolist() == [[4.0] * 3]
    assert ops.Primitive("ReduceSum").add_prim_attr("keep_dims", True)(x, 1).tolist() == [[6.0]]


def test_assignment() -> None:
    p = Parameter(Tensor([1.0, 2.0]), name="p")
    assert ops.AssignAdd()(p, Tensor([1.0, 1.0])).asnumpy().tolist() == [2.0, 3.0]
    assert p.asnumpy().tolist() == [2.0, 3.0]
    ops.AssignSub()(p, 1)
    ops.assign(p, Tensor([5, 6]))
    assert (p.asnumpy().tolist(), p.dtype) == ([5.0, 6.0], ms.float32)
    ops.Assign()(p, 0.5)
    assert p.asnumpy().tolist() == [0.5, 0.5]
    with pytest.raises(ShapeError):
        ops.assign(p, Tensor([1.0, 2.0, 3.0]))
    with pytest.raises(DTypeError, match="variable must be a Parameter"):
        ops.assign_add(1.0, p)  # pyright: ignore[reportArgumentType]


def test_assignment_is_compiled() -> None:
    p = Parameter(Tensor([1.0, 2.0]), name="p")

    @ms.jit
    def step(x: Tensor) -> Tensor:
        ops.assign_add(p, x)
        return p.value() * 2

    assert step(Tensor([1.0, 1.0])).asnumpy().tolist() == [4.0, 6.0]
    assert step(Tensor([1.0, 1.0])).asnumpy().tolist() == [6.0, 8.0]
    assert p.asnumpy().tolist() == [3.0, 4.0]


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    ops.Print()("loss:", Tensor(1.5))
    assert capsys.readouterr().out == "loss:\nTensor(shape=[], dtype=Float32, value= 1.5)\n"


def test_dropout_keeps_the_mean() -> None:
    x = Tensor(np.ones(20000, np.float32))
    y, mask = ops.Dropout(keep_prob=0.8)(x)
    assert set(np.unique(mask.asnumpy())) == {0.0, 1.0}
    np.testing.assert_allclose(y.asnumpy(), mask.asnumpy() / 0.8, rtol=1e-6)
    assert abs(float(y.mean()) - 1) < 0.03


def test_space_to_depth_and_back() -> None:
    x = floats(2, 3, 4, 6)
    y = ops.SpaceToDepth(2)(x)
    assert y.shape == (2, 12, 2, 3)
    assert ops.DepthToSpace(2)(y).asnumpy().tolist() == x.asnumpy().tolist()
    with pytest.raises(ShapeError, match="no multiple"):
        ops.DepthToSpace(4)(x)


@pytest.mark.parametrize("pad_mode", ["same", "valid"])
def test_layouts_agree(pad_mode: str) -> None:
    w = floats(3, 2, 3, 3)
    conv = ops.Conv2D(3, 3, pad_mode=pad_mode, stride=2)(IMAGE, w)
    last = ops.Conv2D(3, 3, pad_mode=pad_mode, stride=2, data_format="NHWC")(
        IMAGE.permute(0, 2, 3, 1), w.permute(0, 2, 3, 1)
    )
    np.testing.assert_allclose(last.permute(0, 3, 1, 2).asnumpy(), conv.asnumpy(), rtol=1e-5)
    for pool in (ops.MaxPool, ops.AvgPool):
        first = pool(3, 2, pad_mode)(IMAGE)
        last = pool(3, 2, pad_mode, "NHWC")(IMAGE.permute(0, 2, 3, 1))
        np.testing.assert_allclose(last.permute(0, 3, 1, 2).asnumpy(), first.asnumpy(), rtol=1e-6)


def test_conv_transpose_is_the_derivative_of_conv() -> None:
    w = floats(3, 2, 3, 3)
    for pad_mode, stride in (("valid", 1), ("same", 2), ("valid", 2)):
        conv = ops.Conv2D(3, 3, pad_mode=pad_mode, stride=stride)
        g = ops.ones_like(conv(IMAGE, w))
        back = ops.Conv2DTranspose(3, 3, pad_mode=pad_mode, stride=stride)(g, w, IMAGE.shape)
        np.testing.assert_allclose(
            back.asnumpy(), ms.grad(conv)(IMAGE, w).asnumpy(), rtol=1e-4, atol=1e-5
        )


# ---- functions of functions ----------------------------------------------------------------------


def test_hyper_map_is_recursive_and_map_is_not() -> None:
    pairs = ((Tensor(1), [Tensor(2), Tensor(3)]), (4, (5, 6)))
    result = C.HyperMap()(ops.add, *pairs)
    assert (int(result[0]), tuple(map(int, result[1]))) == (5, (7, 9))
    assert C.HyperMap(ops.neg)(Tensor(2)).item() == -2
    assert C.Map()(lambda a, b: (a, b), (1, [2]), (3, 4)) == ((1, 3), ([2], 4))


def test_hyper_map_reverse_visits_from_the_end() -> None:
    seen: list[int] = []

    def note(v: int) -> int:
        seen.append(v)
        return v

    assert ops.HyperMap(note, reverse=True)((1, 2, 3)) == (1, 2, 3)
    assert seen == [3, 2, 1]


def test_hyper_map_errors() -> None:
    with pytest.raises(ShapeError, match=r"different lengths \[2, 1\]"):
        ops.HyperMap()(ops.add, (1, 2), (1,))
    with pytest.raises(DTypeError, match="must be callable"):
        ops.HyperMap(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(DTypeError, match="function to map"):
        ops.Map()((1, 2))


def make_multitype() -> C.MultitypeFuncGraph:
    graph = C.MultitypeFuncGraph("describe")
    for names in (("Tensor", "Tensor"), ("Number", "Tensor"), ("Tuple", "Number"), ("Int", "Float"),
                  ("String",), ("None", "Function")):  # fmt: skip
        graph.register(*names)(lambda *_, names=names: "-".join(names))
    return graph


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((X, Y), "Tensor-Tensor"),
        ((Parameter(X), Y), "Tensor-Tensor"),
        ((1, X), "Number-Tensor"),
        ((True, X), "Number-Tensor"),
        (((1,), 2.5), "Tuple-Number"),
        ((1, 2.5), "Int-Float"),
        (("a",), "String"),
        ((None, ops.add), "None-Function"),
    ],
)
def test_multitype_chooses_by_type(args: tuple[Any, ...], expected: str) -> None:
    assert make_multitype()(*args) == expected


def test_multitype_takes_what_dtypes_call_kinds() -> None:
    add = C.MultitypeFuncGraph("add")
    kinds = ms.common.dtype
    add.register(kinds.tensor_type, kinds.tensor_type)(lambda x, y: "tensors")
    add.register(kinds.number, kinds.number)(lambda x, y: "numbers")
    assert (add(X, Y), add(1, 2.5)) == ("tensors", "numbers")


def test_multitype_without_a_match() -> None:
    with pytest.raises(DTypeError) as info:
        make_multitype()(X)
    assert "describe: no implementation takes these argument types" in str(info.value)
    assert "(Number, Tensor)" in str(info.value)


def test_multitype_in_a_compiled_hyper_map() -> None:
    clip = C.MultitypeFuncGraph("clip")

    @clip.register(ms.common.dtype.number, "Tensor")
    def clip_one(limit: float, g: Tensor) -> Tensor:
        return ops.minimum(g, limit)

    @ms.jit
    def run(a: Tensor, b: Tensor) -> Any:
        return C.HyperMap()(ops.partial(clip, 1.0), (a, b))

    a, b = run(Tensor([0.5, 2.0]), Tensor([3.0]))
    assert (a.asnumpy().tolist(), b.asnumpy().tolist()) == ([0.5, 1.0], [1.0])


def test_partial_and_constexpr() -> None:
    assert ops.partial(ops.sub, Tensor(5.0))(Tensor(3.0)).item() == 2.0
    assert ops.Partial()(ops.sub, Tensor(5.0))(Tensor(3.0)).item() == 2.0
    with pytest.raises(ArgumentError, match="callable"):
        ops.partial(3)  # pyright: ignore[reportArgumentType]

    @ops.constexpr
    def double(n: int) -> int:
        return 2 * n

    @ops.constexpr(name="triple")
    def other(n: int) -> int:
        return 3 * n

    assert (double(2), double.__name__, other(2), other.__name__) == (4, "double", 6, "triple")


# ---- namespaces ----------------------------------------------------------------------------------


def test_namespaces_agree() -> None:
    assert F.add is ops.add is C.add
    assert F.tensor_add is ops.add
    assert ops.operations is P and ops.functional is F
    assert C.GradOperation is ops.GradOperation is ms.GradOperation
    assert ops.grad is ms.grad
    assert {"Conv2D", "add", "GradOperation"} <= set(dir(ops))
    for module in (ops, F, P, C):
        with pytest.raises(AttributeError):
            _ = module.no_such_name


def test_aliases_name_functions() -> None:
    from tvmgraph.ops._lazy import ALIASES

    for name, target in ALIASES.items():
        assert callable(getattr(F, name)) and callable(getattr(ops, target))


def test_kinds_describe_themselves() -> None:
    for text, holds in KINDS.values():
        assert text and not holds(object())


# ---- optimizer steps -----------------------------------------------------------------------------


def parameters(*rows: list[float]) -> list[Parameter]:
    return [Parameter(Tensor(r), name=f"p{i}") for i, r in enumerate(rows)]


G = Tensor([0.1, -0.2])


def momentum_step(w: Any, a: Any, g: Any) -> tuple[Any, ...]:
    a = 0.9 * a + g
    return w - 0.1 * a, a


def nesterov_step(w: Any, a: Any, g: Any) -> tuple[Any, ...]:
    a = 0.9 * a + g
    return w - 0.1 * (g + 0.9 * a), a


def adagrad_step(w: Any, a: Any, g: Any) -> tuple[Any, ...]:
    a = a + g * g
    return w - 0.1 * g / np.sqrt(a), a


def rms_prop_step(w: Any, s: Any, a: Any, g: Any) -> tuple[Any, ...]:
    s = 0.9 * s + 0.1 * g * g
    a = 0.8 * a + 0.1 * g / np.sqrt(s + 1e-6)
    return w - a, s, a


@pytest.mark.parametrize(
    ("op", "arguments", "reference"),
    [
        (ops.ApplyMomentum(), lambda p: (*p, 0.1, G, 0.9), momentum_step),
        (ops.ApplyMomentum(use_nesterov=True), lambda p: (*p, 0.1, G, 0.9), nesterov_step),
        (ops.ApplyAdagrad(), lambda p: (*p, 0.1, G), adagrad_step),
        (ops.ApplyRMSProp(), lambda p: (*p, 0.1, G, 0.9, 0.8, 1e-6), rms_prop_step),
        (ops.ApplyGradientDescent(), lambda p: (*p, 0.1, G), lambda w, g: (w - 0.1 * g,)),
    ],
    ids=["momentum", "nesterov", "adagrad", "rms_prop", "gradient_descent"],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_optimizer_step(op: Any, arguments: Any, reference: Any, compiled: bool) -> None:
    slots = reference.__code__.co_argcount - 2
    ps = parameters([1.0, 2.0], *[[0.1, 0.1]] * slots)
    expected: tuple[Any, ...] = tuple(p.asnumpy().astype(np.float64) for p in ps)
    step = ms.jit(lambda: op(*arguments(ps))) if compiled else lambda: op(*arguments(ps))
    for _ in range(2):
        step()
        expected = reference(*expected, G.asnumpy().astype(np.float64))
    for p, e in zip(ps, expected, strict=True):
        np.testing.assert_allclose(p.asnumpy(), e, rtol=1e-5)


@pytest.mark.parametrize(
    ("op", "slots", "more"),
    [(ops.ApplyAdagradV2(1e-6), 1, ()), (ops.ApplyRMSProp(), 2, (0.9, 0.8, 1e-6))],
    ids=["adagrad", "rms_prop"],
)
def test_a_step_is_computed_in_the_type_of_the_parameter(op: Any, slots: int, more: Any) -> None:
    found = []
    for dtype in (np.float16, np.float32):
        ps = parameters([1.0, 2.0], *[[0.1, 0.1]] * slots)
        op(*ps, Tensor(0.1), Tensor(np.float16([0.1, 3.3]).astype(dtype)), *more)
        found.append(ps[0].asnumpy())
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_the_median_of_no_elements() -> None:
    for dtype, expected in ((ms.float32, np.nan), (ms.int16, 0)):
        nothing = Tensor(np.zeros((2, 0, 3)), dtype)
        for ignore_nan in (False, True):
            value, index = ops.Median(global_median=True, ignore_nan=ignore_nan)(nothing)
            np.testing.assert_equal(value.item(), expected)
            assert (value.dtype, index.item()) == (dtype, 0)


def test_addition_in_place() -> None:
    y = Tensor([1.0, 2.0])
    ops.auto_generate.InplaceAddExt()(y, Tensor([1.0, 1.0]), 2)
    assert y.asnumpy().tolist() == [3.0, 4.0]


def test_adam_step() -> None:
    w, m, v = parameters([1.0, 2.0], [0.0, 0.0], [0.0, 0.0])
    for t in (1, 2):
        ops.Adam()(w, m, v, 0.9**t, 0.999**t, 0.1, 0.9, 0.999, 1e-8, G)
    np.testing.assert_allclose(w.asnumpy(), [0.8, 2.2], atol=1e-5)  # lr * sign of the gradient


def test_sgd_starts_from_the_gradient() -> None:
    w, a, stat = parameters([1.0, 2.0], [0.0, 0.0], [1.0, 1.0])
    sgd = ops.SGD(dampening=0.5)
    sgd(w, G, 0.1, a, 0.9, stat)
    np.testing.assert_allclose(a.asnumpy(), G.asnumpy())  # the first step is not dampened
    sgd(w, G, 0.1, a, 0.9, stat)
    np.testing.assert_allclose(a.asnumpy(), G.asnumpy() * 1.4, rtol=1e-6)
    assert stat.tolist() == [0.0, 0.0]


# ---- loops ---------------------------------------------------------------------------------------


def test_loops() -> None:
    assert ops.WhileLoop()(lambda v: v < 40, lambda v: v * 2, 5) == 40
    doubled = ops.ForiLoop()(1, 4, lambda i, v: v * i, Tensor([1.0, 2.0]))
    assert doubled.tolist() == [6.0, 12.0]
    carry, ys = ops.Scan()(lambda c, x: (c + x, c * x), 0, [1, 2, 3])
    assert (carry, ys) == (6, [0, 2, 9])
    assert ops.Scan()(lambda c, _: (c + 1, c), 0, None, 2) == (2, [0, 1])
    compiled = ms.jit(lambda x: ops.ForiLoop()(0, 3, lambda i, v: v + i, x))
    assert compiled(Tensor([1.0])).tolist() == [4.0]
    with pytest.raises(DTypeError, match="cond_func must be a function"):
        ops.WhileLoop()(1, lambda v: v, 0)
    with pytest.raises(ArgumentError, match="xs or length"):
        ops.Scan()(lambda c, x: (c, x), 0, None)


def test_unravel_index() -> None:
    assert ops.UnravelIndex()(Tensor([2, 5]), Tensor([3, 3])).tolist() == [[0, 1], [2, 2]]


# ---- Python values -------------------------------------------------------------------------------


def test_scalar_functions() -> None:
    assert (ops.scalar_add(1, 2), ops.scalar_floordiv(7, 2), ops.scalar_max(1, 2)) == (3, 3, 2)
    assert (ops.scalar_lt(1, 2), ops.scalar_usub(2), ops.scalar_log(1)) == (True, -2, 0.0)
    with pytest.raises(DTypeError, match="must be Python numbers"):
        ops.scalar_mul(Tensor(1), 2)


def test_descriptions() -> None:
    assert (ops.dtype(X), ops.shape_mul((2, 3)), ops.is_nonzero(Tensor([2]))) == (X.dtype, 6, True)
    half = ops.mixed_precision_cast(ms.float16, (X, {"a": I}, 3))
    assert (half[0].dtype, half[1]["a"].dtype, half[2]) == (ms.float16, ms.int64, 3)
    assert [t.item() for t in ops.hyper_add((Tensor(1), Tensor(2)), (3, 4))] == [4, 6]
    assert ops.deepcopy(X) is not X and ops.move_to(X) is X


@pytest.mark.parametrize("first", [1, -1])
def test_mean_and_variance_of_a_normalization_have_no_gradient(first: int) -> None:
    x = Tensor(np.array([[1, 2, 4], [3, 2, 0]], np.float32))
    ones, zeros = Tensor(np.ones(3, np.float32)), Tensor(np.zeros(3, np.float32))
    norm = P.LayerNorm(1, first)
    whole = ms.grad(norm, 0)(x, ones, zeros)  # by the sum of all three results
    result = ms.grad(lambda x: norm(x, ones, zeros)[0], 0)(x)
    np.testing.assert_array_equal(whole.asnumpy(), result.asnumpy())


@pytest.mark.parametrize("rows", [0, 1, 40])
def test_nms_with_mask_is_one_graph(rows: int) -> None:
    draw = np.random.default_rng(rows)
    table = draw.random((rows, 5)).astype(np.float32)
    table[:, 2:4] += table[:, :2]
    found, numbers, kept = ms.jit(P.NMSWithMask(0.3), fullgraph=True)(Tensor(table))
    want = P.NMSWithMask(0.3)(Tensor(table))
    boxes = want[0].asnumpy().astype(np.float64)
    sides = np.clip(
        np.minimum(boxes[:, None, 2:4], boxes[:, 2:4])
        - np.maximum(boxes[:, None, :2], boxes[:, :2]), 0, None,
    )  # fmt: skip
    areas = (boxes[:, 2:4] - boxes[:, :2]).prod(-1)
    common = sides.prod(-1)
    overlaps = common / (areas[:, None] + areas - common)
    greedy: list[int] = []
    for i in range(rows):
        if all(overlaps[j, i] <= 0.3 for j in greedy):
            greedy.append(i)
    for mask in (kept, want[2]):
        assert np.flatnonzero(mask.asnumpy()).tolist() == greedy
    assert numbers.tolist() == list(range(rows)) == want[1].tolist()
    np.testing.assert_array_equal(found.asnumpy(), table[np.argsort(-table[:, 4], kind="stable")])


def test_nearest_elements_between_two_are_the_upper_ones() -> None:
    x = Tensor(np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4))
    found = ops.ResizeNearestNeighbor((5, 7), align_corners=True)(x).asnumpy()[0, 0]
    assert found[:, 0].tolist() == [0, 4, 4, 8, 8]
    assert found[0].tolist() == [0, 1, 1, 2, 2, 3, 3]


def test_options_of_connectionist_losses() -> None:
    x = Tensor(np.random.default_rng(0).standard_normal((5, 2, 4)).astype(np.float32))
    steps = Tensor([5, 2], ms.int32)

    def loss(rows: list[list[int]], **options: bool) -> np.ndarray:
        places = Tensor([[i, k] for i, row in enumerate(rows) for k in range(len(row))])
        labels = Tensor([v for row in rows for v in row], ms.int32)
        values, gradient = ops.CTCLoss(**options)(x, places, labels, steps)
        assert np.isfinite(gradient.asnumpy()).all()
        return values.asnumpy()

    collapsed = loss([[1, 1, 0], [2, 2]], preprocess_collapse_repeated=True)
    np.testing.assert_allclose(collapsed, loss([[1, 0], [2]]))
    assert np.isinf(loss([[1], [2, 0, 1]])[1])
    assert loss([[1], [2, 0, 1]], ignore_longer_outputs_than_inputs=True)[1] == 0
    with pytest.raises(ArgumentError, match="ctc_merge_repeated"):
        loss([[1], [2]], ctc_merge_repeated=False)


def test_connectionist_losses_of_padded_labels_are_compiled() -> None:
    x = Tensor(np.random.default_rng(0).standard_normal((6, 2, 5)).astype(np.float32))
    places = Tensor([[i, k] for i in range(2) for k in range(3)])
    steps = Tensor([6, 5], ms.int32)

    def loss(x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        return ops.CTCLoss(preprocess_collapse_repeated=True)(x, places, labels, steps)

    short = ops.CTCLoss()(x, Tensor([[0, 0], [0, 1], [1, 0]]), Tensor([1, 2, 3], ms.int32), steps)
    np.testing.assert_allclose(short[0].asnumpy(), [5.352034, 5.6307435], rtol=1e-6)  # MindSpore's
    compiled = ms.jit(loss, jit_config=ms.JitConfig(jit_syntax_level="STRICT"))
    for padding in ([4, 4], [-1, 9]):
        labels = Tensor([1, 2, padding[0], 3, 3, padding[1]], ms.int32)
        for found in (loss(x, labels), compiled(x, labels)):
            for a, b in zip(found, short):
                np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-6)
    assert compiled.compile_count == 1
    with pytest.raises(RuntimeError, match="follows one that is no class"):
        loss(x, Tensor([1, 4, 2, 3, 4, 4], ms.int32))


@pytest.mark.parametrize("collapses", [False, True])
def test_connectionist_losses_are_one_graph_for_any_places_of_labels(collapses: bool) -> None:
    rng = np.random.default_rng(0)
    x, steps = rng.standard_normal((4, 12, 5)).astype(np.float32), Tensor([4] * 12, ms.int32)

    def loss(x: Tensor, places: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        return ops.CTCLoss(collapses, ignore_longer_outputs_than_inputs=True)(
            x, places, labels, steps
        )

    compiled = ms.jit(loss, jit_config=ms.JitConfig(jit_syntax_level="STRICT"))
    for counts in ([0, 1, 2, 3, 4, 8] * 2, [3] * 12, [36] + [0] * 11):  # also more than steps
        places = Tensor([[i, k] for i, count in enumerate(counts) for k in range(count)])
        labels = Tensor(rng.integers(0, 4, 36), ms.int32)
        wanted = loss(Tensor(x), places, labels)
        for a, b in zip(compiled(Tensor(x), places, labels), wanted):
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-5)
        assert (wanted[0].asnumpy() > 0).any()
    assert compiled.compile_count == 1 and "graph break" not in compiled.explain()


def test_classes_of_one_form_share_a_row():
    rows = parse_rows("LogicalAnd Maximum | mode=1 | x, *y | F.*(..., mode)")
    assert rows == {
        "LogicalAnd": ("LogicalAnd", "mode=1", "x, *y", "F.logical_and(x, *y, mode)"),
        "Maximum": ("Maximum", "mode=1", "x, *y", "F.maximum(x, *y, mode)"),
    }


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_an_lstm_projects_its_outputs(compiled: bool, has_bias: bool) -> None:
    # MindSpore 2.10 gives the same: projections stand between the weights of states and the biases
    rng = np.random.default_rng(3)
    shapes = [(16, 3), (16, 2), (2, 4), *[(16,)] * has_bias]
    parts = [rng.uniform(-0.5, 0.5, s).astype(np.float32) for s in shapes]
    x, h, c = (rng.standard_normal(s).astype(np.float32) for s in ((5, 2, 3), (2, 2), (2, 4)))
    operator = ops.LSTM(3, 4, 1, has_bias, False, 0.0, 2)
    flat = np.concatenate([p.ravel() for p in parts]).reshape(-1, 1, 1)
    args = [Tensor(a) for a in (x, h[None], c[None], flat)]
    y, last, state = (ms.jit(operator) if compiled else operator)(*args)[:3]
    expected = []
    for step in x:
        gates = step @ parts[0].T + h @ parts[1].T + (parts[3] if has_bias else 0)
        i, f, g, o = np.split(gates, 4, -1)
        sigmoid = lambda t: 1 / (1 + np.exp(-t))  # noqa: E731
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = (sigmoid(o) * np.tanh(c)) @ parts[2].T
        expected.append(h)
    np.testing.assert_allclose(y.asnumpy(), expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(last.asnumpy()[0], h, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(state.asnumpy()[0], c, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_rows_without_a_gradient_keep_their_mean_square(compiled: bool) -> None:
    class Step(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.operator = ops.SparseApplyRMSProp(0.5, 0.1, 1.0)
            self.var, self.square, self.step = (
                Parameter(Tensor([[8.0, 8.0], [8.0, 8.0]]), name=n) for n in ("v", "s", "m")
            )

        def construct(self, grad: Tensor, rows: Tensor) -> Any:
            return self.operator(self.var, self.square, self.step, 0.1, grad, rows)

    net = Step()
    (ms.jit(net) if compiled else net)(Tensor([[0.0, 4.0]]), Tensor([1]))
    assert net.square.tolist() == [[8.0, 8.0], [8.0, 0.5 * 8 + 0.5 * 16]]
    moved = 0.8 + 4 * 0.1 / np.sqrt(12 + 1)
    np.testing.assert_allclose(net.step.asnumpy(), [[8, 8], [0.8, moved]], rtol=1e-6)
    np.testing.assert_allclose(net.var.asnumpy(), [[8, 8], [7.2, 8 - moved]], rtol=1e-6)
