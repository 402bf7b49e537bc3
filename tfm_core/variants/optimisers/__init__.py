"""The optimisers."""

from tfm_core.variants.optimisers.muon import MUON
from tfm_core.variants.optimisers.pytorch import ADAM, ADAMW, SGD
from tfm_core.variants.optimisers.record import Optimiser, UpdateLine
from tfm_core.variants.record import Registry

__all__ = ["OPTIMISERS", "Optimiser", "UpdateLine"]

OPTIMISERS = Registry("optimiser", ADAMW, ADAM, SGD, MUON)
