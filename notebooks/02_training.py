# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Training
#
# Gradients, optimizers, one compiled training step, the training loop, checkpoints.
# The derivative of a function is a function; everything below works eagerly and compiled.

# %%
import tempfile

import numpy as np

import tvmgraph as ms
from tvmgraph import Tensor, amp, dataset, jit, nn, train
from tvmgraph.data import ATTRIBUTION, load_digits

ms.set_seed(1)

# %% [markdown]
# ## Derivatives

# %%
x = Tensor([1.0, 2.0, 3.0])


def f(x):
    return (x**3).sum()


print("gradient        ", ms.grad(f)(x))
print("value, gradient ", ms.value_and_grad(f)(x))
print("second          ", ms.grad(lambda x: ms.grad(f)(x).sum())(x))
print("Hessian\n", ms.jacrev(ms.grad(f))(x))
print("directional     ", ms.jvp(f, x, Tensor([1.0, 0.0, 0.0]))[1])
print("one per row     ", ms.vmap(ms.grad(f))(ms.ops.ones((2, 3))))

# %% [markdown]
# A Cell or a function may bring its own derivative.


# %%
@ms.custom_vjp(lambda x, out, dout: (-dout,))
def reverse_gradient(x):
    return x


print(ms.grad(lambda x: reverse_gradient(x).sum())(x))

# %% [markdown]
# ## One training step, eager and compiled
#
# `train_step` computes the loss, differentiates, and updates the weights and the running
# statistics. With `@jit` all of that is **one** graph; the learning rate is one of its parameters.

# %%
images, labels = load_digits()
print(ATTRIBUTION)
order = np.random.default_rng(0).permutation(len(images))
images = (images[order, None].astype(np.float32) - 8) / 8
labels = labels[order].astype(np.int32)


def make_net():
    return nn.SequentialCell(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Flatten(), nn.Dense(128, 32), nn.ReLU(), nn.Dense(32, 10),
    ).set_train()  # fmt: skip


net, loss_fn = make_net(), nn.CrossEntropyLoss()
optimizer = nn.Adam(net.trainable_params(), learning_rate=0.005)
gradients_of = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)


@jit
def train_step(x, y):
    loss, gradients = gradients_of(x, y)
    optimizer(gradients)
    return loss


losses = []
rows = dataset.NumpySlicesDataset({"image": images[360:], "label": labels[360:]}).batch(32, True)
for epoch in range(4):
    if epoch == 3:
        optimizer.set_lr(0.001)
    for x, y in rows:
        losses.append(train_step(x, y).item())
print(train_step.explain())
print("written by the graph:", ", ".join(train_step.graph().writes[:6]), "...")

# %%
try:
    import matplotlib.pyplot as plt

    plt.plot(losses)
    plt.xlabel("step")
    plt.ylabel("loss")
    plt.yscale("log")
    plt.show()
except ImportError:
    for i in range(0, len(losses), 16):
        print(f"step {i:3d}  loss {losses[i]:.4f}  " + "#" * int(20 * losses[i]))

# %% [markdown]
# ## The training loop
#
# In GRAPH_MODE a `Model` compiles its steps by itself.

# %%
ms.set_context(mode=ms.GRAPH_MODE)
net = make_net()
steps = rows.get_dataset_size()
rate = nn.cosine_decay_lr(0.0, 0.05, 4 * steps, 1, 4 * steps)
optimizer = nn.Momentum(net.trainable_params(), rate, momentum=0.9, weight_decay=1e-4)
model = ms.Model(net, loss_fn, optimizer, metrics={"accuracy", "loss"})
test = dataset.NumpySlicesDataset({"image": images[:360], "label": labels[:360]}, shuffle=False)
history = train.History()
model.fit(4, rows, test.batch(360), callbacks=[history, train.LossMonitor(0)])
for name, values in sorted(history.history.items()):
    print(name, [round(v, 4) for v in values])

# %% [markdown]
# ## Checkpoints
#
# The file holds the weights, the optimizer's state and the step; MindSpore reads it, too.

# %%
with tempfile.TemporaryDirectory() as folder:
    ms.save_checkpoint(model.train_network, f"{folder}/digits.ckpt", append_dict={"epoch": 4})
    content = ms.load_checkpoint(f"{folder}/digits.ckpt")
    print(int(content["epoch"]), len(content), "entries")
    print(ms.load_param_into_net(model.train_network, content))

# %% [markdown]
# ## Mixed precision
#
# Products in float16, weights in float32, a loss scale that adapts.

# %%
net = make_net()
scale = amp.DynamicLossScaleManager(2.0**12, 2, 50)
optimizer = nn.Adam(net.trainable_params(), 0.005)
model = ms.Model(net, loss_fn, optimizer, {"accuracy"}, amp_level="O2", loss_scale_manager=scale)
model.train(2, rows)
print(model.eval(test.batch(360)), {p.dtype for p in net.get_parameters()})
ms.set_context(mode=ms.PYNATIVE_MODE)
