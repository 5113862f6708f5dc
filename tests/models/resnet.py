"""ResNet-18 and ResNet-50."""

from __future__ import annotations

from typing import Any

from tvmgraph import Tensor, nn


def conv(cin: int, cout: int, size: int, stride: int = 1) -> nn.SequentialCell:
    """A convolution with batch normalization."""
    layer = nn.Conv2d(cin, cout, size, stride, pad_mode="pad", padding=size // 2)
    return nn.SequentialCell(layer, nn.BatchNorm2d(cout))


class Block(nn.Cell):
    """A residual block: ``convolutions`` beside a shortcut."""

    def __init__(self, cin: int, cout: int, stride: int, convolutions: nn.Cell) -> None:
        super().__init__()
        self.convolutions = convolutions
        self.shortcut = conv(cin, cout, 1, stride) if stride > 1 or cin != cout else None
        self.relu = nn.ReLU()

    def construct(self, x: Tensor) -> Any:
        side = x if self.shortcut is None else self.shortcut(x)
        return self.relu(self.convolutions(x) + side)


def basic(cin: int, width: int, stride: int) -> Block:
    """Two 3x3 convolutions."""
    inner = nn.SequentialCell(conv(cin, width, 3, stride), nn.ReLU(), conv(width, width, 3))
    return Block(cin, width, stride, inner)


def bottleneck(cin: int, width: int, stride: int) -> Block:
    """1x1, 3x3 and 1x1 convolutions."""
    inner = nn.SequentialCell(
        conv(cin, width, 1), nn.ReLU(), conv(width, width, 3, stride), nn.ReLU(),
        conv(width, 4 * width, 1),
    )  # fmt: skip
    return Block(cin, 4 * width, stride, inner)


class ResNet(nn.Cell):
    """A residual network of four stages."""

    def __init__(self, make: Any, depths: tuple[int, ...], expansion: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.SequentialCell(
            conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, pad_mode="same")
        )
        stages, cin = [], 64
        for i, depth in enumerate(depths):
            for j in range(depth):
                stages.append(make(cin, 64 << i, 2 if i and not j else 1))
                cin = (64 << i) * expansion
        self.stages = nn.SequentialCell(*stages)
        self.head = nn.Dense(cin, classes)

    def construct(self, x: Tensor) -> Any:
        return self.head(self.stages(self.stem(x)).mean((2, 3)))


def resnet18(classes: int = 1000) -> ResNet:
    """ResNet-18."""
    return ResNet(basic, (2, 2, 2, 2), 1, classes)


def resnet50(classes: int = 1000) -> ResNet:
    """ResNet-50."""
    return ResNet(bottleneck, (3, 4, 6, 3), 4, classes)
