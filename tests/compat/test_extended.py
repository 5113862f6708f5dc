"""Names of MindSpore's generated operators that stand for functions of mint."""

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, mint
from tvmgraph.errors import NotFoundError
from tvmgraph.ops import auto_generate
from tvmgraph.ops.auto_generate import gen_ops_def

X = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
A, B = X.reshape(1, 2, 3), X.reshape(1, 3, 2)
CLASSES = {
    "AddExt": ((X, X, 2), lambda: mint.add(X, X, alpha=2)),
    "ArgMaxExt": ((X, 1, True), lambda: mint.argmax(X, 1, True)),
    "BatchMatMulExt": ((A, B), lambda: A @ B),
    "ChunkView": ((X, 2), lambda: mint.chunk(X, 2)),
    "LeakyReLUExt": ((-X, 0.5), lambda: -X * 0.5),
    "MSELossExt": ((X, X + 2, "sum"), lambda: Tensor(24.0)),
    "MeanExt": ((X, 0, False, ms.float64), lambda: mint.mean(X, 0, dtype=ms.float64)),
    "SumExt": ((X, (0, 1), True), lambda: mint.sum(X, (0, 1), True)),
    "TransposeExtView": ((X, 0, 1), lambda: X.T),
    "SplitWithSize": ((X, (1, 2), 1), lambda: mint.split(X, (1, 2), 1)),
    "Kthvalue": ((X, 1, 1, True), lambda: mint.kthvalue(X, 1, 1, True)),
    "SubScalar": ((X, 2.0, 3), lambda: X - 6),
    "MaxDim": ((X, 0), lambda: mint.max(X, 0)),
    "ZerosLikeExt": ((X, ms.int32), lambda: mint.zeros_like(X, dtype=ms.int32)),
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_classes_compute_what_mint_does(name):
    args, wanted = CLASSES[name]
    operator = getattr(auto_generate, name)()
    assert repr(operator) == f"Prim[{name}]"
    for found in (operator(*args), ms.jit(lambda: operator(*args))()):
        for f, w in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, wanted()))):
            assert f.dtype == w.dtype
            np.testing.assert_array_equal(f.asnumpy(), w.asnumpy())


def test_some_take_their_axis_when_they_are_made() -> None:
    assert auto_generate.OneHotExt()(Tensor([1]), 3, Tensor(1), Tensor(0)).tolist() == [[0, 1, 0]]
    assert auto_generate.StackExt(1)((X, X)).shape == (2, 2, 3)
    assert auto_generate.EluExt(2.0)(X).tolist() == X.tolist()
    assert auto_generate.Swiglu()(Tensor([[2.0, 3.0]])).item() == pytest.approx(5.28478)
    assert auto_generate.SiLU()(X)[0, 1].item() == pytest.approx(0.731059)


def test_functions_take_by_position_what_mint_takes_by_keyword():
    np.testing.assert_array_equal(gen_ops_def.add_ext(X, X, 2).asnumpy(), 3 * X.asnumpy())
    np.testing.assert_array_equal(gen_ops_def.sub_ext(X, X, alpha=2).asnumpy(), -X.asnumpy())


@pytest.mark.parametrize("name", ["DropoutExt", "BatchNormExt", "FFNExt"])
def test_classes_with_other_arguments_are_absent(name):
    with pytest.raises(NotFoundError, match=name):
        getattr(auto_generate, name)


def test_methods_of_tensors_are_operators_too() -> None:
    x = Tensor(np.arange(6.0, dtype=np.float32).reshape(2, 3))
    same, rows = auto_generate.copy(x), auto_generate.contiguous(x.T)
    same += 1
    assert (x[0, 0].item(), same[0, 0].item()) == (0, 1)
    assert rows.asnumpy().tolist() == x.asnumpy().T.tolist()
