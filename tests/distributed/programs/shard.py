"""``ms.shard`` on 1, 2 or 4 processes against one."""

from __future__ import annotations

from unittest import mock

import numpy as np

import tvmgraph as ms
from tvmgraph import Layout, Tensor, nn, ops
from tvmgraph.core.deferred import Deferred
from tvmgraph.distributed import engine
from tvmgraph.distributed.engine import traffic, world
from tvmgraph.distributed.plan import HARDWARE
from tvmgraph.errors import ArgumentError, KeyNotFoundError, ShapeError

RANK, SIZE = world().rank, world().size
MESH = Layout((2, 2), ("dp", "mp")) if SIZE == 4 else Layout((1, SIZE), ("dp", "mp"))
ms.set_seed(1)
X = Tensor(np.random.default_rng(0).standard_normal((16, 64)).astype(np.float32))


def close(a: Tensor, b: np.ndarray, atol: float = 2e-6) -> None:
    np.testing.assert_allclose(a.asnumpy(), b, atol=atol)


def kinds(fn: object) -> list[str]:
    return [t.kind for p in fn.programs for t in p.transfers]  # pyright: ignore


class MLP(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Dense(64, 128)
        self.fc2 = nn.Dense(128, 32)

    def construct(self, x: Tensor) -> Tensor:
        return self.fc2(ops.relu(self.fc1(x)))


def twin(net: MLP) -> MLP:
    other = MLP()
    for p, q in zip(other.trainable_params(), net.trainable_params()):
        p.set_data(Tensor(q.asnumpy()))
    return other


# ---- functions, and results that stay split
add = ms.shard(lambda a, b: a + b, ((SIZE, 1), (SIZE, 1)))
close(add(X, X), 2 * X.asnumpy())
stays = ms.shard(ops.exp, ((SIZE, 1),), out_strategy=((SIZE, 1),))
goes_on = ms.shard(lambda a: -a, ((SIZE, 1),))
y = stays(X)
close(goes_on(y), -np.exp(X.asnumpy()), 1e-5)
if SIZE > 1:
    assert isinstance(y, ms.DTensor) and y.to_local().shape == (16 // SIZE, 64)
    assert kinds(stays) == [] and set(kinds(goes_on)) == {"all_gathered"}
    turned = ms.redistribute(y, (1, SIZE))
    assert isinstance(turned, ms.DTensor) and turned.to_local().shape == (16, 64 // SIZE)
    close(turned, np.exp(X.asnumpy()), 1e-5)

# ---- a Cell from one given weight, also under jit and in a training step
net = MLP()
plain = twin(net)
expected = plain(X).asnumpy()
split = net.shard((MESH("dp", "None"),), parameter_plan={"self.fc1.weight": MESH("mp", "None")})
close(split(X), expected)
close(net(X), expected)  # eager: parameters are gathered
if SIZE > 1:
    assert net.fc1.weight._device.local.shape == (128 // MESH.mesh.shape[1], 64)
    assert "all_reduced" in kinds(split) and split.programs[0].replicated == []


def losses(forward: object, params: list, jit: bool) -> list[float]:
    optimizer = nn.Adam(params, 1e-2)
    run = ms.value_and_grad(lambda x: (forward(x) ** 2).mean(), None, params)  # pyright: ignore

    def step(x: Tensor) -> Tensor:
        loss, gradients = run(x)
        optimizer(gradients)
        return loss

    step = ms.jit(step) if jit else step
    return [float(step(X)) for _ in range(5)]


found = losses(split, net.trainable_params(), True)
np.testing.assert_allclose(found, losses(plain, plain.trainable_params(), False), atol=1e-6)
for p, q in zip(net.trainable_params(), plain.trainable_params()):
    close(p, q.asnumpy())

# ---- a parameter that is split is never built whole, and has the numbers of one process
ms.set_seed(8)
first = nn.Dense(64, 32, weight_init="TruncatedNormal", bias_init="normal")
with mock.patch.object(engine, "is_joined", lambda: False):
    ms.set_seed(8)
    second = nn.Dense(64, 32, weight_init="TruncatedNormal", bias_init="normal")
built: list[str] = []
looked = Deferred.numpy
with mock.patch.object(Deferred, "numpy", lambda d: built.append("whole") or looked(d)):
    step = nn.TrainOneStepCell(
        nn.WithLossCell(first, nn.MSELoss()), nn.Momentum(first.trainable_params(), 0.0, 0.9)
    )
    plan = {n: MESH("mp", *["None"] * (p.ndim - 1))
            for n, p in step.parameters_dict().items() if n[-4:] in ("ight", "bias")}  # fmt: skip
    ms.shard(step, (None, None), parameter_plan=plan)(X, Tensor(np.zeros((16, 32), np.float32)))
assert not built or MESH.mesh.shape[1] == 1, built
for p, q in zip(first.trainable_params(), second.trainable_params()):
    np.testing.assert_array_equal(p.asnumpy(), q.asnumpy())

# ---- what was predicted is what is sent; the search is never worse than data parallelism
if SIZE > 1:
    before = dict(traffic.bytes)
    split(X)
    sent = {k: n - before.get(k, 0) for k, n in traffic.bytes.items() if n > before.get(k, 0)}
    wanted: dict[str, int] = {}
    for t in split.programs[0].transfers:
        kind = {"all_reduced": "all_reduce", "all_gathered": "all_gather"}[t.kind]
        wanted[kind] = wanted.get(kind, 0) + t.nbytes
    assert sent == wanted, (sent, wanted)
    assert "1 x all_reduced over mp" in split.explain(hardware="h100")
    weights = split.plan().parameter_bytes, split.plan(mesh=Layout((2, 8), ("dp", "mp")))
    assert weights[1].parameter_bytes < weights[0]
found = ms.shard(twin(plain), "auto")
close(found(X), plain(X).asnumpy())
assert found.choice.plan.seconds <= found.choice.data_parallel.seconds

# ---- operators that ask for layouts
matmul = ops.MatMul().shard(((SIZE, 1), (1, 1)))
W = Tensor(np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32))
close(ms.jit(lambda a, b: matmul(a, b))(X, W), X.asnumpy() @ W.asnumpy(), 1e-4)
if SIZE == 4:
    grid = ops.MatMul()
    grid.shard(((2, 1), (1, 2)))
    close(ms.jit(lambda a, b: grid(a, b))(W, W), W.asnumpy() @ W.asnumpy(), 1e-4)


# ---- branches and loops are split as everything else, and so are their derivatives
def looped(x: Tensor) -> Tensor:
    while ops.abs(x).max() > 0.5:
        x = x * 0.5
    return ops.softmax(x, 0) if x.sum() > 1e6 else x + ops.matmul(x, W)


split = ms.shard(looped, ((SIZE, 1),), out_strategy=((SIZE, 1),))
close(split(X), looped(X).asnumpy(), 1e-5)
if SIZE > 1:
    assert split.programs[0].replicated == [], split.explain()
    assert {"all_reduced"} <= set(kinds(split)) <= {"all_reduced", "all_gathered"}, kinds(split)
slopes = ms.grad(ms.shard(lambda x: (looped(x) ** 2).sum(), ((SIZE, 1),)))(X)
close(slopes, ms.grad(lambda x: (looped(x) ** 2).sum())(X).asnumpy(), 1e-4)
priced = split.plan(hardware="cpu")  # the product of a branch counts
assert priced.compute_seconds > 2 * 16 * 64 * 64 / SIZE / HARDWARE["cpu"].flops, priced


def inside(x: Tensor) -> Tensor:
    """Asks for a layout in a branch only."""
    return matmul(x, W) if x.sum() > 1e6 else matmul(x * 2, W)


close(ms.jit(inside)(X), inside(X).asnumpy(), 1e-4)

# ---- dropout draws what one process would draw
ms.set_seed(5)
whole = ops.dropout(X, 0.5).asnumpy()
ms.set_seed(5)
close(ms.shard(lambda x: ops.dropout(x, 0.5), ((SIZE, 1),))(X), whole)

# ---- errors that a user can act on
for error, strategy, plan in (
    (ArgumentError, ((1, 1, 1),), None),
    (ArgumentError, ((5, 1),), None),
    (ArgumentError, ((1, 1), (1, 1)), None),
    (KeyNotFoundError, ((1, 1),), {"fc9": (1, 1)}),
    (ShapeError, (MESH("dp", ("mp",)),), {"fc2.bias": (1,)} if SIZE == 1 else None),
):
    try:
        ms.shard(MLP(), strategy, parameter_plan=plan)(X[:, :63] if error is ShapeError else X)
    except error as e:
        assert SIZE == 1 or (e.at and "shard.py" in e.at), e
    else:
        raise AssertionError(f"{strategy} was no error")
print(f"shard: rank {RANK} of {SIZE} is right")
