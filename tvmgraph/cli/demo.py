"""The demo: a LeNet on the UCI handwritten digits, eager and compiled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops
from tvmgraph.cli.options import print_json
from tvmgraph.data import ATTRIBUTION, load_digits

TARGET_ACCURACY = 0.97
BATCH = 32
LEARNING_RATE = 0.05
MOMENTUM = 0.9
TEST_IMAGES = 360


class LeNet(nn.Cell):
    """Two convolutions and two dense layers for 8x8 images."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.features = nn.SequentialCell(
            nn.Conv2d(1, 16, 3, has_bias=True),
            nn.ReLU(),
            nn.MaxPool2d(2, stride=2),
            nn.Conv2d(16, 32, 3, has_bias=True),
            nn.ReLU(),
            nn.MaxPool2d(2, stride=2),
        )
        self.classifier = nn.SequentialCell(
            nn.Flatten(),
            nn.Dense(32 * 2 * 2, 64),
            nn.ReLU(),
            nn.Dense(64, classes),
        )

    def construct(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x))


def digits(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns shuffled training images and labels, then those held out for the test.

    Args:
        seed: Seed of the shuffling.
    """
    images, labels = load_digits()
    order = np.random.default_rng(seed).permutation(len(images))
    x = (images[order, None].astype(np.float32) - 8.0) / 8.0
    y = labels[order]
    return x[TEST_IMAGES:], y[TEST_IMAGES:], x[:TEST_IMAGES], y[:TEST_IMAGES]


def batches(
    x: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields shuffled full batches.

    Args:
        x: Images [N, 1, H, W].
        y: Labels [N].
        rng: What shuffles.
    """
    order = rng.permutation(len(x))
    for i in range(0, len(x) - BATCH + 1, BATCH):
        chosen = order[i : i + BATCH]
        yield Tensor(x[chosen]), Tensor(y[chosen])


def accuracy(net: Callable[[Tensor], Tensor], x: np.ndarray, y: np.ndarray) -> float:
    """Returns the share of images classified correctly.

    Args:
        net: The network, which returns logits.
        x: Images [N, 1, H, W].
        y: Labels [N].
    """
    return float(np.mean(np.argmax(net(Tensor(x)).asnumpy(), axis=1) == y))


def train(net: LeNet, epochs: int, graph: bool, seed: int, console: Console) -> np.ndarray:
    """Trains with a progress bar and returns the test images and labels' accuracy history.

    Args:
        net: The network.
        epochs: Passes over the training images.
        graph: Whether a step is compiled.
        seed: Seed of the shuffling.
        console: Where progress is shown.
    """
    x, y, test_x, test_y = digits(seed)

    def loss(x: Tensor, y: Tensor) -> Tensor:
        return ops.cross_entropy(net(x), y)

    optimizer = nn.Momentum(net.trainable_params(), LEARNING_RATE, MOMENTUM)
    gradient = ms.value_and_grad(ms.jit(loss) if graph else loss, None, optimizer.parameters)
    rng = np.random.default_rng(seed)
    history = []
    columns = (
        TextColumn("training"), BarColumn(), MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.3f}  test accuracy {task.fields[accuracy]:.1%}"),
        TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        total = epochs * (len(x) // BATCH)
        task = progress.add_task("", total=total, loss=float("nan"), accuracy=0.0)
        for _ in range(epochs):
            for bx, by in batches(x, y, rng):
                value, gradients = gradient(bx, by)
                optimizer(gradients)
                progress.update(task, advance=1, loss=value.item())
            history.append(accuracy(net, test_x, test_y))
            progress.update(task, accuracy=history[-1])
    return np.array(history)


def median_ms(function: Callable[[], object], repeats: int = 30) -> float:
    """Returns the median time of a call in milliseconds.

    Args:
        function: What is called.
        repeats: How often.
    """
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times)) * 1e3


def run_demo(epochs: int = 12, graph: bool = True, seed: int = 1, as_json: bool = False) -> bool:
    """Runs the demo; returns whether accuracy and agreement are as promised.

    Args:
        epochs: Passes over the training images.
        graph: Whether it is trained compiled instead of eagerly.
        seed: Seed of weights and shuffling.
        as_json: Whether results are printed as JSON.
    """
    console = Console(stderr=as_json)
    console.print(f"[bold]tvmgraph demo[/]: {ATTRIBUTION}\n")
    ms.set_seed(seed)
    net = LeNet()
    console.print(net)
    history = train(net, epochs, graph, seed, console)
    found = compare(net, Tensor(digits(seed)[2][:BATCH]))
    reached = float(history[-1])
    agrees = found.largest_difference <= 1e-4 * max(1.0, found.largest_result)
    works = agrees and reached >= TARGET_ACCURACY
    if as_json:
        print_json({**asdict(found), "test_accuracy": reached, "works": works})
    else:
        _print(found, reached, console)
        if not works:
            console.print("[red]the demo did not reach what it promises[/]")
    return works


@dataclass(frozen=True)
class Comparison:
    """A network eagerly and compiled; times by ``"eager"``, ``"O0"`` and ``"O2"``.

    Attributes:
        batch_ms: Milliseconds of one batch.
        compile_ms: Milliseconds of the compile.
        kernels: How many kernels it runs as.
        largest_difference: Of any result, compiled and eager.
        largest_result: The largest absolute value of a result.
    """

    batch_ms: dict[str, float]
    compile_ms: dict[str, float]
    kernels: dict[str, int]
    largest_difference: float
    largest_result: float


def compare(net: LeNet, batch: Tensor) -> Comparison:
    """Times a network eagerly and compiled, and compares the results.

    Args:
        net: The network.
        batch: Images [N, 1, H, W].
    """
    fused, plain = ms.jit(net), ms.jit(net, jit_level="O0")
    compiled, eager = fused(batch).asnumpy(), net(batch).asnumpy()
    plain(batch)
    records = {"O0": plain.history[-1], "O2": fused.history[-1]}
    ways = {"eager": net, "O0": plain, "O2": fused}
    return Comparison(
        batch_ms={name: median_ms(lambda f=f: f(batch)) for name, f in ways.items()},
        compile_ms={name: r.compile_seconds * 1e3 for name, r in records.items()},
        kernels={name: r.kernels for name, r in records.items()},
        largest_difference=float(np.max(np.abs(compiled - eager))),
        largest_result=float(np.max(np.abs(eager))),
    )


def _print(found: Comparison, reached: float, console: Console) -> None:
    table = Table("", "eager", "compiled O0", "compiled O2")
    times = found.batch_ms.values()
    table.add_row(f"time per batch of {BATCH}", *(f"{t:.3f} ms" for t in times))
    table.add_row("compile time", "-", *(f"{t:.0f} ms" for t in found.compile_ms.values()))
    kernels = (str(n) for n in found.kernels.values())
    table.add_row("kernels (before and after fusion)", "-", *kernels)
    console.print(table)
    promised = f"(at least {TARGET_ACCURACY:.0%} expected)"
    console.print(f"test accuracy {reached:.2%} {promised}")
    difference = found.largest_difference
    console.print(f"largest difference between compiled and eager: {difference:.2e}")
