"""The known findings that are shown, by the name of their page."""

from __future__ import annotations

from collections.abc import Mapping

from tfm_core.studies.adder import ADDER
from tfm_core.studies.chains import CHAINS
from tfm_core.studies.grokking import GROKKING
from tfm_core.studies.induction import INDUCTION
from tfm_core.studies.memorising import MEMORISING
from tfm_core.studies.phenomenon import Phenomenon
from tfm_core.studies.sinks import SINKS
from tfm_core.studies.specialise import ORDER

PHENOMENA: Mapping[str, Phenomenon] = {
    one.name: one for one in (INDUCTION, CHAINS, GROKKING, ADDER, SINKS, ORDER, MEMORISING)
}
