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
# # NVIDIA GPUs
#
# The same network, compiled for a GPU. Generating the code takes NVIDIA's compiler
# (`pip install 'tvmgraph[cuda]'`) but no GPU; the second half runs where there is one.

# %%
import tempfile
from pathlib import Path

import numpy as np

import tvmgraph as ms
from tvmgraph import Tensor, nn
from tvmgraph.backend.cuda import nvcc
from tvmgraph.errors import DeviceError
from tvmgraph.runtime.archive import Archive

ms.set_seed(1)
net = nn.SequentialCell(nn.Dense(256, 512), nn.GELU(), nn.Dense(512, 10))
x = np.random.default_rng(0).standard_normal((64, 256)).astype(np.float32)
folder = Path(tempfile.mkdtemp())
print("nvcc", nvcc.version() or "is not installed")

# %% [markdown]
# ## Code without a GPU
#
# `target` names a GPU of `configs/targets.toml`, or several: kernels are shaped for the first one,
# the file holds machine code for all, and PTX from which the driver makes code for later ones.

# %%
if nvcc.find():
    file = folder / "net.tvm"
    ms.export(net, Tensor(x), file_name=file, file_format="TVM", target="sm_80,sm_90")
    archive = Archive(file)
    device = archive.manifest.target["device"]
    print(device["arch"], f"{sum(size for size, _ in device['images'])} bytes of code")
    for _, kernels in device["images"]:
        for name, arguments, launch in kernels:
            print(f"  {name}: {len(arguments)} arguments, launched by {', '.join(launch)}")
    archive.close()

# %% [markdown]
# What is generated can be read: `save_graphs=3` writes every phase, CUDA C++ included.

# %%
if nvcc.find():
    config = ms.JitConfig(options={"target": "sm_90"})
    ms.set_context(save_graphs=3, save_graphs_path=str(folder / "graphs"))
    ms.jit(net, jit_config=config).compile(Tensor(x))
    ms.set_context(save_graphs=False)
    source = next((folder / "graphs").rglob("*.cu")).read_text()
    print(source[source.index("extern") :][:1500])

# %% [markdown]
# ## Running
#
# `set_context(device_target="GPU")` is all that changes. Without a GPU it is an error that says
# what is missing; nothing runs on the CPU in its place. With `exec_mode="sink"` calls are recorded
# as a CUDA graph: from the second one on, all kernels are one launch.

# %%
try:
    ms.set_context(device_target="GPU")
except DeviceError as e:
    print(e)

# %%
if ms.runtime.is_available():
    compiled = ms.jit(net, jit_config=ms.JitConfig(exec_mode="sink"))
    y = compiled(Tensor(x))
    print(y.device, compiled.explain())
    ms.runtime.reset_copy_counts()
    y = compiled(y.new_zeros((64, 256)))
    print(ms.runtime.copy_counts())  # weights and results stay on the GPU
    print(ms.runtime.memory_summary())
    there = y.asnumpy()  # waits for the GPU, and copies
    ms.set_context(device_target="CPU")
    print(np.abs(there - net(Tensor(np.zeros_like(x))).asnumpy()).max())
