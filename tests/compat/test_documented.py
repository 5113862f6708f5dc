"""What the examples of MindSpore's own documents show, where programs rely on it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
import tvmgraph.numpy as mnp
from tvmgraph import Parameter, Tensor, nn, ops
from tvmgraph.errors import ArgumentError, ShapeError


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
    with pytest.raises(ModuleNotFoundError, match="Python's multiprocessing does it"):
        import tvmgraph.multiprocessing  # noqa: F401  # pyright: ignore
    assert not hasattr(ms, "rewrite")
    assert ms.ops.function.math_func.add is ops.add


def test_bicubic_positions() -> None:
    """MindSpore's rule, written out: a table of 1024 steps, and where the pixels lie."""

    def matrix(old: int, new: int, align: bool, half: bool) -> np.ndarray:
        i, f = np.arange(new, dtype=np.float32), np.float32
        at = i * f((old - 1) / (new - 1)) if align else i * f(old / new)
        at = (i + f(0.5)) * f(old / new) - f(0.5) if half else at
        low = np.floor(at)
        t = np.abs(np.rint((at - low) * 1024)[:, None] / 1024 - np.arange(-1, 3))
        a = -0.5 if half else -0.75
        near, far = ((a + 2) * t - a - 3) * t * t + 1, ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
        weight, where = np.where(t <= 1, near, far), low.astype(int)[:, None] + np.arange(-1, 3)
        if half:
            weight = np.where((where >= 0) & (where < old), weight, 0)
            weight = weight / weight.sum(1, keepdims=True)
        found = np.zeros((new, old))
        np.add.at(found, (np.arange(new)[:, None], where.clip(0, old - 1)), weight)
        return found

    x = np.sin(np.arange(40, dtype=np.float32) ** 2).reshape(2, 1, 4, 5)
    for (h, w), modes in itertools.product(
        [(2, 3), (7, 5), (9, 13)], [(False, False), (True, False), (False, True)]
    ):
        expected = matrix(4, h, *modes) @ x @ matrix(5, w, *modes).T
        resize = ops.ResizeBicubic(*modes)
        for run in (resize, ms.jit(resize)):
            y = run(Tensor(x), (h, w)).asnumpy()
            np.testing.assert_allclose(y, expected, atol=2e-6, err_msg=str((h, w, modes)))
    four = Tensor(np.array([[[[1, 2], [3, 4]]]], np.float32))
    shown = ops.ResizeBicubic()(four, Tensor([1, 4], ms.int32))
    assert str(shown) == "[[[[1.      1.5     2.      2.09375]]]]"
    with pytest.raises(ArgumentError, match="exclude"):
        ops.ResizeBicubic(True, True)(four, (1, 4))


def test_layers_of_documents() -> None:
    x = Tensor(np.arange(1, 17, dtype=np.float32).reshape(1, 1, 2, 2, 4))
    samples = Tensor(np.full((1, 1, 3), 0.7, np.float32))
    pool = nn.FractionalMaxPool3d(1, (1, 1, 3), return_indices=True, _random_samples=samples)
    y, where = pool(x)
    assert (y.tolist(), where.tolist()) == ([[[[[13, 14, 16]]]]], [[[[[12, 13, 15]]]]])
    flat = nn.FractionalMaxPool2d(1, output_ratio=(0.5, 0.5))
    assert flat(ops.ones((2, 3, 4, 6))).shape == (2, 3, 2, 3)
    image = Tensor(np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2))
    assert ms.mint.nn.UpsamplingNearest2d((2, 4))(image).tolist()[0][0][0] == [0, 0, 1, 1]
    assert ms.mint.nn.UpsamplingBilinear2d((3, 3))(image).tolist()[0][0][1] == [1, 1.5, 2]
    twice = ms.mint.nn.UpsamplingNearest2d(scale_factor=2.0)
    assert twice(image).shape == ms.jit(twice)(image).shape == (1, 1, 4, 4)


@pytest.mark.parametrize("operator", ["SUM", "MEAN", "MAX"])
def test_fields_of_embeddings(operator: str) -> None:
    """``SUM`` as MindSpore's compositions; the padding of weight 0 counts nowhere."""
    table = np.arange(12, dtype=np.float32).reshape(6, 2) - 5
    net = nn.MultiFieldEmbeddingLookup(6, 2, 3, Tensor(table), operator=operator)
    ids, fields = np.array([[2, 4, 5, 0], [1, 3, 5, 0]]), np.array([[0, 1, 1, 0], [0, 0, 1, 0]])
    weights = np.array([[1, -0.5, 2, 0], [1, 1, 1, 0]], np.float32)
    expected = np.zeros((2, 3, 2), np.float32)
    for n, field in itertools.product(range(2), range(3)):
        own = (fields[n] == field) & (weights[n] != 0)
        if own.any():
            rows = weights[n][own, None] * table[ids[n][own]]
            total = np.abs(weights[n][own]).sum()
            expected[n, field] = {
                "SUM": rows.sum(0), "MEAN": rows.sum(0) / total, "MAX": rows.max(0),
            }[operator]  # fmt: skip
    for run in (net, ms.jit(net)):
        y = run(Tensor(ids), Tensor(weights), Tensor(fields, ms.int32))
        np.testing.assert_allclose(y.asnumpy(), expected, rtol=1e-6)


