"""Text by one framework: ``python -m benchmarks.peers.language FORM SIZE``.

Every framework makes a Llama of the same random weights, reads a prompt and goes on with the
likeliest tokens, on one thread. Prints JSON: seconds of a step, bytes of the weights that a step
reads, and the first tokens. Times are of the processor, so that other programs do not count.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

PROMPT, SHORT, LONG = 32, 8, 72
_ROOM = 128
_EPSILON, _THETA = 1e-6, 10000.0

Generate = Callable[[int], list[int]]
#: What makes texts, and the bits of a weight; the whole weights are known by the size.
Made = tuple[Generate, float]


@dataclass(frozen=True)
class Size:
    """A Llama: TinyLlama's sizes, and those of a small one with the width of GPT-2."""

    hidden: int
    wide: int
    layers: int
    heads: int
    kept: int
    words: int = 32000

    @property
    def head(self) -> int:
        """Elements of a head."""
        return self.hidden // self.heads

    @property
    def step_weights(self) -> int:
        """Weights that a step reads: all matrices but the embedding's."""
        attention = 2 * self.hidden * (self.hidden + self.kept * self.head)
        return self.layers * (attention + 3 * self.hidden * self.wide) + self.words * self.hidden

    def step_cache(self, tokens: float) -> float:
        """Elements of the cache that a step reads."""
        return 2 * self.layers * self.kept * self.head * tokens

    def weights(self) -> Iterator[tuple[str, np.ndarray]]:
        """The matrices (out, in); those of norms are ones."""
        rng, kept = np.random.default_rng(0), self.kept * self.head
        shapes = {"q_proj": (self.hidden, self.hidden), "k_proj": (kept, self.hidden),
                  "v_proj": (kept, self.hidden), "o_proj": (self.hidden, self.hidden),
                  "gate_proj": (self.wide, self.hidden), "up_proj": (self.wide, self.hidden),
                  "down_proj": (self.hidden, self.wide)}  # fmt: skip
        whole = {"embed_tokens": (self.words, self.hidden), "lm_head": (self.words, self.hidden)}
        for i in range(self.layers):
            whole |= {f"layers.{i}.{name}": shape for name, shape in shapes.items()}
        for name, shape in whole.items():
            yield name, rng.standard_normal(shape, np.float32) * np.float32(0.03)

    def prompt(self) -> np.ndarray:
        """Tokens of one text."""
        return np.random.default_rng(1).integers(300, self.words, (1, PROMPT))

    def turns(self) -> tuple[np.ndarray, np.ndarray]:
        """Cosines and sines of every place, (room, head / 2)."""
        rates = _THETA ** -(np.arange(0, self.head, 2) / self.head)
        angles = np.arange(_ROOM)[:, None] * rates
        return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


SIZES = {"125M": Size(768, 2048, 12, 12, 12), "1.1B": Size(2048, 5632, 22, 32, 4)}


def _tvmgraph(size: Size, form: str) -> Made:
    import tvmgraph as ms
    from tvmgraph.models import Llama, LlamaConfig

    config = LlamaConfig(size.words, size.hidden, size.wide, size.layers, size.heads, size.kept)
    net = Llama(config).set_train(False)
    parameters = net.parameters_dict()
    for name, value in size.weights():
        end = "embedding_table" if name == "embed_tokens" else "weight"
        parameters[f"{name}.{end}"].set_data(ms.Tensor(value))
    if form != "float32":
        ms.amp.quantize_weights(net, form)
    prompt = size.prompt().astype(np.int32)
    bits = {"float32": 32, "int8": 8 + 16 / size.hidden, "int4": 4.5}[form]
    return lambda count: net.generate(prompt, count).asnumpy()[0, PROMPT:].tolist(), bits


