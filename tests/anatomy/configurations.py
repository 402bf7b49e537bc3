"""Random configurations of every family, with shapes that fit them, and a few that hold all."""

import random

from hypothesis import strategies as st

from tfm_core.choices.config import MODEL_CONFIGS, ConfigError
from tfm_core.choices.config.shape import CaptionShape, ImageShape, TextShape
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.norms import FINAL_NORMS, NORMS
from tfm_core.choices.variants.positions import (
    ADDED_TO_PATCHES,
    ADDED_TO_WORDS,
    POSITIONS,
    POSITIONS_OF_WORDS,
    ROPE_SCALINGS,
)
from tfm_core.choices.variants.recurrent import ALIGNMENT_SCORES, CELLS
from tfm_core.choices.variants.sinks import SINKS
from tfm_core.choices.variants.stems import POOLINGS, STEMS

SRC, TGT = 7, 5
FIELDS = {
    "norm": NORMS,
    "activation": ACTIVATIONS,
    "final_norm": FINAL_NORMS,
    "stem": STEMS,
    "pooling": POOLINGS,
    "cell": CELLS,
    "attention": ALIGNMENT_SCORES,
    "text_position": ADDED_TO_WORDS,
    "rope_scaling": ROPE_SCALINGS,
    "sink": SINKS,
}
NUMBERS = {
    "window": [0, 2],
    "full_every": [0, 2],
    "n_kv_heads": [0, 1],
    "n_experts": [0, 3],
    "head_dim": [0, 6],
    "top_k": [1, 2],
    "dropout": [0.0, 0.1],
    "norm_eps": [1e-5, 0.03],
    "query_key_gain": [1.0, 2.0],
    "n_layers": [1, 2, 3],
    "n_decoder_layers": [1, 2, 3],
    "d_ff": [11, 0],
}
FLAGS = (
    "norm_first",
    "bias",
    "projection_bias",
    "tie_embeddings",
    "is_bidirectional",
    "qk_norm",
    "qkv_bias",
)


def _positions(family):
    if family == "vit":
        return POSITIONS
    return ADDED_TO_PATCHES if family == "captioner" else POSITIONS_OF_WORDS


def samples(family, rounds=1, seed=0):
    """Return a few settings: the usual ones, then such that hold each choice, once a round."""
    fields, rng = MODEL_CONFIGS[family].model_fields, random.Random(seed)
    choices = {name: list(values) for name, values in FIELDS.items() if name in fields}
    choices |= {name: [True, False] for name in FLAGS if name in fields}
    choices |= {name: values for name, values in NUMBERS.items() if name in fields}
    if "position" in fields:
        choices["position"] = list(_positions(family))
    if "mistakes" in fields:
        choices["mistakes"] = ["", *MODEL_CONFIGS[family].offered("mistakes")]
    every = [(name, value) for name, own in choices.items() for value in own]
    found, missing, is_stuck = [{}], [], False
    for _attempt in range(1000):
        if not missing:
            if not rounds:
                return found
            missing, rounds = every, rounds - 1
        first = min(missing, key=str)
        settings = {
            name: rng.choice(
                [value for value in own if is_stuck or (name, value) in missing] or own
            )
            for name, own in choices.items()
        } | dict([first])
        try:
            config_of(family, settings)
        except ConfigError:  # two choices exclude each other: draw again, of all choices
            is_stuck = True
            continue
        is_stuck = False
        found.append(settings)
        missing = [pair for pair in missing if pair not in settings.items()]
    raise AssertionError(f"{family} takes no {missing}")


def config_of(family, settings):
    """Return a small configuration, with prime sizes where they are free."""
    sizes = {"d_model": 12} if family == "recurrent" else {"d_model": 12, "n_heads": 3, "d_ff": 11}
    return MODEL_CONFIGS[family].parse({**sizes, **settings})


@st.composite
def models(draw, families=tuple(MODEL_CONFIGS)):
    """A configuration and a shape that fit."""
    family = draw(st.sampled_from(families))
    fields = MODEL_CONFIGS[family].model_fields
    settings = {
        name: draw(st.sampled_from(list(registry)))
        for name, registry in FIELDS.items()
        if name in fields
    }
    settings |= {name: draw(st.booleans()) for name in FLAGS if name in fields}
    settings |= {
        name: draw(st.integers(1, 3))
        for name in ("n_layers", "n_encoder_layers", "n_decoder_layers")
        if name in fields
    }
    if "position" in fields:
        settings["position"] = draw(st.sampled_from(list(_positions(family))))
    if "window" in fields:
        settings["window"] = draw(st.sampled_from([0, 2]))
        settings["full_every"] = draw(st.sampled_from([0, 2]))
    settings["dropout"] = draw(st.sampled_from([0.0, 0.1]))
    settings["d_model"] = draw(st.sampled_from([12, 24]))
    if "n_heads" in fields:
        settings |= {
            "n_heads": draw(st.sampled_from([1, 2, 3])),
            "d_ff": draw(st.sampled_from([11, 0])),
        }
        settings["n_kv_heads"] = draw(st.sampled_from([0, 1])) if settings["n_heads"] > 1 else 0
        settings |= {"n_experts": draw(st.sampled_from([0, 3]))}
        settings |= {"top_k": draw(st.sampled_from([1, 2]))}
    if "patch_size" in fields:
        settings["patch_size"] = draw(st.sampled_from([2, 4]))
    if settings.get("norm") == "none":
        settings |= {"final_norm": "pre-norm"}
    config = MODEL_CONFIGS[family].parse(settings)
    if "mistakes" in fields:
        config = _with_mistakes(draw, config)
    return config, _shape(draw, family)


def _with_mistakes(draw, config):
    """The configuration with some mistakes that it can make together."""
    for name in draw(st.permutations(list(type(config).offered("mistakes"))))[:4]:
        try:
            config = config.replace(mistakes=[*config.mistakes, name])
        except ConfigError:
            continue
    return config


def _shape(draw, family):
    if family == "vit":
        return ImageShape(8, draw(st.sampled_from([1, 3])), 5)
    if family == "captioner":
        return CaptionShape(8, 3, 19, TGT + 2)
    one, bias = draw(st.booleans()), draw(st.booleans())
    ends = {"output_bias": bias, "scale_embedding": draw(st.booleans())}
    if family == "decoder-only":
        ends["has_source"] = not one or draw(st.booleans())
    if family == "encoder-only":
        ends["head"] = draw(st.sampled_from(["tokens", "pooler", "states", *POOLINGS]))
        ends["n_segments"] = draw(st.sampled_from([0, 2]))
        if ends["head"] in POOLINGS:
            ends |= {"n_labels": 3, "n_hidden": draw(st.sampled_from([0, 13]))}
    return TextShape(19 if one else 17, 19, one_vocabulary=one, **ends)
