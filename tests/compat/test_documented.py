"""What the examples of MindSpore's own documents show, where programs rely on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
import tvmgraph.numpy as mnp
from tvmgraph import Parameter, Tensor, nn, ops


def test_assignments_return_values() -> None:
    p = Parameter(Tensor([1.0, 2.0]), name="p")
    y = ops.assign(p, Tensor([3.0, 4.0]))
    assert not isinstance(y, Parameter) and str(y) == "[3. 4.]"
    ops.assign_add(p, Tensor([1.0, 1.0]))
    assert (y.tolist(), p.asnumpy().tolist()) == ([3, 4], [4, 5])
    accumulation = Parameter(Tensor([0.0, 0.0]), name="a")
    stepped = ops.ApplyMomentum()(p, accumulation, 0.5, Tensor([2.0, 2.0]), 0.9)
    assert str(stepped) == "[3. 4.]"


@pytest.mark.parametrize("dtype", [ms.int32, ms.int64, ms.float32])
def test_mod_truncates(dtype: Any) -> None:
    x, y = Tensor([-4, 5, -7], dtype), Tensor([3, -2, 2], dtype)
    assert ops.Mod()(x, y).tolist() == [-1, 1, -1]
    assert ops.FloorMod()(x, y).tolist() == [2, -1, 1]


def test_names_of_dtypes_and_generators() -> None:
    assert ms.bool is ms.bool_ and (repr(ms.float32), str(ms.float32)) == (
        "tvmgraph.float32", "Float32",
    )  # fmt: skip
    generator = ms.Generator().manual_seed(5)
    assert (generator.initial_seed(), repr(generator)) == (5, "Generator(seed=5, offset=0)")
    state = ms.get_rng_state()
    assert ms.manual_seed(13) is ms.default_generator and ms.initial_seed() == 13
    ms.set_rng_state(state)


def test_numpy_lists_and_names() -> None:
    assert isinstance(mnp.indices((2, 3)), list) and isinstance(mnp.ogrid[0:5, 0:5], list)
    assert mnp.around(mnp.array([1.5, 2.5])).tolist() == [2, 2]
    np.testing.assert_array_equal(
        mnp.matrix_power(mnp.ones((2, 2)), 3).asnumpy(), np.full((2, 2), 4)
    )


def test_sampled_classes_may_lie_outside() -> None:
    true = Tensor(np.array([[1, 7], [0, 4]]))
    _, expected, _ = ops.log_uniform_candidate_sampler(true, 2, 5, False, 5, 1)
    share = np.log((true.asnumpy() + 2) / (true.asnumpy() + 1)) / np.log(6)
    np.testing.assert_allclose(expected.asnumpy(), 5 * share, rtol=1e-5)


def test_states_of_cells_have_hooks_and_more_than_tensors() -> None:
    class Counted(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.dense, self.count = nn.Dense(2, 2), 3

        def construct(self, x: Tensor) -> Tensor:
            return self.dense(x)

        def get_extra_state(self) -> int:
            return self.count

        def set_extra_state(self, state: int) -> None:
            self.count = state

    seen: list[Any] = []
    net = nn.SequentialCell([Counted()])
    net.register_state_dict_post_hook(lambda cell, found, prefix, _: found.update(added=Tensor(1)))
    net[0].register_state_dict_pre_hook(lambda cell, prefix, keep: seen.append((prefix, keep)))
    state = net.state_dict()
    assert list(state) == ["0.dense.weight", "0.dense.bias", "0._extra_state", "added"]
    assert seen == [("0.", False)]
    other = nn.SequentialCell([Counted()])
    other[0].count = 9
    with pytest.raises(ms.errors.LoadError, match="unexpected: added"):
        other.load_state_dict(state)
    other.register_load_state_dict_pre_hook(lambda cell, found, *_: found.pop("added"))
    other.register_load_state_dict_post_hook(lambda cell, keys: seen.append(keys))
    other.load_state_dict(state)
    assert other[0].count == 3 and seen[-1] == ([], [])
    np.testing.assert_array_equal(other[0].dense.weight.asnumpy(), net[0].dense.weight.asnumpy())
    assert net.get_sub_cell("0.dense") is net[0].dense
    assert net.to(device="CPU", dtype=ms.float16)[0].dense.weight.dtype is ms.float16


def test_modules_that_are_not_here_say_why() -> None:
    with pytest.raises(ModuleNotFoundError, match="sounds are not supported"):
        import tvmgraph.dataset.audio  # noqa: F401  # pyright: ignore
    assert not hasattr(ms, "rewrite")
    assert ms.ops.function.math_func.add is ops.add
