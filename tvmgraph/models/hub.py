"""Networks from local Hugging Face folders: ``config.json`` and safetensors."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, NotFoundError, ShapeError, reject
from tvmgraph.models import heads
from tvmgraph.models.attention import ACTIVATIONS
from tvmgraph.models.bert import Bert, BertConfig
from tvmgraph.models.gpt2 import Gpt2, Gpt2Config
from tvmgraph.models.llama import Llama, LlamaConfig
from tvmgraph.nn import Cell
from tvmgraph.runtime.tensors import BadTensors, from_bytes

Rules = tuple[tuple[str, str], ...]

# Applied in order to the names in the file; what is left is the name of a parameter here.
_BERT: Rules = (
    (r"^bert\.", ""),
    (r"LayerNorm\.(gamma|weight)$", "LayerNorm.gamma"),
    (r"LayerNorm\.(beta|bias)$", "LayerNorm.beta"),
    (r"^embeddings\.LayerNorm", "embeddings.layer_norm"),
    (r"_embeddings\.weight$", "_embeddings.embedding_table"),
    (r"^encoder\.layer\.(\d+)\.", r"encoder.\1."),
    (r"attention\.self\.", ""),
    (r"attention\.output\.dense", "attention_output"),
    (r"attention\.output\.LayerNorm", "attention_norm"),
    (r"intermediate\.dense", "intermediate"),
    (r"output\.dense", "output"),
    (r"output\.LayerNorm", "output_norm"),
    (r"^pooler\.dense", "pooler"),
)
_GPT2: Rules = (
    (r"^transformer\.", ""),
    (r"^(wte|wpe)\.weight$", r"\1.embedding_table"),
    (r"(ln_\w+)\.weight$", r"\1.gamma"),
    (r"(ln_\w+)\.bias$", r"\1.beta"),
    (r"attn\.(c_attn|c_proj)", r"\1"),
    (r"mlp\.c_fc", "mlp_fc"),
    (r"mlp\.c_proj", "mlp_proj"),
)
_LLAMA: Rules = (
    (r"^model\.", ""),
    (r"^embed_tokens\.weight$", "embed_tokens.embedding_table"),
    (r"(self_attn|mlp)\.", ""),
    (r"input_layernorm\.weight$", "input_norm.gamma"),
    (r"post_attention_layernorm\.weight$", "output_norm.gamma"),
    (r"^norm\.weight$", "norm.gamma"),
)
# GPT-2's dense layers are stored (in, out), as its original code multiplies
_GPT2_TRANSPOSED = re.compile(r"(c_attn|c_proj|mlp_fc|mlp_proj)\.weight$")
# heads that were not asked for, and tables that the network computes itself or shares
_BERT_UNUSED = re.compile(
    r"position_ids$|^cls\.seq_relationship\.|^cls\.predictions\.decoder\.weight$"
)
_GPT2_UNUSED = re.compile(r"\.attn\.(masked_)?bias$|^lm_head\.weight$")
_LLAMA_UNUSED = re.compile(r"rotary_emb\.inv_freq$")
_HEAD_WEIGHTS = re.compile(r"^(cls|classifier|qa_outputs|score)\.")
_HEAD: Rules = (
    (r"^cls\.predictions\.(decoder\.)?bias$", "bias"),
    (r"^cls\.predictions\.transform\.dense", "transform"),
    (r"^cls\.predictions\.transform\.LayerNorm\.(gamma|weight)$", "transform_norm.gamma"),
    (r"^cls\.predictions\.transform\.LayerNorm\.(beta|bias)$", "transform_norm.beta"),
)


@dataclasses.dataclass(frozen=True)
class _Kind:
    """How one architecture is stored.

    Attributes:
        config: Its sizes.
        cell: The network without a head.
        heads: Networks with a head, by the name under ``architectures``.
        body: What those call the network without.
        rules: From names in the file to names of parameters.
        unused: Weights that are not read.
        transposed: Weights that are stored transposed.
        required: Settings that change the computation, with the values that are known.
    """

    config: type
    cell: type[Cell]
    heads: dict[str, type[Cell]]
    body: str
    rules: Rules
    unused: re.Pattern[str]
    transposed: re.Pattern[str] | None
    required: dict[str, tuple[object, ...]]


_WITHOUT_POOLER = (
    heads.BertForTokenClassification, heads.BertForQuestionAnswering, heads.BertForMaskedLM,
)  # fmt: skip
_BERT_HEADS: dict[str, type[Cell]] = {
    cell.__name__: cell for cell in (heads.BertForSequenceClassification, *_WITHOUT_POOLER)
}
_KINDS = {
    "bert": _Kind(
        BertConfig, Bert, _BERT_HEADS, "bert", _BERT, _BERT_UNUSED, None,
        {"hidden_act": ("gelu", *ACTIVATIONS), "position_embedding_type": ("absolute",),
         "is_decoder": (False,)},
    ),
    "gpt2": _Kind(
        Gpt2Config, Gpt2, {"GPT2ForSequenceClassification": heads.Gpt2ForSequenceClassification},
        "transformer", _GPT2, _GPT2_UNUSED, _GPT2_TRANSPOSED,
        {"activation_function": ("gelu_new", *ACTIVATIONS), "tie_word_embeddings": (True,),
         "scale_attn_by_inverse_layer_idx": (False,), "scale_attn_weights": (True,)},
    ),
    "llama": _Kind(
        LlamaConfig, Llama, {}, "model", _LLAMA, _LLAMA_UNUSED, None,
        {"hidden_act": ("silu", *ACTIVATIONS), "attention_bias": (False,), "mlp_bias": (False,),
         "rope_scaling": (None,)},
    ),
}  # fmt: skip


def load_hf(folder: str | os.PathLike[str], head: bool = True) -> Cell:
    """Builds the network a local Hugging Face folder describes and loads its weights.

    Args:
        folder: A folder with ``config.json`` and ``model.safetensors`` (or several files with
            ``model.safetensors.index.json``) of a BERT, a GPT-2 or a Llama. Nothing
            is downloaded and no code of the folder runs.
        head: Whether to load the task head that ``architectures`` in ``config.json`` names;
            without one, a BERT is an encoder, and the others are language models.

    Returns:
        The network in inference mode: a class of :mod:`tvmgraph.models`.

    Raises:
        NotFoundError: if a file or a weight is missing.
        ArgumentError: if the architecture is another one, or a file is damaged.
        ShapeError: if a weight does not fit the configuration.
    """
    path = Path(folder)
    settings = _json(path / "config.json")
    kind = _KINDS.get(settings.get("model_type", ""))
    if kind is None:
        raise _wrong(f"model_type is {settings.get('model_type')!r}", path,
                     f"folders of {' and '.join(_KINDS)} can be loaded")  # fmt: skip
    for name, allowed in kind.required.items():
        if settings.get(name, allowed[0]) not in allowed:
            known = ", ".join(map(repr, dict.fromkeys(allowed)))
            raise _wrong(f"{name} is {settings[name]!r}", path, f"only {known} is known")
    cell = _class_of(settings, kind) if head else kind.cell
    sizes = _sizes(settings, kind, path)
    net = cell(sizes)
    arrays = _translate(_weights(path), kind, cell)
    if getattr(sizes, "tie_word_embeddings", False):
        arrays.pop("lm_head.weight", None)  # some files have the table twice
    _fill(net, arrays, path)
    return net.set_train(False)


def _class_of(settings: dict[str, Any], kind: _Kind) -> type[Cell]:
    named = settings.get("architectures") or [""]
    return kind.heads.get(str(named[0]), kind.cell)


def _sizes(settings: dict[str, Any], kind: _Kind, path: Path) -> Any:
    fields = {f.name for f in dataclasses.fields(kind.config)}
    size = settings.get("head_dim")
    if size and size * settings.get("num_attention_heads", 0) != settings.get("hidden_size"):
        raise _wrong(f"head_dim is {size}", path, "only hidden_size / num_attention_heads is known")
    given = {k: v for k, v in settings.items() if k in fields}
    if isinstance(settings.get("rope_parameters"), dict) and "rope_theta" in fields:
        rope = settings["rope_parameters"]  # where newer files keep it
        given["rope_theta"] = rope.get("rope_theta", 10000.0)
        if rope.get("rope_type", "default") != "default":
            raise _wrong(f"rope_type is {rope['rope_type']!r}", path, "only 'default' is known")
    if isinstance(settings.get("id2label"), dict):
        given["num_labels"] = len(settings["id2label"])
    try:
        return kind.config(**given)
    except TypeError as e:
        raise _wrong(f"config.json is incomplete: {e}", path, "download it again") from None


def _wrong(message: str, path: Path, fix: str) -> ArgumentError:
    return ArgumentError(message, op="load_hf", got=str(path), fix=fix)


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        reject(NotFoundError, "load_hf", f"there is no {path.name}", str(path.parent),
               "give the folder that holds config.json and the safetensors files")  # fmt: skip
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as e:
        raise _wrong(f"{path.name} is damaged: {e}", path, "download it again") from None
    if not isinstance(found, dict):
        raise _wrong(f"{path.name} holds no settings", path, "download it again")
    return found


def _weights(path: Path) -> dict[str, np.ndarray]:
    index = path / "model.safetensors.index.json"
    names = ["model.safetensors"]
    if index.is_file():
        names = sorted(set(_json(index).get("weight_map", {}).values()))
    arrays: dict[str, np.ndarray] = {}
    for name in names:
        file = path / Path(name).name  # an index must not lead out of the folder
        if not file.is_file():
            raise NotFoundError(f"there is no {name}", op="load_hf", got=str(path),
                                fix="download the missing file")  # fmt: skip
        try:
            arrays |= from_bytes(file.read_bytes())
        except BadTensors as e:
            raise _wrong(f"{name}: {e}", path, "download it again") from None
    return arrays


def _translate(
    arrays: dict[str, np.ndarray], kind: _Kind, cell: type[Cell]
) -> dict[str, np.ndarray]:
    """Returns the weights under this package's names and layouts."""
    bare = cell is kind.cell
    result = {}
    for name, array in arrays.items():
        in_head = _HEAD_WEIGHTS.search(name) is not None
        pooled = ".pooler." in f".{name}" and cell in _WITHOUT_POOLER
        if kind.unused.search(name) or (in_head and bare) or pooled:
            continue
        for pattern, new in _HEAD if in_head else kind.rules:
            name = re.sub(pattern, new, name)
        is_transposed = kind.transposed is not None and kind.transposed.search(name)
        own = name if bare or in_head else f"{kind.body}.{name}"
        result[own] = array.T if is_transposed else array
    return result


def _fill(net: Cell, arrays: dict[str, np.ndarray], path: Path) -> None:
    params = net.parameters_dict()
    missing, extra = sorted(params.keys() - arrays), sorted(arrays.keys() - params)
    if missing or extra:
        parts = [f"missing {', '.join(missing[:5])}"] if missing else []
        parts += [f"not part of the network {', '.join(extra[:5])}"] if extra else []
        reject(NotFoundError, "load_hf",
               f"{len(missing)} weights are missing and {len(extra)} are unknown", "; ".join(parts),
               f"check config.json in {path}")  # fmt: skip
    for name, p in params.items():
        if arrays[name].shape != p.shape:
            reject(ShapeError, "load_hf",
                   f"{name} is {arrays[name].shape} in the file and {p.shape} by config.json",
                   str(path), "check config.json")  # fmt: skip
        p.set_data(Tensor(np.ascontiguousarray(arrays[name].astype(p.array.dtype))))
