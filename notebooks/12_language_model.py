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
# # A language model
#
# `load_hf(folder)` reads a GPT-2 or a Llama from `config.json` and safetensors; nothing is
# downloaded. Here is a small GPT-2 that learns its text in half a minute instead.

# %%
import lzma
import time
from importlib.resources import files

import numpy as np

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops
from tvmgraph.models import Gpt2, Gpt2Config

ms.set_seed(1)
packed = (files("tvmgraph") / "data" / "alice.txt.xz").read_bytes()
text = lzma.decompress(packed)[:20_000].decode("ascii", "ignore")
letters = sorted(set(text))
number = {letter: i for i, letter in enumerate(letters)}
data = np.array([number[letter] for letter in text], np.int32)
sizes = {"n_embd": 96, "n_layer": 2, "n_head": 4}
net = Gpt2(Gpt2Config(len(letters), n_positions=128, resid_pdrop=0.0, **sizes))


def loss_of(ids):
    logits = net(ids[:, :-1])
    return ops.cross_entropy(logits.reshape((-1, len(letters))), ids[:, 1:].reshape((-1,)))


optimizer = nn.Adam(net.trainable_params(), learning_rate=3e-3)
gradient = ms.value_and_grad(loss_of, None, optimizer.parameters)


@ms.jit
def step(ids):
    loss, gradients = gradient(ids)
    optimizer(gradients)
    return loss


rng = np.random.default_rng(0)
for number_of_step in range(150):
    starts = rng.integers(0, len(data) - 49, 16)
    loss = step(Tensor(np.stack([data[i : i + 49] for i in starts])))
    if number_of_step % 50 == 49:
        print(number_of_step + 1, float(loss))

# %% [markdown]
# ## Generating
#
# A step reads one token: keys and values of the ones before it are kept. One compile reads prompts
# of any length, another one tokens; the streamer gets every token at once.


# %%
def ids_of(words):
    return [number[letter] for letter in words]


def words_of(ids):
    return "".join(letters[i] for i in ids)


net.set_train(False)
shown = net.generate(
    [ids_of("Alice was ")], 60, streamer=lambda new: print(letters[int(new[0])], end="")
)

# %%
with ms.assert_max_compiles(0):
    for prompt in ("The Rabbit ", "Oh dear! "):
        ids = [ids_of(prompt)]
        drawn = net.generate(ids, 50, do_sample=True, top_p=0.9, temperature=0.8)
        print(repr(words_of(drawn.asnumpy()[0])))

# %% [markdown]
# Prompts of several lengths are padded on the left and read together; a text may end at a token or
# after a sequence of them. `num_beams` searches for the likeliest text.

# %%
several = net.generate([ids_of("The "), ids_of("Down the ")], 30, stop=[ids_of(", ")])
beams = net.generate([ids_of("She ")], 20, num_beams=3)
several.shape, words_of(beams.asnumpy()[0])

# %% [markdown]
# ## Conversations
#
# A `DynamicCache` keeps what was read. The next call gets the whole text so far and reads only what
# is new; if another turn was taken, it reads from there.

# %%
cache = ms.models.DynamicCache()
talk = ids_of("Alice was ")
for turn in ("", " said the ", " and the "):
    talk = [*talk, *ids_of(turn)]
    talk = net.generate([talk], 12, past_key_values=cache).asnumpy()[0].tolist()
    print(repr(words_of(talk)), cache.get_seq_length())

# %% [markdown]
# ## Weights of a few bits
#
# A step waits for the weights to come from memory. `quantize_weights` rounds those of all dense
# layers to 8 bits, or to 4 in groups that share a factor; kernels take them apart in registers, and
# the sums stay as exact as those of float32.

# %%
exact = net(Tensor([ids_of("Alice was")], ms.int32)).asnumpy()
ms.amp.quantize_weights(net, "int4")
near = net(Tensor([ids_of("Alice was")], ms.int32)).asnumpy()
print(f"logits differ by {np.abs(near - exact).mean():.2f}, they are {np.abs(exact).mean():.2f}")
begin = time.perf_counter()
found = net.generate([ids_of("Alice was ")], 60)
print(repr(words_of(found.asnumpy()[0])), f"{time.perf_counter() - begin:.1f} s with compiling")
net.h[0].c_attn
