"""ops.Custom: a user's TE, TVMScript or NumPy kernel as an operator like any other."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tvm import te, tirx
from tvm.script import tirx as T

import tvmgraph as ms
from tvmgraph import JitConfig, Tensor, jit, ops
from tvmgraph.core.sizes import Dim
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


@pytest.mark.parametrize("shape", [((2,),), [[2]], lambda s: [s]])
def test_a_list_of_one_shape_gives_a_tuple(shape: Any) -> None:
    op = ops.Custom(
        cube_te, shape, lambda d: (d,), bprop=lambda x, out, dout: out[0] * 3 / x * dout[0]
    )
    x = Tensor([1.0, 2.0])
    for call in (op, jit(lambda x: op(x))):
        found = call(x)
        assert isinstance(found, tuple) and found[0].asnumpy().tolist() == [1, 8]
    np.testing.assert_allclose(ms.grad(lambda x: op(x)[0].sum())(x).asnumpy(), [3, 12])


def test_derivative() -> None:
    op = cube(bprop=lambda x, out, dout: (dout * 3 * x * x,))
    x = Tensor([1.0, 2.0])
    for f in (op, jit(lambda x: op(x)), lambda x: jit(lambda x: op(x))(x)):
        np.testing.assert_allclose(ms.grad(lambda x, f=f: f(x).sum())(x).asnumpy(), [3, 12])
    with pytest.raises(NoGradientError, match="made without bprop"):
        ms.grad(lambda x: cube()(x).sum())(x)


def test_numpy_function_runs_node_by_node() -> None:
    op = ops.Custom(
        lambda x: np.sort(x)[::-1].copy(), lambda s: s, lambda d: d, "pyfunc", name="desc"
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
    wrong = ops.Custom(lambda x: x[:1], lambda s: s, lambda d: d, "pyfunc")
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
        (
            (cube_te, (2,), "float32", "hybrid"),
            {},
            "in TVMScript.*'te'.*'tvmscript'.*'pyfunc'.*'aot'",
        ),
        ((cube_te, (2,), "float32", "cuda"), {}, "'te'.*'tvmscript'.*'pyfunc'.*'aot'"),
        ((cube_te, (2,), "float32", "aot"), {}, "needs 'library.so:function'"),
        (("nowhere.so:f", (2,), "float32"), {}, "cannot be loaded"),
        ((cube_te, (2,), "float32"), {"bprop": 3}, "bprop must be callable"),
        ((3, (2,), "float32"), {}, "must be callable"),
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
    with pytest.raises(ArgumentError, match=r"no attribute 'beta'(.|\n)*it has alpha"):
        scaled()(ones(2), beta=1.0)


# ---- MindSpore's arguments, attributes, C functions ---------------------------------------------


def test_mindspores_signature() -> None:
    op = ops.Custom(
        lambda x, y: (x + y, x - y),
        out_shape=lambda x, y: ([3], [3]),
        out_dtype=lambda x, y: (x, y),
        func_type="pyfunc",
        bprop=lambda x, y, out, dout: (dout[0] + dout[1], dout[0] - dout[1]),
        reg_info=None,
    )
    x, y = Tensor([1.0, 2.0, 3.0]), Tensor([4.0, 5.0, 6.0])
    for f in (op, jit(lambda x, y: op(x, y))):
        assert [t.asnumpy().tolist() for t in f(x, y)] == [[5, 7, 9], [-3, -3, -3]]
        gx, gy = ms.grad(lambda x, y, f=f: (f(x, y)[0] * 2 + f(x, y)[1]).sum(), (0, 1))(x, y)
        assert (gx.asnumpy().tolist(), gy.asnumpy().tolist()) == ([3.0] * 3, [1.0] * 3)
    with pytest.warns(UserWarning, match="reg_info has no effect"):
        ops.Custom(lambda x: x, (2,), ms.float32, "pyfunc", None, {"op_name": "x"})


def scaled(**more: Any) -> ops.Custom:
    return ops.Custom(
        lambda x, alpha: te.compute(x.shape, lambda *i: x(*i) * tirx.const(alpha, x.dtype)),
        infer=lambda t, alpha: t,
        bprop=lambda x, out, dout, alpha: dout * alpha,
        attrs={"alpha": 2.0},
        **more,
    )


def test_attributes() -> None:
    op, x = scaled(), Tensor([1.0, 2.0])
    for f in (lambda x: op(x) + op(x, alpha=3.0), jit(lambda x: op(x) + op(x, alpha=3.0))):
        assert f(x).asnumpy().tolist() == [5, 10]
        assert ms.grad(lambda x, f=f: f(x).sum())(x).asnumpy().tolist() == [5, 5]
    text = ms.record(lambda x: op(x, alpha=0.5), x).text()
    assert "alpha=0.5" in text


def test_a_script_is_made_for_given_types() -> None:
    fixed = ops.Custom(double_rows, (4, 8), ms.float32)
    with pytest.raises(ShapeError, match=r"made for float32\[4,8\], float32\[4,8\](.|\n)*test_cus"):
        jit(lambda x: fixed(x))(ones(2, 8))

    def make(t: TensorType) -> Any:
        n = t.static_shape[0]

        @T.prim_func(s_tir=True)
        def reverse(x: T.Buffer((n,), "float32"), y: T.Buffer((n,), "float32")):
            for i in T.serial(n):
                with T.sblock("reverse"):
                    vi = T.axis.spatial(n, i)
                    y[vi] = x[n - 1 - vi]

        return reverse

    op = ops.Custom(make, infer=lambda t: t, func_type="tvmscript")
    for n in (3, 5):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(jit(lambda x: op(x))(Tensor(x)).asnumpy(), x[::-1])
    with pytest.raises(ArgumentError, match="TVMScript function is needed, not int"):
        jit(lambda x: ops.Custom(lambda t: 3, infer=lambda t: t, func_type="tvmscript")(x))(ones(2))


SOURCE = """
#include <cstdint>
#include <cstring>
extern "C" int add(int n, void **p, int *ndims, int64_t **shapes, const char **dtypes,
                   void *stream, void *extra) {
  if (n != 3 || std::strcmp(dtypes[0], "float32")) return 7;
  int64_t size = 1;
  for (int i = 0; i < ndims[2]; ++i) size *= shapes[2][i];
  for (int64_t i = 0; i < size; ++i) ((float *)p[2])[i] = ((float *)p[0])[i] + ((float *)p[1])[i];
  return 0;
}
"""


def test_c_function(tmp_path: Path) -> None:
    compiler = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler is installed")
    (tmp_path / "add.cc").write_text(SOURCE)
    library = tmp_path / "add.so"
    subprocess.run([compiler, "--shared", "-fPIC", "-o", library, tmp_path / "add.cc"], check=True)
    op = ops.Custom(f"{library}:add", lambda x, y: x, lambda x, y: x)
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    for f in (op, jit(lambda x, y: op(x, y))):
        np.testing.assert_array_equal(f(x, x).asnumpy(), 2 * x.asnumpy())
    with pytest.raises(CompileError, match="the C function returned 7"):
        op(x.astype(ms.float64), x.astype(ms.float64))
    with pytest.raises(ArgumentError, match=r'no function \'sub\'(.|\n)*extern "C"'):
        ops.Custom(f"{library}:sub", (2,), ms.float32)


def test_symbolic_shapes() -> None:
    op = cube()
    f = jit(lambda x: op(x) + 1.0)
    for n in (2, 3, 4, 5):  # captured once more for every size instead of with a symbol
        np.testing.assert_array_equal(f(ones(n)).asnumpy(), 2)
    with pytest.raises(ShapeError, match="needs fixed shapes"):
        op.infer(TensorType((Dim("n"), 3), ms.float32, "cpu"))


def test_wrong_number_of_cotangents() -> None:
    op = ops.Custom(
        lambda a, b: te.compute(a.shape, lambda *i: a(*i) + b(*i)), lambda a, b: a, lambda a, b: a,
        bprop=lambda a, b, out, dout: dout,
    )  # fmt: skip
    with pytest.raises(NoGradientError, match=r"1 cotangents for 2 inputs(.|\n)*test_custom\.py"):
        ms.grad(lambda a: op(a, a).sum())(ones(2))


def test_onnx_form(tmp_path: Path) -> None:
    x = ones(3)
    with pytest.raises(ms.errors.ExportError, match="without an ONNX form"):
        op = cube()
        ms.export(jit(lambda x: op(x)), x, file_name=str(tmp_path / "a.onnx"))
    op = cube(onnx=lambda O, x: O.Mul(O.Mul(x, x), x))
    ms.export(jit(lambda x: op(x)), Tensor([2.0]), file_name=str(tmp_path / "b.onnx"))
    assert ms.load(tmp_path / "b.onnx")(Tensor([3.0])).asnumpy().tolist() == [27]
