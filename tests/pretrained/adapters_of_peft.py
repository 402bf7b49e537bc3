"""Adapters of PEFT with random numbers, and what models say with them.

``python -m tests.pretrained.adapters_of_peft``, with PEFT and Transformers installed, writes them
again into ``adapters``: a folder each as PEFT saves it, and the answer.
"""

from __future__ import annotations

from pathlib import Path

import torch

from tests.pretrained.models_of_transformers import ANSWER, FOLDERS, MODELS

ADAPTERS = Path(__file__).parent / "adapters"
TARGETS = {
    "gpt2": ["c_attn", "c_fc"],
    "llama-grouped": ["q_proj", "v_proj", "down_proj"],
    "qwen3": ["q_proj", "k_proj"],
    "bert": ["query", "value"],
    "distilbert": ["q_lin", "v_lin"],
    "t5": ["q", "v", "wo"],
    "vit": ["query", "value"],
}


def base(name):
    import transformers

    from tfm_core.data.torchvision_import import torchvision  # noqa: F401  it imports that: mended

    return getattr(transformers, MODELS[name][0][1]).from_pretrained(FOLDERS / name).eval()


def answer_with(model, name):
    with torch.no_grad():
        return MODELS[name][2](model).contiguous()


def save(name: str, folder: Path) -> None:
    """Write adapters as PEFT does, and the answer beside them."""
    plain = base(name)
    import peft  # which imports Transformers: behind what mends that
    from safetensors.torch import save_file

    settings = peft.LoraConfig(r=3, lora_alpha=5, target_modules=TARGETS[name], lora_dropout=0.0)
    model = peft.get_peft_model(plain, settings).eval()
    torch.manual_seed(3)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if "lora_" in key:
                parameter.normal_(0, 0.3)
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    save_file({"answer": answer_with(model, name)}, folder / ANSWER)


if __name__ == "__main__":
    for each in TARGETS:
        save(each, ADAPTERS / each)
