# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Graph kernels: what is rewritten, what becomes one kernel, and how to see it

# %%
import time

import numpy as np

import tvmgraph as ms
from tvmgraph import JitConfig, Tensor, jit, nn, ops

rng = np.random.default_rng(0)


def normal(*shape):
    return Tensor(rng.normal(size=shape).astype(np.float32))


# %% [markdown]
# ## 1. A user's composite fuses with its surroundings
#
# `MyOp` is a Cell of basic operators, `MyNet` uses it. Captured: `mul, pow, sub, mul`; compiled:
# one kernel, the dashed box.


# %%
class MyOp(nn.Cell):
    def construct(self, x, y):
        return ops.sub(ops.pow(x, 2.0), y)


class MyNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.op = MyOp()

    def construct(self, x, y):
        a = ops.mul(x, 2.0)
        return ops.mul(a, self.op(a, y))


x, y = normal(256, 256), normal(256, 256)
fused = jit(MyNet())
fused(x, y)
assert len(fused.kernels()) == 1
fused.draw(x, y)

# %% [markdown]
# ## 2. Producers into reductions, reductions into what follows, siblings
#
# A normalization written by hand: eight operators with two means that are read again.


# %%
def normalize(x):
    d = x - x.mean(-1, keep_dims=True)
    return d * ops.rsqrt((d * d).mean(-1, keep_dims=True) + 1e-5)


def siblings(x):
    return ops.exp(x), ops.tanh(x), x * 2.0


def epilogue(x):
    return ops.relu(ops.matmul(x, x) + 1.0) * 2.0


for function in (normalize, siblings, epilogue):
    counts = []
    for level in ("O0", "O1", "O2"):
        f = jit(function, jit_level=level)
        f(x)
        counts.append(len(f.kernels()))
    print(f"{function.__name__:10} kernels with O0, O1, O2: {counts}")

# %% [markdown]
# ## 3. What it gains
#
# One pass over memory instead of one per operator. (The table in the README is measured on
# 4096 x 4096 elements: `python -m benchmarks.fusion`.)

# %%
big = normal(1024, 1024)


def milliseconds(f):
    f(big)
    return min(_timed(f) for _ in range(5)) * 1e3


def _timed(f):
    start = time.perf_counter()
    f(big)
    return time.perf_counter() - start


for level in ("O0", "O2"):
    print(level, f"{milliseconds(jit(normalize, jit_level=level)):.2f} ms")

# %% [markdown]
# ## 4. Rules and flags
#
# Rules simplify the graph before anything is compiled; flags choose among rules and passes. The
# setting is a backend option, or `set_context(enable_graph_kernel=True, graph_kernel_flags=...)`.


# %%
def clumsy(x):
    y = ops.transpose(ops.transpose(x * 1.0, (1, 0)), (1, 0))
    return ops.exp(y) ** 2 / 4.0, ops.tanh(y)


for flags in ("--opt_level=0", "--opt_level=1", "--opt_level=2", "--disable_pass=parallel"):
    f = jit(clumsy, jit_config=JitConfig(options={"graph_kernel_flags": flags}))
    f(x)
    graph, kernels = f.fused_graph()
    print(f"{flags:24} {len(graph.nodes)} operators, {len(kernels)} kernels")

# %%
f = jit(clumsy)
f(x)
print("captured:", [n.op.name for n in f.graph().nodes])
print("compiled:", [n.op.name for n in f.fused_graph()[0].nodes])

# %% [markdown]
# ## 5. A kernel of your own
#
# A tensor expression becomes an operator with a type rule, attributes and a derivative, and fuses.

# %%
from tvm import te, tirx

shifted_cube = ops.Custom(
    lambda x, shift: te.compute(
        x.shape, lambda *i: x(*i) * x(*i) * x(*i) + tirx.const(shift, "float32"), name="cube"
    ),
    infer=lambda t, shift: t,
    bprop=lambda x, out, dout, shift: dout * 3 * x * x,
    attrs={"shift": 0.0},
    name="shifted_cube",
)
f = jit(lambda x: ops.tanh(shifted_cube(x * 2.0, shift=1.0)) + 1.0)
f(x)
print(f.kernels())
print(ms.grad(lambda x: shifted_cube(x).sum())(Tensor([1.0, 2.0])))

# %% [markdown]
# What it is not told, it says:

# %%
try:
    ops.Custom(lambda x: x)
except ValueError as error:
    print(error)
