"""Tokens per second of generated text: ``python -m benchmarks.language``.

A GPT-2 of 124 million random weights continues a prompt, one text, on one thread. Times are of the
processor, so that other programs do not count, and of a step: the difference of a long and a short
text, without the prompt. *Of memory* is the share of what the thread reads per second from memory
(BLAS's product of 512 MB with themselves) that the weights of a step take. PyTorch runs the same
weights eagerly, with a cache that is joined at every token.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

for _name in ("TVM_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402
import typer  # noqa: E402

import tvmgraph as ms  # noqa: E402
from tvmgraph.models import Gpt2, Gpt2Config  # noqa: E402

_PROMPT, _SHORT, _LONG = 32, 8, 40


def bandwidth() -> float:
    """Bytes per second that a thread reads from memory."""
    data = np.ones(512 << 20 >> 2, np.float32)
    return data.nbytes / min(_seconds(lambda: data @ data) for _ in range(9))


def _seconds(call: Callable[[], Any]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def token_seconds(generate: Callable[[int], Any], repeat: int = 3) -> float:
    """Seconds of a step, where ``generate`` makes so many tokens."""
    generate(_SHORT)
    short, long = (
        min(_seconds(partial(generate, count)) for _ in range(repeat)) for count in (_SHORT, _LONG)
    )
    return (long - short) / (_LONG - _SHORT)


def weight_bytes(net: Any) -> int:
    """Bytes that a step reads: all weights but tables of embeddings, of which it reads a row."""
    sizes = {name: p.asnumpy().nbytes for name, p in net.parameters_dict().items()}
    own_head = net.lm_head is not None
    skipped = ("wpe.", "wte.") if own_head else ("wpe.",)
    return sum(size for name, size in sizes.items() if not name.startswith(skipped))


def torch_generate(net: Any, config: Gpt2Config, prompt: np.ndarray) -> Callable[[int], Any]:
    """The same network in PyTorch, as a user would write it."""
    import torch
    from torch.nn import functional as f

    torch.set_num_threads(1)
    w = {name: torch.from_numpy(p.asnumpy().copy()) for name, p in net.parameters_dict().items()}
    heads = config.n_head

    def dense(x: Any, name: str) -> Any:
        return f.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

    def norm(x: Any, name: str) -> Any:
        return f.layer_norm(x, (config.n_embd,), w[f"{name}.gamma"], w[f"{name}.beta"])

    def logits(ids: Any, first: int, kept: list[Any]) -> Any:
        t = ids.shape[1]
        x = w["wte.embedding_table"][ids] + w["wpe.embedding_table"][first : first + t]
        for i in range(config.n_layer):
            parts = dense(norm(x, f"h.{i}.ln_1"), f"h.{i}.c_attn").chunk(3, -1)
            q, k, v = (p.view(1, t, heads, -1).transpose(1, 2) for p in parts)
            if kept[i] is not None:
                k, v = (torch.cat(pair, 2) for pair in zip(kept[i], (k, v)))
            kept[i] = (k, v)
            y = f.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
            x = x + dense(y.transpose(1, 2).reshape(1, t, -1), f"h.{i}.c_proj")
            wide = f.gelu(dense(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp_fc"), approximate="tanh")
            x = x + dense(wide, f"h.{i}.mlp_proj")
        return norm(x[:, -1], "ln_f") @ w["wte.embedding_table"].T

    @torch.inference_mode()
    def generate(count: int) -> list[int]:
        ids, kept, found = torch.from_numpy(prompt).long(), [None] * config.n_layer, []
        first = 0
        for _ in range(count):
            token = logits(ids, first, kept).argmax(-1)
            first, ids = first + ids.shape[1], token[:, None]
            found.append(int(token))
        return found

    return generate


def main(layers: int = 12, size: int = 768, peers: bool = True) -> None:
    """Prints a table; other sizes are those of a smaller or larger GPT-2."""
    ms.set_seed(0)
    config = Gpt2Config(n_layer=layers, n_embd=size, n_head=size // 64)
    net = Gpt2(config).set_train(False)
    prompt = np.random.default_rng(0).integers(0, config.vocab_size, (1, _PROMPT)).astype(np.int32)
    read = bandwidth()
    print(f"one thread reads {read / 1e9:.1f} GB/s from memory\n")
    print("| | ms per token | tokens per s | MB of weights | of memory |\n|---|---|---|---|---|")

    def row(name: str, seconds: float, size: int) -> None:
        share = size / seconds / read
        print(f"| {name} | {seconds * 1e3:.2f} | {1 / seconds:.0f} | {size / 1e6:.0f} "
              f"| {share:.0%} |", flush=True)  # fmt: skip

    if peers:
        peer = torch_generate(net, config, prompt)
        same = peer(_SHORT) == net.generate(prompt, _SHORT).asnumpy()[0, _PROMPT:].tolist()
        row("PyTorch, eager", token_seconds(peer), weight_bytes(net))
        if not same:
            print("PyTorch made another text")
    for dtype in ("float32", "int8", "int4"):
        if dtype != "float32":
            net = Gpt2(config).set_train(False)
            ms.amp.quantize_weights(net, dtype)
        seconds = token_seconds(lambda n, net=net: net.generate(prompt, n))
        row(dtype, seconds, weight_bytes(net))


if __name__ == "__main__":
    typer.run(main)
