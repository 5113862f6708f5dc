"""Attention and transformer layers against NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.nn.helpers import close, rand, randomize, t
from tvmgraph import Tensor, nn, ops
from tvmgraph.common import set_seed
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError

CAUSAL = np.triu(np.ones((3, 3)), 1).astype(bool)
PADDING = np.array([[False, False, True], [False, True, True]])


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(
    net: Any, q: np.ndarray, k: np.ndarray, v: np.ndarray, hidden: Any = False
) -> tuple[np.ndarray, np.ndarray]:
    """One head and one sample at a time; ``hidden`` broadcasts to (N, heads, L, S)."""
    w = {path: p.asnumpy() for path, p in net.parameters_and_names()}
    e, heads = net.embed_dim, net.num_heads
    if "in_proj_weight" in w:
        weights = np.split(w["in_proj_weight"], 3)
    else:
        weights = [w[f"{n}_proj_weight"] for n in "qkv"]
    biases = np.split(w["in_proj_bias"], 3) if net.has_bias else [0, 0, 0]
    q, k, v = (x @ m.T + b for x, m, b in zip((q, k, v), weights, biases))
    extra = 0
    if "bias_k" in w:
        k = np.concatenate([k, np.repeat(w["bias_k"], k.shape[1], 1)])
        v = np.concatenate([v, np.repeat(w["bias_v"], v.shape[1], 1)])
        extra += 1
    if net.add_zero_attn:
        zero = np.zeros((1, *k.shape[1:]))
        k, v, extra = np.concatenate([k, zero]), np.concatenate([v, zero]), extra + 1
    size, length, batch = e // heads, q.shape[0], q.shape[1]
    shape = (batch, heads, length, k.shape[0] - extra)
    masked = np.concatenate(
        [np.broadcast_to(hidden, shape), np.zeros((*shape[:3], extra), bool)], -1
    )
    joined = np.zeros((length, batch, e))
    all_weights = np.zeros((batch, heads, length, k.shape[0]))
    for n in range(batch):
        for h in range(heads):
            part = slice(h * size, (h + 1) * size)
            scores = q[:, n, part] @ k[:, n, part].T / math.sqrt(size)
            all_weights[n, h] = softmax(np.where(masked[n, h], -np.inf, scores))
            joined[:, n, part] = all_weights[n, h] @ v[:, n, part]
    return joined @ w["out_proj.weight"].T + w.get("out_proj.bias", 0), all_weights


@pytest.mark.parametrize(
    "kwargs",
    [{}, {"has_bias": False}, {"kdim": 3, "vdim": 5}, {"add_bias_kv": True},
     {"add_zero_attn": True}, {"add_bias_kv": True, "add_zero_attn": True}],
    ids=str,
)  # fmt: skip
def test_attention(kwargs: dict[str, Any]) -> None:
    net = randomize(nn.MultiheadAttention(4, 2, **kwargs))
    q = rand(3, 2, 4)
    k, v = rand(5, 2, net.kdim, seed=1), rand(5, 2, net.vdim, seed=2)
    y, weights = net(Tensor(q), Tensor(k), Tensor(v))
    expected, per_head = attention(net, q, k, v)
    close(y, expected, rtol=1e-4, atol=1e-5)
    close(weights, per_head.mean(1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["bool", "float", "per head"])
def test_masks(kind: str) -> None:
    net = randomize(nn.MultiheadAttention(4, 2))
    x = rand(3, 2, 4)
    attn = Tensor(CAUSAL)
    if kind == "float":
        attn = Tensor(np.where(CAUSAL, -np.inf, 0).astype(np.float32))
    if kind == "per head":
        attn = Tensor(np.repeat(CAUSAL[None], 4, 0))
    padding = Tensor(PADDING)
    y, weights = net(*[Tensor(x)] * 3, key_padding_mask=padding, attn_mask=attn,
                     average_attn_weights=False)  # fmt: skip
    expected, per_head = attention(net, x, x, x, CAUSAL | PADDING[:, None, None])
    close(y, expected, rtol=1e-4, atol=1e-5)
    close(weights, per_head, rtol=1e-4, atol=1e-5)


def test_masks_do_not_hide_the_added_rows() -> None:
    net = randomize(nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True))
    x = rand(3, 2, 4)
    y, weights = net(*[Tensor(x)] * 3, attn_mask=Tensor(CAUSAL))
    expected, per_head = attention(net, x, x, x, CAUSAL)
    close(y, expected, rtol=1e-4, atol=1e-5)
    close(weights, per_head.mean(1), rtol=1e-4, atol=1e-5)


def test_layouts_of_inputs_and_outputs() -> None:
    net = randomize(nn.MultiheadAttention(4, 2, batch_first=True))
    x = rand(2, 3, 4)
    expected, per_head = attention(net, *[x.transpose(1, 0, 2)] * 3)
    y, weights = net(*[Tensor(x)] * 3)
    close(y, expected.transpose(1, 0, 2), rtol=1e-4, atol=1e-5)
    close(weights, per_head.mean(1), rtol=1e-4, atol=1e-5)
    single = net(*[Tensor(x[0])] * 3, need_weights=False)
    assert len(single) == 1
    close(single[0], expected[:, 0], rtol=1e-4, atol=1e-5)


def test_attention_parameters() -> None:
    def shapes(net: nn.Cell) -> list[tuple[str, tuple[int, ...]]]:
        return [(path, p.shape) for path, p in net.parameters_and_names()]

    out = [("out_proj.weight", (8, 8)), ("out_proj.bias", (8,))]
    packed = [("in_proj_weight", (24, 8)), ("in_proj_bias", (24,))]
    assert shapes(nn.MultiheadAttention(8, 2)) == packed + out
    kv = [("bias_k", (1, 1, 8)), ("bias_v", (1, 1, 8))]
    assert shapes(nn.MultiheadAttention(8, 2, add_bias_kv=True)) == packed + kv + out
    assert shapes(nn.MultiheadAttention(8, 2, kdim=4, vdim=6)) == [
        ("q_proj_weight", (8, 8)), ("k_proj_weight", (8, 4)), ("v_proj_weight", (8, 6)),
        ("in_proj_bias", (24,)), *out,
    ]  # fmt: skip
    set_seed(0)
    net = nn.MultiheadAttention(32, 4)
    bound = math.sqrt(6 / 128)
    assert 0.99 * bound < np.abs(net.in_proj_weight.asnumpy()).max() <= bound
    assert np.abs(net.in_proj_bias.asnumpy()).max() == 0


def layer_norm(x: np.ndarray, net: Any) -> np.ndarray:
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return x * net.gamma.asnumpy() + net.beta.asnumpy()


def feed_forward(net: Any, x: np.ndarray, act: Any) -> np.ndarray:
    x = act(x @ net.dense1.weight.asnumpy().T + net.dense1.bias.asnumpy())
    return x @ net.dense2.weight.asnumpy().T + net.dense2.bias.asnumpy()


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def exact_gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def encode(net: Any, x: np.ndarray, act: Any = relu, hidden: Any = False) -> np.ndarray:
    def attend(a: np.ndarray) -> np.ndarray:
        return attention(net.self_attn, a, a, a, hidden)[0]

    if net.norm_first:
        x = x + attend(layer_norm(x, net.norm1))
        return x + feed_forward(net, layer_norm(x, net.norm2), act)
    x = layer_norm(x + attend(x), net.norm1)
    return layer_norm(x + feed_forward(net, x, act), net.norm2)


def decode(net: Any, x: np.ndarray, memory: np.ndarray) -> np.ndarray:
    x = layer_norm(x + attention(net.self_attn, x, x, x)[0], net.norm1)
    x = layer_norm(x + attention(net.multihead_attn, x, memory, memory)[0], net.norm2)
    return layer_norm(x + feed_forward(net, x, relu), net.norm3)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize(
    ("activation", "act"),
    [("relu", relu), ("gelu", exact_gelu), (nn.Tanh(), np.tanh), (ops.tanh, np.tanh)],
)
def test_encoder_layer(norm_first: bool, activation: Any, act: Any) -> None:
    net = nn.TransformerEncoderLayer(4, 2, 8, activation=activation, norm_first=norm_first)
    randomize(net)
    x = rand(3, 2, 4)
    close(net(Tensor(x)), encode(net, x, act), rtol=1e-4, atol=1e-5)
    masked = net(Tensor(x), src_mask=Tensor(CAUSAL), src_key_padding_mask=Tensor(PADDING))
    hidden = CAUSAL | PADDING[:, None, None]
    close(masked, encode(net, x, act, hidden), rtol=1e-4, atol=1e-5)


def test_stacks() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 8)
    encoder = randomize(nn.TransformerEncoder(layer, 2, nn.LayerNorm((4,), epsilon=1e-5)))
    x = rand(3, 2, 4)
    first, second = encoder.layers
    memory = layer_norm(encode(second, encode(first, x)), encoder.norm)
    close(encoder(Tensor(x)), memory, rtol=1e-4, atol=1e-5)
    decoder = randomize(nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 2))
    y = rand(5, 2, 4, seed=3)
    first, second = decoder.layers
    expected = decode(second, decode(first, y, memory), memory)
    memory32 = Tensor(memory.astype(np.float32))
    close(decoder(Tensor(y), memory32), expected, rtol=1e-3, atol=1e-4)


def test_transformer_is_encoder_and_decoder() -> None:
    net = randomize(nn.Transformer(4, 2, 1, 1, 8))
    x, y = rand(3, 2, 4), rand(5, 2, 4, seed=3)
    memory = layer_norm(encode(net.encoder.layers[0], x), net.encoder.norm)
    expected = layer_norm(decode(net.decoder.layers[0], y, memory), net.decoder.norm)
    close(net(Tensor(x), Tensor(y)), expected, rtol=1e-3, atol=1e-4)


def test_layers_are_copies_with_names_of_their_own() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16)
    net = nn.TransformerEncoder(layer, 2)
    names = [p.name for p in net.get_parameters()]
    one = ["self_attn.in_proj_weight", "self_attn.in_proj_bias", "self_attn.out_proj.weight",
           "self_attn.out_proj.bias", "dense1.weight", "dense1.bias", "dense2.weight",
           "dense2.bias", "norm1.gamma", "norm1.beta", "norm2.gamma", "norm2.beta"]  # fmt: skip
    assert names == [f"layers.{i}.{name}" for i in range(2) for name in one]
    assert [p.name for p in layer.get_parameters()] == one
    net.layers[0].dense1.weight.set_data(net.layers[0].dense1.weight * 0)
    assert np.abs(net.layers[1].dense1.weight.asnumpy()).max() > 0
    whole = [path for path, _ in nn.Transformer(4, 2, 1, 1, 8).parameters_and_names()]
    assert whole[0] == "encoder.layers.0.self_attn.in_proj_weight"
    assert whole[-3:] == ["decoder.layers.0.norm3.beta", "decoder.norm.gamma", "decoder.norm.beta"]


def test_transformer_starts_xavier() -> None:
    set_seed(0)
    net = nn.Transformer(32, 4, 1, 1, 64)
    bound = math.sqrt(6 / 64)
    weight = net.encoder.layers[0].self_attn.out_proj.weight.asnumpy()
    assert 0.99 * bound < np.abs(weight).max() <= bound


def test_dropout_in_training_only() -> None:
    net = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5)
    x = t(3, 2, 8)
    close(net(x), net(x).asnumpy())
    set_seed(0)
    net.set_train()
    assert not np.allclose(net(x).asnumpy(), net(x).asnumpy())
    attention = nn.MultiheadAttention(8, 2, dropout=0.5).set_train()
    weights = attention(x, x, x)[1].asnumpy()
    assert not np.allclose(weights.sum(-1), 1)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.MultiheadAttention(5, 2), ArgumentError, "num_heads=2 must divide"),
        (lambda: nn.MultiheadAttention(4, 2, dropout=1.0), ArgumentError, "dropout must be in"),
        (lambda: nn.MultiheadAttention(4, 2)(t(3), t(3), t(3)), ShapeError, "3 axes"),
        (lambda: nn.MultiheadAttention(4, 2)(t(3, 2, 4), t(3, 2, 5), t(3, 2, 4)), ShapeError,
         "the last axis of key must have 4 elements, not 5"),
        (lambda: nn.MultiheadAttention(4, 2)(t(3, 2, 4), t(3, 2, 4), t(4, 2, 4)), ShapeError,
         "the same length"),
        (lambda: nn.MultiheadAttention(4, 2)(t(3, 2, 4), t(3, 1, 4), t(3, 1, 4)), ShapeError,
         "the same batch"),
        (lambda: nn.MultiheadAttention(4, 2)(*[t(3, 2, 4)] * 3, attn_mask=t(2, 2)), ShapeError,
         "attn_mask must have one of the shapes"),
        (lambda: nn.MultiheadAttention(4, 2)(*[t(3, 2, 4)] * 3, key_padding_mask=t(2, 2)),
         ShapeError, "key_padding_mask must have the shape (2, 3)"),
        (lambda: nn.TransformerEncoderLayer(4, 2, activation="tanh"), ArgumentError, "'gelu'"),
        (lambda: nn.TransformerEncoderLayer(4, 2, activation=3), DTypeError, "not int"),
        (lambda: nn.TransformerEncoder(3, 2), DTypeError, "must be a Cell"),
        (lambda: nn.TransformerEncoder(nn.ReLU(), 0), ArgumentError, "num_layers"),
        (lambda: nn.Transformer(4, 2, 1, 1, 8)(t(3, 2, 5), t(3, 2, 4)), ShapeError,
         "the last axis of src must have d_model=4"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as e:
        call()
    assert text in str(e.value)
    assert "test_transformer.py" in str(e.value)


@pytest.mark.parametrize("kind", [nn.TransformerEncoderLayer, nn.TransformerDecoderLayer])
def test_layers_keep_what_they_were_made_of(kind: Any) -> None:
    layer = kind(8, 2, 16, 0.2, "gelu", 1e-4, True)
    assert (layer.d_model, layer.nhead, layer.dim_feedforward, layer.batch_first) == (
        8,
        2,
        16,
        True,
    )
    assert (layer.dropout_num, layer.layernorm_eps, layer.activation1) == (0.2, 1e-4, "gelu")
    attention = layer.self_attn
    assert layer.dtype is attention.dtype is attention.in_proj_weight.dtype
    assert attention.q_proj_weight is attention.k_proj_weight is attention.v_proj_weight is None
    other = nn.MultiheadAttention(8, 2, kdim=4)
    assert other.in_proj_weight is None
    assert other.k_proj_weight is not None and other.k_proj_weight.shape == (8, 4)
