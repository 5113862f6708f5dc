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
# # ONNX out and in
#
# One call, `ms.export`, writes a network as ONNX; `ms.load` makes a Cell of an ONNX model. Branches
# and loops that a tensor decides about are part of the model in both directions.

# %%
import numpy as np
import onnx
import onnxruntime

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops

ms.set_seed(1)
net = nn.SequentialCell(
    nn.Conv2d(1, 8, 3),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.MaxPool2d(2, stride=2),
    nn.Flatten(),
    nn.Dense(8 * 4 * 4, 10),
)
x = Tensor(np.random.default_rng(0).standard_normal((2, 1, 8, 8)).astype(np.float32))
expected = net.set_train(False)(x).asnumpy()

# %% [markdown]
# ## 1. Out
#
# The network is captured in inference mode; its own mode is put back afterwards. Parameters keep
# their names. `dynamic` names the axes whose size may change, `opset` the version of the operators.

# %%
path = ms.export(
    net, x, file_name="net", file_format="ONNX", dynamic={"input_data": {0: "batch"}}, opset=20
)
model = onnx.load(path)
[(t.name, tuple(t.dims)) for t in model.graph.initializer if len(t.dims) and "." in t.name]

# %% [markdown]
# ONNX Runtime gives the same numbers, for a batch size the network was never captured with.


# %%
def run_onnx(file, **arrays):
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    return session.run(None, arrays)[0]


larger = np.random.default_rng(1).standard_normal((5, 1, 8, 8)).astype(np.float32)
error = np.abs(run_onnx(path, input_data=larger) - net(Tensor(larger)).asnumpy()).max()
assert error < 1e-5
error

# %% [markdown]
# ## 2. Control flow
#
# An `if` becomes `If`, a `while` becomes `Loop`: the model decides by the values it gets.


# %%
def collatz(n, steps):
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


seven, zero = Tensor(7), Tensor(0)
loop_path = ms.export(collatz, seven, zero, file_name="collatz")
print([n.op_type for n in onnx.load(loop_path).graph.node])
for start, steps in ((7, 16), (27, 111)):
    assert run_onnx(loop_path, n=np.array(start), steps=np.array(0)) == steps

# %% [markdown]
# ## 3. In
#
# An imported model is a Cell: it runs eagerly, compiles, differentiates, and exports again. Its
# loops stay loops in the compiled graph.

# %%
imported = ms.load(path)
print(imported)
print(np.abs(ms.jit(imported)(x).asnumpy() - expected).max())
print(ms.grad(lambda x: ops.sum(imported(x) ** 2))(x).shape)

again = ms.jit(ms.load(loop_path))
print(again(Tensor(27), zero), again.graph().op_counts())

# %% [markdown]
# ## 4. What cannot be written
#
# An operator without an ONNX form is an error with your line; a model with unknown operators is one
# error that lists them all.

# %%
from tvmgraph.errors import ExportError, LoadError

try:
    ms.export(lambda x: ops.lgamma(x), x, file_name="gamma")
except ExportError as e:
    print(e)

strange = onnx.load(path)
strange.graph.node[0].op_type = "Convolute"
try:
    ms.onnx.load(strange)
except LoadError as e:
    print(e)

# %% [markdown]
# ## 5. A graph file
#
# The graph as text and the weights as safetensors: stable across versions, readable without tools.

# %%
graph_path = ms.export(net, x, file_name="net", file_format="GRAPH")
loaded = ms.load(graph_path)
assert np.array_equal(loaded(x).asnumpy(), expected)
print(loaded.graph.text()[:600])

# %% [markdown]
# ## The same from a shell
#
# ```sh
# tvmgraph export file.py:Net --input x:2x1x8x8 --dynamic x:0=batch -o net.onnx
# tvmgraph bench net.onnx --input input_data:2x1x8x8 --vs onnxruntime
# ```
