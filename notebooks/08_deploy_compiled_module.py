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
# # Ship a compiled module
#
# One file holds the machine code of a network, its weights, and a manifest that says what goes in
# and out. `tvmgraph.runtime` runs it without the network's Python code and without a compiler.

# %%
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np

import tvmgraph as ms
from tvmgraph import Tensor, nn
from tvmgraph.errors import LoadError, ShapeError

ms.set_seed(1)
net = nn.SequentialCell(
    nn.Conv2d(1, 8, 3),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.MaxPool2d(2, stride=2),
    nn.Flatten(),
    nn.Dense(8 * 4 * 4, 10),
)
x = np.random.default_rng(0).standard_normal((2, 1, 8, 8)).astype(np.float32)
expected = net.set_train(False)(Tensor(x)).asnumpy()

path = ms.export(net, Tensor(x), file_name="net", file_format="TVM")
with zipfile.ZipFile(path) as archive:
    print([(i.filename, i.file_size) for i in archive.infolist()])

# %%
module = ms.load(path)
print(module)
print(module.manifest.target["arch"], module.manifest.options, module.manifest.versions)
np.abs(module(x) - expected).max()

# %% [markdown]
# ## The runtime alone
#
# In a fresh process: neither TVM's Python package nor the front end is imported.

# %%
code = """
import sys, time
start = time.perf_counter()
import tvmgraph.runtime
module = tvmgraph.runtime.load("net.tvm")
print(f"{(time.perf_counter() - start) * 1e3:.0f} ms")
print([m for m in ("tvm", "onnx", "tvmgraph.nn") if m in sys.modules])
"""
done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
print(done.stdout)

# %% [markdown]
# What such a process needs, copied into a folder; only NumPy has to be installed besides.

# %%
from tvmgraph.export.bundle import write_bundle

files = write_bundle(Path("runtime"))
print(len(files), "files,", sum(f.stat().st_size for f in files) // 10**6, "MB")

# %% [markdown]
# ## Several threads
#
# Every thread gets a virtual machine of its own over the shared code and weights.

# %%
results = {}


def work(i):
    results[i] = module(np.full_like(x, i))


threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert all(np.array_equal(results[i], module(np.full_like(x, i))) for i in range(4))

# %% [markdown]
# ## Mistakes
#
# A wrong input, a damaged file or another processor is an error that says so.

# %%
try:
    module(x[:, :, :5])
except ShapeError as error:
    print(error)

Path("short.tvm").write_bytes(path.read_bytes()[:1000])
try:
    ms.load("short.tvm")
except LoadError as error:
    print(error)

# %% [markdown]
# ## Another processor
#
# Name the target. Without a linker for it, the file holds objects (`linker="aarch64-linux-gnu-g++"`
# links them here).

# %%
arm = ms.export(net, Tensor(x), file_name="net_arm", file_format="TVM", target="aarch64")
try:
    ms.load(arm)
except LoadError as error:
    print(error)

# %% [markdown]
# ## The same from a shell
#
# ```sh
# tvmgraph compile net.onnx --input input_data:2x1x8x8 -o net.tvm
# tvmgraph run net.tvm --input x.npy -o y.npz
# tvmgraph bench net.tvm --vs onnxruntime --onnx net.onnx
# tvmgraph bundle runtime/        # the files a machine needs to run net.tvm
# ```
#
# From C++: [docs/examples/cpp](../docs/examples/cpp/run.cc).
