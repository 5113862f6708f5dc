"""ops.Custom: a user's TE, TVMScript or NumPy kernel as an operator like any other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import te, tirx
from tvm.script import tirx as T

import tvmgraph as ms
from tvmgraph import JitConfig, Tensor, jit, ops
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ArgumentError, CompileError, DTypeError, NoGradientError, ShapeError
from tvmgraph.graph import parse


def ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


def cube_te(x: Any) -> Any:
    return te.compute(x.shape, lambda *i: x(*i) * x(*i) * x(*i), name="cube")


def cube(**more: Any) -> ops.Custom:
    return ops.Custom(cube_te, lambda s: s, lambda d: d, **more)


@T.prim_func(s_tir=True)
def double_rows(
    x: T.Buffer((T.int64(4), T.int64(8)), "float32"),
    y: T.Buffer((T.int64(4), T.int64(8)), "float32"),
):
    for i, j in T.grid(T.int64(4), T.int64(8)):
        with T.sblock("double"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = x[vi, vj] * T.float32(2)


def test_te_kernel_runs_everywhere() -> None:
    op, x = cube(), Tensor([1.0, 2.0, -3.0])
    expected = np.array([1, 8, -27], np.float32)
    np.testing.assert_array_equal(op(x).asnumpy(), expected)
    for config in ("O0", "O1", "O2"):
        np.testing.assert_array_equal(jit(lambda x: op(x), jit_level=config)(x).asnumpy(), expected)
    stepwise = jit(lambda x: op(x), jit_config=JitConfig(exec_mode="no_sink"))
    np.testing.assert_array_equal(stepwise(x).asnumpy(), expected)


def test_it_fuses_with_its_surroundings() -> None:
    op = cube()
    f = jit(lambda x: ops.tanh(op(x * 2.0)) + 1.0)
    x = Tensor(np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8))
    np.testing.assert_allclose(
        f(x).asnumpy(), np.tanh((x.asnumpy() * 2) ** 3) + 1, rtol=1e-5, atol=1e-6
    )
    assert len(f.kernels()) == 1
    assert "cube" in f.kernels()[0]


def test_tvmscript_kernel() -> None:
    op = ops.Custom(double_rows, (4, 8), ms.float32, "tvmscript")
    np.testing.assert_array_equal(op(ones(4, 8)).asnumpy(), 2)
    f = jit(lambda x: op(x) + 1.0)
    np.testing.assert_array_equal(f(ones(4, 8)).asnumpy(), 3)
    assert f.graph().nodes[0].op.name.startswith("double_rows_")


def test_several_outputs() -> None:
    def both(x: Any) -> Any:
        up = te.compute(x.shape, lambda *i: x(*i) + 1)
        down = te.compute(x.shape, lambda *i: tirx.Cast("int32", x(*i)))
        return up, down

    op = ops.Custom(both, lambda s: [s, s], lambda d: [d, ms.int32])
    for call in (op, jit(lambda x: op(x))):
        up, down = call(Tensor([1.5, 2.5]))
        assert (up.asnumpy().tolist(), down.asnumpy().tolist()) == ([2.5, 3.5], [1, 2])


def test_derivative() -> None:
    op = cube(bprop=lambda x, out, dout: (dout * 3 * x * x,))
    x = Tensor([1.0, 2.0])
    for f in (op, jit(lambda x: op(x)), lambda x: jit(lambda x: op(x))(x)):
        np.testing.assert_allclose(ms.grad(lambda x, f=f: f(x).sum())(x).asnumpy(), [3, 12])
    with pytest.raises(NoGradientError, match="made without bprop"):
        ms.grad(lambda x: cube()(x).sum())(x)


def test_numpy_function_runs_node_by_node() -> None:
    op = ops.Custom(
        lambda x: np.sort(x)[::-1].copy(), lambda s: s, lambda d: d, "numpy", name="desc"
    )
    x = Tensor([1.0, 3.0, 2.0])
    f = jit(lambda x: op(x) + 1.0)
    assert f(x).asnumpy().tolist() == [4, 3, 2]
    assert "no_sink (auto: ops.desc_" in f.explain()


def test_two_kernels_of_one_name_stay_apart() -> None:
    makers = [
        ops.Custom(
            lambda x, k=k: te.compute(x.shape, lambda *i: x(*i) * k), lambda s: s, lambda d: d
        )
        for k in (2.0, 3.0)
    ]
    found = [jit(lambda x, op=op: op(x))(ones(2)).asnumpy()[0] for op in makers]
    assert found == [2, 3]


def test_it_is_never_taken_from_the_disk() -> None:
    op = cube()
    f = jit(lambda x: op(x))
    f(ones(7))
    assert f.history[0].disk == (
        "not kept: it has operators of your own, whose kernels may change at any time"
    )


def test_graph_text_parses_back() -> None:
    op = cube()
    graph = ms.record(lambda x: op(x), ones(3))
    assert parse(graph.text(full=True)).structural_hash() == graph.structural_hash()


# ---- errors -------------------------------------------------------------------------------------


def test_infer_speaks_like_a_built_in_operator() -> None:
    def infer(a: TensorType, b: TensorType) -> TensorType:
        if a.shape != b.shape:
            raise ShapeError(f"shapes differ ({a} and {b})", fix="pad the shorter one")
        return a

    op = ops.Custom(
        lambda a, b: te.compute(a.shape, lambda *i: a(*i) + b(*i)), infer=infer, name="plus"
    )
    texts = []
    for f in (op, jit(lambda a, b: op(a, b))):
        with pytest.raises(ShapeError) as info:
            f(ones(2), ones(3))
        texts.append(str(info.value).splitlines())
    for lines in texts:
        assert lines[0].endswith("shapes differ (float32[2] and float32[3])")
        assert "got: inputs[0]=float32[2], inputs[1]=float32[3]" in lines[1]
        assert "test_custom.py:" in lines[2]
        assert lines[3] == "  fix: pad the shorter one"


def test_a_wrong_description_is_found() -> None:
    op = ops.Custom(cube_te, lambda s: (*s, 1), lambda d: d)
    with pytest.raises(
        ShapeError, match=r"gives float32\[2\], its description says float32\[2,1\]"
    ):
        jit(lambda x: op(x))(ones(2))
    wrong = ops.Custom(lambda x: x[:1], lambda s: s, lambda d: d, "numpy")
    with pytest.raises(ShapeError, match=r"gives float32\[1\]"):
        wrong(ones(3))


def test_a_broken_kernel_names_operator_and_line() -> None:
    def broken(x: Any) -> Any:
        raise ValueError("no such thing")

    op = ops.Custom(broken, lambda s: s, lambda d: d)
    with pytest.raises(CompileError, match=r"broken(.|\n)*no such thing(.|\n)*test_custom\.py:\d+"):
        jit(lambda x: op(x))(ones(2))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((cube_te,), {}, "out_shape and out_dtype, or infer"),
        ((cube_te, (2,), "float32", "hybrid"), {}, "te, tvmscript, numpy"),
        ((3, (2,), "float32"), {}, "must be callable"),
        ((cube_te, (2,), "float32", "tvmscript"), {}, "TVMScript function is needed"),
        ((cube_te, (2,), "float32"), {"infer": lambda x: x}, "given twice"),
    ],
)
def test_wrong_descriptions(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ops.Custom(*arguments, **options)


def test_wrong_arguments() -> None:
    with pytest.raises(DTypeError):
        cube()("text")
    with pytest.raises(DTypeError, match="no tensor types"):
        ops.Custom(cube_te, infer=lambda x: 3)(ones(2))
