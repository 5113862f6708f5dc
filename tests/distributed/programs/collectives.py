"""Collectives, eager, compiled and differentiated, on any number of processes."""

from __future__ import annotations

import os
from itertools import combinations

import numpy as np

import tvmgraph as ms
from tvmgraph import Tensor, communication, mint, ops
from tvmgraph.distributed import engine
from tvmgraph.errors import ArgumentError, ShapeError
from tvmgraph.machine.threads import thread_count

communication.init()
RANK, SIZE = communication.get_rank(), communication.get_group_size()
DIST = mint.distributed
assert thread_count() == max(1, (os.cpu_count() or 1) // SIZE)  # tvmgraph-run shares them out
cores = [set(c) for c in engine.share_object(sorted(os.sched_getaffinity(0)))]
assert (os.cpu_count() or 1) < SIZE or all(not a & b for a, b in combinations(cores, 2)), cores


def x_of(rank: int) -> np.ndarray:
    return (np.arange(4 * SIZE, dtype=np.float32).reshape(2 * SIZE, 2) + 10 * rank) / 7


X = Tensor(x_of(RANK))
ALL = [x_of(r) for r in range(SIZE)]
MINE = slice(2 * RANK, 2 * RANK + 2)
EXPECTED = {
    "sum": (ops.AllReduce(), np.sum(ALL, 0)),
    "max": (ops.AllReduce("max"), np.max(ALL, 0)),
    "gather": (ops.AllGather(), np.concatenate(ALL)),
    "scatter": (ops.ReduceScatter(), np.sum(ALL, 0)[MINE]),
    "broadcast": (lambda x: ops.Broadcast(SIZE - 1)((x,))[0], ALL[SIZE - 1]),
    "all_to_all": (ops.AlltoAll(SIZE, 0, 1), np.concatenate([a[MINE] for a in ALL], 1)),
    "ring": (
        lambda x: ops.NeighborExchange(
            [(RANK + 1) % SIZE], [(RANK - 1) % SIZE], [X.shape], [X.shape], ms.float32
        )((x,))[0], ALL[RANK - 1],
    ),
}  # fmt: skip
for name, (fn, expected) in EXPECTED.items():
    for run in (fn, ms.jit(fn)):
        np.testing.assert_allclose(run(X).asnumpy(), expected, rtol=1e-6, err_msg=name)

# sum_r <c_r, f(x)_r> has the gradient f^T(c): for the identity-like collectives it is known
ones = ops.ones_like(X)
for run in (ops.AllReduce(), ms.jit(ops.AllReduce())):
    grad = ms.grad(lambda x, run=run: (run(x) * (RANK + 1)).sum())(X)
    np.testing.assert_allclose(grad.asnumpy(), np.full(X.shape, SIZE * (SIZE + 1) / 2), rtol=1e-6)
grad = ms.grad(lambda x: (ops.AllGather()(x) * (RANK + 1)).sum())(X)
np.testing.assert_allclose(grad.asnumpy(), np.full(X.shape, SIZE * (SIZE + 1) / 2), rtol=1e-6)
grad = ms.grad(lambda x: (ops.ReduceScatter()(x) * (RANK + 1)).sum())(X)
np.testing.assert_allclose(grad.asnumpy()[:, 0], np.repeat(np.arange(SIZE) + 1, 2), rtol=1e-6)

for dtype in (ms.float16, ms.bfloat16, ms.int64, ms.bool_):
    found = communication.comm_func.all_reduce(Tensor([1, 0, 1], dtype), "max")[0]
    assert found.dtype is dtype and found.astype(ms.float32).asnumpy().tolist() == [1, 0, 1]
    assert ops.AllGather()(Tensor([1], dtype)).shape == (SIZE,)

t = Tensor([float(RANK)])
assert DIST.all_reduce(t, DIST.ReduceOp.MAX) is None and t.asnumpy()[0] == SIZE - 1
found = [Tensor([0.0]) for _ in range(SIZE)]
DIST.all_gather(found, Tensor([float(RANK)]))
assert [float(f) for f in found] == list(range(SIZE))
objects: list[object] = [None] * SIZE
DIST.all_gather_object(objects, {"rank": RANK})
assert [o["rank"] for o in objects] == list(range(SIZE))  # pyright: ignore
one = Tensor([0.0])
DIST.scatter(one, [Tensor([10.0 + i]) for i in range(SIZE)] if RANK == 0 else None, 0)
assert float(one) == 10.0 + RANK
uneven = Tensor(np.arange(sum(range(1, SIZE + 1)), dtype=np.float32))
into = ops.zeros(((RANK + 1) * SIZE,))
DIST.all_to_all_single(into, uneven, [RANK + 1] * SIZE, list(range(1, SIZE + 1)))
start = RANK * (RANK + 1) // 2
lengths = list(range(1, SIZE + 1))
ladder = np.concatenate([np.full(n, n - 1, np.float32) for n in lengths])
mine, whole = Tensor(np.full(RANK + 1, RANK, np.float32)), Tensor(ladder)
part = ladder[RANK * (RANK + 1) // 2 :][: RANK + 1] * SIZE
for run in (
    lambda: ops.AllGatherV()(mine, lengths),
    ms.jit(lambda: ops.AllGatherV()(mine, lengths)),
    lambda: DIST.all_gather_into_tensor_uneven(whole, mine, lengths) or whole,
):
    np.testing.assert_array_equal(run().asnumpy(), ladder)
np.testing.assert_array_equal(ops.ReduceScatterV()(whole, lengths).asnumpy(), part)
DIST.reduce_scatter_tensor_uneven(mine, whole, lengths)
np.testing.assert_array_equal(mine.asnumpy(), part)
found = [ops.zeros((n,)) for n in lengths]
DIST.all_gather(found, Tensor(np.full(RANK + 1, RANK, np.float32)))
np.testing.assert_array_equal(np.concatenate([f.asnumpy() for f in found]), ladder)
got = ops.AlltoAllV()(Tensor(np.arange(whole.size)), lengths, [RANK + 1] * SIZE)
assert got.asnumpy().tolist() == list(range(start, start + RANK + 1)) * SIZE
square = Tensor(np.zeros(SIZE * (RANK + 1), np.float32))
communication.comm_func.all_to_all_v_c(square, uneven, lengths * SIZE)
assert square.asnumpy().tolist() == into.asnumpy().tolist()
assert into.asnumpy().tolist() == list(range(start, start + RANK + 1)) * SIZE
if SIZE > 1:
    other, got = RANK ^ 1, Tensor([0.0])
    handle = DIST.irecv(got, other)
    DIST.isend(Tensor([float(RANK)]), other).wait()
    handle.wait()
    assert float(got) == other
    if RANK == 0:
        ops.Send(3, 1)(X)
    elif RANK == 1:
        np.testing.assert_array_equal(ops.Receive(3, 0, X.shape, ms.float32)().asnumpy(), ALL[0])
    batched = ops.BatchISendIRecv(("isend", "irecv"), [other, other], [(2,)], [ms.int32])
    _, came = batched((Tensor([RANK, 7], ms.int32),))
    assert came.asnumpy().tolist() == [other, 7] and came.dtype is ms.int32
    one, two = DIST.P2POp("isend", Tensor([RANK]), other), DIST.P2POp("irecv", Tensor([9]), other)
    (handle,) = DIST.batch_isend_irecv([one, two])
    handle.wait()
    assert int(two.tensor) == other
    things: list[object] = [RANK, None]
    if RANK % 2:
        DIST.recv_object_list(things, other)
        assert things == [other, {"a": 1}]
    else:
        DIST.send_object_list([RANK, {"a": 1}], other)
    pair = DIST.new_group([0, SIZE - 1])
    assert pair == DIST.new_group([SIZE - 1, 0]) and DIST.new_group() == "hccl_world_group"
    assert bool(pair) == (RANK in (0, SIZE - 1))
    if pair:
        assert float(ops.AllReduce(group=pair)(Tensor(1.0))) == 2
DIST.barrier()
few = [ops.zeros_like(X)] * (SIZE + 1)
for wrong in (  # all processes are told before anything is sent
    lambda: ops.AllReduce("median")(X),
    lambda: ops.AllReduce(group="none")(X),
    lambda: ops.AllGatherV()(mine, [1] * (SIZE + 1)),
    lambda: ops.AlltoAllV()(uneven, [2] * SIZE, [0] * SIZE),
    lambda: ops.BatchISendIRecv(("isend",), [0], [(2,)], [ms.int32])((X,)),
    lambda: DIST.all_gather(few, X),
    lambda: DIST.reduce_scatter(X, few),
    lambda: DIST.all_to_all(few, few),
):
    try:
        wrong()
    except (ArgumentError, ShapeError) as e:
        assert e.at and "collectives.py" in e.at, e
    else:
        raise AssertionError("there was no error")
print(f"collectives: rank {RANK} of {SIZE} is right")
