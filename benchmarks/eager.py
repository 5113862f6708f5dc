"""Eager operators and training steps beside PyTorch's: ``python -m benchmarks.eager``.

Every operator has sizes that networks use. Both packages run in one process, one after the other,
many times; a figure is the quotient of the medians. Before that, every operator runs until its own
machine code is there, as it is from the second process on.
"""

from __future__ import annotations

import itertools
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks import report
from benchmarks.results import summary

Row = tuple[str, Callable[[], Any], Callable[[], Any]]


def _rows() -> Iterator[Row]:
    """Name, our call and PyTorch's."""
    import torch
    import torch.nn.functional as T

    from tvmgraph import Tensor, mint, ops

    functional = mint.nn.functional

    draw = np.random.default_rng(0)

    def both(*shape: int, positive: bool = False) -> tuple[Any, Any]:
        a = draw.standard_normal(shape).astype(np.float32)
        a = np.abs(a) + 0.1 if positive else a
        return Tensor(a), torch.from_numpy(a.copy())

    def whole(high: int, *shape: int) -> tuple[Any, Any]:
        a = draw.integers(0, high, shape)
        return Tensor(a), torch.from_numpy(a.copy())

    x, tx = both(128, 2048)
    y, ty = both(128, 2048)
    p, tp = both(128, 2048, positive=True)
    row, trow = both(2048)
    image, timage = both(8, 64, 56, 56)
    channel, tchannel = both(64)
    spread, tspread = both(64, positive=True)
    small, tsmall = both(8, 64, 28, 28)
    k3, tk3 = both(64, 64, 3, 3)
    k1, tk1 = both(256, 64, 1, 1)
    kd, tkd = both(64, 1, 3, 3)
    m, tm = both(512, 768)
    n, tn = both(768, 512)
    b, tb = both(12, 128, 64)
    grid, tgrid = both(8, 28, 28, 2)
    table, ttable = both(30_000, 256)
    ids, tids = whole(30_000, 8, 128)
    places, tplaces = whole(128, 64, 2048)
    rows_, trows = whole(128, 512)
    values, tvalues = both(512, 2048)
    labels, tlabels = whole(2048, 128)
    mask, tmask = x > 0, tx > 0
    square, tsquare = both(64, 32, 32)
    q, tq = both(2, 8, 128, 64)
    tall, ttall = both(512, 128)
    few, tfew = whole(128, 128)
    elements, telements = both(128)
    written, twritten = both(1024, 1024)
    signal, tsignal = both(64, 1024)
    waves, twaves = ops.fft(signal), torch.fft.fft(tsignal)

    unary = ("relu", "gelu", "sigmoid", "tanh", "exp", "erf", "sin", "abs", "square", "sign")
    for name in unary:
        mine, theirs = getattr(ops, name), getattr(torch if hasattr(torch, name) else T, name)
        yield name, partial(mine, x), partial(theirs, tx)
    for name in ("log", "sqrt", "rsqrt"):
        yield name, partial(getattr(ops, name), p), partial(getattr(torch, name), tp)
    yield "silu", lambda: ops.silu(x), lambda: T.silu(tx)
    yield "softplus", lambda: ops.softplus(x), lambda: T.softplus(tx)
    yield "elu", lambda: ops.elu(x), lambda: T.elu(tx)
    yield "leaky_relu", lambda: ops.leaky_relu(x), lambda: T.leaky_relu(tx, 0.2)
    yield "hardswish", lambda: ops.hardswish(x), lambda: T.hardswish(tx)
    yield "add", lambda: x + y, lambda: tx + ty
    yield "mul by a row", lambda: x * row, lambda: tx * trow
    yield "div", lambda: x / p, lambda: tx / tp
    yield "maximum", lambda: ops.maximum(x, y), lambda: torch.maximum(tx, ty)
    yield "pow", lambda: ops.pow(p, y), lambda: torch.pow(tp, ty)
    yield "where", lambda: ops.where(mask, x, y), lambda: torch.where(tmask, tx, ty)
    yield "greater", lambda: x > y, lambda: tx > ty
    yield "clamp", lambda: ops.clamp(x, -1.0, 1.0), lambda: torch.clamp(tx, -1.0, 1.0)
    yield "cast to half", lambda: x.half(), lambda: tx.half()
    yield "fmod", lambda: ops.fmod(x, p), lambda: torch.fmod(tx, tp)
    yield "sum of all", lambda: x.sum(), lambda: tx.sum()
    yield "sum of columns", lambda: x.sum(0), lambda: tx.sum(0)
    yield "mean of rows", lambda: x.mean(1), lambda: tx.mean(1)
    yield "max of rows", lambda: ops.amax(x, 1), lambda: torch.amax(tx, 1)
    yield "argmax", lambda: x.argmax(1), lambda: tx.argmax(1)
    yield "var", lambda: mint.var(x, dim=1), lambda: torch.var(tx, dim=1)
    yield "norm", lambda: mint.norm(x, dim=1), lambda: torch.norm(tx, dim=1)
    yield "cumsum", lambda: x.cumsum(1), lambda: tx.cumsum(1)
    yield "sort", lambda: ops.sort(x, 1), lambda: torch.sort(tx, 1)
    yield "topk", lambda: ops.topk(x, 10), lambda: torch.topk(tx, 10)
    yield "softmax", lambda: ops.softmax(x, -1), lambda: T.softmax(tx, -1)
    yield "log_softmax", lambda: functional.log_softmax(x, -1), lambda: T.log_softmax(tx, -1)
    yield (
        "cross_entropy", lambda: ops.cross_entropy(x, labels), lambda: T.cross_entropy(tx, tlabels)
    )  # fmt: skip
    yield "mse_loss", lambda: ops.mse_loss(x, y), lambda: T.mse_loss(tx, ty)
    yield (
        "layer_norm", lambda: ops.layer_norm(x, (2048,), row, row),
        lambda: T.layer_norm(tx, (2048,), trow, trow),
    )  # fmt: skip
    yield (
        "group_norm", lambda: ops.group_norm(image, 8, channel, channel),
        lambda: T.group_norm(timage, 8, tchannel, tchannel),
    )  # fmt: skip
    for training in (False, True):
        yield (
            f"batch_norm{', training' * training}",
            lambda t=training: ops.batch_norm(image, channel, spread, channel, channel, t),
            lambda t=training: T.batch_norm(timage, tchannel, tspread, tchannel, tchannel, t),
        )  # fmt: skip
    yield "dropout", lambda: ops.dropout(x, 0.1), lambda: T.dropout(tx, 0.1)
    yield "randn", lambda: ops.randn(128, 2048), lambda: torch.randn(128, 2048)
    yield (
        "conv2d 3x3", lambda: functional.conv2d(image, k3, padding=1),
        lambda: T.conv2d(timage, tk3, padding=1),
    )  # fmt: skip
    yield "conv2d 1x1", lambda: functional.conv2d(image, k1), lambda: T.conv2d(timage, tk1)
    yield (
        "conv2d depthwise", lambda: functional.conv2d(image, kd, padding=1, groups=64),
        lambda: T.conv2d(timage, tkd, padding=1, groups=64),
    )  # fmt: skip
    yield (
        "max_pool2d",
        lambda: functional.max_pool2d(image, 2, 2),
        lambda: T.max_pool2d(timage, 2, 2),
    )
    yield (
        "avg_pool2d",
        lambda: functional.avg_pool2d(image, 2, 2),
        lambda: T.avg_pool2d(timage, 2, 2),
    )
    yield (
        "adaptive_avg_pool2d", lambda: ops.adaptive_avg_pool2d(image, (7, 7)),
        lambda: T.adaptive_avg_pool2d(timage, (7, 7)),
    )  # fmt: skip
    yield (
        "interpolate", lambda: ops.interpolate(small, scale_factor=2.0, mode="bilinear",
                                               recompute_scale_factor=True),
        lambda: T.interpolate(tsmall, scale_factor=2.0, mode="bilinear",
                              recompute_scale_factor=True),
    )  # fmt: skip
    yield (
        "grid_sample", lambda: ops.grid_sample(small, grid, align_corners=False),
        lambda: T.grid_sample(tsmall, tgrid, align_corners=False),
    )  # fmt: skip
    yield "matmul", lambda: ops.matmul(m, n), lambda: torch.matmul(tm, tn)
    yield "bmm", lambda: ops.bmm(b, b.swapaxes(1, 2)), lambda: torch.bmm(tb, tb.mT)
    yield "dense", lambda: ops.dense(m, m), lambda: T.linear(tm, tm)
    yield (
        "attention", lambda: mint.matmul(ops.softmax(mint.matmul(q, q.swapaxes(2, 3)), -1), q),
        lambda: torch.matmul(T.softmax(torch.matmul(tq, tq.mT), -1), tq),
    )  # fmt: skip
    yield "embedding", lambda: functional.embedding(ids, table), lambda: T.embedding(tids, ttable)
    yield "gather", lambda: mint.gather(x, 0, places), lambda: torch.gather(tx, 0, tplaces)
    yield (
        "index_add",
        lambda: mint.index_add(x, 0, rows_, values),
        lambda: torch.index_add(tx, 0, trows, tvalues),
    )
    yield (
        "scatter_add", lambda: mint.scatter_add(x, 0, places, y[:64]),
        lambda: torch.scatter_add(tx, 0, tplaces, ty[:64]),
    )  # fmt: skip
    yield (
        "index_add to columns", lambda: mint.index_add(tall, 1, few, tall),
        lambda: torch.index_add(ttall, 1, tfew, ttall),
    )  # fmt: skip
    yield "x[i, j]", lambda: written[few, few], lambda: twritten[tfew, tfew]
    yield (
        "x[i:j] = y", lambda: written.__setitem__(slice(128, 256), x[:, :1024]),
        lambda: twritten.__setitem__(slice(128, 256), tx[:, :1024]),
    )  # fmt: skip
    yield (
        "x[:, i] = 0", lambda: written.__setitem__((slice(None), 5), 0.0),
        lambda: twritten.__setitem__((slice(None), 5), 0.0),
    )  # fmt: skip
    yield (
        "x[i, j] = y", lambda: written.__setitem__((few, few), elements),
        lambda: twritten.__setitem__((tfew, tfew), telements),
    )  # fmt: skip
    yield "x.mul_", lambda: written.mul_(1.0), lambda: twritten.mul_(1.0)
    yield "full", lambda: ops.full_like(x, 2.0), lambda: torch.full_like(tx, 2.0)
    yield "fft of reals", lambda: ops.fft(signal), lambda: torch.fft.fft(tsignal)
    yield "fft", lambda: ops.fft(waves), lambda: torch.fft.fft(twaves)
    yield "rfft", lambda: ops.rfft(signal), lambda: torch.fft.rfft(tsignal)
    yield "mul of complex", lambda: waves * waves, lambda: twaves * twaves
    yield "real", lambda: ops.real(waves), lambda: torch.real(twaves)
    yield "concat", lambda: ops.cat((x, y), 1), lambda: torch.cat((tx, ty), 1)
    yield (
        "transpose",
        lambda: x.swapaxes(0, 1).copy(),
        lambda: tx.mT.clone(memory_format=torch.contiguous_format),
    )
    yield "pad", lambda: functional.pad(image, (1, 1, 1, 1)), lambda: T.pad(timage, (1, 1, 1, 1))
    yield "tril", lambda: ops.tril(x), lambda: torch.tril(tx)
    yield "flip", lambda: ops.flip(x, (1,)), lambda: torch.flip(tx, (1,))
    yield "roll", lambda: ops.roll(x, 5, 1), lambda: torch.roll(tx, 5, 1)
    yield "inverse", lambda: ops.inverse(square), lambda: torch.inverse(tsquare)


