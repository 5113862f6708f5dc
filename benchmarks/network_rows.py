"""Rows of transformer and recurrent layers."""

from collections.abc import Callable

import numpy as np

from benchmarks.kernel_rows import gelu, layer_norm, softmax
from benchmarks.workloads import Array, Workload

WIDTH, HEADS, HIDDEN = 768, 12, 3072
HEAD = WIDTH // HEADS
LSTM_SIZE, LSTM_STEPS, LSTM_LAYERS = 256, 64, 2
#: Dense layers of a transformer layer: name, outputs, inputs.
DENSES = (
    *((f"w{part}", WIDTH, WIDTH) for part in "qkvo"),
    ("w1", HIDDEN, WIDTH),
    ("w2", WIDTH, HIDDEN),
)


def _layer_params(seed: int) -> dict[str, Array]:
    rng = np.random.RandomState(seed)
    params: dict[str, Array] = {}
    for name, out, inp in DENSES:
        params[name] = (rng.standard_normal((out, inp)) / np.sqrt(inp)).astype(np.float32)
        params[f"b{name[1:]}"] = (rng.standard_normal(out) / 10).astype(np.float32)
    for part in "12":
        params[f"gamma{part}"] = (1 + rng.standard_normal(WIDTH) / 10).astype(np.float32)
        params[f"beta{part}"] = (rng.standard_normal(WIDTH) / 10).astype(np.float32)
    return params


def _dense(params: dict[str, Array], part: str, x: Array) -> Array:
    return x @ params[f"w{part}"].T + params[f"b{part}"]


def _heads(x: Array) -> Array:
    return x.reshape(*x.shape[:2], HEADS, HEAD).transpose(0, 2, 1, 3)


def attention(q: Array, k: Array, v: Array, causal: bool = False) -> Array:
    """softmax(Q K^T / sqrt(head size)) V in NumPy."""
    scores = q @ k.swapaxes(-1, -2) / np.float32(np.sqrt(q.shape[-1]))
    if causal:
        hidden = np.triu(np.ones(scores.shape[-2:], bool), 1)
        scores = np.where(hidden, np.float32(-np.inf), scores)
    return softmax(scores) @ v


def _bert(work: Workload) -> Array:
    x, p = work.args[0], work.params
    mixed = attention(*(_heads(_dense(p, part, x)) for part in "qkv"))
    joined = mixed.transpose(0, 2, 1, 3).reshape(x.shape)
    x = layer_norm(x + _dense(p, "o", joined), p["gamma1"], p["beta1"])
    y = _dense(p, "2", gelu(_dense(p, "1", x)))
    return layer_norm(x + y, p["gamma2"], p["beta2"])


def _gpt2(work: Workload) -> Array:
    (x, past_k, past_v), p = work.args, work.params
    normed = layer_norm(x, p["gamma1"], p["beta1"])
    q, k, v = (_heads(_dense(p, part, normed)) for part in "qkv")
    k, v = np.concatenate((past_k, k), 2), np.concatenate((past_v, v), 2)
    joined = attention(q, k, v).transpose(0, 2, 1, 3).reshape(x.shape)
    x = x + _dense(p, "o", joined)
    hidden = _dense(p, "1", layer_norm(x, p["gamma2"], p["beta2"]))
    return x + _dense(p, "2", gelu(hidden))


def bert_layer(batch: int) -> Workload:
    """An encoder layer of BERT-base over 128 tokens: attention, GELU, norms behind the sums."""
    x = np.random.RandomState(0).standard_normal((batch, 128, WIDTH)).astype(np.float32)
    flops = 2 * batch * 128 * (sum(out * inp for _, out, inp in DENSES) + 2 * 128 * WIDTH)
    return Workload(
        f"bert-layer-b{batch}", f"BERT-base layer, batch {batch}, 128 tokens", "bert", (x,),
        _bert, _layer_params(1), rtol=1e-3, atol=1e-3, flops=flops,
    )  # fmt: skip


def gpt2_layer(length: int = 1024) -> Workload:
    """One token through a layer of GPT-2-small behind a cache of keys and values."""
    rng = np.random.RandomState(0)
    x = rng.standard_normal((1, 1, WIDTH)).astype(np.float32)
    past = [rng.standard_normal((1, HEADS, length - 1, HEAD)).astype(np.float32) for _ in "kv"]
    return Workload(
        f"gpt2-layer-kv{length}", f"GPT-2-small layer, 1 token, {length} keys", "gpt2",
        (x, *past), _gpt2, _layer_params(1), rtol=1e-3, atol=1e-3,
    )  # fmt: skip


def causal_attention(length: int = 1024) -> Workload:
    """Causal attention of GPT-2-small's heads alone."""
    rng = np.random.RandomState(0)
    shape = (1, HEADS, length, HEAD)
    args = tuple(rng.standard_normal(shape).astype(np.float32) for _ in "qkv")
    return Workload(
        f"attention-causal-{length}", f"causal attention, {HEADS} heads, {length} tokens",
        "attention", args, lambda work: attention(*work.args, causal=True), rtol=1e-3, atol=1e-4,
    )  # fmt: skip


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _lstm(work: Workload) -> Array:
    x, p = work.args[0], work.params
    for layer in range(LSTM_LAYERS):
        h = c = np.zeros((x.shape[1], LSTM_SIZE), np.float32)
        outputs = []
        for step in x:
            gates = step @ p[f"ih{layer}"].T + h @ p[f"hh{layer}"].T + p[f"b{layer}"]
            i, f, g, o = np.split(gates, 4, -1)
            c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
            h = _sigmoid(o) * np.tanh(c)
            outputs.append(h)
        x = np.stack(outputs)
    return x


def lstm(batch: int = 1) -> Workload:
    """Two layers of 256 over 64 steps; gates in the order i, f, g, o."""
    rng = np.random.RandomState(0)
    x = rng.standard_normal((LSTM_STEPS, batch, LSTM_SIZE)).astype(np.float32)
    params: dict[str, Array] = {}
    bound = 1 / np.sqrt(LSTM_SIZE)
    for layer in range(LSTM_LAYERS):
        for name, shape in (("ih", (4 * LSTM_SIZE, LSTM_SIZE)), ("hh", (4 * LSTM_SIZE, LSTM_SIZE)),
                            ("b", (4 * LSTM_SIZE,))):  # fmt: skip
            params[f"{name}{layer}"] = rng.uniform(-bound, bound, shape).astype(np.float32)
    title = f"LSTM, {LSTM_LAYERS} x {LSTM_SIZE}, {LSTM_STEPS} steps, batch {batch}"
    return Workload(f"lstm-b{batch}", title, "lstm", (x,), _lstm, params, rtol=1e-3, atol=1e-4)


NETWORKS: dict[str, Callable[[], Workload]] = {
    "bert-layer-b1": lambda: bert_layer(1),
    "bert-layer-b8": lambda: bert_layer(8),
    "gpt2-layer-kv1024": gpt2_layer,
    "attention-causal-1024": causal_attention,
    "lstm-b1": lstm,
    "lstm-b16": lambda: lstm(16),
}
