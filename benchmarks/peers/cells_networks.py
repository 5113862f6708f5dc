"""The convolutional networks with MindSpore's words."""

from types import ModuleType
from typing import Any

from benchmarks.conv_rows import EPSILON, Node
from benchmarks.workloads import Array, Workload

Params = dict[str, Array]


def _sum(api: ModuleType, first: Any, second: Any) -> Any:
    class Sum(api.nn.Cell):
        def __init__(self):
            super().__init__()
            self.first = first
            self.second = second

        def construct(self, x):
            return self.first(x) + self.second(x)

    class Residual(api.nn.Cell):
        def __init__(self):
            super().__init__()
            self.first = first

        def construct(self, x):
            return self.first(x) + x

    return Sum() if second is not None else Residual()


def _mean(api: ModuleType) -> Any:
    class Mean(api.nn.Cell):
        def construct(self, x):
            return x.mean((2, 3))

    return Mean()


def _conv(api: ModuleType, params: Params, node: Node) -> Any:
    _, name, stride, dilation, groups = node
    weight, bias = params[f"{name}.w"], params.get(f"{name}.b")
    out, inp, kernel, _ = weight.shape
    cell = api.nn.Conv2d(inp * groups, out, kernel, stride, pad_mode="pad",
                         padding=kernel // 2 * dilation, dilation=dilation, group=groups,
                         has_bias=bias is not None)  # fmt: skip
    cell.weight.set_data(api.Tensor(weight))
    if bias is not None:
        cell.bias.set_data(api.Tensor(bias))
    return cell


def _norm(api: ModuleType, params: Params, name: str) -> Any:
    cell = api.nn.BatchNorm2d(len(params[f"{name}.gamma"]), eps=EPSILON)
    for part, ours in (("gamma", "gamma"), ("beta", "beta"), ("mean", "moving_mean"),
                       ("var", "moving_variance")):  # fmt: skip
        getattr(cell, ours).set_data(api.Tensor(params[f"{name}.{part}"]))
    return cell


def _dense(api: ModuleType, params: Params, name: str) -> Any:
    weight = params[f"{name}.w"]
    cell = api.nn.Dense(weight.shape[1], weight.shape[0])
    cell.weight.set_data(api.Tensor(weight))
    cell.bias.set_data(api.Tensor(params[f"{name}.b"]))
    return cell


def _build(api: ModuleType, params: Params, node: Node) -> Any:
    kind, *rest = node
    if kind == "seq":
        return api.nn.SequentialCell(*(_build(api, params, n) for n in rest)) if rest else None
    if kind == "sum":
        return _sum(api, *(_build(api, params, inner) for inner in rest))
    if kind == "conv":
        return _conv(api, params, node)
    if kind == "norm":
        return _norm(api, params, rest[0])
    if kind == "dense":
        return _dense(api, params, rest[0])
    if kind == "maxpool":
        size, stride, padding = rest
        return api.nn.MaxPool2d(size, stride, pad_mode="pad", padding=padding)
    return {"relu": api.nn.ReLU, "relu6": api.nn.ReLU6, "mean": lambda: _mean(api)}[kind]()


def network(api: ModuleType, work: Workload) -> Any:
    """The row's network."""
    return _build(api, work.params, work.options["tree"])
