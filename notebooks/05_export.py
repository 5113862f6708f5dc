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
# # Ship it: ONNX, compiled modules, graph files
#
# One call, `ms.export`, writes a network to a file; `file_format` says which kind.

# %%
import subprocess
import sys

import numpy as np

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
# ## 1. ONNX out
#
# The network is captured in inference mode; its own mode is put back afterwards. Parameters keep
# their names. `dynamic` names the axes whose size may change.

# %%
path = ms.export(net, x, file_name="net", file_format="ONNX", dynamic={"input_data": {0: "batch"}})
path, path.stat().st_size

# %%
import onnx

model = onnx.load(path)
[(t.name, tuple(t.dims)) for t in model.graph.initializer if len(t.dims) and "." in t.name]

# %% [markdown]
# ONNX Runtime gives the same numbers, for a batch size the network was never captured with.

# %%
import onnxruntime

session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
larger = np.random.default_rng(1).standard_normal((5, 1, 8, 8)).astype(np.float32)
found = session.run(None, {"input_data": larger})[0]
error = np.abs(found - net(Tensor(larger)).asnumpy()).max()
assert error < 1e-5
error

# %% [markdown]
# ## 2. ONNX in
#
# An imported model is a Cell: it runs eagerly, compiles, differentiates, and exports again.

# %%
imported = ms.load(path)
print(imported)
print(np.abs(ms.jit(imported)(x).asnumpy() - expected).max())
gradient = ms.grad(lambda x: ops.sum(imported(x) ** 2))(x)
gradient.shape

# %% [markdown]
# ## 3. A compiled module
#
# One file: a shared library, the weights, and a manifest that says what goes in and out.

# %%
module_path = ms.export(net, x, file_name="net", file_format="TVM")
module = ms.load(module_path)
print(module)
print(module.manifest.target["arch"], module.manifest.options, module.manifest.versions)
np.abs(module(x.asnumpy()) - expected).max()

# %% [markdown]
# `tvmgraph.runtime` imports neither the front end nor TVM's compiler. In a fresh process:

# %%
code = """
import sys, time
start = time.perf_counter()
import tvmgraph.runtime
module = tvmgraph.runtime.load("net.tvm")
print(f"{(time.perf_counter() - start) * 1e3:.0f} ms, tvm imported: {'tvm' in sys.modules}")
"""
done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
print(done.stdout)

# %% [markdown]
# A wrong input, a damaged file or another processor is an error that says so.

# %%
from pathlib import Path

from tvmgraph.errors import LoadError, ShapeError

try:
    module(larger)
except ShapeError as error:
    print(error)

Path("short.tvm").write_bytes(module_path.read_bytes()[:1000])
try:
    ms.load("short.tvm")
except LoadError as error:
    print(error)

# %% [markdown]
# For another processor, name the target. Without a linker for it, the file holds objects.

# %%
ms.export(net, x, file_name="net_arm", file_format="TVM", target="aarch64")

# %% [markdown]
# ## 4. A graph file
#
# The graph as text and the weights as safetensors: stable across versions, readable without tools.

# %%
graph_path = ms.export(net, x, file_name="net", file_format="GRAPH")
again = ms.load(graph_path)
assert np.array_equal(again(x).asnumpy(), expected)
print(again.graph.text()[:600])

# %% [markdown]
# ## The same from a shell
#
# ```sh
# tvmgraph compile net.onnx --input input_data:2x1x8x8 -o net.tvm
# tvmgraph run net.tvm --input x.npy -o y.npz
# tvmgraph bench net.tvm --vs net.onnx
# tvmgraph bundle runtime/        # the files a machine needs to run net.tvm: 14 MB and NumPy
# ```
