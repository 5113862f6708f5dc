"""Lines that random programs are written with; ``{x}`` and ``{y}`` are values."""

from __future__ import annotations

#: Chains that rewrite rules of the graph look for, with one or two operands.
IDIOMS = (
    "{x} * 1", "{x} / 1", "{x} - 0", "{x} + 0", "{x} + -0.0", "{x} * -1", "-(-{x})",
    "{x} + (-{y})", "{x} - (-{y})", "ops.abs(-{x})", "ops.square(-{x})", "ops.relu(ops.relu({x}))",
    "ops.abs(ops.abs({x}))", "ops.floor(ops.floor({x}))", "ops.ceil(ops.ceil({x}))",
    "{x} ** 2", "{x} ** 1", "{x} ** 0.5", "{x} ** -0.5", "{x} ** 3", "{x} / 4", "{x} / 3.0",
    "1 / ops.sqrt({x})", "ops.reciprocal(ops.sqrt({x}))", "{x} / ops.sqrt({y})",
    "({x} * 3.0) * 0.7", "({x} + 2.5) + 0.3", "{y} * {x} + {x} * 0.5", "{x} * {y} - {y} * {x}",
    "{x}.T.T", "{x}.reshape(-1).reshape({x}.shape)", "ops.expand_dims({x}, 0).squeeze(0)",
    "ops.broadcast_to({x}, {x}.shape)", "ops.identity({x})", "{x}.astype({x}.dtype)",
    "{x}.astype(ms.float64).astype(ms.float32)", "ops.where({x} > 0, {y}, {y})",
    "ops.maximum({x}, {x})", "ops.minimum({y}, {y})", "ops.matmul({x}, {x}.T)",
    "ops.matmul({x}.T, {x})", "ops.round({x})", "ops.trunc({x})", "ops.sign({x})",
    "ops.softmax({x}, -1)", "ops.mean({x}, -1)", "{x} - ops.mean({x}, -1, True)",
    "ops.rsqrt(ops.mean(ops.square({x}), -1, True) + 1e-5)", "ops.gelu({x})", "ops.tanh({x})",
    "ops.cast({x}, ms.float16)", "ops.cast({x}, ms.bfloat16)", "ops.cast({x}, ms.float32)",
    "{x}.sum()", "{x}.sum(-1)", "{x}.max(0)", "ops.stack([{x}, {x}])", "ops.concat([{x}, {x}], -1)",
    "2 - {x}", "2.5 / {x}", "{x} % 3", "{x} // 2", "~({x} > {y})", "{x} == {y}", "{x} <= {y}",
    "ops.matmul(ops.clamp({x}, -9, 9).reshape(1, -1).astype(ms.int8).astype(ms.int32), "
    "ops.clamp({x}, -9, 9).reshape(-1, 1).astype(ms.int8).astype(ms.int32))",
    "ops.matmul(ops.softmax(ops.matmul({x}, {x}.T) * 0.5, -1), {x})",
    "ops.dropout({x}, 0.3)", "{x} + ops.uniform({x}.shape, Tensor(0.0), Tensor(1.0))",
    "{x} * ops.randn(*{x}.shape)", "ops.bernoulli({x}, 0.4)", "ops.rand_like({x})",
)  # fmt: skip
#: What goes over all of a large value.
REDUCTIONS = (
    "{x}.sum()", "{x}.sum(0)", "{x}.sum(-1)", "ops.mean({x}, -1, True)", "{x}.max()", "{x}.min(0)",
    "{x}.max(-1)", "ops.prod({x}, -1)", "ops.softmax({x}, -1)", "ops.log_softmax({x}, 0)",
    "ops.cumsum({x}, 0)", "ops.cumsum({x}, -1)", "ops.argmax({x}, -1)", "ops.std({x}, 0)",
    "ops.logsumexp({x}, -1)", "ops.topk({x}, 2)[0]", "ops.sort({x}, -1)[0]", "({x} > 0).sum(0)",
    "ops.any({x} > 1, -1)", "ops.norm({x})", "({x} * {y}).sum(-1)", "{x} - {x}.mean(0)",
    "ops.layer_norm({x}, {x}.shape[-1:])", "ops.avg_pool1d({x}, 4, 4)",
    "ops.max_pool2d({x}, 2, 2)", "ops.sum(ops.square({x} - {y}))",
)  # fmt: skip
CONTRACTIONS = (
    "ops.matmul({x}, {x}.swapaxes(-1, -2))", "ops.matmul({x}.swapaxes(-1, -2), {x})",
    "ops.matmul({x}, {x}[0])", "ops.matmul({x}.reshape(-1, 64), {y}.reshape(-1, 64).T[:, :48])",
    "ops.matmul({x}.reshape(128, -1), {y}.reshape(128, -1).T)",
    "ops.relu(ops.matmul({x}, {x}.swapaxes(-1, -2)) * 0.5)", "ops.outer({x}[:200], {x}[:190])",
    "ops.bmm({x}, {y}.swapaxes(1, 2))", "ops.matmul({x}.swapaxes(-1, -2), {y}) + 1",
    "ops.matmul(ops.softmax(ops.matmul({x}, {x}.swapaxes(-1, -2)) * 0.5, -1), {x})",
)  # fmt: skip


def _conv(x: str, weight: str, stride: int = 1, padding: int = 1, groups: int = 1) -> str:
    sides = (padding, padding)
    return (f"R.convolution(input={x}, weight={weight}, stride={(stride, stride)}, "
            f"padding={(sides, sides)}, dilation=(1, 1), groups={groups})")  # fmt: skip


