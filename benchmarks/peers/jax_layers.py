"""JAX's form of the kernel, transformer and recurrent rows; dense weights are (in, out)."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.network_rows import HEADS, LSTM_LAYERS, LSTM_SIZE

Params = dict[str, Any]
Builder = Callable[..., Any]


def _layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    var = x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * gamma + beta


def _layernorm(params: Params, x: Any) -> Any:
    return _layer_norm(x, params["gamma"], params["beta"])


def _dense(params: Params, part: str, x: Any) -> Any:
    return x @ params[f"w{part}"] + params[f"b{part}"]


def _heads(x: Any) -> Any:
    return x.reshape(*x.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)


def _join(x: Any) -> Any:
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def _attention(q: Any, k: Any, v: Any, causal: bool = False) -> Any:
    scores = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5)
    if causal:
        scores = jnp.where(jnp.tri(q.shape[-2], k.shape[-2], dtype=bool), scores, -jnp.inf)
    return jax.nn.softmax(scores, -1) @ v


def _bert(params: Params, x: Any) -> Any:
    mixed = _attention(*(_heads(_dense(params, part, x)) for part in "qkv"))
    x = _layer_norm(x + _dense(params, "o", _join(mixed)), params["gamma1"], params["beta1"])
    y = _dense(params, "2", jax.nn.gelu(_dense(params, "1", x), approximate=False))
    return _layer_norm(x + y, params["gamma2"], params["beta2"])


def _gpt2(params: Params, x: Any, past_k: Any, past_v: Any) -> Any:
    normed = _layer_norm(x, params["gamma1"], params["beta1"])
    q, k, v = (_heads(_dense(params, part, normed)) for part in "qkv")
    k, v = jnp.concatenate((past_k, k), 2), jnp.concatenate((past_v, v), 2)
    x = x + _dense(params, "o", _join(_attention(q, k, v)))
    hidden = _dense(params, "1", _layer_norm(x, params["gamma2"], params["beta2"]))
    return x + _dense(params, "2", jax.nn.gelu(hidden, approximate=False))


def _lstm(params: Params, x: Any) -> Any:
    for layer in range(LSTM_LAYERS):
        gates = x @ params[f"ih{layer}"].T + params[f"b{layer}"]
        weight = params[f"hh{layer}"].T

        def step(state: Any, gate: Any, weight: Any = weight) -> Any:
            h, c = state
            i, f, g, o = jnp.split(gate + h @ weight, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((x.shape[1], LSTM_SIZE), x.dtype)
        x = lax.scan(step, (zero, zero), gates)[1]
    return x


BUILDERS: dict[str, Builder] = {
    "dense": lambda params, x: x @ params["w0"],
    "matmul": lambda params, x, y: x @ y,
    "muladd": lambda params, x, y, z: x * y + z,
    "gelu": lambda params, x: jax.nn.gelu(x, approximate=False),
    "softmax": lambda params, x: jax.nn.softmax(x, -1),
    "logsoftmax": lambda params, x: jax.nn.log_softmax(x, -1),
    "layernorm": _layernorm,
    "transpose": lambda params, x: x.T,
    "sum0": lambda params, x: x.sum(0),
    "sum1": lambda params, x: x.sum(1),
    "argmax": lambda params, x: x.argmax(1),
    "cumsum": lambda params, x: x.cumsum(1),
    "gather": lambda params, table, ids: table[ids],
    "bert": _bert,
    "gpt2": _gpt2,
    "attention": lambda params, *qkv: _attention(*qkv, causal=True),
    "lstm": _lstm,
}
