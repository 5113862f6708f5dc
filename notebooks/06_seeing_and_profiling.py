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
# # Seeing and profiling: pictures, reasons, times, files, checks

# %%
from pathlib import Path

import numpy as np

import tvmgraph as ms
from tvmgraph import Tensor, jit, nn, ops

rng = np.random.default_rng(0)


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm((32,))
        self.dense = nn.Dense(32, 32)

    def construct(self, x):
        return x + ops.relu(self.dense(self.norm(x)))


net = nn.SequentialCell(Block(), nn.Dense(32, 8))
x = Tensor(rng.normal(size=(64, 32)).astype(np.float32))
f = jit(net)
f(x)

# %% [markdown]
# ## 1. The graph: as text, and as a picture nested by Cell
#
# Edges carry shapes; hold the mouse over a node for its line.

# %%
print(f.graph())

# %%
f.graph().draw()

# %% [markdown]
# Captured beside compiled: the dashed boxes are kernels.

# %%
f.draw(x)

# %% [markdown]
# Branches and loops are boxes too.


# %%
@jit
def settle(x):
    y = ops.tanh(x) if x.sum() > 0 else ops.exp(x)
    while y.mean() > 0.1:
        y = y * 0.5
    return y


settle(x)
settle.graph().draw()

# %% [markdown]
# For thousands of nodes: `tvmgraph show file.py:net` writes one HTML file to fold and search, where
# a click shows a node's line, shape, kernel and time.

# %% [markdown]
# ## 2. Why was it compiled again?


# %%
@jit
def scaled(x, factor):
    return ops.tanh(x) * factor


scaled(x, 2.0)
scaled(x.astype(ms.float64), 2.0)
scaled(x.reshape(2, 32, 32), 2.0)
print(scaled.explain())

# %%
try:
    with ms.assert_max_compiles(1):
        scaled(x[0], 2.0), scaled(x.astype(ms.float16), 2.0)
except RuntimeError as error:
    print(error)

# %% [markdown]
# ## 3. Where does the time go?
#
# Per kernel: time, share, GFLOP/s and GB/s against what this machine was measured to do, and what
# it computes. `save` writes a page (`.html`), a trace for [Perfetto](https://ui.perfetto.dev)
# (`.json`), or `.csv`.

# %%
profile = f.profile(x)
print(profile)
profile.save("profile.json"), profile.save("profile.html")

# %%
profile

# %% [markdown]
# A training step is profiled the same way; the call takes effect once.

# %%
optimizer = nn.Adam(net.trainable_params(), 1e-3)
loss_and_grads = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)


@jit
def step(x):
    loss, grads = loss_and_grads(x)
    optimizer(grads)
    return loss


print(step.profile(x).table(limit=5))

# %% [markdown]
# Over a stretch of a program, eager or compiled, with MindSpore's words:

# %%
plan = ms.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
handler = ms.profiler.tensorboard_trace_handler("traces")
with ms.profiler.profile(schedule=plan, on_trace_ready=handler) as profiler:
    for _ in range(5):
        step(x)
        ops.exp(x).sum()
        profiler.step()
print(profiler.summary.table()[:1500])
for path in sorted(Path("traces").rglob("*.*")):
    print(path)

# %% [markdown]
# ## 4. Every phase as a file

# %%
ms.set_context(save_graphs=3, save_graphs_path="graphs")
jit(net)(x)
ms.set_context(save_graphs=0)
for path in sorted(Path("graphs").rglob("*.*")):
    print(path)

# %% [markdown]
# ## 5. Who made the NaN?
#
# Eager or compiled, the operator is named, with its line and its operands.


# %%
@jit
def entropy(p):
    return -(p * ops.log(p)).sum(-1)


ms.set_context(check_numerics=True)
try:
    entropy(Tensor([[0.5, 0.5], [1.0, 0.0]]))
except ArithmeticError as error:
    print(error)
ms.set_context(check_numerics=False)

# %% [markdown]
# ## 6. Is the compiled result right?
#
# `TVMGRAPH_CHECK=3`, or for a block:

# %%
with ms.flags(check=3):
    f(x), settle(x), step(x)  # an error names the first node that differs from NumPy

# %% [markdown]
# `tvmgraph flags` lists all flags and what their values mean.
