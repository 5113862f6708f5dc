"""tvmgraph.mint gives what PyTorch gives: values, shapes and dtypes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
import tvmgraph.mint.nn as mint_nn
import tvmgraph.mint.nn.functional as functional
from tests.mint.cases import CALLS, inputs
from tests.mint.record import EXPECTED, arrays
from tvmgraph import Tensor, mint, nn, ops
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.mint import optim

# recorded with torch.optim: three steps on p = [1, -2, 3] with gradient 2 p
SGD = [0.06199999898672104, -0.12399999797344208, 0.18600013852119446]
ADAM = [0.7015863060951233, -1.7006233930587769, 2.7003815174102783]
ADAMW = [0.6751012802124023, -1.6443686485290527, 2.614406108856201]


@pytest.fixture(scope="module")
def expected() -> Iterator[dict[str, np.ndarray]]:
    """The recorded results."""
    with np.load(EXPECTED) as found:
        yield dict(found)


@pytest.mark.parametrize("number", range(len(CALLS)), ids=lambda i: CALLS[i][:60])
def test_call(number: int, expected: dict[str, np.ndarray]) -> None:
    scope = inputs(Tensor) | {"M": mint, "N": mint_nn, "F": functional, "f16": ms.float16}
    found = arrays(eval(CALLS[number], scope))
    wanted = [v for k, v in expected.items() if k.split(".")[0] == str(number)]
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_everything_named_exists() -> None:
    for module in (mint, mint_nn, functional):
        assert not [n for n in module.__all__ if not callable(getattr(module, n)) and n not in
                    ("distributed", "functional", "linalg", "nn", "optim", "special")]  # fmt: skip


def test_layers_train_compiled() -> None:
    ms.set_seed(0)
    net = mint_nn.SequentialCell(
        mint_nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), mint_nn.BatchNorm2d(4),
        mint_nn.ReLU(), mint_nn.ConvTranspose2d(4, 2, 2, 2), mint_nn.AvgPool2d(2),
        mint_nn.Flatten(), mint_nn.Linear(2 * 8 * 8, 3), mint_nn.Dropout(0.0),
    )  # fmt: skip
    assert [p.name for p in net.get_parameters()][:6] == [
        "0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var",
    ]  # fmt: skip
    net.set_train()
    optimizer = optim.AdamW(net.trainable_params(), lr=0.05)
    x = Tensor(np.random.default_rng(0).standard_normal((8, 3, 8, 8)).astype(np.float32))
    y = Tensor(np.arange(8) % 3)
    gradient = ms.value_and_grad(
        lambda x, y: functional.cross_entropy(net(x), y), None, optimizer.parameters
    )

    @ms.jit
    def step(x: Tensor, y: Tensor) -> Tensor:
        loss, gradients = gradient(x, y)
        optimizer(gradients)
        return loss

    losses = [float(step(x, y)) for _ in range(12)]
    assert losses[-1] < 0.3 * losses[0]


def _steps(optimizer: type, count: int = 3, **arguments: float) -> list[float]:
    p = ms.Parameter(Tensor(np.array([1.0, -2.0, 3.0], np.float32)), name="p")
    update = optimizer([p], **arguments)
    for _ in range(count):
        update((p.snapshot() * 2,))
    return p.asnumpy().tolist()


def test_optimizers_are_pytorchs() -> None:
    wanted = {
        (optim.SGD, (("lr", 0.1), ("momentum", 0.9))): SGD,
        (optim.Adam, (("lr", 0.1), ("weight_decay", 0.1))): ADAM,
        (optim.AdamW, (("lr", 0.1), ("weight_decay", 0.1))): ADAMW,
    }
    for (optimizer, arguments), values in wanted.items():
        np.testing.assert_allclose(_steps(optimizer, **dict(arguments)), values, rtol=1e-5)


def test_wrong_arguments() -> None:
    with pytest.raises(DTypeError, match="AvgPool2d: missing a required argument"):
        mint_nn.AvgPool2d()
    with pytest.raises(ArgumentError, match="groups=2 must divide in_channels=3"):
        mint_nn.Conv2d(3, 4, 1, groups=2)
    with pytest.raises(ArgumentError, match="along an axis are not offered"):
        mint.unique(ops.ones(3), dim=0)


@pytest.mark.parametrize("size", [None, (9, 10), (2, 2, 10, 9)])
def test_transposed_convolutions_take_a_size(size: tuple[int, ...] | None) -> None:
    layer = mint_nn.ConvTranspose2d(1, 2, 3, stride=2)
    y = layer(ops.ones((2, 1, 4, 4)), size)
    assert y.shape == (2, 2, *((9, 9) if size is None else size[-2:]))
    plain = layer(ops.ones((2, 1, 4, 4)))
    np.testing.assert_allclose(y[..., :9, :9].asnumpy(), plain.asnumpy(), rtol=1e-6)
    with pytest.raises(ArgumentError, match=r"\[9, 9\] to \[10, 10\]"):
        layer(ops.ones((2, 1, 4, 4)), (11, 9))


def test_unpooling_takes_a_size() -> None:
    layer = mint_nn.MaxUnpool2d(2, 2)
    x, where = Tensor([[[6.0, 8.0]]]), Tensor([[[1, 2]]])
    assert layer(x, where).asnumpy().tolist() == [[[0, 6, 8, 0], [0, 0, 0, 0]]]
    assert layer(x, where, (2, 5)).shape == (1, 2, 5)
    assert repr(layer) == "MaxUnpool2d(kernel_size=2, stride=2, padding=0)"


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions_take_one_image(axes: int) -> None:
    convolve = getattr(functional, f"conv{axes}d")
    x, w, b = ops.randn(3, *[5] * axes), ops.randn(2, 3, *[2] * axes), ops.randn(2)
    one = convolve(x, w, b, padding=1)
    assert one.shape == (2, *[6] * axes)
    np.testing.assert_allclose(one.asnumpy(), convolve(x[None], w, b, padding=1)[0].asnumpy())
    with pytest.raises(ShapeError, match="axes"):
        convolve(x[0, 0], w)


def test_a_norm_over_several_axes_is_that_of_one_vector() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    for p in (1, 2, 3.0, "fro"):
        order = 2 if p == "fro" else p
        wanted = (np.abs(x) ** order).sum((0, 2), keepdims=True) ** (1 / order)
        found = mint.norm(ms.Tensor(x), p=p, dim=(0, 2), keepdim=True)
        np.testing.assert_allclose(found.asnumpy(), wanted, 1e-5)
    assert mint.norm(ms.Tensor(x), float("inf"), (0, 1)).tolist() == np.abs(x).max((0, 1)).tolist()
    wanted = np.linalg.norm(x[0], "nuc")
    np.testing.assert_allclose(mint.norm(ms.Tensor(x[0]), "nuc").item(), wanted, 1e-5)


def _keys(points: int, size: int) -> np.ndarray:
    """Weights of cubic interpolation with a = -0.75, from the middles of the points."""
    weights = np.zeros((size, points))
    for row, at in zip(weights, (np.arange(size) + 0.5) * points / size - 0.5):
        for tap in range(int(np.floor(at)) - 1, int(np.floor(at)) + 3):
            d = abs(at - tap)
            near, far = (1.25 * d - 2.25) * d * d + 1, -0.75 * (((d - 5) * d + 8) * d - 4)
            row[min(max(tap, 0), points - 1)] += near if d <= 1 else far
    return weights


@pytest.mark.parametrize("size", [(4, 4), (17, 20)])
def test_bicubic_weights_are_those_of_pytorch(size: tuple[int, int]) -> None:
    x = np.random.default_rng(0).normal(size=(1, 2, 14, 14)).astype(np.float32)
    wanted = np.einsum("ih,jw,nchw->ncij", _keys(14, size[0]), _keys(14, size[1]), x)
    resize = mint.nn.functional.interpolate
    for call in (resize, ms.jit(resize)):
        found = call(ms.Tensor(x), size=size, mode="bicubic", align_corners=False)
        np.testing.assert_allclose(found.asnumpy(), wanted, 1e-4, 1e-5)
    doubled = resize(ms.Tensor(x), scale_factor=2.0, mode="nearest")
    assert np.array_equal(doubled.asnumpy(), x.repeat(2, 2).repeat(2, 3))


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (mint_nn.Linear(2, 3), "Linear(input_features=2, output_features=3, has_bias=True)"),
        (mint_nn.Linear(2, 3, bias=False), "Linear(input_features=2, output_features=3)"),
        (
            mint_nn.Conv2d(2, 3, 3, 2, padding="valid", bias=False),
            "Conv2d(input_channels=2, output_channels=3, kernel_size=(3, 3), stride=(2, 2), "
            "padding=valid, dilation=(1, 1), groups=1, bias=False)",
        ),
        (
            mint_nn.BatchNorm1d(2, affine=False),
            "BatchNorm1d(num_features=2, eps=1e-05, momentum=0.1, affine=False, "
            "track_running_stats=True)",
        ),
        (
            mint_nn.LayerNorm(2),
            "LayerNorm(normalized_shape=(2,), eps=1e-05, elementwise_affine=True)",
        ),
        (
            mint_nn.GroupNorm(2, 4),
            "GroupNorm(num_groups=2, num_channels=4, eps=1e-05, affine=True)",
        ),
        (
            mint_nn.Embedding(4, 3, padding_idx=1),
            "Embedding(num_embeddings=4, embedding_dim=3, padding_idx=1, max_norm=None, "
            "norm_type=2.0, scale_grad_by_freq=False, dtype=Float32)",
        ),
    ],
    ids=lambda v: v.split("(")[0] if isinstance(v, str) else "",
)
def test_layers_show_their_arguments(layer: nn.Cell, text: str) -> None:
    assert str(layer) == text


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"affine": False}, ["running_mean", "running_var", "num_batches_tracked"]),
        ({"track_running_stats": False}, ["weight", "bias"]),
    ],
    ids=str,
)
def test_parameters_of_batch_norms(options: dict[str, bool], names: list[str]) -> None:
    norm = mint_nn.BatchNorm1d(2, **options)
    assert [p.name for p in norm.get_parameters()] == names
    x = np.array([[1.0, 2.0], [3.0, 6.0]], np.float32)
    for run in (norm.set_train(), ms.jit(norm)):
        np.testing.assert_allclose(run(Tensor(x)).asnumpy(), [[-1, -1], [1, 1]], atol=1e-4)


@pytest.mark.parametrize("wrap", [lambda cell: cell, ms.jit], ids=["eager", "compiled"])
def test_statistics_of_all_batches(wrap: Any) -> None:
    norm = mint_nn.BatchNorm1d(1, momentum=None).set_train()
    call = wrap(norm)
    for mean in (1.0, 2.0, 6.0):
        call(Tensor([[mean - 1], [mean + 1]]))
    assert norm.num_batches_tracked.asnumpy() == 3
    np.testing.assert_allclose(norm.running_mean.asnumpy(), [3.0], rtol=1e-6)


def test_attributes_of_layers_without_parameters_are_their_arguments() -> None:
    pool = mint_nn.MaxPool2d(2, padding=1)
    assert (pool.kernel_size, pool.stride, pool.padding, pool.ceil_mode) == (2, None, 1, False)
    activation = mint_nn.LeakyReLU(0.5)
    activation.negative_slope = 0.25
    assert activation(Tensor([-4.0])).asnumpy().tolist() == [-1.0]


@pytest.mark.parametrize("layer", [mint_nn.ELU(0.5), mint_nn.functional.elu], ids=["ELU", "elu"])
def test_the_slope_of_elu_is_1_where_the_exponential_overflows(layer: Any) -> None:
    x = Tensor([1.0, 89.0, 1e30, np.inf])
    for gradient in (ms.grad(layer), ms.jit(ms.grad(layer))):
        assert gradient(x).tolist() == [1.0] * 4
