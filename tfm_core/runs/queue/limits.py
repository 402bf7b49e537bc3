"""Limits on what a server's visitors may train."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.choices.config import Experiment
from tfm_core.facts import storage
from tfm_core.sentences import Paragraph, StudentError
from tfm_core.settings import Settings


class LimitReached(StudentError):
    """A run is larger, or the line longer, than this server allows."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper limits: None means no limit, 0 allows nothing.

    A run is stopped after it has trained for ``max_seconds``, before and after each resume, and
    where others wait also after ``max_pause`` seconds of pause. only_shows: no run may be started.
    """

    max_queued: int = 20
    max_per_session: int = 8
    max_steps: int | None = None
    max_parameters: int | None = None
    max_seconds: float | None = None
    max_attention: int | None = None
    max_pause: float | None = None
    only_shows: bool = False

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        """Return the limits in the host's settings."""
        fixed = settings.limits
        return cls(
            max_queued=fixed.max_queued,
            max_per_session=fixed.max_per_session,
            max_steps=fixed.max_steps,
            max_parameters=fixed.max_parameters,
            max_seconds=settings.max_seconds,
            max_attention=fixed.max_attention,
            max_pause=fixed.max_pause,
            only_shows=settings.only_shows,
        )

    def check_session(self, n_active: int) -> None:
        """Raise LimitReached, in a sentence, if a visitor has too many active runs."""
        self._check_open()
        if n_active >= self.max_per_session:
            if n_active == 1:
                raise LimitReached("You already have 1 run training or waiting. Stop it or wait.")
            raise LimitReached(
                "You already have {n} runs training or waiting. Stop one or wait.", n=n_active
            )

    def check(self, experiment: Experiment, *, n_queued: int) -> None:
        """Raise LimitReached, in a sentence, where a run may not enter the line."""
        self._check_open()
        if experiment.training is None:  # it never trains, and what may be opened is bounded itself
            return
        self.check_line(n_queued)
        steps = experiment.trained.steps
        if self.max_steps is not None and steps > self.max_steps:
            raise LimitReached(
                "This run has {steps:,} steps; the limit here is {max_steps:,}.",
                steps=steps,
                max_steps=self.max_steps,
            )
        if self.max_parameters is not None:
            count = n_parameters(experiment)
            if count > self.max_parameters:
                raise LimitReached(
                    "This model has {count:,} parameters; the limit here is {max_parameters:,}.",
                    count=count,
                    max_parameters=self.max_parameters,
                )
        if self.max_attention is not None:
            numbers = storage.attention_numbers(experiment)
            if numbers > self.max_attention:
                raise LimitReached(
                    Paragraph("runs/attention-limit", numbers=numbers, most=self.max_attention)
                )

    def check_line(self, n_queued: int) -> None:
        """Raise LimitReached, in a sentence, where the line is full."""
        if n_queued >= self.max_queued:
            if n_queued == 1:
                raise LimitReached("1 run waits, the limit here. Try again later.")
            raise LimitReached("{n} runs wait, the limit here. Try again later.", n=n_queued)

    def check_trained(self, seconds: float) -> None:
        """Raise LimitReached, in a sentence, where a run has trained for as long as it may."""
        if self.max_seconds is not None and seconds >= self.max_seconds:
            raise LimitReached(
                "This run has trained for {limit:,.0f} seconds, the limit here.",
                limit=self.max_seconds,
            )

    def _check_open(self) -> None:
        if self.only_shows:
            raise LimitReached("This server only shows trained runs.")


def n_parameters(experiment: Experiment) -> int:
    """Count the parameters of a model without making any."""
    from tfm_core.models.build import init_on_meta
    from tfm_core.training.setup import new_model

    with init_on_meta():
        return sum(parameter.numel() for parameter in new_model(experiment).parameters())
