"""Tasks about a figure that the pupil's own runs reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from tfm_core.choices.config import ConfigError, Experiment
from tfm_core.choices.config.base import plain
from tfm_core.data.tasks import data_shape
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.inspect.compare.differences import settings
from tfm_core.lessons.checks.task import (
    MAX_NUMBER,
    Asks,
    Task,
    Value,
    Verdict,
    Work,
    values_by_path,
    with_value,
)
from tfm_core.lessons.words import TaskWords
from tfm_core.reading import is_number
from tfm_core.runs.record.figures import last_measured
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Sentence, StudentError, percent

Figure = Literal["accuracy", "sequence_accuracy", "loss"]
FIGURES: Mapping[str, str] = {
    "accuracy": N_("Accuracy"),
    "sequence_accuracy": N_("Whole sequences right"),
    "loss": N_("Loss"),
}
"""What a run is measured by: on test examples, where there were any, else on validation."""


class _Measured(Task):
    """A task about a figure of runs: it must be at least, or at most, so much."""

    figure: Figure = "accuracy"
    at_least: float | None = Field(None, ge=0, le=1)
    at_most: float | None = Field(None, ge=0, le=100)

    def problems(self, words: TaskWords, experiment: Experiment | None) -> Iterator[str]:
        """Yield what is wrong with the bounds."""
        yield from super().problems(words, experiment)
        if (self.at_least is None) == (self.at_most is None):
            yield N_("give either at_least or at_most.")
        if experiment is None:
            yield N_("the lesson trains nothing: add [experiment].")

    def figure_of(self, run: Run) -> float | None:
        """Return the figure of a finished run, None where it was not measured."""
        found = (last_measured(run) or {}).get(self.figure)
        return float(found) if isinstance(found, int | float) else None

    def is_reached(self, value: float) -> bool:
        """Return whether a figure is on the right side of the bound."""
        if self.at_least is not None:
            return value >= self.at_least
        return self.at_most is not None and value <= self.at_most

    def best(self, found: Sequence[tuple[float, Run]]) -> tuple[float, Run]:
        """Return the figure and the run that are nearest to the bound, or farthest beyond it."""
        ordered = sorted(found, key=lambda pair: pair[0])
        return ordered[-1] if self.at_least is not None else ordered[0]

    @property
    def wanted(self) -> Sentence:
        """The bound in words."""
        name = FIGURES[self.figure]
        if self.at_least is not None:
            return N_("{figure}: {bound} or more", figure=name, bound=self.shown(self.at_least))
        return N_("{figure}: {bound} or less", figure=name, bound=self.shown(self.at_most or 0.0))

    def shown(self, value: float) -> str:
        """Return a value of the figure as text."""
        return f"{value:.3f}" if self.figure == "loss" else percent(value)


class Reached(_Measured):
    """One of the pupil's own runs reaches a figure, under conditions.

    where: settings that the run must have, path -> value; min and max: path -> bound.
    max_parameters: of its model.
    """

    check: Literal["reached"]
    where: dict[str, Value] = Field(default_factory=dict)
    min: dict[str, float] = Field(default_factory=dict)
    max: dict[str, float] = Field(default_factory=dict)
    max_parameters: int | None = Field(None, ge=1)

    def problems(self, words: TaskWords, experiment: Experiment | None) -> Iterator[str]:
        """Yield what is wrong with the conditions, too."""
        yield from super().problems(words, experiment)
        known = {} if experiment is None else values_by_path(experiment)
        for path in (*self.where, *self.min, *self.max):
            if experiment is not None and path not in known:
                yield N_("there is no setting {path}.", path=path[:60])
            elif path not in self.where and not _is_number(known.get(path, 0)):
                yield N_("{path} is no number.", path=path[:60])

    def judge(self, answer: str, work: Work) -> Verdict:
        """Look for a run that fits and reaches it; else say what the best one got."""
        fitting = [run for run in work.finished if self._fits(run.experiment)]
        if not work.finished:
            raise StudentError("Train a run in this lesson first, to its end.")
        if not fitting:
            raise StudentError("None of your finished runs has the settings of this task.")
        found = [(value, run) for run in fitting if (value := self.figure_of(run)) is not None]
        if not found:
            raise StudentError("None of your finished runs was measured.")
        value, run = self.best(found)
        values: dict[str, Any] = {"name": run.meta.name, "value": self.shown(value)}
        figures: dict[str, float] = {self.figure: value}
        if self.is_reached(value):
            return Verdict(True, N_("“{name}” got {value}.", **values), run.id, figures)
        words = N_(
            "Your best run, “{name}”, got {value}. Wanted: {wanted}.", **values, wanted=self.wanted
        )
        return Verdict(False, words, run.id, figures)

    def _fits(self, experiment: Experiment) -> bool:
        values = values_by_path(experiment)
        return (
            all(values.get(path) == wanted for path, wanted in self.where.items())
            and all(path in values and values[path] >= low for path, low in self.min.items())
            and all(path in values and values[path] <= high for path, high in self.max.items())
            and (self.max_parameters is None or n_parameters(experiment) <= self.max_parameters)
        )


class Smallest(_Measured):
    """The smallest value of a setting with which a run still reaches a figure.

    values: those to choose from, ascending. bound: the largest value that counts, given by the
    teacher; without one the pupil's own runs must show it: the value reaches it, and the next
    smaller one does not.
    """

    check: Literal["smallest"]
    setting: str
    values: list[int | float] = Field(min_length=2, max_length=20)
    bound: float | None = None
    asks: ClassVar[Asks] = "choice"

    def problems(self, words: TaskWords, experiment: Experiment | None) -> Iterator[str]:
        """Yield what is wrong with the setting and its values, too."""
        yield from super().problems(words, experiment)
        if sorted(set(self.values)) != self.values:
            yield N_("values must ascend, each once.")
        if self.bound is not None and self.bound not in self.values:
            yield N_("bound must be one of values.")
        if experiment is None:
            return
        if self.setting not in values_by_path(experiment):
            yield N_("there is no setting {path}.", path=self.setting[:60])
            return
        for value in self.values:
            try:
                with_value(experiment, self.setting, value)
            except ConfigError as error:
                yield N_("value {value}: {why}", value=plain(value), why=error.sentence)

    def options(self, words: TaskWords) -> Mapping[str, str]:
        """Return the values as text."""
        return {plain(value): plain(value) for value in self.values}

    def judge(self, answer: str, work: Work) -> Verdict:
        """Compare with the bound, or with what the pupil's own runs showed."""
        at = [plain(value) for value in self.values].index(answer)
        value, label = self.values[at], _label(work.experiment, self.setting)
        shown = {"label": label, "value": answer}
        own = self._best(work, value)
        if own is None:
            raise StudentError("Train a run with {label} {value} to its end first.", **shown)
        figure, run = own
        figures = {self.setting: float(value), self.figure: figure}
        if not self.is_reached(figure):
            words = N_(
                "With {label} {value} your run got {figure}. Wanted: {wanted}.",
                **shown,
                figure=self.shown(figure),
                wanted=self.wanted,
            )
            return Verdict(False, words, run.id, figures)
        if self.bound is not None and value > self.bound:
            return Verdict(False, N_("A smaller one still does it."), run.id, figures)
        if self.bound is None and at > 0:
            below, smaller = self._best(work, self.values[at - 1]), plain(self.values[at - 1])
            if below is None:
                raise StudentError(
                    "{value} does it. Is it the smallest? Train a run with {smaller}, too.",
                    value=answer,
                    smaller=smaller,
                )
            if self.is_reached(below[0]):
                words = N_("Your run with {smaller} does it, too.", smaller=smaller)
                return Verdict(False, words, below[1].id, figures)
        words = N_("{label} {value} got {figure}.", **shown, figure=self.shown(figure))
        return Verdict(True, words, run.id, figures)

    def _best(self, work: Work, value: float) -> tuple[float, Run] | None:
        """Return the best figure among the runs with a value, and its run."""
        found = [
            (figure, run)
            for run in work.finished
            if values_by_path(run.experiment).get(self.setting) == value
            and (figure := self.figure_of(run)) is not None
        ]
        return self.best(found) if found else None


def n_parameters(experiment: Experiment) -> int:
    """Return the parameters of a model, without building it."""
    return parameter_table(experiment.model, data_shape(experiment)).total


def _is_number(value: object) -> bool:
    return is_number(value, -MAX_NUMBER, MAX_NUMBER)


def _label(experiment: Experiment | None, path: str) -> str:
    return path if experiment is None else settings(experiment)[path].label
