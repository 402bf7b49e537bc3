"""The families of models; ``models.build`` builds each.

The settings of a family are a class of ``config.model.ModelConfig``, tagged with its name.
"""

from __future__ import annotations

from tfm_core.sentences import N_
from tfm_core.variants.record import Registry, Variant


def family_label(name: str) -> str:
    """Return what a family is called, that of somebody else's code, too."""
    return FAMILIES[name].label if name in FAMILIES else N_("PyTorch model")


FAMILIES = Registry(
    "model family",
    Variant(
        name="encoder-decoder",
        label=N_("Encoder-decoder"),
        help=N_("Reads the source, then writes the target (Transformer, T5)."),
        source="Vaswani et al. 2017",
    ),
    Variant(
        name="encoder-only",
        label=N_("Encoder-only"),
        help=N_("Answers all positions in one pass (BERT)."),
        source="Devlin et al. 2019",
    ),
    Variant(
        name="decoder-only",
        label=N_("Decoder-only"),
        help=N_("Continues a sequence from left to right (GPT)."),
        source="Radford et al. 2018",
    ),
    Variant(
        name="vit",
        label=N_("Vision Transformer"),
        help=N_("Attends over patches of a picture (ViT)."),
        source="Dosovitskiy et al. 2021",
    ),
    Variant(
        name="captioner",
        label=N_("Captioner"),
        help=N_("A ViT encoder reads a picture, a decoder describes it."),
        source="Xu et al. 2015",
    ),
    Variant(
        name="recurrent",
        label=N_("RNN with attention"),
        help=N_("Reads and writes token by token, with attention (2015)."),
        source="Bahdanau et al. 2015",
    ),
)
