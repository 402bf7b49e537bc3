"""Presets: experiments that are known to learn, with the time they take and what they reach.

``presets.toml`` holds them, ``benchmarks/RESULTS.md`` the seconds that were measured; a test
compares.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfm_core.choices.config import Experiment
from tfm_core.choices.config.codec import default_sections
from tfm_core.sentences import words


@dataclass(frozen=True, slots=True)
class Preset:
    """A named experiment. learns: what, in a sentence; reaches: how well, in words."""

    name: str
    label: str
    learns: str
    reaches: str
    seconds: int
    experiment: Experiment


_LLAMA = {
    "position": "rotary",
    "norm": "rmsnorm",
    "activation": "swiglu",
    "bias": False,
    "n_kv_heads": 2,
    "d_ff": 88,  # three matrices of it are as large as GPT-2's two of 128
}
BLOCK_STYLES: Mapping[str, dict[str, Any]] = {
    "gpt-2": {"position": "learned", "activation": "gelu_tanh", "tie_embeddings": True},
    "llama": {**_LLAMA, "rope_theta": 500_000.0},
    "qwen": {**_LLAMA, "qk_norm": True, "tie_embeddings": True, "rope_theta": 1_000_000.0},
    "mixtral": {
        **_LLAMA,
        "rope_theta": 1_000_000.0,
        "d_ff": 44,  # a token passes two experts
        "n_experts": 8,
        "top_k": 2,
        "balance_weight": 0.02,
    },
}
"""The blocks of GPT-2, Llama 3, Qwen 3 and Mixtral as settings; alike are width and depth, and
about alike the feed-forward parameters that act on a token."""


def _preset(name: str, entry: Mapping[str, Any]) -> Preset:
    values = default_sections(entry["family"], entry["task"])
    values["model"] |= BLOCK_STYLES.get(entry.get("style", ""), {}) | entry.get("model", {})
    values["task"] |= entry.get("data", {})
    values["training"] = entry.get("training", {})  # what it does not say is filled in
    experiment, seconds = Experiment.parse(values), entry["seconds"]
    return Preset(name, seconds=seconds, experiment=experiment, **words(f"choices/presets/{name}"))


_FILE = Path(__file__).with_name("presets.toml")
PRESETS = {
    name: _preset(name, entry)
    for name, entry in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
}
