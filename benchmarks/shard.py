"""Several processes: collectives, the time to split a program, and data-parallel steps.

    python -m benchmarks.shard                     the table; it starts the processes itself
    tvmgraph-run -n 2 benchmarks/shard.py          what every process runs

Peers: raw mpi4py, and PyTorch's gloo with DistributedDataParallel where PyTorch is installed. One
process gets all cores as threads, two share them. The best of several repetitions counts.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops
from tvmgraph.autodiff.reverse import reverse
from tvmgraph.capture.record import capture
from tvmgraph.distributed import engine
from tvmgraph.distributed.layout import Mesh
from tvmgraph.distributed.partition import partition

SIZES = (1, 16 << 10, 256 << 10, 4 << 20)  # float32 elements of an all-reduce
BATCH, WIDTH, CLASSES = 256, 512, 10


def best(run: Callable[[], object], repeat: int = 20) -> float:
    """The shortest time of a call, in seconds: processes that share busy cores wait for each other
    for milliseconds now and then."""
    run()
    engine.barrier()
    found = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


def all_reduce() -> dict[str, float]:
    """An all-reduce by us (eager, compiled) and by mpi4py, microseconds."""
    found: dict[str, float] = {}
    world = engine.world()
    for size in SIZES:
        array = np.ones(size, np.float32)
        x, out = Tensor(array), np.empty_like(array)
        reduce = ops.AllReduce()
        compiled = ms.jit(lambda x, reduce=reduce: reduce(x))
        repeat = 500 if size < 1 << 18 else 30
        name = f"all-reduce {size * 4} B"
        found[f"{name}, eager"] = best(lambda f=reduce, x=x: f(x), repeat) * 1e6
        found[f"{name}, compiled"] = best(lambda f=compiled, x=x: f(x), repeat) * 1e6
        if world.comm is not None:
            raw = best(lambda a=array, out=out: world.comm.Allreduce(a, out), repeat)
            found[f"{name}, mpi4py"] = raw * 1e6
    return found


class Layer(nn.Cell):
    """A transformer layer without dropout."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.one, self.two = nn.LayerNorm((width,)), nn.LayerNorm((width,))
        self.q, self.k, self.v, self.o = (nn.Dense(width, width) for _ in range(4))
        self.up, self.down = nn.Dense(width, 4 * width), nn.Dense(4 * width, width)
        self.heads = heads

    def split(self, x: Tensor) -> Tensor:
        """Heads before positions."""
        batch, length, width = x.shape
        return x.reshape((batch, length, self.heads, width // self.heads)).transpose((0, 2, 1, 3))

    def construct(self, x: Tensor) -> Tensor:
        y = self.one(x)
        q, k, v = self.split(self.q(y)), self.split(self.k(y)), self.split(self.v(y))
        scores = ops.softmax(ops.matmul(q, k.transpose((0, 1, 3, 2))) * 0.125, -1)
        x = x + self.o(ops.matmul(scores, v).transpose((0, 2, 1, 3)).reshape(x.shape))
        return x + self.down(ops.gelu(self.up(self.two(x))))


def partition_time(layers: int = 24) -> dict[str, float]:
    """Time to split the forward and backward pass of a transformer over 2 x 2 processes."""
    net = nn.SequentialCell([Layer(64, 4) for _ in range(layers)])
    x = Tensor(np.ones((4, 8, 64), np.float32))
    forward = capture(lambda x: net(x).mean(), (x,), {}).graph
    wanted = [i for i, p in enumerate(forward.params) if p.label != "x"]
    graph = reverse(forward, wanted, [0])
    mesh = Mesh((2, 2), ("dp", "mp"))
    given = {graph.params[0].value: (("dp",), (), ())}
    for p, q in zip(graph.params, forward.params):
        if q.label.endswith(("q.weight", "k.weight", "v.weight", "up.weight")):
            given[p.value] = (("mp",), ())
    specs = dict(zip((p.value for p in graph.params), partition(graph, mesh, given).inputs))
    outputs = [specs[graph.params[i].value] for i in wanted]  # gradients like their weights
    start = time.perf_counter()
    found = partition(graph, mesh, specs, outputs)
    seconds = time.perf_counter() - start
    return {f"partition of {layers} layers, {len(graph.nodes)} operators, s": seconds,
            "its collectives": len(found.transfers)}  # fmt: skip


def step_of(kind: str) -> tuple[Any, list[Tensor]]:
    """A training step over all processes with its batch, which all have as a whole."""
    rng = np.random.default_rng(0)
    ms.set_seed(0)
    if kind == "MLP":
        net = nn.SequentialCell(nn.Dense(WIDTH, WIDTH), nn.ReLU(), nn.Dense(WIDTH, WIDTH),
                                nn.ReLU(), nn.Dense(WIDTH, CLASSES))  # fmt: skip
        batch = [Tensor(rng.standard_normal((BATCH, WIDTH)).astype(np.float32)),
                 Tensor(rng.integers(0, CLASSES, BATCH).astype(np.int32))]  # fmt: skip
        loss: nn.Cell = nn.CrossEntropyLoss()
    else:
        net = Layer(768, 12)
        batch = [Tensor(rng.standard_normal((4, 128, 768)).astype(np.float32)) for _ in range(2)]
        loss = nn.MSELoss()
    cell = nn.WithLossCell(net, loss)
    return nn.TrainOneStepCell(cell, nn.SGD(net.trainable_params(), 0.01)), batch


def steps() -> dict[str, float]:
    """A data-parallel step, milliseconds; the batch is the same for any number of processes."""
    found = {}
    for kind in ("MLP", "BERT layer"):
        step, batch = step_of(kind)
        split = engine.world().size > 1
        run = ms.shard(step, (None,) * len(batch)) if split else ms.jit(step)
        found[f"step of the {kind}, ms"] = best(lambda run=run, b=batch: run(*b), 20) * 1e3
    return found


def torch_peers() -> dict[str, float]:
    """The same by PyTorch with gloo."""
    import torch
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel

    world = engine.world()
    torch.set_num_threads(int(os.environ.get("TVMGRAPH_NUM_THREADS", os.cpu_count() or 1)))
    found: dict[str, float] = {}
    if world.size > 1:
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29511")
        distributed.init_process_group("gloo", rank=world.rank, world_size=world.size)
        for size in SIZES:
            x = torch.ones(size)
            repeat = 500 if size < 1 << 18 else 30
            seconds = best(lambda x=x: distributed.all_reduce(x), repeat)
            found[f"all-reduce {size * 4} B, gloo"] = seconds * 1e6
    for kind in ("MLP", "BERT layer"):
        net, batch, loss = torch_step(kind)
        net = DistributedDataParallel(net) if world.size > 1 else net
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        x, y = (t.chunk(world.size)[world.rank] for t in batch)

        def step(
            net: Any = net, opt: Any = optimizer, loss: Any = loss, x: Any = x, y: Any = y
        ) -> None:
            opt.zero_grad()
            loss(net(x), y).backward()
            opt.step()

        found[f"step of the {kind}, PyTorch, ms"] = best(step, 20) * 1e3
    return found


def torch_step(kind: str) -> tuple[Any, list[Any], Any]:
    """The network of :func:`step_of` with its batch and loss."""
    import torch

    layers = torch.nn
    functional = layers.functional
    if kind == "MLP":
        net = layers.Sequential(layers.Linear(WIDTH, WIDTH), layers.ReLU(),
                                layers.Linear(WIDTH, WIDTH), layers.ReLU(),
                                layers.Linear(WIDTH, CLASSES))  # fmt: skip
        batch = [torch.randn(BATCH, WIDTH), torch.randint(0, CLASSES, (BATCH,))]
        return net, batch, functional.cross_entropy
    net = layers.TransformerEncoderLayer(768, 12, 3072, 0.0, "gelu", batch_first=True,
                                         norm_first=True)  # fmt: skip
    return net, [torch.randn(4, 128, 768) for _ in range(2)], functional.mse_loss


def measure() -> None:
    """What every process runs; rank 0 writes the results."""
    found: dict[str, float] = {}
    if engine.world().size > 1:
        found |= all_reduce()
    else:
        found |= partition_time()
    found |= steps()
    if importlib.util.find_spec("torch") is not None:
        found |= torch_peers()
    if engine.world().rank == 0:
        with open(os.environ["SHARD_RESULTS"], "w") as file:
            json.dump(found, file)


def main() -> None:
    """Runs on one and on two processes and prints a table."""
    columns = {}
    for count in (1, 2):
        with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
            threads = max(1, (os.cpu_count() or 1) // count)
            env = {**os.environ, "SHARD_RESULTS": file.name, "TVMGRAPH_NUM_THREADS": str(threads)}
            run = [sys.executable, "-m", "tvmgraph.distributed.launch", "-n", str(count), __file__]
            subprocess.run(run if count > 1 else [sys.executable, __file__], env=env, check=True)
            columns[count] = json.load(file)
    for name in dict.fromkeys([*columns[1], *columns[2]]):
        cells = [columns[n].get(name) for n in (1, 2)]
        print(f"| {name} | " + " | ".join("" if c is None else f"{c:.4g}" for c in cells) + " |")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        measure() if "SHARD_RESULTS" in os.environ else main()
