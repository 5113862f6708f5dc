"""Things that are pickled here and used in a process that knows nothing else of them."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tvmgraph as ms
from tvmgraph import JitConfig, Parameter, ParameterTuple, Tensor, dataset, jit, nn, ops

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
X = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3) - 2)


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.scale = 2.0

    def construct(self, x: Tensor) -> Tensor:
        return self.norm(self.dense(x)) * self.scale


class Jitted(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(3, 3)

    @jit
    def construct(self, x: Tensor) -> Tensor:
        y = self.dense(x)
        return y * 2 if y.sum() > 0 else y


class Plain:
    def __init__(self) -> None:
        self.value = 2

    @jit
    def method(self, x: Tensor) -> Tensor:
        return x * self.value


@jit
def of_module(x: Tensor) -> Tensor:
    return x * 3 if x.sum() > 0 else x - 1


def plain(x: Tensor) -> Tensor:
    return x * 5


aliased = jit(plain, jit_level="O0")


def forward_hook(cell: nn.Cell, inputs: Any, output: Tensor) -> Tensor:
    return output * 2


def backward_hook(cell: nn.Cell, grad_input: Any, grad_output: Any) -> Any:
    return tuple(2 * g for g in grad_input)


def gradient_hook(gradient: Tensor) -> Tensor:
    return gradient * 7


def square(x: np.ndarray) -> np.ndarray:
    return x * x


def called(net: Any, *args: Tensor) -> Any:
    net(*(args or (X,)))
    return net


def of_dtype(name: str) -> Tensor:
    values = np.random.default_rng(0).normal(size=(3, 4)) * 5
    return Tensor(np.abs(values) if name[0] == "u" else values).astype(name)


def hooked_parameter() -> Parameter:
    p = Parameter(X, name="h", layerwise_parallel=True, requires_grad=True)
    p.register_hook(gradient_hook)
    return p


def hooked_cell() -> nn.Cell:
    net = Net()
    net.register_forward_hook(forward_hook)
    net.register_backward_hook(backward_hook)
    return called(net)


def of_jitted_cell() -> Any:
    net = Net()
    return called(jit(net))


def in_graph_mode() -> nn.Cell:
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        return called(Net().set_train())
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def with_inputs() -> nn.Cell:
    net = Net()
    net.set_inputs(Tensor(shape=[None, 3], dtype=ms.float32))
    return net


def stepped(make: Callable[[list[Parameter]], nn.Optimizer]) -> nn.Optimizer:
    optimizer = make(Net().trainable_params())
    return called(optimizer, tuple(ops.ones_like(p) for p in optimizer.parameters))  # pyright: ignore


def training_step() -> nn.Cell:
    net = Net()
    optimizer = nn.Adam(net.trainable_params(), 0.1)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer).set_train()
    called(jit(step), X, X)
    return step


def signed() -> Any:
    return jit(plain, input_signature=Tensor(shape=[None, 3], dtype=ms.float32))


def rows() -> Any:
    return dataset.NumpySlicesDataset({"a": np.arange(6)}, shuffle=False)


MAKERS: dict[str, Callable[[], Any]] = {
    **{f"tensor of {d}": lambda d=d: of_dtype(d) for d in DTYPES},
    "view": lambda: of_dtype("float32")[1:, ::2],
    "transposed": lambda: of_dtype("bfloat16").T,
    "empty": lambda: Tensor(np.zeros((0, 3), np.float32)),
    "placeholder": lambda: Tensor(shape=[None, 3], dtype=ms.float32),
    "Parameter": lambda: Parameter(of_dtype("bfloat16"), "p", requires_grad=False),
    "Parameter with a hook": hooked_parameter,
    "ParameterTuple": lambda: ParameterTuple([Parameter(X, "a"), Parameter(X, "b")]),
    "Cell": lambda: called(Net()),
    "Cell with hooks": hooked_cell,
    "Cell that was compiled": lambda: called(Jitted()),
    "Cell in graph mode": in_graph_mode,
    "Cell with declared inputs": with_inputs,
    "what jit makes of a Cell": of_jitted_cell,
    "jit function of a module": lambda: called(of_module),
    "jit function of another name": lambda: called(aliased),
    "jit function with a signature": signed,
    "object with a jit method": Plain,
    "jit method": lambda: called(Plain().method),
    "JitConfig": lambda: JitConfig(jit_level="O1", exec_mode="sink"),
    "Adam": lambda: stepped(lambda p: nn.Adam(p, 0.1)),
    "Momentum with a schedule": lambda: stepped(
        lambda p: nn.Momentum(p, nn.ExponentialDecayLR(0.1, 0.9, 2), 0.9)
    ),
    "SGD with groups": lambda: stepped(
        lambda p: nn.SGD([{"params": p[:1], "lr": 0.2}, {"params": p[1:]}], 0.1, momentum=0.9)
    ),
    "training step": training_step,
    "Generator": lambda: called_generator(),
    "dataset": lambda: rows().map(square, input_columns="a").batch(2),
}  # fmt: skip


def called_generator() -> Any:
    generator = ms.default_generator.__class__(5)
    generator.advance(3)
    return generator


def describe(value: Any) -> Any:
    """Shows what a thing is and does, as text that can be compared."""
    if isinstance(value, (list, tuple)):
        return [describe(v) for v in value]
    if isinstance(value, Tensor):
        return _described(value)
    if isinstance(value, nn.Cell):
        before = [describe(p) for p in value.get_parameters()]
        return [type(value).__name__, value.training, before, _behaviour(value), before]
    if isinstance(value, JitConfig):
        return repr(value.jit_config_dict)
    if isinstance(value, Plain):
        return describe(value.method(X))
    if hasattr(value, "create_dict_iterator"):
        return [describe(list(row.values())) for row in value.create_dict_iterator()]
    return describe(value(X)) if callable(value) else describe(value.get_state())


def _described(value: Tensor) -> Any:
    if -1 in value.shape:
        return [str(value.shape), str(value.dtype)]
    own = [str(value.aval), value.asnumpy().tobytes()]
    if isinstance(value, Parameter):
        own += [value.name, value.requires_grad, value.layerwise_parallel]
        own += [describe(h.hook(X)) if hasattr(h, "hook") else "" for h in value.gradient_hooks]
        if value.requires_grad and value.dtype.is_float:
            gradient = ops.grad(lambda: (value * 2).sum(), None, value)
            own.append(gradient().asnumpy().tobytes())
    return own


def _behaviour(cell: nn.Cell) -> Any:
    if isinstance(cell, nn.Optimizer):
        return describe(called(cell, tuple(map(ops.ones_like, cell.parameters))).parameters)  # pyright: ignore
    if isinstance(cell, nn.TrainOneStepCell):
        return describe([cell(X, X), cell(X, X)])
    return describe([cell(X), ops.grad(cell)(X), jit(cell)(X)])


def write(folder: Path) -> None:
    """Pickles everything, with what it is and does before and after a deep copy."""
    for name, make in MAKERS.items():
        ms.set_seed(3)
        value = make()
        entry = pickle.dumps(value)
        copied = describe(copy.deepcopy(value))
        (folder / name).write_bytes(pickle.dumps((entry, copied, describe(value))))


def read(folder: Path) -> None:
    """Writes what every pickled thing is and does in this process."""
    for name in MAKERS:
        entry = pickle.loads((folder / name).read_bytes())[0]
        (folder / f"{name} there").write_bytes(pickle.dumps(describe(pickle.loads(entry))))


if __name__ == "__main__":
    # classes and functions must have the names under which the other process finds them
    from tests.jit import pickled

    getattr(pickled, sys.argv[1])(Path(sys.argv[2]))