def _torch(size: Size, form: str) -> Made:
    """As a user writes it: a cache that is joined at every token, or of one size if compiled."""
    import torch
    from torch.nn import functional as f

    torch.set_num_threads(1)
    w = {name: torch.from_numpy(value) for name, value in size.weights()}
    cosines, sines = (torch.from_numpy(np.tile(part, 2)) for part in size.turns())
    ones, fixed = torch.ones(size.hidden), form == "compile"
    shape = (1, size.kept, _ROOM, size.head)
    kept: list[Any] = [None] * size.layers

    def turned(x: Any, cos: Any, sin: Any) -> Any:
        low, high = x.chunk(2, -1)
        return x * cos + torch.cat((-high, low), -1) * sin

    def logits(ids: Any, places: Any, kept: list[Any]) -> Any:
        t = ids.shape[1]
        x, cos, sin = w["embed_tokens"][ids], cosines[places], sines[places]
        hidden = torch.arange(_ROOM) <= places[:, None] if fixed else None
        for i in range(size.layers):

            def dense(y: Any, name: str, i: int = i) -> Any:
                return f.linear(y, w[f"layers.{i}.{name}"])

            y = f.rms_norm(x, (size.hidden,), ones, _EPSILON)
            q, k, v = (dense(y, f"{n}_proj").view(1, t, -1, size.head).transpose(1, 2)
                       for n in "qkv")  # fmt: skip
            q, k = turned(q, cos, sin), turned(k, cos, sin)
            if fixed:
                k, v = (c.index_copy_(2, places, part) for c, part in zip(kept[i], (k, v)))
            else:
                if kept[i] is not None:
                    k, v = (torch.cat(pair, 2) for pair in zip(kept[i], (k, v)))
                kept[i] = (k, v)
            grouped = size.kept != size.heads
            y = f.scaled_dot_product_attention(
                q, k, v, attn_mask=hidden, is_causal=not fixed and t > 1, enable_gqa=grouped
            )
            x = x + dense(y.transpose(1, 2).reshape(1, t, -1), "o_proj")
            y = f.rms_norm(x, (size.hidden,), ones, _EPSILON)
            x = x + dense(f.silu(dense(y, "gate_proj")) * dense(y, "up_proj"), "down_proj")
        return f.rms_norm(x[:, -1], (size.hidden,), ones, _EPSILON) @ w["lm_head"].T

    step = torch.compile(logits, dynamic=False) if fixed else logits
    prompt = torch.from_numpy(size.prompt())

    @torch.inference_mode()
    def generate(count: int) -> list[int]:
        kept[:] = [(torch.zeros(shape), torch.zeros(shape)) if fixed else None for _ in kept]
        ids, first, found = prompt, 0, []
        for number in range(count):
            places = torch.arange(first, first + ids.shape[1])
            token = (step if number else logits)(ids, places, kept).argmax(-1)
            first, ids = first + ids.shape[1], token[:, None]
            found.append(int(token))
        return found

    return generate, 32


