"""What goes wrong in a job, by the first argument; the last is a folder of checkpoints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops
from tvmgraph.distributed import engine
from tvmgraph.optim import DistributedGradReducer

KIND, FOLDER = sys.argv[1], Path(sys.argv[2])
if KIND == "versions" and os.environ.get("PMI_RANK") == "1":
    engine._versions = lambda: "tvmgraph 0.0.1"
RANK = engine.world().rank
X = np.arange(12, dtype=np.float32).reshape(6, 2) / 10 + RANK


def train(steps: int) -> None:
    """Trains on this process's rows, and writes a checkpoint after every step."""
    ms.set_seed(0)
    net = nn.Dense(2, 1)
    reduce = DistributedGradReducer(net.trainable_params(), mean=True)
    first, path = 0, FOLDER / "last.ckpt"
    if path.exists():
        saved = ms.load_checkpoint(str(path))
        first = int(saved.pop("step"))
        ms.load_param_into_net(net, saved)
    for step in range(first, steps):
        if KIND == "killed" and step == 3 and RANK == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        run = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, net.trainable_params())
        loss, gradients = run(Tensor(X))
        for p, g in zip(net.trainable_params(), reduce(gradients)):
            p.set_data(p - 0.05 * g)
        loss = ops.AllReduce("mean")(loss)
        if RANK == 0:
            print(f"step {step} loss {float(loss):.6f}", flush=True)
            ms.save_checkpoint(net, str(path), append_dict={"step": step + 1})


if KIND in ("killed", "well"):
    train(6)
elif KIND == "error":
    if RANK == 1:
        raise ValueError("a mistake of the user")
elif KIND == "stuck" and RANK == 1:
    time.sleep(600)
elif KIND == "stopped" and RANK == 1:
    os.kill(os.getpid(), signal.SIGSTOP)
elif KIND == "unplugged":
    for step in range(5):
        ops.AllReduce()(Tensor(X))
        if RANK == 0 and step == 3:
            subprocess.run(["ip", "link", "set", sys.argv[3], "down"], check=True)
elif KIND == "programs":
    ms.shard(ops.exp if RANK else ops.sin, ((engine.world().size,),))(Tensor(np.ones(4, "f")))
elif KIND == "leaves" and RANK == 1:
    sys.exit(3)
ops.AllReduce()(Tensor(np.ones((3, 5), np.float32)))
