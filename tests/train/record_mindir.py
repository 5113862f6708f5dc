"""Records files of MindSpore's with its results: ``python tests/train/record_mindir.py``.

It runs where MindSpore is installed and writes ``mindir.tar.xz``: for every network a MINDIR file
and an ``.npz`` with its inputs and the outputs of ``GraphCell``; one with its weights in a folder,
and an encrypted one.
"""

import os
import tarfile
import tempfile
from pathlib import Path

import mindspore as ms  # pyright: ignore[reportMissingImports]
import numpy as np
from mindspore import Tensor, mint, nn, ops  # pyright: ignore[reportMissingImports]
from mindspore.train import serialization  # pyright: ignore[reportMissingImports]

FILE = Path(__file__).with_name("mindir.tar.xz")


class LeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 2, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(2, 4, 5, pad_mode="pad", padding=1, has_bias=True)
        self.pool, self.flatten = nn.MaxPool2d(2, 2), nn.Flatten()
        self.fc1, self.fc2 = nn.Dense(16, 12, activation="relu"), nn.Dense(12, 10)

    def construct(self, x):
        x = self.pool(ops.relu(self.conv1(x)))
        x = self.pool(ops.relu(self.conv2(x)))
        return self.fc2(self.fc1(self.flatten(x)))


class Residual(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a = nn.SequentialCell(nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4), nn.ReLU())
        self.b = nn.SequentialCell(nn.Conv2d(4, 4, 3, group=2), nn.BatchNorm2d(4))
        self.down = nn.SequentialCell(nn.Conv2d(3, 4, 1, stride=2), nn.BatchNorm2d(4))
        self.up = nn.Conv2dTranspose(4, 2, 3, stride=2, pad_mode="pad", padding=1, has_bias=True)
        self.pool = nn.AvgPool2d(2)

    def construct(self, x):
        y = ops.relu(self.b(self.a(x)) + self.down(x))
        return self.pool(y), ops.mean(y, (2, 3)), self.up(y)


