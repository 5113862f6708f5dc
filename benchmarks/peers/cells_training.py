"""Training steps with MindSpore's words; MindSpore and tvmgraph run the same source."""

from types import ModuleType
from typing import Any

from benchmarks.training_rows import ADAM, CLASSES, STAGES, resnet18_convs
from benchmarks.workloads import Workload


def _resnet18(api: ModuleType, work: Workload) -> Any:
    nn = api.nn
    convs = {name: sizes for name, *sizes in resnet18_convs()}

    def conv(name: str) -> Any:
        inp, out, kernel, stride = convs[name]
        layer = nn.Conv2d(inp, out, kernel, stride, pad_mode="pad", padding=kernel // 2)
        layer.weight.set_data(api.Tensor(work.params[f"{name}.w"]))
        return nn.SequentialCell(layer, nn.BatchNorm2d(out))

    class Block(nn.Cell):
        def __init__(self, name):
            super().__init__()
            self.body = nn.SequentialCell(conv(f"{name}.a"), nn.ReLU(), conv(f"{name}.b"))
            self.has_side = f"{name}.side" in convs
            self.side = conv(f"{name}.side") if self.has_side else nn.Identity()
            self.relu = nn.ReLU()

        def construct(self, x):
            return self.relu(self.body(x) + self.side(x))

    class ResNet18(nn.Cell):
        def __init__(self):
            super().__init__()
            pool = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
            self.stem = nn.SequentialCell(conv("stem"), nn.ReLU(), pool)
            self.stages = nn.SequentialCell(
                *[Block(f"{stage}.{i}") for stage in range(len(STAGES)) for i in range(2)]
            )
            self.head = nn.Dense(STAGES[-1], CLASSES)

        def construct(self, x):
            return self.head(self.stages(self.stem(x)).mean((2, 3)))

    net = ResNet18()
    net.head.weight.set_data(api.Tensor(work.params["w0"]))
    net.head.bias.set_data(api.Tensor(work.params["b0"]))
    return net


def _optimizer(api: ModuleType, work: Workload, params: Any) -> Any:
    name, rate = work.options["optimizer"], work.options["rate"]
    if name == "adam":
        return api.nn.Adam(params, rate, eps=ADAM["eps"])
    return api.nn.Momentum(params, rate, 0.9) if name == "momentum" else api.nn.SGD(params, rate)


def training_cell(api: ModuleType, work: Workload, builders: dict[str, Any]) -> Any:
    """Return the Cell that takes one step and returns the loss before it.

    Args:
        api: A module with MindSpore's interface.
        work: The row.
        builders: The networks by name, besides those that are only trained.
    """
    build = {**builders, "resnet18": _resnet18}[work.options["model"]]
    net = build(api, work)
    mse = work.options["loss"] == "mse"
    loss = api.nn.MSELoss() if mse else api.nn.CrossEntropyLoss()
    optimizer = _optimizer(api, work, net.trainable_params())
    step = api.nn.TrainOneStepCell(api.nn.WithLossCell(net, loss), optimizer)
    step.set_train(True)
    return step