def _weight_gradient(groups: int = 1) -> str:
    made = _conv("{x}", "w", groups=groups)
    return f"{{v}} = ms.grad(lambda w: ({made} * {{z}}).sum())({{y}})"


#: What kernels are written for that random sizes do not meet: code, dtype, and the shapes of
#: arguments x, y, z and of parameters p, q. Every fourth large program begins with one of them.
AIMED: tuple[tuple[str, str, tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]], ...] = (
    ("{v} = " + _conv(_conv("{x}", "{p}"), "{q}", 2), "float32",
     ((1, 32, 14, 14),), ((32, 32, 3, 3), (48, 32, 3, 3))),
    ("{v} = " + _conv(_conv("{x}", "{p}", 2), "{q}", groups=32), "float32",
     ((1, 32, 14, 14),), ((32, 32, 3, 3), (32, 1, 3, 3))),
    ("{v} = " + _conv(_conv("{x}", "{p}", 2), "{q}"), "bfloat16",
     ((1, 32, 14, 14),), ((32, 32, 3, 3), (32, 32, 3, 3))),
    ("{v} = " + _conv(_conv("{x}", "{p}", groups=2), "{q}", groups=2), "bfloat16",
     ((1, 32, 14, 14),), ((32, 16, 3, 3), (32, 16, 3, 3))),
    ("{v} = " + _conv("{x}", "{y}", groups=32), "float32", ((1, 32, 28, 28), (32, 1, 3, 3)), ()),
    ("{v} = " + _conv("{x}", "{y}"), "float32", ((4, 48, 5, 5), (40, 48, 3, 3)), ()),
    ("{v} = " + _conv("{x}", "{y}"), "float32", ((2, 48, 5, 5), (40, 48, 3, 3)), ()),
    ("{v} = " + _conv("{x}", "{y}"), "bfloat16", ((1, 32, 28, 28), (32, 32, 3, 3)), ()),
    (_weight_gradient(), "float32", ((2, 8, 28, 28), (8, 8, 3, 3), (2, 8, 28, 28)), ()),
    (_weight_gradient(), "float32", ((2, 32, 6, 6), (32, 32, 3, 3), (2, 32, 6, 6)), ()),
    (_weight_gradient(), "float32", ((8, 6, 6, 6), (24, 6, 3, 3), (8, 24, 6, 6)), ()),
    (_weight_gradient(), "float32", ((2, 3, 40, 40), (20, 3, 3, 3), (2, 20, 40, 40)), ()),
    (_weight_gradient(32), "float32", ((2, 32, 28, 28), (32, 1, 3, 3), (2, 32, 28, 28)), ()),
    (_weight_gradient(), "bfloat16", ((2, 8, 28, 28), (16, 8, 3, 3), (2, 16, 28, 28)), ()),
    ("{v} = ops.matmul({x}, {y}.T)", "float32", ((24, 4096), (64, 4096)), ()),
    ("{v} = ops.matmul({x}, {y}.T)", "float32", ((2, 512), (300, 512)), ()),
    ("{v} = ops.matmul({x}.astype(ms.int32), {y}.T.astype(ms.int32))", "int8",
     ((64, 128), (48, 128)), ()),
    ("{v} = ops.matmul({x}.astype(ms.int32), {y}.T.astype(ms.int32))", "int8",
     ((10, 120), (48, 120)), ()),
    ("{v} = ops.matmul({x}, {y})", "bfloat16", ((64, 128), (128, 64)), ()),
    ("{v} = ops.matmul({x}, {p})", "float32", ((2, 512),), ((512, 2048),)),
    ("{v} = ops.softmax({x}[{x}[:, 0] > 0], -1)", "float32", ((256, 140),), ()),
    ("{p} = {p} * 0.5 + {x}\n{v} = {x} - 1", "float32", ((256, 140),), ((256, 140),)),
)  # fmt: skip
VIEWS = (
    "{x}[0]", "{x}[-1]", "{x}[1:]", "{x}[:, 0]", "{x}[..., ::2]", "{x}[::-1]", "{x}[None]",
    "{x}.T", "{x}.reshape(-1)", "{x}.view(-1)", "{x}.swapaxes(0, -1)", "{x}[..., -1:]",
    "{x}.flatten()", "{x}[:2]", "{x}.squeeze()", "{x}.expand_dims(-1)",
)  # fmt: skip
WRITES = (
    "{x}[0] = {k}", "{x}[1:] = {k}", "{x}[..., 0] = {y}.sum()", "{x}[-1] += 1", "{x}[:] = {y}",
    "{x}[{x} > 0] = {k}", "{x} += {y}", "{x} *= 0.5", "{x} -= 1", "{x}.add_({y})",
    "{x}[::2] *= 2", "{x}[0, 0] = {k}",
)  # fmt: skip
SAME = (
    "ops.tanh({x})", "{x} * 0.5", "{x} + {x}", "-{x}", "ops.relu({x})", "{x} - 1", "ops.abs({x})",
    "ops.maximum({x}, {y})", "{x} + {y}", "{x} * {y}", "ops.flip({x}, (0,))", "{x} // 2",
)  # fmt: skip
TESTS = (
    "{x}.sum() > 0", "{x}.max() < 1", "{x}.mean() <= 0.1", "({x} > 0).any()", "{x}.min() < -0.5",
)  # fmt: skip
