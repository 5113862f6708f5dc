"""Whole networks whose weights are published as Hugging Face folders: BERT and GPT-2."""

from tvmgraph.models.bert import Bert, BertConfig
from tvmgraph.models.gpt2 import Gpt2, Gpt2Config
from tvmgraph.models.hub import load_hf

__all__ = ["Bert", "BertConfig", "Gpt2", "Gpt2Config", "load_hf"]
