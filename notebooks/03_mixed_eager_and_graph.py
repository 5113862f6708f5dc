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
# # Eager and compiled code together
#
# A network runs statement by statement. `@jit` compiles a piece of it, or all of it, without a
# change to the code, and gradients go through both.

# %%
import warnings

import numpy as np

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, jit, ms_function, nn, ops

# %% [markdown]
# ## 1. One compiled Cell in an eager network
#
# `Mul` is compiled, `Add` and `Test` are not. The forward pass of the compiled piece is one graph,
# and so is its derivative.


# %%
class Add(nn.Cell):
    def construct(self, x):
        x = x + x
        x = x + x
        return x


class Mul(nn.Cell):
    @jit
    def construct(self, x):
        x = x * x
        x = x * x
        return x


class Test(nn.Cell):
    def __init__(self):
        super().__init__()
        self.add = Add()
        self.mul = Mul()

    def construct(self, x):
        x = self.add(x)
        x = self.mul(x)
        x = self.add(x)
        return x


net = Test()
x = Tensor(np.ones((3, 3), np.float32))
print(net(x))
print(ms.grad(net)(x))
assert (net(x).asnumpy() == 1024).all()
assert (ms.grad(net)(x).asnumpy() == 4096).all()

# %% [markdown]
# The whole network in graph mode gives the same.

# %%
ms.set_context(mode=ms.GRAPH_MODE)
assert (Test()(x).asnumpy() == 1024).all()
ms.set_context(mode=ms.PYNATIVE_MODE)

# %% [markdown]
# Functions, methods, static methods and partial functions may be compiled, and compiled functions
# may call each other: the outermost one becomes the graph.


# %%
@jit
def inner(x, k):
    return x * k


@jit
def outer(x):
    return inner(x, 2) + inner(x, k=3)


print(outer(Tensor([1.0])), "compiled", outer.compile_count, "and", inner.compile_count, "times")

# %% [markdown]
# ## 2. Control flow that a tensor decides
#
# What a Python value decides is settled while compiling; what a tensor decides becomes a branch or
# a loop of the graph. One compile serves every input.


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
# The derivative of a branch is a branch, that of a loop runs it backwards, and both can be derived
# again. States on the way are computed again, so memory grows with the logarithm of the number of
# iterations only.


# %%
def grow(x):
    s = x
    while s.sum() < 1000:
        s = s * x + 1
    return s.sum()


x = Tensor([1.5, 1.25])
print("eager   ", ms.grad(grow)(x))
print("compiled", ms.grad(jit(grow))(x))
print("twice   ", jit(ms.grad(lambda v: ms.grad(grow)(v).sum()))(x))

# %% [markdown]
# ## 3. State
#
# Parameters may be assigned anywhere. Attributes and lists are written after every call, in order;
# where a tensor decides they are merged like local variables, and `print` becomes a part of the
# graph.


# %%
class Counter(nn.Cell):
    def __init__(self):
        super().__init__()
        self.total = Parameter(Tensor([0.0]), name="total")
        self.positive = 0
        self.history = []

    def construct(self, x):
        if x.sum() > 0:
            ops.assign(self.total, self.total + x.sum())
            self.positive += 1
        else:
            print("not positive:", x)
        self.history.append(x.shape)
        return x * self.total


counter = Counter()
run = jit(counter)
for v in (1.0, -5.0, 2.0):
    run(Tensor([v]))
print(counter.total.asnumpy(), counter.positive, counter.history)

# %% [markdown]
# ## 4. What changes outside
#
# Everything that compiled code read is guarded: a changed attribute compiles again and gives the
# right answer. `ms_function` keeps MindSpore's documented meaning: it is compiled once, does not
# see the change, and says so.


# %%
class Func:
    def __init__(self):
        self.value = 5

    @jit
    def guarded(self):
        return self.value + 1

    @ms_function
    def compiled_once(self):
        return self.value + 1


func = Func()
print(func.guarded(), func.compiled_once())
func.value = 1
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(func.guarded(), func.compiled_once())
print(caught[0].message)
print(func.guarded.explain())

# %% [markdown]
# A write to a global variable stays inside the call and warns once; `global_writes="replay"` makes
# it real, `"error"` forbids it.

# %%
calls = 0


@jit(global_writes="replay")
def count(x):
    global calls
    calls += 1
    return x * calls


print([count(Tensor([1.0])).item() for _ in range(3)], calls)

# %% [markdown]
# ## 5. Errors that help
#
# What cannot be part of a graph is named, with the line and what to write instead. The page
# `docs/static_graph_syntax.md` lists the language and every such error.


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
