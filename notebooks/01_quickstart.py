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
# # Quickstart: write a Cell, run it eagerly, compile it, look at it
#
# Everything here is what a MindSpore user would type, after changing the import.

# %%
import time

import numpy as np

import tvmgraph as ms
from tvmgraph import Tensor, jit, nn, ops

# %% [markdown]
# ## 1. Eager: statement by statement
#
# Tensors are NumPy arrays with MindSpore's dtype rules. Operators run at once, so you can print and
# step through everything.

# %%
x = Tensor([[1.0, 2.0], [3.0, 4.0]])
print(x * 2 + 1)
print((x @ x.T).sum(axis=1))
x

# %% [markdown]
# A mistake names the operator, the rule, the shapes, your line, and what to do about it.

# %%
try:
    ops.matmul(x, Tensor(np.ones((3, 2), np.float32)))
except ValueError as error:
    print(error)

# %% [markdown]
# ## 2. A network is a Cell with a `construct` method


# %%
class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.dense_relu_sequential = nn.SequentialCell(
            nn.Dense(8 * 8, 64),
            nn.ReLU(),
            nn.Dense(64, 10),
        )

    def construct(self, x):
        x = self.flatten(x)
        return self.dense_relu_sequential(x)


ms.set_seed(1)
net = Network()
print(net)
for name, parameter in net.parameters_and_names():
    print(name, parameter.shape)

# %%
from tvmgraph.data import load_digits

images, labels = load_digits()
batch = Tensor(images[:32].astype(np.float32) / 16)
logits = net(batch)
logits.shape

# %% [markdown]
# ## 3. Compiled: the same code as one graph
#
# `jit` runs `construct` once with symbolic tensors, lowers the graph to TVM's Relax, fuses it and
# compiles it for this machine. The second call of the same kind only runs machine code.

# %%
compiled = jit(net)
np.testing.assert_allclose(compiled(batch).asnumpy(), logits.asnumpy(), rtol=1e-4, atol=1e-5)
print(compiled.explain())


# %%
def microseconds(function, repeats=200):
    function()
    start = time.perf_counter()
    for _ in range(repeats):
        function()
    return (time.perf_counter() - start) / repeats * 1e6


print(f"eager    {microseconds(lambda: net(batch)):8.1f} us")
print(f"compiled {microseconds(lambda: compiled(batch)):8.1f} us")

# %% [markdown]
# Weights are read at every call, and whatever else the code read is guarded: nothing goes stale.

# %%
before = compiled(batch)
net.dense_relu_sequential[0].weight.set_data(net.dense_relu_sequential[0].weight * 0.5)
print("outputs changed:", not np.allclose(before.asnumpy(), compiled(batch).asnumpy()))
print("compiled", compiled.compile_count, "time(s)")

# %% [markdown]
# ## 4. Look at the graph
#
# Flat, one line per operator, with your source line and the Cell it came from.

# %%
print(compiled.graph())

# %% [markdown]
# After fusion, a dense layer with its bias and activation is one kernel:

# %%
print("kernels at O2:", compiled.kernels())
plain = jit(net, jit_level="O0")
plain(batch)
print("kernels at O0:", len(plain.kernels()))

# %% [markdown]
# ## 5. Gradients, eager or compiled


# %%
def loss(x, y):
    return ops.cross_entropy(net(x), y)


target = Tensor(labels[:32])
step = ms.value_and_grad(jit(loss), None, net.trainable_params())
for i in range(300):
    value, gradients = step(batch, target)
    for parameter, gradient in zip(net.trainable_params(), gradients):
        parameter.set_data(parameter - 0.5 * gradient)
    if i % 100 == 0:
        print(f"step {i}: loss {value.item():.4f}")
assert value.item() < 0.5
