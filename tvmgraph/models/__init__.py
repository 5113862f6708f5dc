"""Whole networks whose weights are published as Hugging Face folders: BERT, GPT-2 and Llama."""

from tvmgraph.models.bert import Bert, BertConfig
from tvmgraph.models.generation import DynamicCache
from tvmgraph.models.gpt2 import Gpt2, Gpt2Config
from tvmgraph.models.heads import (
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    Gpt2ForSequenceClassification,
)
from tvmgraph.models.hub import load_hf
from tvmgraph.models.language import LanguageModel
from tvmgraph.models.llama import Llama, LlamaConfig

__all__ = [
    "Bert", "BertConfig", "BertForMaskedLM", "BertForQuestionAnswering",
    "BertForSequenceClassification", "BertForTokenClassification", "DynamicCache", "Gpt2",
    "Gpt2Config", "Gpt2ForSequenceClassification", "LanguageModel", "Llama", "LlamaConfig",
    "load_hf",
]  # fmt: skip
