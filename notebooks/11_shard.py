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
# # Several processes
#
# One program runs on all processes of a job, and each computes a part. Usually a script is started
# with `tvmgraph-run -n 4 train.py`; here `ipyparallel` starts two processes over MPI, and cells
# that begin with `%%px` run on both. (`pip install 'tvmgraph[mpi]' ipyparallel`)

# %%
import os
import sys

import ipyparallel as ipp

os.environ["TVMGRAPH_NUM_THREADS"] = "1"  # processes share the cores
beside = os.path.dirname(sys.executable)  # `mpiexec` is there, also if nobody activated it
os.environ["PATH"] = beside + os.pathsep + os.environ["PATH"]
cluster = ipp.Cluster(engines="mpi", n=2, log_level=40)
engines = cluster.start_and_connect_sync()
engines[:].activate()

# %% [markdown]
# ## 1. Who is there

# %%
# %%px
import numpy as np

import tvmgraph as ms
from tvmgraph import Layout, Tensor, communication, nn, ops

communication.init()
rank, size = communication.get_rank(), communication.get_group_size()
print(
    f"rank {rank} of {size}: the sum of all ranks is {float(ops.AllReduce()(Tensor(float(rank))))}"
)

# %% [markdown]
# ## 2. A network from one given weight
#
# The mesh has one axis. Only the first weight is asked to be split, by its rows; the bias and the
# second weight follow, and one sum over the processes is all that is sent.

# %%
# %%px
ms.set_seed(0)
net = nn.SequentialCell(nn.Dense(64, 128), nn.ReLU(), nn.Dense(128, 32))
x = Tensor(np.random.default_rng(0).standard_normal((16, 64)).astype(np.float32))
expected = net(x).asnumpy()

mesh = Layout((size,), ("mp",))
split = ms.shard(net, (mesh("None", "None"),), parameter_plan={"0.weight": mesh("mp", "None")})
assert np.allclose(split(x).asnumpy(), expected, atol=1e-5)
if rank == 0:
    print("\n".join(line for line in split.explain().splitlines() if "mp" in line))

# %% [markdown]
# ## 3. Training
#
# A whole training step is one program. The losses are those of one process.

# %%
# %%px
labels = Tensor(np.random.default_rng(1).integers(0, 32, 16).astype(np.int32))
step = nn.TrainOneStepCell(
    nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9)
)
data_parallel = ms.shard(step, (mesh("mp", "None"), mesh("mp")))
losses = [float(data_parallel(x, labels)) for _ in range(5)]
assert losses[-1] < losses[0]
if rank == 0:
    print(losses)

# %% [markdown]
# ## 4. What it would cost elsewhere
#
# The same program on 64 machines of 8 GPUs, without them: bytes, memory and time of one process.

# %%
# %%px --targets 0
cluster = Layout((64, 8), ("dp", "mp"))
large = nn.SequentialCell(nn.Dense(1024, 4096), nn.ReLU(), nn.Dense(4096, 1024))
plan = ms.shard(large, (cluster("dp", "None"),), parameter_plan={"0.weight": cluster("mp", "None")})
print(plan.explain(Tensor(np.ones((4096, 1024), np.float32)), hardware="h100"))

# %%
cluster.stop_cluster_sync()
