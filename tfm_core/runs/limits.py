"""What a server lets its visitors train: it may be open to everyone."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tfm_core.config import Experiment
from tfm_core.sentences import StudentError


class LimitReached(StudentError):
    """A run is larger, or the line longer, than this server allows."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds; None means none. A run is stopped after ``max_seconds`` of wall clock."""

    max_queued: int = 20
    max_per_session: int = 8
    max_steps: int | None = None
    max_parameters: int | None = None
    max_seconds: float | None = None

    @classmethod
    def from_environment(cls) -> Limits:
        """Read TFM_MAX_QUEUED, TFM_MAX_PER_SESSION, TFM_MAX_STEPS, TFM_MAX_PARAMETERS and
        TFM_MAX_SECONDS.
        """
        return cls(
            max_queued=_number("TFM_MAX_QUEUED") or cls().max_queued,
            max_per_session=_number("TFM_MAX_PER_SESSION") or cls().max_per_session,
            max_steps=_number("TFM_MAX_STEPS"),
            max_parameters=_number("TFM_MAX_PARAMETERS"),
            max_seconds=_number("TFM_MAX_SECONDS"),
        )

    def check_session(self, n_active: int) -> None:
        """Raise LimitReached, in a sentence, where one visitor has enough runs in hand."""
        if n_active >= self.max_per_session:
            if n_active == 1:
                raise LimitReached(
                    "1 run trains or waits for you already; stop one, or wait until one is done."
                )
            raise LimitReached(
                "{n} runs train or wait for you already; stop one, or wait until one is done.",
                n=n_active,
            )

    def check(self, experiment: Experiment, *, n_queued: int) -> None:
        """Raise LimitReached, in a sentence, where a run may not enter the line."""
        if n_queued >= self.max_queued:
            if n_queued == 1:
                raise LimitReached("1 run waits already, and no more may; try again later.")
            raise LimitReached(
                "{n} runs wait already, and no more may; try again later.", n=n_queued
            )
        steps = experiment.training.steps
        if self.max_steps is not None and steps > self.max_steps:
            raise LimitReached(
                "This run has {steps:,} steps, but at most {max_steps:,} are allowed here.",
                steps=steps,
                max_steps=self.max_steps,
            )
        if self.max_parameters is not None:
            count = _n_parameters(experiment)
            if count > self.max_parameters:
                raise LimitReached(
                    "This model has {count:,} parameters, but at most {max_parameters:,} are "
                    "allowed here.",
                    count=count,
                    max_parameters=self.max_parameters,
                )


def _n_parameters(experiment: Experiment) -> int:
    """Count the parameters of a model without making any."""
    import torch

    from tfm_core.training.models import new_model

    with torch.device("meta"):
        return sum(parameter.numel() for parameter in new_model(experiment).parameters())


def _number(name: str) -> int | None:
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise StudentError("{name} is {text!r}, but must be a whole number.", name=name, text=text)
    return int(text)
