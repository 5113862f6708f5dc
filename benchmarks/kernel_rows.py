"""Rows of single kernels: matrix products, and passes over large arrays."""

from collections.abc import Callable

import numpy as np

from benchmarks.workloads import Array, Workload

#: M, K, N of products with fixed weights, as in a dense layer without bias.
DENSE = (
    (64, 784, 512), (64, 512, 512), (1, 512, 512), (512, 512, 64), (128, 768, 3072),
    (384, 768, 768), (1024, 3072, 768), (1024, 1024, 1024),
)  # fmt: skip
#: Shapes of both operands of products of two arguments.
MATMUL = {
    "gemm-64x784x512": ((64, 784), (784, 512)),
    "gemm-64x512x512": ((64, 512), (512, 512)),
    "gemm-1x512x512": ((1, 512), (512, 512)),
    "gemm-512x512x64": ((512, 512), (512, 64)),
    "gemm-128x768x3072": ((128, 768), (768, 3072)),
    "gemm-384x768x768": ((384, 768), (768, 768)),
    "gemm-1024x3072x768": ((1024, 3072), (3072, 768)),
    "gemm-1024": ((1024, 1024), (1024, 1024)),
    "gemm-1x4096x4096": ((1, 4096), (4096, 4096)),
    "gemm-37x211x129": ((37, 211), (211, 129)),
    "bmm-12x128x64x128": ((12, 128, 64), (12, 64, 128)),
}
SIDE = 4096
FLOAT = 4


def _normal(seed: int, *shape: int) -> Array:
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def dense(rows: int, depth: int, columns: int) -> Workload:
    """Product with fixed weights, which every framework may rearrange ahead of time."""
    weight = _normal(1, columns, depth) / np.float32(np.sqrt(depth))
    return Workload(
        f"dense-{rows}x{depth}x{columns}",
        f"x W^T, {rows} x {depth} x {columns}, fixed weights",
        "dense",
        (_normal(0, rows, depth),),
        lambda work: work.args[0] @ work.params["w0"].T,
        {"w0": weight},
        atol=1e-4,
        flops=2 * rows * depth * columns,
    )


def matmul(name: str, left: tuple[int, ...], right: tuple[int, ...]) -> Workload:
    """Product of two arguments."""
    return Workload(
        name,
        f"A B, {' x '.join(map(str, left))} times {' x '.join(map(str, right))}",
        "matmul",
        (_normal(0, *left), _normal(1, *right)),
        lambda work: np.matmul(*work.args),
        atol=1e-3,
        flops=2 * int(np.prod(left)) * right[-1],
    )


def gelu(x: Array) -> Array:
    """GELU, x (1 + erf(x / sqrt 2)) / 2, to 2e-7 (Abramowitz and Stegun 7.1.26)."""
    z = np.abs(x) / np.float32(np.sqrt(2.0))
    t = 1 / (1 + np.float32(0.3275911) * z)
    tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (
        -1.453152027 + t * 1.061405429))))  # fmt: skip
    return x * (1 + np.sign(x) * (1 - tail * np.exp(-z * z))) / 2


def softmax(x: Array) -> Array:
    """Softmax over the last axis."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x: Array, gamma: Array, beta: Array) -> Array:
    """Layer normalization over the last axis, epsilon 1e-5."""
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-5) * gamma + beta


def _pass(model: str, title: str, function: Callable[[Array], Array], written: int) -> Workload:
    """One argument of SIDE x SIDE; ``written`` elements are the result."""
    return Workload(
        f"{model}-{SIDE}",
        f"{title}, {SIDE} x {SIDE}",
        model,
        (_normal(2, SIDE, SIDE),),
        lambda work: function(work.args[0]),
        rtol=1e-3,
        atol=1e-3,
        bytes=FLOAT * (SIDE * SIDE + written),
        written=FLOAT * written,
    )


def muladd() -> Workload:
    """x y + z: one pass over four arrays."""
    args = tuple(_normal(seed, SIDE, SIDE) for seed in range(3))
    title = f"x y + z, {SIDE} x {SIDE}"
    return Workload(
        f"muladd-{SIDE}", title, "muladd", args,
        lambda work: work.args[0] * work.args[1] + work.args[2],
        bytes=4 * FLOAT * SIDE * SIDE, written=FLOAT * SIDE * SIDE,
    )  # fmt: skip


def layernorm() -> Workload:
    """Layer normalization of the rows with scale and shift."""
    params = {"gamma": 1 + _normal(3, SIDE) / 10, "beta": _normal(4, SIDE) / 10}
    return Workload(
        f"layernorm-{SIDE}", f"layer normalization, {SIDE} x {SIDE}", "layernorm",
        (_normal(2, SIDE, SIDE),),
        lambda work: layer_norm(work.args[0], work.params["gamma"], work.params["beta"]),
        params, rtol=1e-3, atol=1e-3,
        bytes=2 * FLOAT * SIDE * SIDE, written=FLOAT * SIDE * SIDE,
    )  # fmt: skip


def gather() -> Workload:
    """Rows of a table, as an embedding reads them."""
    ids = np.random.RandomState(5).randint(0, 30000, 4096).astype(np.int32)
    table = _normal(6, 30000, 768)
    return Workload(
        "gather-4096x768", "4096 of 30000 rows of 768", "gather", (table, ids),
        lambda work: work.args[0][work.args[1]],
        bytes=2 * FLOAT * 4096 * 768, written=FLOAT * 4096 * 768,
    )  # fmt: skip


GEMM: dict[str, Callable[[], Workload]] = {
    **{f"dense-{m}x{k}x{n}": lambda s=(m, k, n): dense(*s) for m, k, n in DENSE},
    **{name: lambda n=name, s=shapes: matmul(n, *s) for name, shapes in MATMUL.items()},
}
_MATMUL_OF = {operands: name for name, operands in MATMUL.items()}
#: Rows of the same product with and without fixed weights, by shape.
SHAPES = {
    f"{m} x {k} x {n}": (f"dense-{m}x{k}x{n}", _MATMUL_OF[(m, k), (k, n)]) for m, k, n in DENSE
}
PASSES: dict[str, Callable[[], Workload]] = {
    "muladd-4096": muladd,
    "gelu-4096": lambda: _pass("gelu", "GELU", gelu, SIDE**2),
    "softmax-4096": lambda: _pass("softmax", "softmax of rows", softmax, SIDE**2),
    "logsoftmax-4096": lambda: _pass(
        "logsoftmax", "log-softmax of rows", lambda x: np.log(softmax(x)), SIDE**2
    ),
    "layernorm-4096": layernorm,
    "transpose-4096": lambda: _pass("transpose", "transpose", np.transpose, SIDE**2),
    "sum0-4096": lambda: _pass("sum0", "sum over axis 0", lambda x: x.sum(0), SIDE),
    "sum1-4096": lambda: _pass("sum1", "sum over axis 1", lambda x: x.sum(1), SIDE),
    "argmax-4096": lambda: _pass("argmax", "argmax of rows", lambda x: x.argmax(1), SIDE),
    "cumsum-4096": lambda: _pass("cumsum", "cumulative sum along rows",
                                 lambda x: x.cumsum(1), SIDE**2),
    "gather-4096x768": gather,
}  # fmt: skip
