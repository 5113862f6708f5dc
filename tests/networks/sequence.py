"""Networks for text, time series, tables and graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvmgraph import Parameter, Tensor, nn, ops


class Llama(nn.Cell):
    """A decoder layer with RMS norm, rotary positions, grouped queries and SwiGLU."""

    def __init__(self, dim: int = 32, heads: int = 4, groups: int = 2, length: int = 16) -> None:
        super().__init__()
        self.heads, self.groups, self.head = heads, groups, dim // heads
        self.wq = nn.Dense(dim, dim, has_bias=False)
        self.wk = nn.Dense(dim, groups * self.head, has_bias=False)
        self.wv = nn.Dense(dim, groups * self.head, has_bias=False)
        self.wo = nn.Dense(dim, dim, has_bias=False)
        self.gate = nn.Dense(dim, 3 * dim, has_bias=False)
        self.up = nn.Dense(dim, 3 * dim, has_bias=False)
        self.down = nn.Dense(3 * dim, dim, has_bias=False)
        self.g1 = Parameter(ops.ones(dim), name="g1")
        self.g2 = Parameter(ops.ones(dim), name="g2")
        angles = np.outer(np.arange(length), 1e4 ** (-np.arange(0, self.head, 2) / self.head))
        self.cos = Tensor(np.repeat(np.cos(angles), 2, -1).astype(np.float32))
        self.sin = Tensor(np.repeat(np.sin(angles), 2, -1).astype(np.float32))
        self.mask = Tensor(np.triu(np.full((length, length), -1e9, np.float32), 1))

    def rms(self, x: Any, gain: Any) -> Any:
        """Root-mean-square normalisation."""
        return x * ops.rsqrt((x * x).mean(-1, keep_dims=True) + 1e-5) * gain

    def rotate(self, x: Any) -> Any:
        """Rotary position embedding."""
        pairs = x.reshape(*x.shape[:-1], -1, 2)
        turned = ops.stack((-pairs[..., 1], pairs[..., 0]), axis=-1).reshape(x.shape)
        return x * self.cos[: x.shape[-2]] + turned * self.sin[: x.shape[-2]]

    def split(self, x: Any, heads: int) -> Any:
        """Splits the last axis into heads."""
        b, t, _ = x.shape
        return x.reshape(b, t, heads, self.head).swapaxes(1, 2)

    def construct(self, x: Any) -> Any:
        b, t, c = x.shape
        h = self.rms(x, self.g1)
        q = self.rotate(self.split(self.wq(h), self.heads))
        k = self.rotate(self.split(self.wk(h), self.groups))
        v = self.split(self.wv(h), self.groups)
        k = ops.repeat_interleave(k, self.heads // self.groups, axis=1)
        v = ops.repeat_interleave(v, self.heads // self.groups, axis=1)
        a = ops.matmul(q, k.swapaxes(-1, -2)) / self.head**0.5 + self.mask[:t, :t]
        y = ops.matmul(ops.softmax(a, -1), v).swapaxes(1, 2).reshape(b, t, c)
        x = x + self.wo(y)
        h = self.rms(x, self.g2)
        return x + self.down(ops.silu(self.gate(h)) * self.up(h))


class Seq2Seq(nn.Cell):
    """GRU encoder and decoder with additive attention."""

    def __init__(self, words: int = 40, dim: int = 16, steps: int = 5) -> None:
        super().__init__()
        self.steps = steps
        self.embed = nn.Embedding(words, dim)
        self.encoder = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.cell = nn.GRUCell(3 * dim, dim)
        self.key, self.query = nn.Dense(2 * dim, dim), nn.Dense(dim, dim)
        self.score = nn.Dense(dim, 1)
        self.out = nn.Dense(dim, words)

    def construct(self, source: Any, target: Any) -> Any:
        memory, state = self.encoder(self.embed(source))
        keys, h, logits = self.key(memory), state[0], []
        for t in range(self.steps):
            e = self.score(ops.tanh(keys + self.query(h).expand_dims(1))).squeeze(-1)
            context = (ops.softmax(e, -1).expand_dims(-1) * memory).sum(1)
            h = self.cell(ops.concat((self.embed(target[:, t]), context), -1), h)
            logits.append(self.out(h))
        return ops.stack(logits, axis=1)


class Tcn(nn.Cell):
    """Dilated causal convolutions over time."""

    def __init__(self, channels: int = 16, levels: int = 3) -> None:
        super().__init__()
        self.convs = nn.CellList([
            nn.Conv1d(channels, channels, 3, dilation=2**i, pad_mode="pad", padding=2 * 2**i,
                      has_bias=True) for i in range(levels)
        ])  # fmt: skip

    def construct(self, x: Any) -> Any:
        length = x.shape[-1]
        for conv in self.convs:
            x = x + ops.relu(conv(x)[..., :length])
        return x


class Vae(nn.Cell):
    """Variational autoencoder; the noise is an input."""

    def __init__(self, size: int = 64, latent: int = 8) -> None:
        super().__init__()
        self.enc, self.mu, self.var = nn.Dense(size, 32), nn.Dense(32, latent), nn.Dense(32, latent)
        self.dec = nn.SequentialCell(nn.Dense(latent, 32), nn.ReLU(), nn.Dense(32, size))

    def construct(self, x: Any, noise: Any) -> Any:
        h = ops.relu(self.enc(x))
        mu, log_var = self.mu(h), self.var(h)
        y = ops.sigmoid(self.dec(mu + ops.exp(0.5 * log_var) * noise))
        rebuilt = ops.binary_cross_entropy(y, ops.sigmoid(x), reduction="sum")
        return rebuilt - 0.5 * (1 + log_var - mu**2 - ops.exp(log_var)).sum()


class WideDeep(nn.Cell):
    """Wide & deep recommendation over categorical features, with pairwise products."""

    def __init__(self, fields: int = 6, values: int = 50, dim: int = 8) -> None:
        super().__init__()
        self.wide = nn.Embedding(values, 1)
        self.deep = nn.Embedding(values, dim)
        self.mlp = nn.SequentialCell(nn.Dense(fields * dim, 32), nn.ReLU(), nn.Dense(32, 1))

    def construct(self, ids: Any) -> Any:
        e = self.deep(ids)
        cross = 0.5 * (e.sum(1) ** 2 - (e**2).sum(1)).sum(-1, keepdims=True)
        return ops.sigmoid(self.wide(ids).sum(1) + cross + self.mlp(e.flatten(start_dim=1)))


class GraphAttention(nn.Cell):
    """Graph attention over a dense adjacency matrix."""

    def __init__(self, i: int = 8, o: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.projections = nn.CellList([nn.Dense(i, o, has_bias=False) for _ in range(heads)])
        self.left = nn.CellList([nn.Dense(o, 1) for _ in range(heads)])
        self.right = nn.CellList([nn.Dense(o, 1) for _ in range(heads)])

    def construct(self, x: Any, adjacency: Any) -> Any:
        found = []
        for project, left, right in zip(self.projections, self.left, self.right):
            h = project(x)
            e = ops.leaky_relu(left(h) + right(h).T, 0.2)
            e = ops.where(adjacency > 0, e, ops.full_like(e, -9e15))
            found.append(ops.elu(ops.matmul(ops.softmax(e, -1), h)))
        return ops.concat(found, -1)


class Lstm(nn.Cell):
    """Two LSTM layers and a classifier of the last step."""

    def __init__(self, words: int = 50, dim: int = 16) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.lstm = nn.LSTM(dim, dim, num_layers=2, batch_first=True, bidirectional=True)
        self.fc = nn.Dense(2 * dim, 4)

    def construct(self, ids: Any) -> Any:
        y, _ = self.lstm(self.embed(ids))
        return self.fc(y[:, -1])


class MixtureOfExperts(nn.Cell):
    """Top-2 routing over a few experts."""

    def __init__(self, dim: int = 16, experts: int = 4) -> None:
        super().__init__()
        self.router = nn.Dense(dim, experts, has_bias=False)
        self.experts = nn.CellList([
            nn.SequentialCell(nn.Dense(dim, 32), nn.GELU(), nn.Dense(32, dim))
            for _ in range(experts)
        ])  # fmt: skip

    def construct(self, x: Any) -> Any:
        weights, chosen = ops.topk(ops.softmax(self.router(x), -1), 2)
        weights = weights / weights.sum(-1, keepdims=True)
        out = ops.zeros_like(x)
        for i, expert in enumerate(self.experts):
            share = (weights * (chosen == i).astype(x.dtype)).sum(-1, keepdims=True)
            out = out + share * expert(x)
        return out