def _steps() -> Iterator[Row]:
    """Training steps, which are as many operators."""
    import torch

    import tvmgraph
    from benchmarks.peers.cells import build_cell
    from benchmarks.peers.torch_training import training_step
    from benchmarks.training_rows import TRAINING

    for name in ("mlp-b64-sgd", "lenet-b64-sgd", "resnet18-b8-sgd", "bert-layer-b8-sgd"):
        work = TRAINING[f"train-{name}"]()
        cell = build_cell(tvmgraph, work)
        args = [tvmgraph.Tensor(a) for a in work.args]
        yield f"step: {name}", partial(cell, *args), training_step(work)

    draw = np.random.default_rng(0)
    x = draw.standard_normal((32, 50, 128)).astype(np.float32)
    mine, theirs = tvmgraph.nn.LSTM(128, 256, batch_first=True), torch.nn.LSTM(128, 256)
    theirs.batch_first = True
    rate, rates = 0.01, list(theirs.parameters())
    optimizers = tvmgraph.nn.SGD(mine.trainable_params(), rate), torch.optim.SGD(rates, rate)
    gradients = tvmgraph.value_and_grad(
        lambda x: (mine(x)[0] ** 2).mean(), None, optimizers[0].parameters
    )
    mx, tx = tvmgraph.Tensor(x), torch.from_numpy(x)

    def my_step() -> Any:
        loss, found = gradients(mx)
        optimizers[0](found)
        return loss

    def their_step() -> Any:
        with torch.enable_grad():
            optimizers[1].zero_grad()
            loss = (theirs(tx)[0] ** 2).mean()
            loss.backward()
            optimizers[1].step()
        return loss.detach()

    yield "step: lstm-b32-50x256-sgd", my_step, their_step


