"""The known findings that are shown, in their order."""

from __future__ import annotations

from collections.abc import Mapping

from tfm_core.studies.adder import ADDER
from tfm_core.studies.chains import CHAINS
from tfm_core.studies.grokking import GROKKING
from tfm_core.studies.induction import INDUCTION
from tfm_core.studies.memorising import MEMORISING
from tfm_core.studies.phenomenon import KnownFinding, Phenomenon
from tfm_core.studies.sinks import SINKS
from tfm_core.studies.specialise import ORDER
from tfm_core.studies.superposition import SUPERPOSITION

_ALL = (INDUCTION, CHAINS, GROKKING, ADDER, SINKS, ORDER, SUPERPOSITION, MEMORISING)
FINDINGS: Mapping[str, KnownFinding] = {one.name: one for one in _ALL}
PHENOMENA: Mapping[str, Phenomenon] = {one.name: one for one in _ALL if isinstance(one, Phenomenon)}
"""Those of runs in the store."""
