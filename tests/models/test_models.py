"""BERT and GPT-2 against slow definitions, and their Hugging Face folders."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tests.models import BERT, GPT2
from tvmgraph import Tensor
from tvmgraph.errors import ArgumentError, NotFoundError, ShapeError
from tvmgraph.models import load_hf
from tvmgraph.runtime.tensors import from_bytes, to_bytes

RNG = np.random.default_rng(3)
Weights = dict[str, np.ndarray]


def draw(*shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) * 0.2).astype(np.float32)


def bert_weights(prefix: str = "") -> Weights:
    e, wide = BERT.hidden_size, BERT.intermediate_size
    w = {
        "embeddings.word_embeddings.weight": draw(BERT.vocab_size, e),
        "embeddings.position_embeddings.weight": draw(BERT.max_position_embeddings, e),
        "embeddings.token_type_embeddings.weight": draw(BERT.type_vocab_size, e),
        "embeddings.position_ids": np.arange(BERT.max_position_embeddings),
        "pooler.dense.weight": draw(e, e),
        "pooler.dense.bias": draw(e),
    }
    norms = ["embeddings.LayerNorm"]
    for i in range(BERT.num_hidden_layers):
        at = f"encoder.layer.{i}."
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            w[f"{at}attention.{part}.weight"], w[f"{at}attention.{part}.bias"] = draw(e, e), draw(e)
        w[f"{at}intermediate.dense.weight"] = draw(wide, e)
        w[f"{at}intermediate.dense.bias"] = draw(wide)
        w[f"{at}output.dense.weight"], w[f"{at}output.dense.bias"] = draw(e, wide), draw(e)
        norms += [f"{at}attention.output.LayerNorm", f"{at}output.LayerNorm"]
    for name in norms:
        w[f"{name}.weight"], w[f"{name}.bias"] = 1 + draw(e), draw(e)
    return {prefix + k: v for k, v in w.items()}


def gpt2_weights(prefix: str = "") -> Weights:
    e, t = GPT2.n_embd, GPT2.n_positions
    w = {"wte.weight": draw(GPT2.vocab_size, e), "wpe.weight": draw(t, e)}
    norms = ["ln_f"]
    for i in range(GPT2.n_layer):
        shapes = {"attn.c_attn": (e, 3 * e), "attn.c_proj": (e, e),
                  "mlp.c_fc": (e, 4 * e), "mlp.c_proj": (4 * e, e)}  # fmt: skip
        for name, shape in shapes.items():
            w[f"h.{i}.{name}.weight"], w[f"h.{i}.{name}.bias"] = draw(*shape), draw(shape[1])
        w[f"h.{i}.attn.bias"] = np.tril(np.ones((1, 1, t, t), np.bool_))
        norms += [f"h.{i}.ln_1", f"h.{i}.ln_2"]
    for name in norms:
        w[f"{name}.weight"], w[f"{name}.bias"] = 1 + draw(e), draw(e)
    return {prefix + k: v for k, v in w.items()}


def norm(x: np.ndarray, w: Weights, name: str, eps: float) -> np.ndarray:
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
    return x * w[name + ".weight"] + w[name + ".bias"]


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, heads: int, seen: Any) -> np.ndarray:
    out = np.empty_like(q)
    size = q.shape[-1] // heads
    for n in range(q.shape[0]):
        for h in range(heads):
            part = slice(h * size, (h + 1) * size)
            for t in range(q.shape[1]):
                scores = [
                    q[n, t, part] @ k[n, s, part] / math.sqrt(size) if seen(n, t, s) else -np.inf
                    for s in range(q.shape[1])
                ]
                weights = np.exp(np.array(scores) - max(scores))
                out[n, t, part] = (weights / weights.sum()) @ v[n, :, part]
    return out


def slow_bert(w: Weights, ids: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    eps, erf = BERT.layer_norm_eps, np.vectorize(math.erf)

    def dense(x: np.ndarray, name: str) -> np.ndarray:
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    x = w["embeddings.word_embeddings.weight"][ids]
    x = x + w["embeddings.position_embeddings.weight"][: ids.shape[1]]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][0], w, "embeddings.LayerNorm", eps)
    for i in range(BERT.num_hidden_layers):
        at = f"encoder.layer.{i}."
        q, k, v = (dense(x, f"{at}attention.self.{p}") for p in ("query", "key", "value"))
        y = attention(q, k, v, BERT.num_attention_heads, lambda n, t, s: mask[n, s])
        x = norm(
            x + dense(y, f"{at}attention.output.dense"), w, f"{at}attention.output.LayerNorm", eps
        )
        y = dense(x, f"{at}intermediate.dense")
        y = y * 0.5 * (1 + erf(y / math.sqrt(2)))
        x = norm(x + dense(y, f"{at}output.dense"), w, f"{at}output.LayerNorm", eps)
    return x, np.tanh(dense(x[:, 0], "pooler.dense"))


def slow_gpt2(w: Weights, ids: np.ndarray) -> np.ndarray:
    eps = GPT2.layer_norm_epsilon

    def dense(x: np.ndarray, name: str) -> np.ndarray:
        return x @ w[name + ".weight"] + w[name + ".bias"]

    x = w["wte.weight"][ids] + w["wpe.weight"][: ids.shape[1]]
    for i in range(GPT2.n_layer):
        joined = dense(norm(x, w, f"h.{i}.ln_1", eps), f"h.{i}.attn.c_attn")
        q, k, v = np.split(joined, 3, -1)
        y = attention(q, k, v, GPT2.n_head, lambda n, t, s: s <= t)
        x = x + dense(y, f"h.{i}.attn.c_proj")
        y = dense(norm(x, w, f"h.{i}.ln_2", eps), f"h.{i}.mlp.c_fc")
        y = 0.5 * y * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))
        x = x + dense(y, f"h.{i}.mlp.c_proj")
    return norm(x, w, "ln_f", eps) @ w["wte.weight"].T


def write(folder: Path, weights: Weights, **settings: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "model.safetensors").write_bytes(to_bytes(weights))
    return folder


def bert_settings() -> dict[str, Any]:
    return {"model_type": "bert", "hidden_act": "gelu", **vars(BERT)}


def gpt2_settings() -> dict[str, Any]:
    return {"model_type": "gpt2", "activation_function": "gelu_new", **vars(GPT2)}


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_bert_folder(tmp_path: Path, prefix: str) -> None:
    weights = bert_weights()
    extra = {"cls.predictions.bias": draw(BERT.vocab_size)} if prefix else {}
    named = {prefix + k: v for k, v in weights.items()} | extra
    net = load_hf(write(tmp_path / "bert", named, **bert_settings()))
    ids = RNG.integers(0, BERT.vocab_size, (2, 5)).astype(np.int32)
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], np.int32)
    wide = {k: v.astype(np.float64) for k, v in weights.items()}
    expected = slow_bert(wide, ids, mask)
    for run in (net, ms.jit(net)):
        for got, want in zip(run(Tensor(ids), Tensor(mask)), expected, strict=True):
            np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_gpt2_folder(tmp_path: Path, prefix: str) -> None:
    weights = gpt2_weights()
    net = ms.load_hf(
        write(tmp_path / "g", {prefix + k: v for k, v in weights.items()}, **gpt2_settings())
    )
    ids = RNG.integers(0, GPT2.vocab_size, (2, 5)).astype(np.int32)
    expected = slow_gpt2({k: v.astype(np.float64) for k, v in weights.items()}, ids)
    for run in (net, ms.jit(net)):
        np.testing.assert_allclose(run(Tensor(ids)).asnumpy(), expected, rtol=1e-4, atol=1e-5)


def bert_head(architecture: str) -> tuple[Weights, Any]:
    """Weights of a head with 3 labels, and what it computes from hidden and pooled states."""
    e = BERT.hidden_size
    eps, erf = BERT.layer_norm_eps, np.vectorize(math.erf)
    rows = {"BertForQuestionAnswering": 2, "BertForMaskedLM": e}.get(architecture, 3)
    w, b = draw(rows, e), draw(rows)
    if architecture == "BertForSequenceClassification":
        return {"classifier.weight": w, "classifier.bias": b}, lambda h, p, _: [p @ w.T + b]
    if architecture == "BertForTokenClassification":
        return {"classifier.weight": w, "classifier.bias": b}, lambda h, p, _: [h @ w.T + b]
    if architecture == "BertForQuestionAnswering":
        weights = {"qa_outputs.weight": w, "qa_outputs.bias": b}
        return weights, lambda h, p, _: list(np.moveaxis(h @ w.T + b, -1, 0))
    at = "cls.predictions."
    weights = {
        f"{at}transform.dense.weight": w, f"{at}transform.dense.bias": b,
        f"{at}transform.LayerNorm.weight": draw(e), f"{at}transform.LayerNorm.bias": draw(e),
        f"{at}bias": draw(BERT.vocab_size),
    }  # fmt: skip

    def logits(h: np.ndarray, p: np.ndarray, table: np.ndarray) -> list[np.ndarray]:
        y = h @ w.T + b
        y = y * 0.5 * (1 + erf(y / math.sqrt(2)))
        return [norm(y, weights, f"{at}transform.LayerNorm", eps) @ table.T + weights[f"{at}bias"]]

    return weights, logits


@pytest.mark.parametrize(
    "architecture",
    ["BertForSequenceClassification", "BertForTokenClassification", "BertForQuestionAnswering",
     "BertForMaskedLM"],
)  # fmt: skip
def test_bert_heads(tmp_path: Path, architecture: str) -> None:
    body, (head, expected) = bert_weights(), bert_head(architecture)
    weights = {f"bert.{k}": v for k, v in body.items()} | head
    labels = {str(i): f"LABEL_{i}" for i in range(3)}
    settings = bert_settings() | {"architectures": [architecture], "id2label": labels}
    settings.pop("num_labels")
    folder = write(tmp_path / "bert", weights, **settings)
    net = load_hf(folder)
    assert type(net).__name__ == architecture
    ids = RNG.integers(0, BERT.vocab_size, (2, 5)).astype(np.int32)
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], np.int32)
    hidden, pooled = slow_bert({k: v.astype(np.float64) for k, v in body.items()}, ids, mask)
    want = expected(hidden, pooled, body["embeddings.word_embeddings.weight"])
    got = net(Tensor(ids), Tensor(mask))
    for g, w in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
        np.testing.assert_allclose(g.asnumpy(), w, rtol=1e-4, atol=1e-4)
    assert type(load_hf(folder, head=False)).__name__ == "Bert"


def test_gpt2_classifier(tmp_path: Path) -> None:
    """The logits are those of the last token that is no padding, as if there were none."""
    weights = {f"transformer.{k}": v for k, v in gpt2_weights().items()}
    weights["score.weight"] = draw(3, GPT2.n_embd)
    named = {"architectures": ["GPT2ForSequenceClassification"], "num_labels": 3}
    folder = write(tmp_path / "g", weights, **gpt2_settings() | named | {"pad_token_id": 0})
    net = load_hf(folder)
    ids = RNG.integers(1, GPT2.vocab_size, (2, 5)).astype(np.int32)
    ids[1, 3:] = 0
    mask = Tensor((ids != 0).astype(np.int32))
    for run in (net, ms.jit(net)):
        whole = run(Tensor(ids), mask).asnumpy()
        assert whole.shape == (2, 3)
        short = net(Tensor(ids[1:, :3])).asnumpy()
        np.testing.assert_allclose(whole[1:], short, rtol=1e-4, atol=1e-5)
    body = load_hf(folder, head=False)
    hidden = body.hidden_states(Tensor(ids[:1])).asnumpy()
    np.testing.assert_allclose(
        whole[0], weights["score.weight"] @ hidden[0, -1], rtol=1e-3, atol=1e-4
    )


def test_several_files_and_bfloat16(tmp_path: Path) -> None:
    import ml_dtypes

    weights = {k: v.astype(ml_dtypes.bfloat16) for k, v in gpt2_weights().items()}
    names = sorted(weights)
    halves = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    folder = write(tmp_path / "g", {}, **gpt2_settings())
    (folder / "model.safetensors").unlink()
    for file, part in halves.items():
        (folder / file).write_bytes(to_bytes({n: weights[n] for n in part}))
    weight_map = {n: file for file, part in halves.items() for n in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    net = load_hf(folder)
    table = net.wte.embedding_table.asnumpy()
    np.testing.assert_array_equal(table, weights["wte.weight"].astype(np.float32))
    (folder / "b.safetensors").unlink()
    with pytest.raises(NotFoundError, match=r"no b\.safetensors"):
        load_hf(folder)


def test_bad_folders(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no config\.json"):
        load_hf(tmp_path)
    weights = gpt2_weights()
    folder = write(tmp_path / "g", weights, **gpt2_settings() | {"model_type": "t5"})
    with pytest.raises(ArgumentError, match="model_type is 't5'"):
        load_hf(folder)
    write(folder, weights, **gpt2_settings() | {"activation_function": "quick_gelu"})
    with pytest.raises(ArgumentError, match="activation_function is 'quick_gelu'"):
        load_hf(folder)
    write(folder, weights, **gpt2_settings() | {"n_layer": 4})
    with pytest.raises(NotFoundError, match="12 weights are missing"):
        load_hf(folder)
    write(folder, weights, **gpt2_settings() | {"vocab_size": 7})
    with pytest.raises(ShapeError, match=r"wte\.embedding_table is \(101, 48\)"):
        load_hf(folder)
    (folder / "model.safetensors").write_bytes(b"\x05\x00\x00")
    with pytest.raises(ArgumentError, match="no safetensors"):
        load_hf(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(ArgumentError, match=r"config\.json is damaged"):
        load_hf(folder)


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
              "float16", "bfloat16", "float32", "float64", "complex64"],
)  # fmt: skip
def test_arrays_survive(dtype: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(ms.dtypes.dtype_of(dtype).numpy)
    arrays = {"a.b": array, "scalar": array[0, 0], "empty": array[:0], "turned": array.T}
    back = from_bytes(to_bytes(arrays))
    assert back.keys() == arrays.keys()
    for name, value in arrays.items():
        assert back[name].dtype == array.dtype
        np.testing.assert_array_equal(back[name], value)
