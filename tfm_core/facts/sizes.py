"""How large an experiment is: its parameters, and what a training step keeps in memory."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.config import Experiment
from tfm_core.facts.architectures import of_experiment
from tfm_core.facts.memory import of_run, peak_bytes
from tfm_core.facts.parameter_table import parameter_table


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of a model, and bytes of a training step (``facts.memory``), without the process."""

    n_parameters: int
    step_bytes: int

    @property
    def memory_bytes(self) -> int:
        """Bytes that a worker uses up to (``memory.peak_bytes``)."""
        return peak_bytes(self.step_bytes)


def sizes(experiment: Experiment) -> Sizes:
    """Return the sizes of an experiment; its model is laid out without memory, with torch."""
    known = of_experiment(experiment, "")
    n_parameters = parameter_table(known.model, known.shape).total
    return Sizes(n_parameters, of_run(experiment, n_parameters).total)
