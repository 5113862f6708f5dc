"""Writes ``text_curves.json``: the losses of the models of characters in PyTorch.

Run ``python -m tests.train.text_curves`` where PyTorch and the text are installed.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from tests.train.characters import (
    CURVES,
    HEADS,
    HIDDEN,
    LAYERS,
    LENGTH,
    RATE,
    WEIGHTS,
    WIDTH,
    batches,
    encode,
)

TEXT = Path(__file__).parents[2] / "tvmgraph" / "data" / "alice.txt.xz"


class Lstm(nn.Module):
    def __init__(self, letters: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(letters, WIDTH)
        self.lstm = nn.LSTM(WIDTH, HIDDEN, batch_first=True)
        self.head = nn.Linear(HIDDEN, letters)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(self.embedding(ids))[0])


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.mixed = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, t, _ = x.shape
        parts = self.qkv(self.before(x)).view(n, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.mixed(y.transpose(1, 2).reshape(n, t, -1))
        return x + self.narrow(F.gelu(self.wide(self.between(x))))


class Transformer(nn.Module):
    def __init__(self, letters: int) -> None:
        super().__init__()
        self.embedding, self.positions = nn.Embedding(letters, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.last, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letters)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids) + self.positions.weight
        for layer in self.layers:
            x = layer(x)
        return self.head(self.last(x))


def train(name: str, net: nn.Module, letters: int, ids: torch.Tensor) -> list[float]:
    """Trains a model and returns its losses."""
    weights = {k: torch.from_numpy(v) for k, v in WEIGHTS[name](letters).items()}
    net.load_state_dict(weights)
    optimizer = torch.optim.Adam(net.parameters(), RATE[name])
    losses = []
    for x, y in zip(*(torch.from_numpy(a).long() for a in batches(ids))):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x).reshape(-1, letters), y.reshape(-1))
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 6))
    return losses


def main() -> None:
    """Trains both models and writes their losses."""
    ids, letters = encode(lzma.decompress(TEXT.read_bytes()).decode("ascii"))
    curves = {
        "lstm": train("lstm", Lstm(letters), letters, ids),
        "transformer": train("transformer", Transformer(letters), letters, ids),
    }
    CURVES.write_text(json.dumps(curves) + "\n")


if __name__ == "__main__":
    main()