def test_sampled_softmax() -> None:
    """With all classes sampled it is the softmax over the right and the other classes."""
    random = np.random.default_rng(0)
    w, b, x = (random.normal(size=s).astype(np.float32) for s in ((4, 3), (4,), (2, 3)))
    values = (Tensor([0, 1, 2, 3]), ops.ones((2, 1)), ops.ones((4,)))
    loss = nn.SampledSoftmaxLoss(4, 4, sampled_values=values)
    got = loss(Tensor(w), Tensor(b), Tensor([2, 0]), Tensor(x)).asnumpy()
    logits = x @ w.T + b
    right = logits[[0, 1], [2, 0]]
    np.testing.assert_allclose(
        got, np.log(np.exp(right) + np.exp(logits).sum(1)) - right, rtol=1e-5
    )
    drawn = nn.SampledSoftmaxLoss(2, 4, seed=3)
    assert drawn(Tensor(w), Tensor(b), Tensor([2, 0]), Tensor(x)).shape == (2,)
    with pytest.raises(ArgumentError, match="at most num_classes"):
        nn.SampledSoftmaxLoss(5, 4)


def test_bytes_and_storage_of_tensors() -> None:
    a = Tensor([[1, 2], [3, 4]], ms.int64)
    assert a.view(ms.int32).tolist() == [[1, 0, 2, 0], [3, 0, 4, 0]]
    assert a.view(dtype=ms.int32).view(ms.int64).tolist() == a.tolist()
    assert Tensor([1.5], ms.bfloat16).view(ms.int16).tolist() == [16320]
    assert ms.jit(lambda x: x.view(ms.int32) + 1)(Tensor([1.0])).tolist() == [1065353217]
    with pytest.raises(ShapeError, match="whole elements"):
        Tensor([1, 2, 3], ms.int32).view(ms.int64)
    for method in ("assign_value", "set_"):
        x = Tensor([1, 2, 3, 4])
        assert getattr(x, method)(Tensor([[1.5], [2.5]])) is x
        assert (x.tolist(), x.dtype) == ([[1.5], [2.5]], ms.float32)
    assert not (x.is_pinned() or x.is_shared() or x.is_meta)
    assert a.index((Tensor([0, 1]), Tensor([1, 0]))).tolist() == [2, 3]
    drawn = ops.MultinomialWithReplacement(5, True)(Tensor([[0.0, 9, 4, 0]]), Tensor(2), Tensor(5))
    assert set(drawn.tolist()[0]) <= {1, 2}
    assert mnp.result_type("i2", np.float32, True) == ms.float32
    assert mnp.result_type("f8") == ms.float64


def test_mint_convolutions_and_statistics() -> None:
    random = np.random.default_rng(0)
    x, w = (random.normal(size=s).astype(np.float32) for s in ((5, 2, 3), (3, 3, 4)))
    y = ms.mint.conv_tbc(Tensor(x), Tensor(w), ops.ones(4), 1)
    padded = np.pad(x, ((1, 1), (0, 0), (0, 0)))
    expected = sum(padded[k : k + 5] @ w[k] for k in range(3)) + 1
    np.testing.assert_allclose(y.asnumpy(), expected, rtol=1e-4, atol=1e-5)
    image = Tensor(random.normal(size=(2, 3, 4, 5)).astype(np.float32))
    assert ms.mint.conv2d(image, ops.ones((2, 3, 3, 3)), padding=1).shape == (2, 2, 4, 5)
    mean, invstd = ms.mint.batch_norm_stats(image, 1e-5)
    normal = ms.mint.batch_norm_elemt(image, ops.ones(3) * 2, ops.ones(3), mean, invstd)
    whole = ops.batch_norm(image, mean, 1 / invstd**2 - 1e-5, ops.ones(3) * 2, ops.ones(3))
    np.testing.assert_allclose(normal.asnumpy(), whole.asnumpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mean.asnumpy(), image.asnumpy().mean((0, 2, 3)), atol=1e-6)
    a = ops.ones((2, 3))
    assert ms.mint.addr_(a, Tensor([1.0, 2.0]), Tensor([1.0, 2.0, 3.0]), 2, 1) is a
    assert a.tolist() == [[3, 4, 5], [4, 6, 8]]
