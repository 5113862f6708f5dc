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
# # Control flow in graphs
#
# `@jit` interprets the code of a function. What a Python value decides is settled while compiling;
# what a tensor decides becomes part of the graph.

# %%
import tvmgraph as ms
from tvmgraph import Parameter, Tensor, jit, nn, ops

# %% [markdown]
# ## 1. A branch and a loop
#
# One compile serves every input. The graph holds the branch with both sides, and the loop with its
# test and body, as regions.


# %%
@jit
def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = n * 3 + 1
        steps += 1
    return steps


print([collatz(Tensor(n)) for n in (1, 6, 7, 27, 97)], "compiled", collatz.compile_count, "time")
print(collatz.graph())

# %% [markdown]
# `steps` is a Python number, so it comes back as one. `break`, `continue`, `else` and an early
# `return` work anywhere.


# %%
@jit
def search(x):
    for i in range(1000):
        if x.sum() > 100:
            return x, i
        x = x * 1.1 + 1
    return x, -1


print(search(Tensor([1.0, 2.0])), search(Tensor([1000.0, 0.0])))

# %% [markdown]
# ## 2. Gradients
#
# The derivative of a branch is a branch. The derivative of a loop runs it backwards; the states on
# the way are recomputed, so memory grows only with the logarithm of the number of iterations.


# %%
def grow(x):
    s = x
    while s.sum() < 1000:
        s = s * x + 1
    return s.sum()


x = Tensor([1.5, 1.25])
print("eager   ", ms.grad(grow)(x))
print("compiled", ms.grad(jit(grow))(x))

# %% [markdown]
# ## 3. State
#
# Parameters may be assigned inside branches and loops. Attributes, lists and `print` are repeated
# after every call, in order.


# %%
class Counter(nn.Cell):
    def __init__(self):
        super().__init__()
        self.total = Parameter(Tensor([0.0]), name="total")
        self.history = []

    def construct(self, x):
        if x.sum() > 0:
            ops.assign(self.total, self.total + x.sum())
        self.history.append(x.shape)
        print("total:", self.total.value())
        return x * self.total


net = Counter()
run = jit(net)
for v in (1.0, -5.0, 2.0):
    run(Tensor([v]))
print(net.total.asnumpy(), net.history)

# %% [markdown]
# ## 4. Errors that help
#
# What cannot be part of a graph is named, with the line and what to write instead.


# %%
@jit
def wrong(x):
    y = x * 2
    while y.sum() < 9:
        y = y.reshape(1, -1) + 1
    return y


try:
    wrong(Tensor([1.0, 2.0]))
except RuntimeError as e:
    print(e)
