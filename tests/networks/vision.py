"""Convolutional and attention networks for images."""

from __future__ import annotations

from typing import Any

from tvmgraph import nn, ops


def conv_bn(i: int, o: int, k: int = 3, s: int = 1, g: int = 1, act: Any = None) -> nn.Cell:
    """Convolution, batch norm and an activation."""
    layers = [nn.Conv2d(i, o, k, s, pad_mode="pad", padding=k // 2, group=g), nn.BatchNorm2d(o)]
    return nn.SequentialCell(*layers, *([act] if act is not None else []))


class Vgg(nn.Cell):
    """VGG-11 with batch norm."""

    def __init__(self, width: int = 64, classes: int = 10) -> None:
        super().__init__()
        plan = [1, "M", 2, "M", 4, 4, "M", 8, 8, "M", 8, 8, "M"]
        layers, channels = [], 3
        for item in plan:
            if item == "M":
                layers.append(nn.MaxPool2d(2, 2))
            else:
                layers.append(conv_bn(channels, width * int(item), act=nn.ReLU()))
                channels = width * int(item)
        self.features = nn.SequentialCell(layers)
        self.head = nn.SequentialCell(nn.Flatten(), nn.Dense(channels, 64), nn.ReLU(),
                                      nn.Dropout(p=0.5), nn.Dense(64, classes))  # fmt: skip

    def construct(self, x: Any) -> Any:
        return self.head(ops.adaptive_avg_pool2d(self.features(x), 1))


class InvertedResidual(nn.Cell):
    """The block of MobileNetV2."""

    def __init__(self, i: int, o: int, stride: int, expand: int) -> None:
        super().__init__()
        hidden = i * expand
        self.add = stride == 1 and i == o
        self.layers = nn.SequentialCell(
            conv_bn(i, hidden, 1, act=nn.ReLU6()),
            conv_bn(hidden, hidden, 3, stride, hidden, nn.ReLU6()),
            conv_bn(hidden, o, 1),
        )

    def construct(self, x: Any) -> Any:
        return x + self.layers(x) if self.add else self.layers(x)


class MobileNetV2(nn.Cell):
    """MobileNetV2."""

    def __init__(self, width: int = 32, classes: int = 10, depth: int = 2) -> None:
        super().__init__()
        w = width // 2
        blocks = [conv_bn(3, width, 3, 2, act=nn.ReLU6()), InvertedResidual(width, w, 1, 1)]
        for factor, stride in ((1.5, 2), (2, 2), (4, 2), (6, 1), (10, 2)):
            o = int(w * factor)
            for k in range(depth):
                blocks.append(InvertedResidual(blocks[-1].layers[2][0].out_channels
                                               if k or factor > 1.5 else w,
                                               o, stride if k == 0 else 1, 6))  # fmt: skip
        self.features = nn.SequentialCell(blocks)
        self.last = conv_bn(o, 4 * o, 1, act=nn.ReLU6())
        self.fc = nn.Dense(4 * o, classes)

    def construct(self, x: Any) -> Any:
        return self.fc(self.last(self.features(x)).mean((2, 3)))


class SqueezeExcite(nn.Cell):
    """Channel attention."""

    def __init__(self, channels: int, reduced: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(channels, reduced, 1, has_bias=True)
        self.expand = nn.Conv2d(reduced, channels, 1, has_bias=True)

    def construct(self, x: Any) -> Any:
        s = ops.relu(self.squeeze(x.mean((2, 3), keep_dims=True)))
        return x * ops.hardsigmoid(self.expand(s))


class MobileNetV3(nn.Cell):
    """A small MobileNetV3: hard swish and squeeze-excite."""

    def __init__(self, width: int = 16, classes: int = 10) -> None:
        super().__init__()
        self.stem = conv_bn(3, width, 3, 2, act=nn.HSwish())
        self.dw = conv_bn(width, width, 5, 2, width, nn.HSwish())
        self.se = SqueezeExcite(width, width // 4)
        self.pw = conv_bn(width, 2 * width, 1)
        self.fc = nn.Dense(2 * width, classes)

    def construct(self, x: Any) -> Any:
        x = self.pw(self.se(self.dw(self.stem(x))))
        return self.fc(x.mean((2, 3)))


class DenseNet(nn.Cell):
    """DenseNet: every layer sees all before it."""

    def __init__(self, growth: int = 12, layers: int = 4, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 2 * growth, 3)
        blocks, channels = [], 2 * growth
        for _ in range(layers):
            blocks.append(nn.SequentialCell(nn.BatchNorm2d(channels), nn.ReLU(),
                                            nn.Conv2d(channels, growth, 3)))  # fmt: skip
            channels += growth
        self.blocks = nn.CellList(blocks)
        self.transition = nn.SequentialCell(nn.BatchNorm2d(channels), nn.ReLU(),
                                            nn.Conv2d(channels, channels // 2, 1),
                                            nn.AvgPool2d(2, 2))  # fmt: skip
        self.fc = nn.Dense(channels // 2, classes)

    def construct(self, x: Any) -> Any:
        x = self.stem(x)
        for block in self.blocks:
            x = ops.concat((x, block(x)), 1)
        return self.fc(self.transition(x).mean((2, 3)))


class Inception(nn.Cell):
    """The block of GoogLeNet: four branches side by side."""

    def __init__(self, i: int, width: int = 16) -> None:
        super().__init__()
        self.b1 = conv_bn(i, width, 1, act=nn.ReLU())
        self.b2 = nn.SequentialCell(conv_bn(i, width, 1), conv_bn(width, width, 3, act=nn.ReLU()))
        self.b3 = nn.SequentialCell(conv_bn(i, width, 1), conv_bn(width, width, 5, act=nn.ReLU()))
        self.pool = nn.MaxPool2d(3, 1, pad_mode="same")
        self.b4 = conv_bn(i, width, 1, act=nn.ReLU())

    def construct(self, x: Any) -> Any:
        return ops.concat((self.b1(x), self.b2(x), self.b3(x), self.b4(self.pool(x))), axis=1)


class ShuffleUnit(nn.Cell):
    """The block of ShuffleNetV2."""

    def __init__(self, channels: int = 24) -> None:
        super().__init__()
        half = channels // 2
        self.branch = nn.SequentialCell(
            conv_bn(half, half, 1, act=nn.ReLU()), conv_bn(half, half, 3, 1, half),
            conv_bn(half, half, 1, act=nn.ReLU()),
        )  # fmt: skip

    def construct(self, x: Any) -> Any:
        a, b = ops.chunk(x, 2, axis=1)
        x = ops.concat((a, self.branch(b)), axis=1)
        n, c, h, w = x.shape
        return x.reshape(n, 2, c // 2, h, w).swapaxes(1, 2).reshape(n, c, h, w)


class UNet(nn.Cell):
    """U-Net of three levels."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        w = width
        self.down = nn.CellList([self.double(3, w), self.double(w, 2 * w)])
        self.middle = self.double(2 * w, 4 * w)
        self.up = nn.CellList([nn.Conv2dTranspose(4 * w, 2 * w, 2, 2),
                               nn.Conv2dTranspose(2 * w, w, 2, 2)])  # fmt: skip
        self.merge = nn.CellList([self.double(4 * w, 2 * w), self.double(2 * w, w)])
        self.pool = nn.MaxPool2d(2, 2)
        self.out = nn.Conv2d(w, 2, 1)

    @staticmethod
    def double(i: int, o: int) -> nn.Cell:
        """Two convolutions."""
        return nn.SequentialCell(conv_bn(i, o, act=nn.ReLU()), conv_bn(o, o, act=nn.ReLU()))

    def construct(self, x: Any) -> Any:
        skips = []
        for block in self.down:
            x = block(x)
            skips.append(x)
            x = self.pool(x)
        x = self.middle(x)
        for up, merge in zip(self.up, self.merge):
            x = merge(ops.concat((skips.pop(), up(x)), axis=1))
        return self.out(x)


class ConvNeXtBlock(nn.Cell):
    """Depthwise 7x7, layer norm over channels, GELU, layer scale."""

    def __init__(self, channels: int = 32) -> None:
        super().__init__()
        self.dw = nn.Conv2d(channels, channels, 7, pad_mode="same", group=channels, has_bias=True)
        self.norm = nn.LayerNorm((channels,), epsilon=1e-6)
        self.pw1 = nn.Dense(channels, 4 * channels)
        self.pw2 = nn.Dense(4 * channels, channels)
        self.act = nn.GELU(approximate=False)

    def construct(self, x: Any) -> Any:
        y = self.norm(self.dw(x).transpose(0, 2, 3, 1))
        return x + (self.pw2(self.act(self.pw1(y))) * 0.1).transpose(0, 3, 1, 2)


class Mixer(nn.Cell):
    """MLP-Mixer layer: products over patches and over channels."""

    def __init__(self, patches: int = 16, channels: int = 32) -> None:
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm((channels,)), nn.LayerNorm((channels,))
        self.t1, self.t2 = nn.Dense(patches, 2 * patches), nn.Dense(2 * patches, patches)
        self.c1, self.c2 = nn.Dense(channels, 4 * channels), nn.Dense(4 * channels, channels)

    def construct(self, x: Any) -> Any:
        y = self.n1(x).swapaxes(1, 2)
        x = x + self.t2(ops.gelu(self.t1(y))).swapaxes(1, 2)
        return x + self.c2(ops.gelu(self.c1(self.n2(x))))


class Vit(nn.Cell):
    """Vision transformer with a class token."""

    def __init__(self, size: int = 32, patch: int = 8, dim: int = 32, heads: int = 4,
                 depth: int = 2) -> None:  # fmt: skip
        super().__init__()
        from tvmgraph import Parameter, Tensor

        self.embed = nn.Conv2d(3, dim, patch, patch, pad_mode="valid", has_bias=True)
        count = (size // patch) ** 2 + 1
        self.token = Parameter(ops.zeros((1, 1, dim)), name="token")
        self.place = Parameter(ops.randn(1, count, dim, seed=1) * 0.02, name="place")
        self.blocks = nn.CellList([VitBlock(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm((dim,))
        self.head = nn.Dense(dim, 10)
        self.scale = Tensor(1.0)

    def construct(self, x: Any) -> Any:
        x = self.embed(x).flatten(start_dim=2).swapaxes(1, 2)
        token = ops.broadcast_to(self.token, (x.shape[0], 1, x.shape[2]))
        x = ops.concat((token, x), 1) + self.place
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0]) * self.scale


class VitBlock(nn.Cell):
    """Pre-norm attention and feed-forward layers."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm((dim,)), nn.LayerNorm((dim,))
        self.qkv, self.out = nn.Dense(dim, 3 * dim), nn.Dense(dim, dim)
        self.up, self.down = nn.Dense(dim, 4 * dim), nn.Dense(4 * dim, dim)

    def construct(self, x: Any) -> Any:
        b, n, c = x.shape
        qkv = self.qkv(self.n1(x)).reshape(b, n, 3, self.heads, c // self.heads)
        q, k, v = qkv.transpose(2, 0, 3, 1, 4)
        a = ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)) * (c // self.heads) ** -0.5, axis=-1)
        x = x + self.out(ops.matmul(a, v).swapaxes(1, 2).reshape(b, n, c))
        return x + self.down(ops.gelu(self.up(self.n2(x))))


class Yolo(nn.Cell):
    """A detection head: upsampling, concatenation, decoding of boxes."""

    def __init__(self, width: int = 16, classes: int = 3) -> None:
        super().__init__()
        self.c1 = conv_bn(3, width, 3, 2, act=nn.LeakyReLU(0.1))
        self.c2 = conv_bn(width, 2 * width, 3, 2, act=nn.SiLU())
        self.c3 = conv_bn(3 * width, 5 + classes, 1)

    def construct(self, x: Any) -> Any:
        a = self.c1(x)
        b = ops.interpolate(self.c2(a), size=a.shape[2:], mode="nearest")
        y = self.c3(ops.concat((a, b), 1)).transpose(0, 2, 3, 1)
        xy, wh, rest = ops.sigmoid(y[..., :2]), ops.exp(y[..., 2:4]), ops.sigmoid(y[..., 4:])
        return ops.concat((xy * 2 - 0.5, wh, rest), -1)


class Generator(nn.Cell):
    """The generator of DCGAN."""

    def __init__(self, z: int = 16, width: int = 16) -> None:
        super().__init__()
        self.net = nn.SequentialCell(
            nn.Conv2dTranspose(z, 2 * width, 4, 1, "valid"), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.Conv2dTranspose(2 * width, width, 4, 2, "pad", 1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2dTranspose(width, 3, 4, 2, "pad", 1), nn.Tanh(),
        )  # fmt: skip

    def construct(self, z: Any) -> Any:
        return self.net(z)
