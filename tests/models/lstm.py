"""A tagger: embedding, two-way LSTM, dense layer."""

from __future__ import annotations

from typing import Any

from tvmgraph import Tensor, nn


class LstmTagger(nn.Cell):
    """Scores of every tag at every place."""

    def __init__(self, vocabulary: int, size: int, hidden: int, tags: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size)
        self.lstm = nn.LSTM(size, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.dense = nn.Dense(2 * hidden, tags)

    def construct(self, ids: Tensor) -> Any:
        y, (h, c) = self.lstm(self.embedding(ids))
        return self.dense(y), h, c