def _onnxruntime(size: Size, form: str) -> Made:
    """As ONNX Runtime's generator makes models: its own operators, a cache that stays in place."""
    import onnx
    import onnxruntime as ort
    from onnx import TensorProto as P
    from onnx import helper, numpy_helper

    nodes: list[Any] = []
    fixed: list[Any] = []
    w = dict(size.weights())

    def node(kind: str, inputs: list[str], *outputs: str, **attributes: Any) -> str:
        own = () if kind in ("MatMul", "Gather", "Add", "Mul", "Sigmoid") else ("com.microsoft",)
        if kind == "SimplifiedLayerNormalization":
            own = ()
        nodes.append(helper.make_node(kind, inputs, list(outputs), domain="".join(own),
                                      **attributes))  # fmt: skip
        return outputs[0]

    def constant(name: str, value: np.ndarray) -> str:
        fixed.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def dense(x: str, name: str) -> str:
        weight = w.pop(name)
        if form == "float32":
            return node("MatMul", [x, constant(name, weight.T)], f"{name}.y")
        words, scales = _blocks(weight, int(form[3:]))
        columns, depth = weight.shape
        return node("MatMulNBits", [x, constant(name, words), constant(f"{name}.s", scales)],
                    f"{name}.y", K=depth, N=columns, bits=int(form[3:]), block_size=32,
                    accuracy_level=4)  # fmt: skip

    def norm(x: str, name: str) -> str:
        return node("SimplifiedLayerNormalization", [x, "ones"], name, epsilon=_EPSILON, axis=-1)

    constant("ones", np.ones(size.hidden, np.float32))
    for name, value in zip(("cos", "sin"), size.turns()):
        constant(name, value)
    x = node("Gather", [constant("table", w.pop("embed_tokens")), "ids"], "x")
    caches = []
    for i in range(size.layers):
        of, y = f"layers.{i}.", norm(x, f"layers.{i}.a")
        q, k, v = (dense(y, f"{of}{n}_proj") for n in "qkv")
        past = [f"past.{i}.{n}" for n in "kv"]
        present = [f"present.{i}.{n}" for n in "kv"]
        caches += [*zip(past, present)]
        node("GroupQueryAttention", [q, k, v, *past, "seen", "total", "cos", "sin"], f"{of}m",
             *present, num_heads=size.heads, kv_num_heads=size.kept, do_rotary=1)  # fmt: skip
        x = node("Add", [x, dense(f"{of}m", f"{of}o_proj")], f"{of}x")
        y = norm(x, f"{of}b")
        gate = dense(y, f"{of}gate_proj")
        gate = node("Mul", [gate, node("Sigmoid", [gate], f"{of}s")], f"{of}g")
        wide = node("Mul", [gate, dense(y, f"{of}up_proj")], f"{of}w")
        x = node("Add", [x, dense(wide, f"{of}down_proj")], f"{of}z")
    logits = dense(norm(x, "last"), "lm_head")
    info = helper.make_tensor_value_info
    room = (1, size.kept, _ROOM, size.head)
    graph = helper.make_graph(
        nodes, "llama",
        [info("ids", P.INT64, (1, "T")), info("seen", P.INT32, (1,)), info("total", P.INT32, ()),
         *(info(past, P.FLOAT, room) for past, _ in caches)],
        [info(logits, P.FLOAT, (1, "T", size.words)),
         *(info(present, P.FLOAT, room) for _, present in caches)],
        fixed,
    )  # fmt: skip
    sets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=9)
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        onnx.save_model(model, path, save_as_external_data=True, location="weights")
        del model, graph, nodes[:], fixed[:]
        session = ort.InferenceSession(path, options, ["CPUExecutionProvider"])
    prompt = size.prompt()

    def generate(count: int) -> list[int]:
        values = {past: ort.OrtValue.ortvalue_from_numpy(np.zeros(room, np.float32))
                  for past, _ in caches}  # fmt: skip
        ids, end, found = prompt, PROMPT, []
        for _ in range(count):
            binding = session.io_binding()
            binding.bind_cpu_input("ids", np.ascontiguousarray(ids))
            binding.bind_cpu_input("seen", np.array([end - 1], np.int32))
            binding.bind_cpu_input("total", np.array(end, np.int32))
            for past, present in caches:
                binding.bind_ortvalue_input(past, values[past])
                binding.bind_ortvalue_output(present, values[past])
            binding.bind_output(logits)
            session.run_with_iobinding(binding)
            found.append(int(binding.get_outputs()[-1].numpy()[0, -1].argmax()))
            ids, end = np.array([[found[-1]]]), end + 1
        return found

    return generate, {"float32": 32, "int8": 9, "int4": 5}[form]