class Tokens(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(10, 6), nn.Dropout(p=0.5)
        self.a, self.norm = nn.Dense(6, 8, activation="gelu"), nn.LayerNorm((8,))
        self.b = nn.Dense(8, 4)

    def construct(self, ids):
        x = self.dropout(self.norm(self.a(self.embedding(ids))))
        return ops.softmax(self.b(x), -1)


class Recurrent(nn.Cell):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(3, 4, batch_first=True), nn.GRU(4, 2, bidirectional=True)

    def construct(self, x):
        y, (h, c) = self.lstm(x)
        return self.gru(y)[0], h, c


class Attention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.attention, self.norm = nn.MultiheadAttention(8, 2), mint.nn.Linear(8, 3)

    def construct(self, x):
        return self.norm(x + self.attention(x, x, x, need_weights=False)[0])


class Branch(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(Tensor([2.0], ms.float32), name="w")

    def construct(self, x):
        if x.sum() > 0:
            return x * self.w
        return x - 1.0


class Loop(Branch):
    def construct(self, x):
        i = Tensor(0, ms.int32)
        while i < 3:
            x = x * self.w
            i = i + 1
        return x


class LoopOfBranches(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 3)

    def construct(self, x):
        i = Tensor(0, ms.int32)
        while i < 4 and x.sum() < 100:
            if x.sum() > 0:  # noqa: SIM108  (a branch)
                x = self.fc(x)
            else:
                x = x + 3.0
            i = i + 1
        return x


class Break(nn.Cell):
    def construct(self, x):
        i = Tensor(0, ms.int32)
        while i < 10:
            x = x * 1.5
            i = i + 1
            if x.sum() > 20:
                break
        return x, i


class CountIf(Branch):
    def construct(self, x):
        if x.sum() > 0:
            self.w = self.w + 1
        return x * self.w


class Counter(nn.Cell):
    def __init__(self):
        super().__init__()
        self.n = ms.Parameter(Tensor(0, ms.float32), name="n")

    def construct(self, x):
        before = self.n * 2
        self.n += 1.0
        return x * self.n, before


class Values(nn.Cell):
    def construct(self, x, y):
        shapes = x[:, 1:3, None, ...], x[0], x[::-1], ops.concat((x, y), 1), ops.stack([x, y])
        sums = x.max(axis=1), x.argmax(1), x.var(), x.mean(0, keep_dims=True), ops.cumsum(x, 0)
        found = ops.topk(x, 2), ops.where(x > y, x, y), ops.gather(x, Tensor([0, 1]), 1)
        smooth = ops.elu(x), ops.gelu(x), ops.softplus(x), ops.leaky_relu(x, 0.1), ops.mish(x)
        plain = x**2, -x / y, ops.clamp(x, -1.0, 1.0), ops.maximum(x, x * 2), x.astype(ms.float16)
        last = ops.one_hot(Tensor([0, 1]), 3), ops.tile(x, (2, 1)), ops.split(x, 2, 1)[1]
        placed = ops.tensor_scatter_elements(x, Tensor([[0, 0]]), Tensor([[1.0, 2.0]]), 1)
        return (
            shapes,
            sums,
            found,
            smooth,
            plain,
            last,
            placed,
            ops.pad(x, (1, 1)),
            x.sum(dtype=ms.float16),
        )


class Images(nn.Cell):
    def construct(self, x):
        grid = ops.tanh(x[:, :2].transpose(0, 2, 3, 1))
        return (
            ops.interpolate(x, size=(9, 9), mode="bilinear", align_corners=True),
            ops.grid_sample(x, grid, "bilinear", "border", False), ops.max_pool2d(x, 2, 2),
            ops.group_norm(x, 2), ops.pad(x, (1, 1, 2, 1), mode="reflect"), ops.pixel_shuffle(x, 2),
        )  # fmt: skip


class Mint(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = mint.nn.Conv2d(3, 4, 3, padding=1), mint.nn.BatchNorm2d(4)
        self.max, self.avg = mint.nn.MaxPool2d(2), mint.nn.AvgPool2d(2)
        self.groups, self.mean = mint.nn.GroupNorm(2, 4), mint.nn.AdaptiveAvgPool2d(1)
        self.layer, self.dropout = mint.nn.LayerNorm(4), mint.nn.Dropout(0.5)
        self.linear = mint.nn.Linear(4, 2)

    def construct(self, x):
        x = self.avg(self.groups(self.max(ops.relu(self.norm(self.conv(x))))))
        x = self.layer(mint.flatten(self.mean(x), 1))
        x = mint.nn.functional.gelu(mint.nn.functional.silu(x))
        return mint.nn.functional.softmax(self.linear(self.dropout(x)), dim=-1)


def arrays(value):
    if isinstance(value, (tuple, list)):
        return [a for v in value for a in arrays(v)]
    return [value.asnumpy()]


def record(net, name, *inputs, **options):
    net.set_train(False)
    tensors = [Tensor(x) for x in inputs]
    ms.export(net, *tensors, file_name=name, file_format="MINDIR", **options)
    if options:
        return
    file = next(f for f in (f"{name}.mindir", f"{name}_graph.mindir") if os.path.exists(f))
    outputs = arrays(nn.GraphCell(ms.load(file))(*tensors))
    named = {f"in{i}": x for i, x in enumerate(inputs)}
    np.savez(f"{file[:-7]}.npz", **named, **{f"out{i}": x for i, x in enumerate(outputs)})


def main():
    ms.set_seed(0)
    random = np.random.default_rng(0)

    def normal(*shape):
        return random.normal(size=shape).astype(np.float32)

    record(LeNet(), "lenet", normal(2, 1, 16, 16))
    residual = Residual()
    for p in residual.get_parameters():
        if "weight" not in p.name:
            p.set_data(Tensor(random.uniform(0.5, 1.5, p.shape).astype(np.float32)))
    record(residual, "residual", normal(2, 3, 8, 8))
    record(Tokens(), "tokens", np.array([[1, 2], [3, 9]], np.int32))
    record(Recurrent(), "recurrent", normal(2, 5, 3))
    record(Attention(), "attention", normal(5, 2, 8))
    record(Branch(), "branch", np.array([1.0, 2.0, -0.5], np.float32))
    record(Loop(), "loop", normal(4))
    record(LoopOfBranches(), "loop_of_branches", normal(2, 3))
    record(Break(), "break", np.array([1.0, 2.0, -0.5], np.float32))
    record(CountIf(), "count_if", np.array([1.0, 2.0, -0.5], np.float32))
    record(Counter(), "counter", normal(2))
    record(Values(), "values", normal(2, 4), normal(2, 4))
    record(Images(), "images", normal(2, 4, 6, 6))
    mint_net = Mint().set_train(False)  # MindSpore does not run it on a CPU
    ms.export(mint_net, Tensor(normal(2, 3, 8, 8)), file_name="mint", file_format="MINDIR")
    key = {"enc_key": b"0123456789ABCDEF", "enc_mode": "AES-GCM"}
    record(nn.Dense(3, 2), "encrypted", normal(1, 3), **key)
    serialization.TOTAL_SAVE = 0
    record(nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 2)), "parts", normal(1, 3))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        with tarfile.open(FILE, "w:xz") as archive:
            for path in sorted(Path().rglob("*")):
                if path.is_file() and not str(path).startswith("rank_"):
                    archive.add(path)
