"""Questions: a choice, a number, and the number of parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from pydantic import Field

from tfm_core.choices.config import ConfigError, Experiment
from tfm_core.data.tasks import data_shape
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.inspect.questions import Question
from tfm_core.lessons.checks.task import (
    MAX_ANSWER,
    Asks,
    Task,
    Value,
    Verdict,
    Work,
    number_in,
    with_value,
)
from tfm_core.lessons.words import TaskWords
from tfm_core.sentences import N_


class Choice(Task):
    """A question with options, in the words of the lesson; one or more are right."""

    check: Literal["choice"]
    asks: ClassVar[Asks] = "choice"

    def problems(self, words: TaskWords, experiment: Experiment | None) -> Iterator[str]:
        """Yield what is wrong with the options."""
        texts = [option.text for option in words.options]
        if not 2 <= len(texts) <= 8:
            yield N_("a choice needs 2 to 8 options “- [ ] …”; it has {n}.", n=len(texts))
        elif not words.right or len(words.right) == len(texts):
            yield N_("a choice needs right options “- [x] …” and wrong ones.")
        if len(set(texts)) != len(texts):
            yield N_("two options are the same.")
        if any(len(text) > MAX_ANSWER for text in texts):
            yield N_("an option may have {most} characters.", most=MAX_ANSWER)

    def options(self, words: TaskWords) -> Mapping[str, str]:
        """Return the options in the order of the file."""
        return {option.text: option.text for option in words.options}

    def judge(self, answer: str, work: Work) -> Verdict:
        """Compare with the right options."""
        return _asked(work.words, answer, tuple(self.options(work.words)))


class Number(Task):
    """A question whose answer is a number. within: how far off is right, as a share of it."""

    check: Literal["number"]
    within: float = Field(0.0, ge=0, le=0.5)
    asks: ClassVar[Asks] = "number"

    def problems(self, words: TaskWords, experiment: Experiment | None) -> Iterator[str]:
        """Yield what is wrong with the numbers."""
        if len(words.right) != 1:
            yield N_("a number needs one right answer “- [x] 64”; it has {n}.", n=len(words.right))
        for option in words.options:
            if number_in(option.text) is None:
                yield N_("“{text}” is not a number.", text=option.text[:MAX_ANSWER])

    def judge(self, answer: str, work: Work) -> Verdict:
        """Compare with the right number."""
        right, given = number_in(work.words.right[0]), number_in(answer)
        assert right is not None
        assert given is not None
        if abs(given - right) <= self.within * abs(right) + 1e-9:
            return Verdict(True, _why(work.words, work.words.right[0]))
        same = (option for option in work.words.options if number_in(option.text) == given)
        return _asked(work.words, next((option.text for option in same), answer), ())


class PredictedCount(Task):
    """The pupil predicts how many parameters a model, or a part of it, has.

    part: the module, such as ``encoder.layers.0``, "" for all. changes: of the lesson's experiment,
    path -> value. within: how far off is right, as a share of the count.
    """

    check: Literal["predicted_count"]
    part: str = ""
    changes: dict[str, Value] = Field(default_factory=dict)
    within: float = Field(0.0, ge=0, le=0.5)
    asks: ClassVar[Asks] = "number"

    def problems(self, words: TaskWords, experiment: Experiment | None) -> Iterator[str]:
        """Yield what is wrong with the model and the part."""
        for option in words.options:
            if option.is_right or number_in(option.text) is None:
                yield N_("an option of a count is a wrong number “- [ ] 64”.")
        if experiment is None:
            yield N_("there is no model to count: add [experiment].")
            return
        try:
            if not self.count(experiment):
                yield N_("no module begins with “{part}”.", part=self.part[:60])
        except ConfigError as error:
            yield error.sentence

    def count(self, experiment: Experiment) -> int:
        """Return the count, from the anatomy of the model."""
        for path, value in self.changes.items():
            experiment = with_value(experiment, path, value)
        table = parameter_table(experiment.model, data_shape(experiment))
        if not self.part:
            return table.total
        rows = [
            row
            for row in table.rows
            if row.module == self.part or row.module.startswith(f"{self.part}.")
        ]
        return sum(row.n_parameters for row in rows)

    def judge(self, answer: str, work: Work) -> Verdict:
        """Compare with the count."""
        assert work.experiment is not None
        n, given = self.count(work.experiment), number_in(answer) or 0.0
        figures = {"predicted": given, "count": float(n)}
        if abs(given - n) <= self.within * n:
            return Verdict(True, N_("It has {n} parameters.", n=f"{n:,}"), figures=figures)
        why = _why(
            work.words, next((o.text for o in work.words.options if number_in(o.text) == given), "")
        )
        if why:
            return Verdict(False, why, figures={"predicted": given})
        words = N_("That is too many.") if given > n else N_("That is too few.")
        return Verdict(False, words, figures={"predicted": given})


def _asked(words: TaskWords, answer: str, options: tuple[str, ...]) -> Verdict:
    """Judge an answer by the options in the words, as a ``Question`` does."""
    right = words.right
    wrong = {option.text: option.why for option in words.options if not option.is_right}
    question = Question(words.text, right[0], _why(words, right[0]), options, wrong, also=right[1:])
    if options and question.is_right(answer):
        return Verdict(True, _why(words, answer))
    return Verdict(False, question.why_not(answer))


def _why(words: TaskWords, text: str) -> str:
    return next((option.why for option in words.options if option.text == text), "")