def _blocks(weight: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Words and scales of blocks of 32, as ``MatMulNBits`` takes them."""
    columns, most = len(weight), (1 << bits - 1) - 1
    parts = weight.reshape(columns, -1, 32)
    scales = np.abs(parts).max(-1) / most
    whole = np.rint(parts / scales[..., None]).astype(np.int16) + (1 << bits - 1)
    words = whole.astype(np.uint8)
    return (words if bits == 8 else words[..., ::2] | words[..., 1::2] << 4), scales


def _llama_cpp(size: Size, form: str) -> Made:
    import gguf
    import llama_cpp

    kind = gguf.GGMLQuantizationType[form]
    names = {"q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output",
             "gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down",
             "embed_tokens": "token_embd", "lm_head": "output"}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.gguf")
        file = gguf.GGUFWriter(path, "llama")
        file.add_context_length(_ROOM)
        file.add_embedding_length(size.hidden)
        file.add_block_count(size.layers)
        file.add_feed_forward_length(size.wide)
        file.add_head_count(size.heads)
        file.add_head_count_kv(size.kept)
        file.add_layer_norm_rms_eps(_EPSILON)
        file.add_rope_freq_base(_THETA)
        file.add_rope_dimension_count(size.head)
        file.add_vocab_size(size.words)
        file.add_tokenizer_model("no_vocab")
        for name, value in size.weights():
            *layer, last = name.split(".")
            if last in ("q_proj", "k_proj"):  # it turns neighbours instead of halves
                halves = value.reshape(-1, 2, size.head // 2, value.shape[1])
                value = halves.swapaxes(1, 2).reshape(value.shape)
            place = f"blk.{layer[1]}.{names[last]}" if layer else names[last]
            file.add_tensor(f"{place}.weight", gguf.quants.quantize(value, kind), raw_dtype=kind)
        norms = [f"blk.{i}.{n}_norm" for i in range(size.layers) for n in ("attn", "ffn")]
        for place in (*norms, "output_norm"):
            file.add_tensor(f"{place}.weight", np.ones(size.hidden, np.float32))
        file.write_header_to_file()
        file.write_kv_data_to_file()
        file.write_tensors_to_file()
        file.close()
        parameters = llama_cpp.llama_model_default_params()
        parameters.use_mmap = False
        model = llama_cpp.llama_model_load_from_file(path.encode(), parameters)
    settings = llama_cpp.llama_context_default_params()
    settings.n_ctx, settings.n_threads, settings.n_threads_batch = _ROOM, 1, 1
    context = llama_cpp.llama_init_from_model(model, settings)
    prompt = size.prompt()[0].tolist()

    def generate(count: int) -> list[int]:
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)
        ids, found = prompt, []
        for _ in range(count):
            tokens = (llama_cpp.llama_token * len(ids))(*ids)
            llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(tokens, len(ids)))
            logits = llama_cpp.llama_get_logits_ith(context, -1)
            found.append(int(np.ctypeslib.as_array(logits, (size.words,)).argmax()))
            ids = found[-1:]
        return found

    return generate, {"F32": 32, "F16": 16, "Q8_0": 8.5, "Q4_0": 4.5}[form]


#: By the text of a row: the package that makes it, and its form there.
FORMS: dict[str, tuple[Callable[[Size, str], Made], str, str]] = {
    "tvmgraph, float32": (_tvmgraph, "tvmgraph", "float32"),
    "tvmgraph, int8": (_tvmgraph, "tvmgraph", "int8"),
    "tvmgraph, int4": (_tvmgraph, "tvmgraph", "int4"),
    "PyTorch, eager": (_torch, "torch", "eager"),
    "PyTorch, torch.compile": (_torch, "torch", "compile"),
    "ONNX Runtime, float32": (_onnxruntime, "onnxruntime", "float32"),
    "ONNX Runtime, int8": (_onnxruntime, "onnxruntime", "int8"),
    "ONNX Runtime, int4": (_onnxruntime, "onnxruntime", "int4"),
    "llama.cpp, F32": (_llama_cpp, "llama_cpp", "F32"),
    "llama.cpp, F16": (_llama_cpp, "llama_cpp", "F16"),
    "llama.cpp, Q8_0": (_llama_cpp, "llama_cpp", "Q8_0"),
    "llama.cpp, Q4_0": (_llama_cpp, "llama_cpp", "Q4_0"),
}


def _seconds(call: Callable[[], Any]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def bandwidth() -> float:
    """Bytes per second that a thread reads from memory."""
    data = np.ones(512 << 20 >> 2, np.int32)
    return data.nbytes / min(_seconds(data.max) for _ in range(5))


def measure(form: str, size: Size, repeat: int) -> dict[str, Any]:
    """Times a step: the difference of a long and a short text, without the prompt."""
    make, _, name = FORMS[form]
    generate, bits = make(size, name)
    text = generate(SHORT)
    short, long = (
        min(_seconds(partial(generate, count)) for _ in range(repeat)) for count in (SHORT, LONG)
    )
    return {"seconds": (long - short) / (LONG - SHORT), "text": text, "read": bandwidth(),
            "bytes": size.step_weights * bits / 8}  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], SIZES[sys.argv[2]], int(sys.argv[3]))))
