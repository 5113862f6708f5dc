"""What the planner says a training step moves is what is moved, for all ways to split it."""

from __future__ import annotations

from typing import Any

import numpy as np

import tvmgraph as ms
from tvmgraph import Layout, Tensor, nn, ops
from tvmgraph.distributed.engine import traffic, world

RANK, SIZE = world().rank, world().size
ms.set_context(jit_config=ms.JitConfig(jit_level="O0"))  # it compiles fastest
MESH = Layout((SIZE // 2, 2), ("dp", "mp"))
KINDS = {"all_reduced": "all_reduce", "all_gathered": "all_gather",
         "reduce_scattered": "reduce_scatter", "parts_exchanged": "all_to_all"}  # fmt: skip
X, Y = (Tensor(np.random.default_rng(i).standard_normal((8, 4, 16)).astype("f")) for i in (0, 1))


class Block(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm((16,))
        self.up, self.down = nn.Dense(16, 32), nn.Dense(32, 16)

    def construct(self, x: Tensor) -> Tensor:
        return x + self.down(ops.relu(self.up(self.norm(x))))


def step_of(plan: dict[str, Any], inputs: Any) -> tuple[Any, list[float], dict[str, int]]:
    """Returns a sharded step, its losses, and what its second call has moved."""
    ms.set_seed(0)
    net = Block()
    cell = nn.WithLossCell(net, nn.MSELoss())
    step = nn.TrainOneStepCell(cell, nn.Momentum(net.trainable_params(), 0.1, 0.9))
    full = {n: s for n in step.parameters_dict() for k, s in plan.items() if n.endswith(k)}
    run = ms.shard(step, inputs, parameter_plan=full)
    losses = [float(run(X, Y))]
    before = dict(traffic.bytes)
    losses.append(float(run(X, Y)))
    moved = {k: n - before.get(k, 0) for k, n in traffic.bytes.items() if n > before.get(k, 0)}
    return run, losses, moved


rows, columns = MESH("mp", "None"), MESH("None", "mp")
batch, whole = MESH("dp", "None", "None"), MESH("None", "None", "None")
WAYS: dict[str, tuple[dict[str, Any], Any]] = {
    "data parallel": ({}, (MESH(("dp", "mp"), "None", "None"),) * 2),
    "tensor parallel": ({"up.weight": rows}, (whole, whole)),
    "both": ({"up.weight": rows}, (batch, batch)),
    "columns": ({"up.weight": columns, "down.weight": rows}, (batch, batch)),
    "parameters split": (
        {"up.weight": MESH(("dp", "mp"), "None"), "down.weight": MESH(("dp", "mp"), "None")},
        (MESH(("dp", "mp"), "None", "None"),) * 2,
    ),
    "sequence": ({}, (MESH("dp", "mp", "None"),) * 2),
}
expected: list[float] = []
for name, (plan, inputs) in WAYS.items():
    run, losses, moved = step_of(plan, inputs)
    expected = expected or losses
    np.testing.assert_allclose(losses, expected, atol=1e-6, err_msg=name)
    (program,) = run.programs
    wanted: dict[str, int] = {}
    for t in program.transfers:
        wanted[KINDS[t.kind]] = wanted.get(KINDS[t.kind], 0) + t.nbytes
    assert moved == wanted, (name, moved, wanted)
    if RANK == 0:
        print(f"{name}: {dict(sorted(moved.items()))}, as planned")
print(f"bytes: rank {RANK} of {SIZE} is right")
