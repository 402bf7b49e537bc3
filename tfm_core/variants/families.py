"""The families of models, and what builds each.

The settings of a family are a class of ``config.model.ModelConfig``, tagged with its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfm_core.sentences import N_
from tfm_core.variants.record import LazyModule, Registry, Variant

if TYPE_CHECKING:
    from tfm_core.models import build
    from tfm_core.models.build import Model
else:  # imported where something of it is used first
    build = LazyModule("tfm_core.models.build")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family(Variant):
    """A family of models. build()(config, shape): the model; imported where it is used."""

    build: Callable[[], Callable[..., Model]]


def family_label(name: str) -> str:
    """Return what a family is called, that of somebody else's code, too."""
    return FAMILIES[name].label if name in FAMILIES else N_("PyTorch model")


FAMILIES = Registry(
    "model family",
    Family(
        name="encoder-decoder",
        label=N_("Encoder-decoder"),
        help=N_("Reads the source, then writes the target (Transformer, T5)."),
        source="Vaswani et al. 2017",
        build=lambda: build.build_encoder_decoder,
    ),
    Family(
        name="encoder-only",
        label=N_("Encoder-only"),
        help=N_("Answers all positions in one pass (BERT)."),
        source="Devlin et al. 2019",
        build=lambda: build.build_encoder_only,
    ),
    Family(
        name="decoder-only",
        label=N_("Decoder-only"),
        help=N_("Continues a sequence from left to right (GPT)."),
        source="Radford et al. 2018",
        build=lambda: build.build_decoder_only,
    ),
    Family(
        name="vit",
        label=N_("Vision Transformer"),
        help=N_("Attends over patches of a picture (ViT)."),
        source="Dosovitskiy et al. 2021",
        build=lambda: build.build_vit,
    ),
    Family(
        name="captioner",
        label=N_("Captioner"),
        help=N_("A ViT encoder reads a picture, a decoder describes it."),
        source="Xu et al. 2015",
        build=lambda: build.build_captioner,
    ),
    Family(
        name="recurrent",
        label=N_("RNN with attention"),
        help=N_("Reads and writes token by token, with attention (2015)."),
        source="Bahdanau et al. 2015",
        build=lambda: build.build_recurrent,
    ),
)
