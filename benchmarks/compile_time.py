"""How long compiling takes: ``python -m benchmarks.compile_time [networks|operators|NAME]``.

*Networks* start in processes of their own with an empty folder for what is kept on disk, compiled
by a worker and in the process itself, in turns: the first call, of which loading TVM is named
apart; the first call of the network on two rows or images, in the same process; and the first call
of a second process, which finds the code on disk. *Operators* are all rows of the table, each with
the largest of its samples in float32, in one process that has compiled before.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import typer

#: Seconds that the first call may take at most, without loading TVM.
_COLD = {"operator": 0.3, "lenet": 1.0, "transformer": 3.0, "resnet50": 6.0, "unet": 6.0}
_WARM, _OPERATOR = 0.3, 0.06  # seconds, at most
_ROUNDS = 3
_TOOK = "took"
_WAYS = {"worker": "1", "here": "0"}


def network(name: str) -> tuple[Any, Any]:
    """Returns a network with its input; the same weights in every process."""
    import tvmgraph as ms
    from benchmarks import conv_rows
    from benchmarks.peers.cells import build_cell
    from tvmgraph.models import Bert, BertConfig

    ms.set_seed(1)
    if name == "operator":
        return ms.ops.softmax, ms.Tensor(np.ones((1, 128), np.float32))
    if name == "unet":
        return unet_step(), ms.Tensor(np.ones((1, 3, 64, 64), np.float32))
    if name == "transformer":  # 12 layers
        config = BertConfig(hidden_size=512, num_attention_heads=8, intermediate_size=2048)
        return Bert(config).set_train(False), ms.Tensor(np.ones((1, 128), np.int32))
    work = conv_rows.VISION["lenet-b1" if name == "lenet" else "resnet50-b1"]()
    return build_cell(ms, work), ms.Tensor(work.args[0])


def unet_step() -> Callable[..., Any]:
    """A training step of a U-Net of three levels: forward, backward and Adam."""
    import tvmgraph as ms
    from tests.networks.vision import UNet
    from tvmgraph import nn, ops

    net = UNet(8).set_train()
    optimizer = nn.Adam(net.trainable_params())
    gradient = ms.value_and_grad(lambda x: ops.mean(net(x) ** 2), None, optimizer.parameters)

    def step(x: ms.Tensor) -> ms.Tensor:
        loss, gradients = gradient(x)
        return ops.depend(loss, optimizer(gradients))

    return step


def first_calls(name: str) -> None:
    """Prints what the first calls of a network take in this process, as JSON."""
    import tvmgraph as ms

    net, x = network(name)
    cold = _first_call(ms.jit(net), x)
    warm = _first_call(ms.jit(net), ms.ops.concat([x, x]))
    print(_TOOK, json.dumps([*cold, warm[0]]))


def _first_call(compiled: Any, x: Any) -> tuple[float, float, str]:
    """Seconds, those of them that loading TVM takes, and what the cache on disk did."""
    start = time.perf_counter()
    compiled(x)
    spent = time.perf_counter() - start
    record = compiled.history[0]
    phases = dict(record.phases)
    return spent, phases.get("import TVM", 0.0) + phases.get("start worker", 0.0), record.disk


def networks() -> None:
    """Prints the first calls of all networks, the best of some rounds."""
    for name, most in _COLD.items():
        times: dict[str, list[Any]] = {way: [] for way in _WAYS}
        for _ in range(_ROUNDS):
            for way, value in _WAYS.items():
                times[way].append(_round(name, value))
        for way, found in times.items():
            cold, loading, warm, again = (min(t[i] for t in found) for i in range(4))
            print(
                f"{name:<12} {way:<7} first {cold:6.2f} s, of which TVM {loading:.2f} s (the rest "
                f"at most {most}); next {warm:5.2f} s; second process {again:6.3f} s "
                f"(at most {_WARM})"
            )


def _round(name: str, worker: str) -> tuple[float, float, float, float]:
    """First call, loading TVM, first call of the next network, first call in a second process."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {"TVMGRAPH_CACHE_DIR": folder, "TVMGRAPH_COMPILE_WORKER": worker}
        (cold, loading, _, warm), (again, _, state, _) = (_start(name, settings) for _ in range(2))
    assert state == "loaded", state
    return cold, loading, warm, again


def _start(name: str, settings: dict[str, str]) -> list[Any]:
    command = [sys.executable, "-m", "benchmarks.compile_time", name]
    done = subprocess.run(
        command, env=os.environ | settings, capture_output=True, text=True, check=True
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith(_TOOK))
    return json.loads(line.removeprefix(_TOOK))


def operators(shown: int = 20) -> None:
    """Prints how many operators compile in time, and the slowest ones."""
    import tvmgraph as ms
    from tvmgraph.compiler.compile import compile_graph
    from tvmgraph.errors import CompileError
    from tvmgraph.testing.samples import all_cases

    largest: dict[str, tuple[tuple[bool, int], Any]] = {}
    for case in all_cases():
        rank = ("float32" in str(case.sample.dtype), sum(a.size for a in case.arrays()))
        if case.op.name not in largest or rank > largest[case.op.name][0]:
            largest[case.op.name] = rank, case
    times: list[tuple[float, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TVMGRAPH_CACHE_DIR"] = folder
        ms.jit(lambda x: ms.ops.softmax(x))(ms.Tensor([1.0]))  # imports TVM and the schedules
        for name, (_, case) in largest.items():
            try:
                graph = case.graph()
                _, stats = compile_graph(graph)
            except CompileError:  # rows that only NumPy can run
                continue
            if not stats.cached:
                times.append((stats.seconds, name))
    times.sort(reverse=True)
    seconds = [t for t, _ in times]
    slow = sum(t > _OPERATOR for t in seconds)
    print(
        f"{len(times)} operators: median {np.median(seconds) * 1e3:.0f} ms, {slow} take more than "
        f"{_OPERATOR * 1e3:.0f} ms"
    )
    for spent, name in times[:shown]:
        print(f"  {name:<24} {spent * 1e3:6.0f} ms")


def main(what: Annotated[str, typer.Argument()] = "") -> None:
    """Prints one table or both; the name of a network runs its first call in this process."""
    if what in _COLD:
        first_calls(what)
        return
    if what in ("", "networks"):
        networks()
    if what in ("", "operators"):
        operators()


if __name__ == "__main__":
    typer.run(main)
