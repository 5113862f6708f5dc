"""The models written with MindSpore's words; MindSpore and tvmgraph run the same source."""

from types import ModuleType
from typing import Any

from benchmarks.peers import cells_layers as layers
from benchmarks.peers.cells_networks import network
from benchmarks.peers.cells_training import training_cell
from benchmarks.workloads import LENET_CONVS, LENET_DENSES, Array, Workload


def _add(api: ModuleType, work: Workload) -> Any:
    class Add(api.nn.Cell):  # type: ignore[name-defined]
        def construct(self, x, y):
            return x + y

    return Add()


def _mynet(api: ModuleType, work: Workload) -> Any:
    class MyNet(api.nn.Cell):  # type: ignore[name-defined]
        def construct(self, x):
            return x * 2.0 + 1.0

    return MyNet()


def _myop(api: ModuleType, work: Workload) -> Any:
    class MyOp(api.nn.Cell):  # type: ignore[name-defined]
        def construct(self, x, y):
            power = (x * 2.0) ** 3.0
            return (power - y) * power

    return MyOp()


def _dense_stack(api: ModuleType, params: dict[str, Array], layers: int) -> list[Any]:
    cells: list[Any] = []
    for i in range(layers):
        out, inp = params[f"w{i}"].shape
        dense = api.nn.Dense(inp, out)
        dense.weight.set_data(api.Tensor(params[f"w{i}"]))
        dense.bias.set_data(api.Tensor(params[f"b{i}"]))
        cells += [dense, api.nn.ReLU()]
    return cells[:-1]


def _mlp(api: ModuleType, work: Workload) -> Any:
    return api.nn.SequentialCell(*_dense_stack(api, work.params, len(work.params) // 2))


def _lenet(api: ModuleType, work: Workload) -> Any:
    cells: list[Any] = []
    for i, (out, inp) in enumerate(LENET_CONVS):
        conv = api.nn.Conv2d(inp, out, 5, pad_mode="valid", has_bias=True)
        conv.weight.set_data(api.Tensor(work.params[f"conv{i}.w"]))
        conv.bias.set_data(api.Tensor(work.params[f"conv{i}.b"]))
        cells += [conv, api.nn.ReLU(), api.nn.MaxPool2d(2, 2)]
    cells += [api.nn.Flatten(), *_dense_stack(api, work.params, len(LENET_DENSES))]
    return api.nn.SequentialCell(*cells)


BUILDERS = {
    "add": _add,
    "mynet": _mynet,
    "myop": _myop,
    "mlp": _mlp,
    "lenet": _lenet,
    "network": network,
    **layers.BUILDERS,
}


def build_cell(api: ModuleType, work: Workload) -> Any:
    """Return the row's model as a Cell in inference mode, or the Cell of a training step.

    Args:
        api: A module with MindSpore's interface (``nn``, ``Tensor``).
        work: The row.

    Returns:
        A Cell that takes the row's arguments.
    """
    if work.model == "train":
        return training_cell(api, work, BUILDERS)
    cell = BUILDERS[work.model](api, work)
    cell.set_train(False)
    return cell
