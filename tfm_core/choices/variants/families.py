"""The families of models; ``models.build`` builds each.

The settings of a family are a class of ``config.model.ModelConfig``, tagged with its name.
"""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.choices.variants.record import Registry, Variant
from tfm_core.sentences import N_


@dataclass(frozen=True, slots=True, kw_only=True)
class Family(Variant):
    """A family of models."""


def family_label(name: str) -> str:
    """Return what a family is called, that of somebody else's code, too."""
    return FAMILIES[name].label if name in FAMILIES else N_("PyTorch model")


FAMILIES = Registry(
    "model family",
    Family(name="encoder-decoder", source="Vaswani et al. 2017"),
    Family(name="encoder-only", source="Devlin et al. 2019"),
    Family(name="decoder-only", source="Radford et al. 2018"),
    Family(name="vit", source="Dosovitskiy et al. 2021"),
    Family(name="captioner", source="Xu et al. 2015"),
    Family(name="recurrent", source="Bahdanau et al. 2015"),
)
