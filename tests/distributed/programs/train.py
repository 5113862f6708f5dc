"""Training on several processes: losses and weights equal those of one process."""

from __future__ import annotations

import sys
import tempfile
from typing import Any

import numpy as np

import tvmgraph as ms
from tvmgraph import Tensor, dataset, nn
from tvmgraph.distributed import engine

WORLD = engine.world()
RANK, SIZE = WORLD.rank, WORLD.size
ms.set_context(jit_config=ms.JitConfig(jit_level="O0"))  # it compiles fastest
RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((64, 12)).astype(np.float32)
LABELS = RNG.integers(0, 5, 64).astype(np.int32)
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 30


def network() -> nn.SequentialCell:
    ms.set_seed(3)
    return nn.SequentialCell(nn.Dense(12, 16), nn.Tanh(), nn.Dense(16, 5))


def loss_of(net: nn.Cell) -> nn.Cell:
    return nn.WithLossCell(net, nn.CrossEntropyLoss())


def state(net: nn.Cell) -> list[np.ndarray]:
    return [p.asnumpy() for p in net.trainable_params()]


def reference() -> tuple[list[float], list[np.ndarray]]:
    """All in this process, eagerly."""
    net = network()
    step = nn.TrainOneStepCell(loss_of(net), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    return [float(step(Tensor(ROWS), Tensor(LABELS))) for _ in range(STEPS)], state(net)


def agree(what: str, losses: list[float], net: nn.Cell) -> None:
    found = state(net)
    np.testing.assert_allclose(losses, LOSSES, atol=1e-6, err_msg=what)
    for a, b in zip(found, WEIGHTS):
        np.testing.assert_allclose(a, b, atol=1e-6, err_msg=what)
    for other in engine.share_object([a.tobytes() for a in found]):
        assert other == [a.tobytes() for a in found], f"{what}: ranks differ"


LOSSES, WEIGHTS = reference()
BOTH = Tensor(ROWS), Tensor(LABELS)

# ---- one program: data parallel, tensor parallel, everything split, from few given layouts
plans: dict[str, tuple[Any, Any]] = {
    "data": (((SIZE, 1), (SIZE,)), None),
    "tensor": (((1, 1), (1,)), {"0.weight": (SIZE, 1)}),
    "parameters split": (((SIZE, 1), (SIZE,)), {"0.weight": (SIZE, 1), "2.weight": (1, SIZE)}),
}
for name, (strategy, plan) in plans.items():
    net = network()
    cell = loss_of(net)
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    step = nn.TrainOneStepCell(cell, optimizer)
    names = list(step.parameters_dict())
    plan = plan and {next(n for n in names if n.endswith(k)): v for k, v in plan.items()}
    run = ms.shard(step, strategy, parameter_plan=plan)
    agree(name, [float(run(*BOTH)) for _ in range(STEPS)], net)
    if SIZE > 1 and name == "tensor":
        assert net[0].weight._device.local.shape == (16 // SIZE, 12)
        moment = next(p for p in optimizer.get_parameters() if p.shape == (16, 12))
        assert moment._device.local.shape == (16 // SIZE, 12)
        folder = engine.share_object(tempfile.mkdtemp() if RANK == 0 else None, root=0)
        ms.save_checkpoint(net, f"{folder}/net.ckpt")
        loaded = ms.load_checkpoint(f"{folder}/net.ckpt")
        for p, b in zip(net.trainable_params(), WEIGHTS):
            np.testing.assert_allclose(loaded[p.name].asnumpy(), b, atol=1e-6)
    if SIZE > 1 and name == "data":
        (program,) = run.programs
        sums = [t for t in program.transfers if t.kind == "all_reduced"]
        assert len(sums) == 2, program.transfers  # the parts of the loss; all gradients


# ---- Model.train and a dataset that every process has a part of
def model_losses(wrap: Any = lambda net: net, **settings: Any) -> tuple[list[float], nn.Cell]:
    ms.set_auto_parallel_context(**settings)
    order = np.arange(64).reshape(SIZE, -1).T.reshape(-1)  # rank r gets the r-th part, in order
    data = dataset.NumpySlicesDataset(
        {"x": ROWS[order], "y": LABELS[order]}, shuffle=False, num_shards=SIZE, shard_id=RANK
    ).batch(64 // SIZE)
    net = network()
    model = ms.Model(
        wrap(net), nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9)
    )
    seen: list[float] = []

    class Keep(ms.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            seen.append(float(run_context.original_args().net_outputs))

    model.train(STEPS, data, Keep())
    ms.reset_auto_parallel_context()
    if settings.get("enable_parallel_optimizer") and SIZE > 1:
        states = [p for p in model.optimizer.get_parameters() if hasattr(p, "of_optimizer")]
        assert states[0]._device.local.shape == (16 // SIZE, 12)
    return seen, net


seen, net = model_losses(
    parallel_mode="data_parallel", gradients_mean=True, parameter_broadcast=True
)
agree("Model, data parallel", np.mean(engine.share_object(seen), 0).tolist(), net)
seen, net = model_losses(parallel_mode="semi_auto_parallel", enable_parallel_optimizer=True)
agree("Model, one program, states split", seen, net)


def split_states(net: nn.Cell) -> ms.parallel.AutoParallel:
    whole = ms.parallel.AutoParallel(net)
    whole.hsdp()
    whole.dataset_strategy(((SIZE, 1), (SIZE,)))
    return whole


seen, net = model_losses(split_states)
agree("Model of AutoParallel", seen, net)
called = ms.parallel.AutoParallel(loss_of(network()))
called.dataset_strategy("full_batch")
np.testing.assert_allclose(float(called(*BOTH)), LOSSES[0], atol=1e-6)
print(f"train: rank {RANK} of {SIZE} is right, loss {LOSSES[0]:.4f} -> {LOSSES[-1]:.4f}")
