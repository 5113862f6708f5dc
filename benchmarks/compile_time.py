"""How long compiling takes: ``python -m benchmarks.compile_time [networks|operators|NAME]``.

*Networks* start in processes of their own with an empty folder for what is kept on disk, and start
again: the first call, of which TVM's own import is named apart, and the first call of the second
process. *Operators* are all rows of the table, each with the largest of its samples in float32, in
one process that has compiled before.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import Annotated, Any

import numpy as np
import typer

_COLD = {"lenet": 1.0, "transformer": 3.0, "resnet50": 6.0}  # seconds, at most
_WARM, _OPERATOR = 0.3, 0.06  # seconds, at most
_TOOK = "took"


def network(name: str) -> tuple[Any, Any]:
    """Returns a network with its input; the same weights in every process."""
    import tvmgraph as ms
    from benchmarks import conv_rows
    from benchmarks.peers.cells import build_cell
    from tvmgraph.models import Bert, BertConfig

    ms.set_seed(1)
    if name == "transformer":  # 12 layers
        config = BertConfig(hidden_size=512, num_attention_heads=8, intermediate_size=2048)
        return Bert(config).set_train(False), ms.Tensor(np.ones((1, 128), np.int32))
    work = conv_rows.VISION["lenet-b1" if name == "lenet" else "resnet50-b1"]()
    return build_cell(ms, work), ms.Tensor(work.args[0])


def first_call(name: str) -> None:
    """Prints the seconds that the first call of a network takes in this process."""
    import tvmgraph as ms

    net, x = network(name)
    compiled = ms.jit(net)
    start = time.perf_counter()
    compiled(x)
    spent = time.perf_counter() - start
    imported = dict(compiled.history[0].phases).get("import TVM", 0.0)
    print(_TOOK, spent - imported, imported, compiled.history[0].disk)


def networks() -> None:
    """Prints the first calls of all networks, compiled and found on disk."""
    for name, most in _COLD.items():
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"TVMGRAPH_CACHE_DIR": folder}
            found = [_start(name, environment) for _ in range(2)]
        (cold, imported, _), (warm, _, state) = found
        print(
            f"{name:<12} compiled {cold:6.2f} s (at most {most}), TVM's import {imported:.2f} s; "
            f"second process {warm:6.3f} s (at most {_WARM}), {state}"
        )


def _start(name: str, environment: dict[str, str]) -> tuple[float, float, str]:
    command = [sys.executable, "-m", "benchmarks.compile_time", name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith(_TOOK))
    _, spent, imported, state = line.split(maxsplit=3)
    return float(spent), float(imported), state


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
        first_call(what)
        return
    if what in ("", "networks"):
        networks()
    if what in ("", "operators"):
        operators()


if __name__ == "__main__":
    typer.run(main)
