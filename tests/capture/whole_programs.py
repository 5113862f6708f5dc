"""Programs as users write them, none of which is one graph; each returns what it found out."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops

log = logging.getLogger("whole_programs")
Wrap = Callable[[Any], Any]


def seeded(cell: nn.Cell, seed: int) -> nn.Cell:
    """Gives a Cell weights that do not depend on anything else."""
    rng = np.random.default_rng(seed)
    for p in cell.get_parameters():
        p.set_data(Tensor(rng.normal(0, 0.5, p.shape).astype(np.float32)))
    return cell


def training_script(wrap: Wrap) -> Any:
    """Trains with logging, early stopping and checkpoints."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4, 8, 3)).astype(np.float32)
    model = seeded(nn.SequentialCell(nn.Dense(3, 4), nn.Tanh(), nn.Dense(4, 1)), 1)
    optimizer = nn.Momentum(model.trainable_params(), 0.1, 0.9)
    history: list[Any] = []

    def forward(x: Tensor, y: Tensor) -> Tensor:
        error = model(x) - y
        if error.abs().max().item() > 3:
            error = ops.clamp(error, -3, 3)
        return (error * error).mean()

    step = ms.value_and_grad(wrap(forward), None, optimizer.parameters)

    def train(folder: Path) -> None:
        best, patience = float("inf"), 2
        for epoch in range(6):
            total = 0.0
            for batch in rows:
                x = Tensor(batch)
                loss, grads = step(x, x.sum(1, keepdims=True))
                optimizer(grads)
                total += loss.item()
            log.info("epoch %d: %.4f", epoch, total)
            history.append(round(total, 3))
            if total < best - 1e-3:
                best, patience = total, 2
                ms.save_checkpoint(model, str(folder / f"{epoch}.ckpt"))
            else:
                patience -= 1
                if not patience:
                    break

    with tempfile.TemporaryDirectory() as name:
        train(Path(name))
        kept = sorted(p.name for p in Path(name).iterdir())
        ms.load_param_into_net(model, ms.load_checkpoint(str(Path(name) / kept[-1])))
    return history, kept, [p.asnumpy() for p in model.get_parameters()]


def beam_search(wrap: Wrap) -> Any:
    """Extends the best of several sequences until all have ended."""
    rng = np.random.default_rng(2)
    table = Tensor(rng.normal(size=(6, 6)).astype(np.float32) * 2)

    def search(start: int, width: int, steps: int) -> Any:
        beams: list[Any] = [([start], Tensor(0.0))]
        for _ in range(steps):
            found = []
            for tokens, score in beams:
                if tokens[-1] == 0:
                    found.append((tokens, score))
                    continue
                chances = ops.log_softmax(table[tokens[-1]] * 0.5 + 0.1, -1)
                values, ids = ops.topk(chances, width)
                for v, i in zip(values, ids.tolist()):
                    found.append(([*tokens, i], score + v))
            beams = sorted(found, key=lambda b: float(b[1]) / len(b[0]), reverse=True)[:width]
            if all(b[0][-1] == 0 for b in beams):
                break
        return [(t, s) for t, s in beams]

    run = wrap(search)
    return [run(start, 2, 5) for start in (1, 3, 5)]


