"""The families of models: what builds each, draws it, and walks through it.

The settings of a family are a class of ``config.model.ModelConfig``, tagged with its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tfm_core.sentences import N_
from tfm_core.variants.record import Registry, Variant, resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class Family(Variant):
    """A family of models, and its parts, each as ``"module:name"``.

    build(config, shape): the model. diagram(drawing, lengths, src_len, tgt_len): draw all but the
    answer; the last node and the shape of what leaves it. walk(subject, layer, example): the steps.
    """

    build: str
    diagram: str
    walk: str

    def part(self, name: str) -> Any:
        """Return what a part names."""
        return resolve(getattr(self, name))


FAMILIES = Registry(
    "model family",
    Family(
        name="encoder-decoder",
        label=N_("Encoder-decoder"),
        help=N_("Reads the source, then writes the target (the 2017 Transformer, T5)."),
        source="Vaswani et al. 2017",
        build="tfm_core.models.build:build_text",
        diagram="tfm_core.inspect.diagram.graph:encoder_decoder",
        walk="tfm_core.inspect.walk.text:steps",
    ),
    Family(
        name="encoder-only",
        label=N_("Encoder-only"),
        help=N_("Sees everything at once and answers all positions in one pass (BERT)."),
        source="Devlin et al. 2019",
        build="tfm_core.models.build:build_text",
        diagram="tfm_core.inspect.diagram.graph:encoder_only",
        walk="tfm_core.inspect.walk.text:steps",
    ),
    Family(
        name="decoder-only",
        label=N_("Decoder-only"),
        help=N_("Continues one sequence from left to right (GPT)."),
        source="Radford et al. 2018",
        build="tfm_core.models.build:build_text",
        diagram="tfm_core.inspect.diagram.graph:decoder_only",
        walk="tfm_core.inspect.walk.text:steps",
    ),
    Family(
        name="vit",
        label=N_("Vision Transformer"),
        help=N_("Cuts a picture into patches and attends over them (ViT)."),
        source="Dosovitskiy et al. 2021",
        build="tfm_core.models.build_pictures:build_vit",
        diagram="tfm_core.inspect.diagram.graph:vit",
        walk="tfm_core.inspect.walk.vit:steps",
    ),
    Family(
        name="captioner",
        label=N_("Captioner"),
        help=N_("A ViT's encoder reads a picture, a decoder describes it (captioning)."),
        source="Xu et al. 2015",
        build="tfm_core.models.build_pictures:build_captioner",
        diagram="tfm_core.inspect.diagram.graph:captioner",
        walk="tfm_core.inspect.walk.captioner:steps",
    ),
    Family(
        name="recurrent",
        label=N_("RNN with attention"),
        help=N_("Reads and writes one token after the other, and looks back at the source (2015)."),
        source="Bahdanau et al. 2015",
        build="tfm_core.models.build_recurrent:build_recurrent",
        diagram="tfm_core.inspect.diagram.graph:recurrent_pair",
        walk="tfm_core.inspect.walk.recurrent:steps",
    ),
)
