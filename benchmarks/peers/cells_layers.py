"""The kernel, transformer and recurrent rows with MindSpore's words."""

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.network_rows import HEADS, LSTM_LAYERS, LSTM_SIZE, WIDTH
from benchmarks.workloads import Workload


def _function(body: Callable[..., Any]) -> Callable[[ModuleType, Workload], Any]:
    """A builder of a row that has no weights."""

    def build(api: ModuleType, work: Workload) -> Any:
        return body(api)

    return build


def _dense(api: ModuleType, work: Workload) -> Any:
    out, inp = work.params["w0"].shape
    dense = api.nn.Dense(inp, out, has_bias=False)
    dense.weight.set_data(api.Tensor(work.params["w0"]))
    return dense


def _matmul(api: ModuleType) -> Any:
    class MatMul(api.nn.Cell):
        def construct(self, x, y):
            return api.ops.matmul(x, y)

    return MatMul()


def _muladd(api: ModuleType) -> Any:
    class MulAdd(api.nn.Cell):
        def construct(self, x, y, z):
            return x * y + z

    return MulAdd()


def _gelu(api: ModuleType) -> Any:
    class Gelu(api.nn.Cell):
        def construct(self, x):
            return api.ops.gelu(x, approximate="none")

    return Gelu()


def _softmax(api: ModuleType) -> Any:
    class Softmax(api.nn.Cell):
        def construct(self, x):
            return api.ops.softmax(x, -1)

    return Softmax()


def _log_softmax(api: ModuleType) -> Any:
    class LogSoftmax(api.nn.Cell):
        def construct(self, x):
            return api.ops.log_softmax(x, -1)

    return LogSoftmax()


def _transpose(api: ModuleType) -> Any:
    class Transpose(api.nn.Cell):
        def construct(self, x):
            return api.ops.transpose(x, (1, 0))

    return Transpose()


def _sum(axis: int) -> Callable[[ModuleType], Any]:
    def build(api: ModuleType) -> Any:
        class Sum(api.nn.Cell):
            def construct(self, x):
                return x.sum(axis)

        return Sum()

    return build


def _argmax(api: ModuleType) -> Any:
    class ArgMax(api.nn.Cell):
        def construct(self, x):
            return api.ops.argmax(x, 1)

    return ArgMax()


def _cumsum(api: ModuleType) -> Any:
    class CumSum(api.nn.Cell):
        def construct(self, x):
            return api.ops.cumsum(x, 1)

    return CumSum()


def _gather(api: ModuleType) -> Any:
    class Gather(api.nn.Cell):
        def construct(self, table, ids):
            return api.ops.gather(table, ids, 0)

    return Gather()


def _norm(api: ModuleType, work: Workload, suffix: str = "") -> Any:
    gamma = work.params[f"gamma{suffix}"]
    norm = api.nn.LayerNorm(gamma.shape, epsilon=1e-5)
    norm.gamma.set_data(api.Tensor(gamma))
    norm.beta.set_data(api.Tensor(work.params[f"beta{suffix}"]))
    return norm


def _part(api: ModuleType, work: Workload, part: str) -> Any:
    out, inp = work.params[f"w{part}"].shape
    dense = api.nn.Dense(inp, out)
    dense.weight.set_data(api.Tensor(work.params[f"w{part}"]))
    dense.bias.set_data(api.Tensor(work.params[f"b{part}"]))
    return dense


def _attention_class(api: ModuleType) -> Any:
    class Attention(api.nn.Cell):
        def construct(self, q, k, v):
            scores = api.ops.matmul(q, k.swapaxes(-1, -2)) / math.sqrt(q.shape[-1])
            return api.ops.matmul(api.ops.softmax(scores, -1), v)

    return Attention


def _causal(api: ModuleType, work: Workload) -> Any:
    class Causal(api.nn.Cell):
        def construct(self, q, k, v):
            scores = api.ops.matmul(q, k.swapaxes(-1, -2)) / math.sqrt(q.shape[-1])
            size = q.shape[-2]
            hidden = api.ops.triu(api.ops.ones((size, size)), 1).astype(api.bool_)
            scores = api.ops.masked_fill(scores, hidden, float("-inf"))
            return api.ops.matmul(api.ops.softmax(scores, -1), v)

    return Causal()


def _transformer_base(api: ModuleType, work: Workload) -> Any:
    class Base(api.nn.Cell):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.o = (_part(api, work, part) for part in "qkvo")
            self.dense1, self.dense2 = _part(api, work, "1"), _part(api, work, "2")
            self.norm1, self.norm2 = _norm(api, work, "1"), _norm(api, work, "2")
            self.attention = _attention_class(api)()

        def heads(self, x):
            n, t, _ = x.shape
            return x.reshape((n, t, HEADS, WIDTH // HEADS)).transpose((0, 2, 1, 3))

        def join(self, x):
            n, h, t, d = x.shape
            return x.transpose((0, 2, 1, 3)).reshape((n, t, h * d))

    return Base


def _bert(api: ModuleType, work: Workload) -> Any:
    class Bert(_transformer_base(api, work)):
        def construct(self, x):
            mixed = self.attention(
                self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
            )
            x = self.norm1(x + self.o(self.join(mixed)))
            y = self.dense2(api.ops.gelu(self.dense1(x), approximate="none"))
            return self.norm2(x + y)

    return Bert()


def _gpt2(api: ModuleType, work: Workload) -> Any:
    class Gpt2(_transformer_base(api, work)):
        def construct(self, x, past_k, past_v):
            normed = self.norm1(x)
            k = api.ops.concat((past_k, self.heads(self.k(normed))), 2)
            v = api.ops.concat((past_v, self.heads(self.v(normed))), 2)
            x = x + self.o(self.join(self.attention(self.heads(self.q(normed)), k, v)))
            hidden = self.dense1(self.norm2(x))
            return x + self.dense2(api.ops.gelu(hidden, approximate="none"))

    return Gpt2()


def _lstm(api: ModuleType, work: Workload) -> Any:
    class Lstm(api.nn.Cell):
        def __init__(self):
            super().__init__()
            self.lstm = api.nn.LSTM(LSTM_SIZE, LSTM_SIZE, LSTM_LAYERS, has_bias=True)

        def construct(self, x):
            return self.lstm(x)[0]

    cell = Lstm()
    ours, p = cell.lstm, work.params
    for layer in range(LSTM_LAYERS):
        for kind, value in (("w_ih", p[f"ih{layer}"]), ("w_hh", p[f"hh{layer}"]),
                            ("b_ih", p[f"b{layer}"]), ("b_hh", 0 * p[f"b{layer}"])):  # fmt: skip
            getattr(ours, f"{kind}_list")[layer].set_data(api.Tensor(value))
    return cell


BUILDERS: dict[str, Callable[[ModuleType, Workload], Any]] = {
    "dense": _dense,
    "matmul": _function(_matmul),
    "muladd": _function(_muladd),
    "gelu": _function(_gelu),
    "softmax": _function(_softmax),
    "logsoftmax": _function(_log_softmax),
    "layernorm": _norm,
    "transpose": _function(_transpose),
    "sum0": _function(_sum(0)),
    "sum1": _function(_sum(1)),
    "argmax": _function(_argmax),
    "cumsum": _function(_cumsum),
    "gather": _function(_gather),
    "bert": _bert,
    "gpt2": _gpt2,
    "attention": _causal,
    "lstm": _lstm,
}