class Halting(nn.Cell):
    """A recurrent network that decides itself how often it thinks about an input."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.halt = nn.Dense(6, 3), nn.Dense(3, 1)

    def construct(self, x: Tensor) -> Any:
        h, steps = ops.zeros_like(x), []
        while len(steps) < 8:
            h = ops.tanh(self.cell(ops.concat([x, h], 1)) + 0.2)
            p = ops.sigmoid(self.halt(h)).mean()
            steps.append(round(p.item(), 4))
            if sum(steps) > 2:
                break
        return h, steps


def dynamic_recurrence(wrap: Wrap) -> Any:
    """Runs sequences of different lengths through it."""
    net = wrap(seeded(Halting(), 3))
    rng = np.random.default_rng(4)
    return [net(Tensor(rng.normal(size=(n, 3)).astype(np.float32))) for n in (2, 2, 4, 2)]


def detection(wrap: Wrap) -> Any:
    """Keeps the best boxes: masks, sorting and suppression of what overlaps."""

    def areas(b: Tensor) -> Tensor:
        return (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])

    def overlap(box: Tensor, others: Tensor) -> Tensor:
        low = ops.maximum(box[:2], others[:, :2])
        high = ops.minimum(box[2:], others[:, 2:])
        inner = ops.clamp(high - low, 0, None).prod(1)
        return inner / (areas(box[None]) + areas(others) - inner)

    def post_process(boxes: Tensor, scores: Tensor, least: float = 0.3) -> Any:
        scores = ops.sigmoid(scores)
        chosen = scores > least
        boxes, scores = boxes[chosen], scores[chosen]
        order = ops.argsort(scores, descending=True)
        boxes, scores = boxes[order], scores[order]
        kept = []
        while len(boxes) > 0:
            kept.append({"box": boxes[0].tolist(), "score": round(float(scores[0]), 4)})
            if len(boxes) == 1:
                break
            far = overlap(boxes[0], boxes[1:]) < 0.5
            boxes, scores = boxes[1:][far], scores[1:][far]
        return kept

    run, rng, found = wrap(post_process), np.random.default_rng(5), []
    for count in (5, 9, 5):
        corners = rng.uniform(0, 4, (count, 2))
        boxes = np.concatenate([corners, corners + rng.uniform(1, 4, (count, 2))], 1)
        scores = rng.normal(size=count)
        found.append(run(Tensor(boxes.astype(np.float32)), Tensor(scores.astype(np.float32))))
    return found


def tokenizer_loop(wrap: Wrap) -> Any:
    """Reads words, grows a vocabulary, and embeds what it knows."""
    embedding = Tensor(np.random.default_rng(6).normal(size=(8, 3)).astype(np.float32))
    vocabulary: dict[str, int] = {"<unk>": 0}

    def encode(text: str) -> Any:
        ids = []
        for word in text.lower().split():
            if word not in vocabulary and len(vocabulary) < 8:
                vocabulary[word] = len(vocabulary)
            ids.append(vocabulary.get(word, 0))
        vectors = ops.tanh(embedding[Tensor(ids)] * 2)
        weights = ops.softmax(vectors.sum(1), 0)
        best = int(weights.argmax())
        summary = (vectors * weights[:, None]).sum(0)
        return f"{text.split()[best]}: {weights.max().item():.3f}", summary

    run = wrap(encode)
    texts = ["the cat sat", "the dog sat down", "A cat and a dog and more", "the cat sat"]
    return [run(t) for t in texts], vocabulary


def rollout(wrap: Wrap) -> Any:
    """Plays episodes with a policy, and improves it by what they gave."""
    policy = seeded(nn.SequentialCell(nn.Dense(2, 4), nn.Tanh(), nn.Dense(4, 2)), 7)
    optimizer = nn.SGD(policy.trainable_params(), 0.05)
    rng = np.random.default_rng(8)

    class World:
        def __init__(self) -> None:
            self.at, self.time = np.zeros(2, np.float32), 0

        def step(self, action: int) -> tuple[float, bool]:
            self.at = self.at + np.array([1 if action else -1, 0.5], np.float32) * 0.3
            self.time += 1
            return float(self.at[0] - 0.1 * self.time), abs(self.at[0]) > 1 or self.time > 6

    def play(state: Tensor) -> Any:
        world, chances, rewards, done = World(), [], [], False
        while not done:
            p = ops.softmax(policy(state), -1)[0]
            action = int(rng.random() < float(p[1]))
            chances.append(ops.log(p[action] + 1e-6))
            reward, done = world.step(action)
            rewards.append(reward)
            state = Tensor(world.at[None])
        returns = np.cumsum(rewards[::-1])[::-1].copy().astype(np.float32)
        scale = Tensor((returns - returns.mean()) / (returns.std() + 1e-3))
        return -(ops.stack(chances) * scale).mean(), sum(rewards)

    step = ms.value_and_grad(wrap(play), None, optimizer.parameters, has_aux=True)
    totals = []
    for _ in range(4):
        (_, total), grads = step(Tensor(np.zeros((1, 2), np.float32)))
        optimizer(grads)
        totals.append(round(total, 4))
    return totals, [p.asnumpy() for p in policy.get_parameters()]


PROGRAMS = {f.__name__: f for f in (training_script, beam_search, dynamic_recurrence, detection,
                                    tokenizer_loop, rollout)}  # fmt: skip
