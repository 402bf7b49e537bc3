"""What lines of sizes say: the settings that they name, as numbers, switches and names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfm_core.config.model import MODEL_CONFIGS
from tfm_core.sentences import StudentError
from tfm_core.variants.activations import ACTIVATIONS

Values = dict[str, Any]
WORDS, LEN, PIXELS = 100, 10, 28
MAX_WORDS, MAX_LEN = 1_000_000, 8_192


def whole(sizes: Mapping[str, str], name: str, otherwise: int, low: int, high: int) -> int:
    """Return a size as a number. Raises ValueError, in a sentence, for what is none."""
    text = sizes.get(name)
    if text is None:
        return otherwise
    if not text.isdecimal() or not low <= int(text[:12]) <= high:
        raise StudentError(
            "{name} is {text}; it must be a whole number from {low:,} to {high:,}.",
            name=name, text=text[:20], low=low, high=high,
        )  # fmt: skip
    return int(text)


FLAGS = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


def given_in(sizes: Mapping[str, str]) -> Values:
    """Return the settings that a text names, as they stand there; the model refuses wrong ones."""
    names = {name for config in MODEL_CONFIGS.values() for name in config.model_fields}
    given: Values = {name: text for name, text in sizes.items() if name in names}
    for name in ("norm_first", "bias", "projection_bias", "tie_embeddings"):
        if name in given:
            given[name] = FLAGS.get(str(given[name]).lower(), given[name])
    if "mistakes" in given:
        given["mistakes"] = str(given["mistakes"]).replace("+", ",")
    if "activation" in given:
        given["activation"] = activation_of(str(given["activation"])) or given["activation"]
    if "d_head" in sizes and "d_model" in given and "n_heads" not in given:
        d_head = whole(sizes, "d_head", 1, 1, 16_384)
        given["n_heads"] = int(given["d_model"]) // d_head if given["d_model"].isdecimal() else 1
    return given


def activation_of(layer: str) -> str | None:
    """Return our activation of a class or a name of one."""
    name = layer.lower().replace("_", "")
    if name in ACTIVATIONS or layer in ACTIVATIONS:
        return layer if layer in ACTIVATIONS else name
    if "newgelu" in name or "gelunew" in name or "tanh" in name:
        return "gelu_tanh"
    return next((one for one in ("gelu", "relu", "silu") if one in name), None)
