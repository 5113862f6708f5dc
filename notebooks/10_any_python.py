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
# # Any Python
#
# What can be a graph is compiled; the rest still runs, as plain Python, between compiled segments.
# This is the default (`jit_syntax_level="LAX"`).

# %%
import numpy as np

import tvmgraph as ms
from tvmgraph import JitConfig, Tensor, jit, nn, ops

x = Tensor(np.array([0.5, -1.0, 2.0], np.float32))

# %% [markdown]
# ## 1. A function that leaves the graph
#
# It looks at a value, writes text, calls NumPy, and catches an exception.

# %%
log = []


@jit
def scale(x):
    h = ops.tanh(x * 2) + 1
    peak = float(h.asnumpy().max())
    log.append(f"peak {peak:.3f}")
    try:
        factor = 1 / int(np.median(h.asnumpy()) > 1)
    except ZeroDivisionError:
        factor = 2.0
    return (h - peak) * factor


for _ in range(3):
    compiled = scale(x)
print(compiled, log)
assert np.allclose(compiled.asnumpy(), scale.fn(x).asnumpy())

# %% [markdown]
# `explain()` lists the segments, and what Python runs with the reason; `draw()` colours the source:
# one colour per segment, grey for Python.

# %%
print(scale.explain())

# %%
scale.draw()

# %% [markdown]
# ## 2. Gradients go through segments and Python


# %%
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(3, 4), nn.Dense(4, 1)
        self.seen = []

    def construct(self, x):
        h = ops.relu(self.first(x))
        self.seen.append(round(float(h.mean()), 4))
        if h.sum().item() > 0:
            h = h * 2
        return self.second(h).sum()


net = Net()
row = x.reshape(1, 3)
plain = ms.value_and_grad(net, None, net.trainable_params())(row)
pieces = ms.value_and_grad(jit(net), None, net.trainable_params())(row)
for a, b in zip(plain[1], pieces[1]):
    assert np.allclose(a.asnumpy(), b.asnumpy(), atol=1e-5)
print(len(net.seen), "calls were noted")

# %% [markdown]
# ## 3. Whole graphs only
#
# `fullgraph=True`, or `jit_syntax_level="STRICT"`, makes it an error that names the line.

# %%
strict = jit(scale.fn, jit_config=JitConfig(jit_syntax_level="STRICT"))
try:
    strict(x)
except RuntimeError as e:
    print(e)
