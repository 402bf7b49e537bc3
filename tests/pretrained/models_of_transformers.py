"""Small models of Transformers with random weights, and what they make of fixed inputs.

``python -m tests.pretrained.models_of_transformers``, with Transformers 4 installed, writes them
again into ``folders``, all or those it is given: a folder each as Transformers saves it, and its
answer.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

FOLDERS = Path(__file__).parent / "folders"
ANSWER = "answer.safetensors"
SIZES = {"vocab_size": 37, "hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 2}
ENCODER = SIZES | {"intermediate_size": 20, "max_position_embeddings": 17}
IDS = torch.tensor([[5, 9, 2, 30, 36, 4, 11], [7, 7, 21, 3, 18, 25, 6]])
OTHERS = torch.tensor([[3, 8, 33, 2, 19], [0, 12, 0, 5, 35]])
NORM = re.compile(r"(norm|Norm|ln_.)\.weight|_norm\.weight")
SPREAD = 0.2
"""Deviation of the random weights: with the usual 0.02 two models could differ unseen."""


def make(name: str) -> Any:
    """Return a model by its name in ``MODELS``, with random weights, norms and biases too."""
    import transformers

    from tfm_core.data.torchvision_import import torchvision  # noqa: F401  it imports that: mended

    kind, settings = MODELS[name][:2]
    config = getattr(transformers, f"{kind[0]}Config")(**settings)
    torch.manual_seed(3)
    model = getattr(transformers, kind[1])(config).eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            drawn = torch.randn_like(parameter) * SPREAD
            parameter.copy_(drawn + (1 if NORM.search(key) else 0))
    return model


def _logits(model: Any) -> Tensor:
    return model(input_ids=IDS).logits


def _states(model: Any) -> Tensor:
    return model(input_ids=IDS).last_hidden_state


def _pooled(model: Any) -> Tensor:
    return model(input_ids=IDS).pooler_output


def _both(model: Any) -> Tensor:
    return model(input_ids=IDS, decoder_input_ids=OTHERS).logits


def _pictures(model: Any) -> Tensor:
    return model(pixel_values=pictures()).logits


def pictures() -> Tensor:
    """Return two pictures (2, 3, 14, 14)."""
    return torch.randn(2, 3, 14, 14, generator=torch.Generator().manual_seed(5))


_T5 = {
    "vocab_size": 37,
    "d_model": 12,
    "num_heads": 3,
    "d_kv": 4,
    "d_ff": 20,
    "num_layers": 2,
    "num_decoder_layers": 3,
}
_VIT = {
    "hidden_size": 12,
    "num_attention_heads": 3,
    "num_hidden_layers": 2,
    "intermediate_size": 20,
    "image_size": 14,
    "patch_size": 7,
    "num_labels": 5,
}
_GPT2 = {"vocab_size": 37, "n_embd": 12, "n_head": 3, "n_layer": 2, "n_positions": 11}
_LLAMA = ENCODER | {"num_key_value_heads": 3}
_LLAMA_3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 12,
}

MODELS: dict[str, tuple[tuple[str, str], dict[str, Any], Callable[[Any], Tensor]]] = {
    "gpt2": (("GPT2", "GPT2LMHeadModel"), _GPT2, _logits),
    "gpt2-untied": (
        ("GPT2", "GPT2LMHeadModel"),
        _GPT2 | {"tie_word_embeddings": False, "n_inner": 19, "activation_function": "relu"},
        _logits,
    ),
    "bert": (("Bert", "BertModel"), ENCODER, _pooled),
    "bert-for-words": (("Bert", "BertForMaskedLM"), ENCODER, lambda model: _states(model.bert)),
    "vit": (("ViT", "ViTForImageClassification"), _VIT, _pictures),
    "t5": (("T5", "T5ForConditionalGeneration"), _T5, _both),
    "t5-untied": (
        ("T5", "T5ForConditionalGeneration"),
        _T5 | {"tie_word_embeddings": False},
        _both,
    ),
    "t5-gated": (
        ("T5", "T5ForConditionalGeneration"),
        _T5 | {"tie_word_embeddings": False, "feed_forward_proj": "gated-gelu"},
        _both,
    ),
    "t5-narrow": (
        ("T5", "T5ForConditionalGeneration"),
        _T5 | {"tie_word_embeddings": False, "num_heads": 2},
        _both,
    ),
    "llama": (("Llama", "LlamaForCausalLM"), _LLAMA, _logits),
    "llama-tied": (("Llama", "LlamaForCausalLM"), _LLAMA | {"tie_word_embeddings": True}, _logits),
    "llama-grouped": (
        ("Llama", "LlamaForCausalLM"),
        _LLAMA | {"num_attention_heads": 6, "num_key_value_heads": 3},
        _logits,
    ),
    "llama-3": (
        ("Llama", "LlamaForCausalLM"),
        _LLAMA | {"rope_theta": 500.0, "rope_scaling": _LLAMA_3, "head_dim": 4},
        _logits,
    ),
    "llama-linear": (
        ("Llama", "LlamaForCausalLM"),
        _LLAMA | {"rope_scaling": {"rope_type": "linear", "factor": 3.0}},
        _logits,
    ),
    "llama-wide": (("Llama", "LlamaForCausalLM"), _LLAMA | {"head_dim": 2}, _logits),
}


def save(name: str, folder: Path) -> None:
    """Write a model as Transformers does, and its answer beside it."""
    from safetensors.torch import save_file

    model = make(name)
    model.save_pretrained(folder, safe_serialization=True)
    (folder / "generation_config.json").unlink(missing_ok=True)
    with torch.no_grad():
        save_file({"answer": MODELS[name][2](model).contiguous()}, folder / ANSWER)


def answer(config: Any, model: Any) -> Tensor:
    """Return what a model of the engine says to the same inputs."""
    with torch.inference_mode():
        if config.family == "vit":
            return model(pictures())
        if config.family == "decoder-only":
            return model(IDS[:, :0], IDS)
        return model(IDS, OTHERS if config.family == "encoder-decoder" else IDS)


if __name__ == "__main__":
    for each in sys.argv[1:] or MODELS:
        save(each, FOLDERS / each)
