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
# # JitConfig: every setting does something one can see
#
# A setting is looked up in this order: argument of `@jit`, `Cell.set_jit_config`,
# `set_context(jit_config=...)`, then the preset `default` of `configs/jit.toml`.

# %%
from pathlib import Path

import numpy as np

import tvmgraph as ms
from tvmgraph import JitConfig, Tensor, jit, nn, ops

rng = np.random.default_rng(0)


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(64, 32)

    def construct(self, x):
        return ops.softmax(ops.relu(self.dense(x * 2.0)) + 1.0, -1)


net = Network()
x = Tensor(rng.normal(size=(128, 64)).astype(np.float32))
expected = net(x).asnumpy()

# %% [markdown]
# ## 1. `jit_level`: what the compiler does
#
# `O0` makes one kernel per operator, `O1` fuses, `O2` also joins whole rows and siblings and tiles
# matrix products. `O3` also allows rules that round otherwise and searches for faster kernels,
# which takes its time. The result is the same.

# %%
for level in ("O0", "O1", "O2"):
    f = jit(net, jit_level=level)
    assert np.allclose(f(x).asnumpy(), expected, atol=1e-5)
    print(level, len(f.kernels()), "kernels:", ", ".join(f.kernels()))

# %% [markdown]
# ## 2. `exec_mode`: how the graph runs
#
# `sink` is one call, `no_sink` goes node by node, `auto` decides and says why.

# %%
for mode in ("sink", "no_sink", "auto"):
    f = jit(net, jit_config=JitConfig(exec_mode=mode))
    f(x)
    print(f"{mode:8} -> {f.history[0].path}")

# %% [markdown]
# Node by node a failing operator is named with its line. Here a function of your own fails in the
# middle of a graph:


# %%
def fragile(a):
    if a.max() > 3:
        raise ValueError("too large")
    return a


limited = ops.Custom(fragile, lambda s: s, lambda d: d, "pyfunc", name="limited")


@jit
def guarded(x):
    return ops.tanh(limited(x * 2.0))


print(guarded(Tensor([1.0])))
try:
    guarded(Tensor([2.0]))
except RuntimeError as error:
    print(error)

# %% [markdown]
# ## 3. `jit_syntax_level`: what may run in Python
#
# `LAX` (the default) lets an operator that only NumPy can run do so; `STRICT` makes it an error.

# %%
try:
    jit(lambda x: limited(x), jit_config=JitConfig(jit_syntax_level="STRICT"))(Tensor([1.0]))
except RuntimeError as error:
    print(error)

# %% [markdown]
# ## 4. Precedence

# %%
ms.set_context(jit_config=JitConfig(jit_level="O0"))  # weakest
followed = jit(net)
followed(x)
print("context:", len(followed.kernels()), "kernels")

net.set_jit_config(JitConfig(jit_level="O1"))  # stronger
followed(x)
print("Cell:   ", len(followed.kernels()), "kernels")

argument = jit(net, jit_level="O2")  # strongest
argument(x)
print("jit:    ", len(argument.kernels()), "kernels")
print(followed.explain())
ms.reset_context()

# %% [markdown]
# ## 5. Presets: a named row of `configs/jit.toml`, or of a file of your own

# %%
print(JitConfig.preset("debug").jit_config_dict)
Path("mine.toml").write_text('[careful]\njit_level = "O1"\nexec_mode = "no_sink"\n')
careful = JitConfig.preset("careful", "mine.toml")
f = jit(net, jit_config=careful)
f(x)
print(f.history[0].path)

# %% [markdown]
# ## 6. A wrong setting is an error that lists the right ones

# %%
for wrong in ({"jit_level": "O7"}, {"exec_mode": "fast"}, {"jit_levle": "O1"}):
    try:
        JitConfig(**wrong)
    except ValueError as error:
        print(error, "\n")
