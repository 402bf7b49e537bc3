"""The optimisers, one file each."""

from tfm_core.variants.optimisers.adam import ADAM
from tfm_core.variants.optimisers.adamw import ADAMW
from tfm_core.variants.optimisers.muon import MUON
from tfm_core.variants.optimisers.record import Optimiser, UpdateLine
from tfm_core.variants.optimisers.sgd import SGD
from tfm_core.variants.record import Registry

__all__ = ["OPTIMISERS", "Optimiser", "UpdateLine"]

OPTIMISERS = Registry("optimiser", ADAMW, ADAM, SGD, MUON)
