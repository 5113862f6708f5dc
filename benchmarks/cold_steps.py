"""The first call of compiled training steps, beside ``torch.compile`` of the same networks.

    python -m benchmarks.cold_steps compare PYTHON [NAME ...]
    python -m benchmarks.cold_steps record PYTHON [NAME ...]

``mindcv`` has to be importable here, torch, torchvision and timm in ``PYTHON``. A step is a
network's loss on 8 images of 224 x 224, its gradients and an update with momentum. Each starts in a
process of its own with nothing on disk, compiles on one thread, and runs on one. What counts is the
CPU time of the process and of the compilers that it starts: it changes little when other processes
run. ``record`` puts the table into RESULTS.md.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

#: Networks of MindCV, and what torchvision or timm calls them.
NETWORKS = {
    "squeezenet1_0": "squeezenet1_0", "resnet18": "resnet18", "densenet121": "densenet121",
    "mobilenet_v3_small_100": "mobilenet_v3_small", "ghostnet_100": "ghostnet_100",
}  # fmt: skip
_BATCH, _CALLS = 8, 3


def tvmgraph_step(name: str) -> Callable[[], Any]:
    """Returns a training step of a network of MindCV."""
    from benchmarks import zoo

    sys.meta_path.insert(0, zoo.Alias())
    import tvmgraph as ms

    net, _, (_, *size) = zoo.built(name)
    net.set_train()
    loss = ms.nn.CrossEntropyLoss()
    optimizer = ms.nn.Momentum(net.trainable_params(), 1e-3, 0.9)
    gradient = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)

    @ms.jit
    def step(x: ms.Tensor, y: ms.Tensor) -> ms.Tensor:
        value, gradients = gradient(x, y)
        optimizer(gradients)
        return value

    x, y = ms.Tensor(np.ones((_BATCH, *size), np.float32)), ms.Tensor(np.arange(_BATCH))
    return lambda: float(step(x, y))


def torch_step(name: str) -> Callable[[], Any]:
    """Returns the same step, of which torch compiles the network and the update."""
    import torch  # pyright: ignore
    import torchvision  # pyright: ignore

    torch.set_num_threads(1)
    make = getattr(torchvision.models, NETWORKS[name], None)
    if make is None:
        import timm  # pyright: ignore

        net = timm.create_model(NETWORKS[name])
    else:
        net = make()
    net.train()
    loss = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), 1e-3, momentum=0.9)
    forward = torch.compile(lambda x, y: loss(net(x), y))
    update = torch.compile(optimizer.step)
    x, y = torch.ones(_BATCH, 3, 224, 224), torch.arange(_BATCH)

    def step() -> float:
        value = forward(x, y)
        value.backward()
        update()
        optimizer.zero_grad(set_to_none=True)
        return float(value)

    return step


def measure(step: Callable[[], Any]) -> None:
    """Prints the CPU seconds of the first two calls and of a later one.

    The second belongs to compiling: torch compiles an update once more that finds a momentum.
    """

    def spent() -> float:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(u.ru_utime + u.ru_stime for u in used)

    def timed() -> float:
        start = spent()
        step()
        return spent() - start

    first = timed() + timed()
    print(json.dumps([first, statistics.median(timed() for _ in range(_CALLS))]))


def compare(python: str, names: list[str]) -> dict[str, list[float]]:
    """Prints the table, and returns its rows: first and later calls of both, in CPU seconds."""
    rows: dict[str, list[float]] = {}
    print(f"{'':24} {'compile s':>10} {'torch s':>10} {'quotient':>9} {'call ms':>9} {'torch':>9}")
    for name in names:
        found: list[float] = []
        for kind, interpreter in (("tvmgraph", sys.executable), ("torch", python)):
            with tempfile.TemporaryDirectory() as cache:
                settings = dict.fromkeys(("TVM_NUM_THREADS", "OMP_NUM_THREADS"), "1") | {
                    "TVMGRAPH_CACHE_DIR": cache, "TVMGRAPH_COMPILE_WORKER": "0",
                    "TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_COMPILE_THREADS": "1",
                }  # fmt: skip
                command = [interpreter, "-m", "benchmarks.cold_steps", kind, name]
                done = subprocess.run(
                    command, env=os.environ | settings, capture_output=True, text=True, check=True
                )
            first, later = json.loads(done.stdout.splitlines()[-1])
            found += [first - 2 * later, later]
        rows[name] = found
        ours, call, theirs, their_call = found
        print(f"{name:24} {ours:10.1f} {theirs:10.1f} {ours / theirs:9.2f} {1e3 * call:9.1f} "
              f"{1e3 * their_call:9.1f}", flush=True)  # fmt: skip
    return rows


def record(python: str, names: list[str]) -> None:
    """Prints the table and puts it into RESULTS.md."""
    from benchmarks import report

    machine = report.machine_description(1)  # before: it says how busy others were
    report.record("cold_steps", compare(python, names), machine)


def main() -> None:
    """Runs the command that is named."""
    what, first, *names = sys.argv[1:]
    if what in ("tvmgraph", "torch"):
        measure((tvmgraph_step if what == "tvmgraph" else torch_step)(first))
    else:
        {"compare": compare, "record": record}[what](first, names or [*NETWORKS])


if __name__ == "__main__":
    main()
