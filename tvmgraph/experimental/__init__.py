"""MindSpore's ``mindspore.experimental``: optimizers whose groups may change, as in PyTorch."""

from tvmgraph.experimental import optim as optim

__all__ = ["optim"]
