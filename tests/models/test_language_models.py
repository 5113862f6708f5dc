"""Generated text against forward passes without a cache; rounded weights; folders of a Llama."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tests.models import GPT2
from tvmgraph import Tensor, nn
from tvmgraph.errors import ArgumentError, ShapeError
from tvmgraph.models import (
    DynamicCache,
    Gpt2,
    Gpt2Config,
    LanguageModel,
    Llama,
    LlamaConfig,
    load_hf,
)
from tvmgraph.runtime.tensors import to_bytes

PROMPTS = [[5, 7, 9, 11], [3], [8, 2]]
LLAMA = LlamaConfig(
    vocab_size=67, hidden_size=48, intermediate_size=80, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=48,
)  # fmt: skip


def drawn(net: LanguageModel) -> LanguageModel:
    """Weights that are large enough for texts that do not repeat a token."""
    rng = np.random.default_rng(0)
    for p in net.get_parameters():
        value = p.name.endswith("gamma") + 0.3 * rng.standard_normal(p.shape)
        p.set_data(Tensor(value.astype(np.float32)))
    return net.set_train(False)


@pytest.fixture(scope="module")
def gpt2() -> LanguageModel:
    return drawn(Gpt2(GPT2))


@pytest.fixture(scope="module")
def llama() -> LanguageModel:
    return drawn(Llama(LLAMA))


def likeliest(net: LanguageModel, ids: list[int], count: int) -> list[int]:
    """The text without a cache: a whole forward pass for every token, eagerly."""
    for _ in range(count):
        ids = [*ids, int(net(Tensor([ids], ms.int32)).asnumpy()[0, -1].argmax())]
    return ids


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_texts_are_those_of_whole_forward_passes(name: str, request: Any) -> None:
    net = request.getfixturevalue(name)
    found = net.generate(PROMPTS, 9).asnumpy()
    for prompt, row in zip(PROMPTS, found):
        assert row[4 - len(prompt) :].tolist() == likeliest(net, prompt, 9)


def test_one_compile_for_prompts_and_one_for_tokens(gpt2: LanguageModel) -> None:
    with ms.assert_max_compiles(2):
        for prompt in (*PROMPTS, [1] * 30):
            found = gpt2.generate([prompt], 30 if len(prompt) == 4 else 6).asnumpy()[0]
            if len(prompt) < 9:
                assert found.tolist() == likeliest(gpt2, prompt, len(found) - len(prompt))


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_conversation_reads_only_what_is_new(name: str, request: Any) -> None:
    net = request.getfixturevalue(name)
    cache = DynamicCache()
    talks, seen = [[5, 7, 9, 11], [3, 8, 2, 6], [9, 9, 1, 2]], [4]
    for new in ([], [1, 2, 30], [4], [21, 6, 7, 5, 4, 3], []):
        talks = [[*talk, *new] for talk in talks]
        with ms.assert_max_compiles(0 if len(seen) > 3 else 2):
            found = net.generate(talks, 3, past_key_values=cache).asnumpy()
        assert found.tolist() == net.generate(talks, 3).asnumpy().tolist()
        talks = found.tolist()
        seen.append(cache.get_seq_length())
    assert seen[1:] == [6, 12, 16, 25, 28]
    other = [[*talk[:9], 1, turn] for turn, talk in enumerate(talks)]  # another turn was taken
    found = net.generate(other, 3, past_key_values=cache).asnumpy()
    assert found.tolist() == net.generate(other, 3).asnumpy().tolist()
    padded = net.generate(PROMPTS, 3, past_key_values=cache).asnumpy()
    assert padded.tolist() == net.generate(PROMPTS, 3).asnumpy().tolist()


def test_caches_that_do_not_fit(gpt2: LanguageModel, llama: LanguageModel) -> None:
    cache = DynamicCache()
    gpt2.generate([[1, 2]], 2, past_key_values=cache)
    with pytest.raises(ArgumentError, match="same network"):
        llama.generate([[1, 2]], 2, past_key_values=cache)
    for wrong in ({"past_key_values": 3}, {"past_key_values": cache, "num_beams": 2}):
        with pytest.raises(ArgumentError, match="DynamicCache"):
            gpt2.generate([[1, 2]], 2, **wrong)
    cache.reset()
    assert cache.get_seq_length() == 0


def test_masks_stand_for_padding_on_the_left(gpt2: LanguageModel) -> None:
    ids, mask = np.array([[5, 7, 9, 11], [0, 0, 8, 2]]), np.array([[1, 1, 1, 1], [0, 0, 1, 1]])
    found = gpt2.generate(Tensor(ids, ms.int32), 3, attention_mask=mask).asnumpy()
    assert found[1, 2:].tolist() == likeliest(gpt2, [8, 2], 3)
    with pytest.raises(ArgumentError, match="padded on the left"):
        gpt2.generate(ids, 3, attention_mask=mask[:, ::-1])


def test_texts_end_and_are_streamed_in_order(gpt2: LanguageModel) -> None:
    whole = likeliest(gpt2, [5, 7, 9, 11], 9)[4:]
    end = whole[4]
    count = whole.index(end) + 1

    class Streamer:
        def __init__(self) -> None:
            self.seen: list[int] = []

        def put(self, tokens: np.ndarray) -> None:
            self.seen += tokens.tolist()

        def end(self) -> None:
            self.seen.append(-1)

    streamer = Streamer()
    found = gpt2.generate(PROMPTS[:1], 9, eos_token_id=end, streamer=streamer).asnumpy()
    assert found[0, 4:].tolist() == whole[:count]
    assert streamer.seen == [*whole[:count], -1]
    seen: list[int] = []
    stopped = gpt2.generate(PROMPTS[:1], 9, stop=[whole[1:3]], streamer=lambda t: seen.extend(t))
    assert stopped.asnumpy()[0, 4:].tolist() == whole[:3] == seen


def test_drawn_tokens_are_the_likely_ones_and_can_be_repeated(gpt2: LanguageModel) -> None:
    def text(**how: Any) -> list[list[int]]:
        ms.set_seed(4)
        return gpt2.generate([[5, 7]], 8, do_sample=True, **how).asnumpy().tolist()

    assert text(top_k=1) == [likeliest(gpt2, [5, 7], 8)] == text(top_p=1e-6)
    assert text(temperature=3.0) == text(temperature=3.0) != text(temperature=0.5)


def test_a_search_with_enough_beams_finds_the_likeliest_text() -> None:
    net = drawn(Gpt2(Gpt2Config(vocab_size=5, n_positions=16, n_embd=16, n_layer=1, n_head=2)))
    found = net.generate([[1, 2]], 3, num_beams=25).asnumpy()[0].tolist()
    scores = {}
    for words in itertools.product(range(5), repeat=3):
        logits = net(Tensor([[1, 2, *words]], ms.int32)).asnumpy()[0].astype(np.float64)
        chances = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        scores[words] = sum(chances[1 + i, w] for i, w in enumerate(words))
    assert found[2:] == list(max(scores, key=lambda words: scores[words]))


def test_what_cannot_be_generated(gpt2: LanguageModel) -> None:
    for wrong in ({"max_new_tokens": 0}, {"temperature": 0}, {"top_p": 0}, {"num_beams": 0},
                  {"num_beams": 2, "do_sample": True}, {"max_new_tokens": 61}):  # fmt: skip
        with pytest.raises(ArgumentError):
            gpt2.generate(PROMPTS, **wrong)
    with pytest.raises(ArgumentError, match="tokens must lie"):
        gpt2.generate([[101]], 1)
    for given in (np.ones(3), [1, 2], [[1.5]], [[True]], [[]], "abc", ["ab"], None, [[1], 2]):
        with pytest.raises(ShapeError, match="input_ids must be lists of whole numbers"):
            gpt2.generate(given, 1)
    with pytest.raises(ArgumentError, match="tokens must lie"):
        gpt2.generate([[2**32 + 1]], 1)
    for stop in ("x", [[]], [[1.5]]):
        with pytest.raises(ShapeError, match="stop must be lists of whole numbers"):
            gpt2.generate(PROMPTS, 1, stop=stop)
    with pytest.raises(ArgumentError, match="streamer must be"):
        gpt2.generate(PROMPTS, 1, streamer=3)


def test_texts_of_a_tokenizer_are_arrays(gpt2: LanguageModel) -> None:
    """Rows of several lengths may be arrays or tensors, as tokenizers give them."""
    rows = [np.array([1, 2, 3]), Tensor([4], ms.int64)]
    found = gpt2.generate(rows, 4).asnumpy()
    assert found.tolist() == gpt2.generate([[1, 2, 3], [4]], 4).asnumpy().tolist()


@pytest.mark.parametrize("dtype, group, most", [("int8", None, 0.02), ("int4", 16, 0.3)])
def test_rounded_weights_are_near_and_make_text(dtype: str, group: int | None, most: float) -> None:
    net = drawn(Gpt2(GPT2))
    ids = Tensor([PROMPTS[0]], ms.int32)
    exact = net(ids).asnumpy()
    assert ms.amp.quantize_weights(net, dtype, group) is net
    kinds = {type(cell) for _, cell in net.cells_and_names()}
    assert nn.QuantizedDense in kinds and nn.Dense not in kinds
    near = net(ids).asnumpy()
    assert 0 < np.abs(near - exact).mean() < most * np.abs(exact).mean()
    found = net.generate(PROMPTS[:1], 5).asnumpy()[0]
    assert found.tolist() == likeliest(net, PROMPTS[0], 5)


def test_rounding_a_network_that_is_no_language_model() -> None:
    net = nn.SequentialCell(nn.Dense(64, 32), nn.ReLU(), nn.Dense(32, 8, activation="relu"))
    x = Tensor(np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32))
    exact = net(x).asnumpy()
    ms.amp.quantize_weights(net)
    assert [type(cell).__name__ for cell in net] == ["QuantizedDense", "ReLU", "Dense"]
    np.testing.assert_allclose(ms.jit(net)(x).asnumpy(), exact, atol=0.02)
    with pytest.raises(ArgumentError, match="no layer"):
        ms.amp.quantize_weights(nn.SequentialCell(nn.ReLU()))
    with pytest.raises(ArgumentError, match="group"):
        nn.QuantizedDense(64, 8, bits=4, group=12)


def test_the_folder_of_a_llama(tmp_path: Path, llama: LanguageModel) -> None:
    names = {"embed_tokens.embedding_table": "model.embed_tokens.weight",
             "norm.gamma": "model.norm.weight", "lm_head.weight": "lm_head.weight"}  # fmt: skip
    weights = {}
    for name, p in llama.parameters_dict().items():
        own = name.replace("input_norm.gamma", "input_layernorm.weight")
        own = own.replace("output_norm.gamma", "post_attention_layernorm.weight")
        for part, place in ((".gate_", ".mlp.gate_"), (".up_", ".mlp.up_"),
                            (".down_", ".mlp.down_"), ("_proj", "_proj")):  # fmt: skip
            own = own.replace(part, place)
        for letter in "qkvo":
            own = own.replace(f".{letter}_proj", f".self_attn.{letter}_proj")
        weights[names.get(name, f"model.{own}")] = p.asnumpy()
    (tmp_path / "model.safetensors").write_bytes(to_bytes(weights))
    settings = {"model_type": "llama", "architectures": ["LlamaForCausalLM"],
                "attention_bias": False, "rope_theta": 10000.0} | vars(LLAMA)  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(settings))
    ids = Tensor([PROMPTS[0]], ms.int32)
    np.testing.assert_array_equal(load_hf(tmp_path)(ids).asnumpy(), llama(ids).asnumpy())
    (tmp_path / "config.json").write_text(json.dumps(settings | {"head_dim": 7}))
    with pytest.raises(ArgumentError, match="head_dim"):
        load_hf(tmp_path)