def _seconds(call: Callable[[], Any], least: float, clock: Callable[[], float]) -> float:
    """Seconds of a call, of as many in a row as take ``least``."""
    count, start = 0, clock()
    while True:
        call()
        count += 1
        if clock() - start >= least:
            return (clock() - start) / count


def main(
    threads: Annotated[int, typer.Option(help="Threads of both; one is timed by CPU time.")] = 2,
    samples: Annotated[int, typer.Option(help="Samples of every call.")] = 15,
    only: Annotated[str, typer.Option(help="Rows whose name holds this.")] = "",
    record: Annotated[bool, typer.Option("--record", help="Put it into RESULTS.md.")] = False,
) -> None:
    """Times every operator in both packages."""
    wanted = dict.fromkeys(
        ("TVM_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads)
    )
    if not wanted.items() <= os.environ.items():  # read when NumPy is imported, which it is
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **wanted})
    import torch

    from tvmgraph.compiler import eager

    torch.set_num_threads(threads)
    clock = time.thread_time if threads == 1 else time.perf_counter
    rows: dict[str, list[float]] = {}
    print(f"{'operator':28} {'ours us':>9} {'PyTorch us':>10} {'quotient':>8}")
    with torch.no_grad():
        for name, ours, theirs in itertools.chain(_rows(), _steps()):
            if not re.search(only, name):
                continue
            for _ in range(4):
                for _ in range(10):
                    _seconds(ours, 0.005, clock)
                eager.wait()
            _seconds(theirs, 0.02, clock)
            found: tuple[list[float], list[float]] = [], []
            for _ in range(samples):
                for call, times in zip((ours, theirs), found):
                    times.append(_seconds(call, 0.005, clock) * 1e6)
            a, b = map(statistics.median, found)
            rows[name] = [a, b]
            print(f"{name:28} {a:9.1f} {b:10.1f} {a / b:8.2f}", flush=True)
    mean, most = summary(rows)
    print(f"{len(rows)} rows, geometric mean {mean:.2f}, at most {most:.2f}")
    if record:
        report.record("eager", rows, report.machine_description(threads))


if __name__ == "__main__":
    typer.run(main)
