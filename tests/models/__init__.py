"""Whole networks that several tests use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tests.models.lenet import LeNet5
from tests.models.lstm import LstmTagger
from tests.models.resnet import resnet18, resnet50
from tvmgraph import Tensor, nn
from tvmgraph.models import Bert, BertConfig, Gpt2, Gpt2Config


class Model(NamedTuple):
    """A network with inputs for it, by batch size."""

    name: str
    build: Callable[[], nn.Cell]
    inputs: Callable[[int], tuple[Any, ...]]


def _images(channels: int, size: int) -> Callable[[int], tuple[Any, ...]]:
    def build(n: int) -> tuple[Any, ...]:
        shape = (n, channels, size, size)
        return (Tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32)),)

    return build


def _ids(vocabulary: int, length: int) -> Callable[[int], tuple[Any, ...]]:
    def build(n: int) -> tuple[Any, ...]:
        return (Tensor(np.random.default_rng(0).integers(0, vocabulary, (n, length), np.int32)),)

    return build


BERT = BertConfig(
    vocab_size=101, hidden_size=48, num_hidden_layers=3, num_attention_heads=4,
    intermediate_size=96, max_position_embeddings=64,
)  # fmt: skip
GPT2 = Gpt2Config(vocab_size=101, n_positions=64, n_embd=48, n_layer=3, n_head=4)

MODELS = [
    Model("lenet", LeNet5, _images(1, 32)),
    Model("resnet18", lambda: resnet18(10), _images(3, 64)),
    Model("resnet50", lambda: resnet50(10), _images(3, 64)),
    Model("lstm", lambda: LstmTagger(50, 16, 24, 7), _ids(50, 9)),
    Model("bert", lambda: Bert(BERT), _ids(101, 11)),
    Model("gpt2", lambda: Gpt2(GPT2), _ids(101, 11)),
]
