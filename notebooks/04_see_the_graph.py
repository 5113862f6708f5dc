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
# # See the graph: settings, fusion, pictures, reasons
#
# What a setting does can be seen here: in the number of kernels, in the way the graph runs, in the
# picture, in the files that a compile leaves behind.

# %%
from pathlib import Path

import numpy as np

import tvmgraph as ms
from tvmgraph import JitConfig, Tensor, jit, nn, ops

rng = np.random.default_rng(0)


class Normalize(nn.Cell):
    """A layer normalization, written by hand from basic operators."""

    def construct(self, x):
        d = x - x.mean(-1, keep_dims=True)
        return d * ops.rsqrt((d * d).mean(-1, keep_dims=True) + 1e-5)


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.norm = Normalize()
        self.dense = nn.Dense(64, 32)

    def construct(self, x):
        return ops.softmax(ops.relu(self.dense(self.norm(x))) * 2.0, -1)


net = Network()
x = Tensor(rng.normal(size=(128, 64)).astype(np.float32))

# %% [markdown]
# ## 1. A picture of the graph
#
# Boxes are Cells, edges carry shapes. Hold the mouse over a node for its line.

# %%
ms.record(net, x).draw()

# %% [markdown]
# ## 2. Levels: the same network with and without fusion

# %%
for level in ("O0", "O1", "O2"):
    f = jit(net, jit_level=level)
    f(x)
    print(level, len(f.kernels()), "kernels:", ", ".join(f.kernels())[:150])

# %% [markdown]
# Captured beside compiled; the dashed boxes are kernels. The normalization has become one.

# %%
fused = jit(net)
fused.draw(x)

# %% [markdown]
# ## 3. Graph kernels: what is rewritten and what is joined
#
# Rules simplify the graph before anything is compiled; flags choose among the passes.


# %%
def clumsy(x):
    y = ops.transpose(ops.transpose(x * 1.0, (1, 0)), (1, 0))
    return ops.exp(y) ** 2 / 4.0, ops.tanh(y)


for flags in ("--opt_level=0", "--opt_level=1", "--opt_level=2", "--disable_pass=parallel"):
    f = jit(clumsy, jit_config=JitConfig(options={"graph_kernel_flags": flags}))
    f(x)
    graph, kernels = f.fused_graph()
    print(f"{flags:24} {len(graph.nodes)} operators, {len(kernels)} kernels")

# %% [markdown]
# A wrong setting is an error that lists the right ones.

# %%
try:
    ms.set_context(graph_kernel_flags="--disable_pass=fusion")
except ValueError as error:
    print(error)

# %% [markdown]
# ## 4. How it runs
#
# `sink` is one call, `no_sink` goes node by node so that a failure has a name, `auto` decides and
# says why.

# %%
for mode in ("sink", "no_sink", "auto"):
    f = jit(net, jit_config=JitConfig(exec_mode=mode))
    f(x)
    print(f"{mode:8} -> {f.history[0].path}")

# %% [markdown]
# ## 5. Why was it compiled again?


# %%
@jit
def scaled(x, factor):
    return ops.tanh(x) * factor


scaled(x, 2.0)
scaled(x, 3.0)
scaled(Tensor(np.ones((4, 64), np.float32)), 3.0)
print(scaled.explain())

# %%
try:
    with ms.assert_max_compiles(1):
        for factor in (4.0, 5.0):
            scaled(x, factor)
except RuntimeError as error:
    print(error)

# %% [markdown]
# ## 6. Where does the time go?

# %%
print(fused.profile(x))

# %% [markdown]
# The same for every call in a block: `with ms.flags(debug=2):`. And `check=3` compares every call
# with NumPy.

# %%
with ms.flags(check=3):
    fused(x)

# %% [markdown]
# ## 7. Every phase as a file

# %%
ms.set_context(save_graphs=3, save_graphs_path="graphs")
jit(net)(x)
ms.set_context(save_graphs=0)
for path in sorted(Path("graphs").rglob("*.*")):
    print(path)

# %% [markdown]
# ## 8. Your own kernel
#
# A tensor expression becomes an operator with a shape rule and a derivative, and fuses with its
# surroundings.

# %%
from tvm import te

cube = ops.Custom(
    lambda x: te.compute(x.shape, lambda *i: x(*i) * x(*i) * x(*i), name="cube"),
    out_shape=lambda shape: shape,
    out_dtype=lambda dtype: dtype,
    bprop=lambda x, out, dout: (dout * 3 * x * x,),
    name="cube",
)
f = jit(lambda x: ops.tanh(cube(x * 2.0)) + 1.0)
f(x)
print(f.kernels())
print(ms.grad(lambda x: cube(x).sum())(Tensor([1.0, 2.0])))

# %% [markdown]
# For large graphs: `tvmgraph show file.py:net` writes a viewer, one HTML file to search and fold.
