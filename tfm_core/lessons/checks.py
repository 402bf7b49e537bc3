"""The checks of tasks: what the app itself looks at to say whether a task is solved.

A task of a lesson file names its check; the fields of that check are the other keys of the task. A
check is a class here, and its name is in ``CHECKS``: reading a lesson, the page, results and
``lesson check`` find it there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from tfm_core.choices.config import ConfigError, Experiment
from tfm_core.choices.config.base import plain
from tfm_core.choices.mistakes import MISTAKES
from tfm_core.data.tasks import data_shape
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.inspect.attention import alignment
from tfm_core.inspect.differences import settings
from tfm_core.inspect.questions import Question
from tfm_core.lessons.task import (
    MAX_ANSWER,
    MAX_NUMBER,
    Asks,
    Task,
    Value,
    Verdict,
    Work,
    named_run,
    number_in,
    values_by_path,
    with_value,
    wrong_run,
)
from tfm_core.lessons.words import TaskWords
from tfm_core.probe.labels import modules_by_kind
from tfm_core.reading import is_number
from tfm_core.runs.figures import last_measured
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Sentence, StudentError, percent
from tfm_core.studies.bugs import basis, bug_of, possible
from tfm_core.studies.comparing import result_of

# ---- questions


class Choice(Task):
    """A question with options, in the words of the lesson; one or more are right."""

    check: Literal["choice"]
    asks: ClassVar[Asks] = "choice"

    def problems(self, words: TaskWords, experiment: Experiment | None) -> Iterator[str]:
        """Yield what is wrong with the options."""
        texts = [option.text for option in words.options]
        if not 2 <= len(texts) <= 8:
            yield N_("a choice needs 2 to 8 options “- [ ] …”, but has {n}.", n=len(texts))
        elif not words.right or len(words.right) == len(texts):
            yield N_("a choice needs right options “- [x] …” and wrong ones.")
        if len(set(texts)) != len(texts):
            yield N_("two options are the same.")
        if any(len(text) > MAX_ANSWER for text in texts):
            yield N_("an option can have up to {most} characters.", most=MAX_ANSWER)

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
            yield N_("a number needs one right answer “- [x] 64”, but has {n}.", n=len(words.right))
        for option in words.options:
            if number_in(option.text) is None:
                yield N_("“{text}” isn't a number.", text=option.text[:MAX_ANSWER])

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
                yield N_("options of a count are wrong numbers “- [ ] 64”.")
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
            return Verdict(True, N_("The model has {n} parameters.", n=f"{n:,}"), figures=figures)
        why = _why(
            work.words, next((o.text for o in work.words.options if number_in(o.text) == given), "")
        )
        if why:
            return Verdict(False, why, figures={"predicted": given})
        words = N_("Too many.") if given > n else N_("Too few.")
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


# ---- a figure that the pupil's own runs reach

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
            elif path not in self.where and not is_number(
                known.get(path, 0), -MAX_NUMBER, MAX_NUMBER
            ):
                yield N_("{path} isn't a number.", path=path[:60])

    def judge(self, answer: str, work: Work) -> Verdict:
        """Look for a run that fits and reaches it; else say what the best one got."""
        fitting = [run for run in work.finished if self._fits(run.experiment)]
        if not work.finished:
            raise StudentError("First train a run of this lesson to its end.")
        if not fitting:
            raise StudentError("None of your finished runs has the settings of this task.")
        found = [(value, run) for run in fitting if (value := self.figure_of(run)) is not None]
        if not found:
            raise StudentError("None of your finished runs has this measurement.")
        value, run = self.best(found)
        values: dict[str, Any] = {"name": run.meta.name, "value": self.shown(value)}
        figures: dict[str, float] = {self.figure: value}
        if self.is_reached(value):
            return Verdict(True, N_("“{name}” got {value}.", **values), run.id, figures)
        words = N_(
            "Your best run, “{name}”, got {value}. The goal is {wanted}.",
            **values,
            wanted=self.wanted,
        )
        return Verdict(False, words, run.id, figures)

    def _fits(self, experiment: Experiment) -> bool:
        values = values_by_path(experiment)
        if self.max_parameters is not None:
            table = parameter_table(experiment.model, data_shape(experiment))
            if table.total > self.max_parameters:
                return False
        return (
            all(values.get(path) == wanted for path, wanted in self.where.items())
            and all(path in values and values[path] >= low for path, low in self.min.items())
            and all(path in values and values[path] <= high for path, high in self.max.items())
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
        value, label = self.values[at], self.setting
        if work.experiment is not None:
            label, *_value = settings(work.experiment)[self.setting]
        shown = {"label": label, "value": answer}
        own = self._best(work, value)
        if own is None:
            raise StudentError("First train a run with {label} {value} to its end.", **shown)
        figure, run = own
        figures = {self.setting: float(value), self.figure: figure}
        if not self.is_reached(figure):
            words = N_(
                "With {label} {value}, your run got {figure}. The goal is {wanted}.",
                **shown,
                figure=self.shown(figure),
                wanted=self.wanted,
            )
            return Verdict(False, words, run.id, figures)
        if self.bound is not None and value > self.bound:
            return Verdict(False, N_("A smaller value is enough."), run.id, figures)
        if self.bound is None and at > 0:
            below, smaller = self._best(work, self.values[at - 1]), plain(self.values[at - 1])
            if below is None:
                raise StudentError(
                    "{value} is enough. Is it the smallest? Train a run with {smaller}, too.",
                    value=answer,
                    smaller=smaller,
                )
            if self.is_reached(below[0]):
                words = N_("Your run with {smaller} reaches the goal, too.", smaller=smaller)
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


# ---- a look into runs


class HeadAligns(Task):
    """The pupil names a head that attends to the true source words.

    run: an id, or "" for the pupil's newest finished run. share: of its attention, at least.
    tokens: the target tokens that count, such as all verbs; without any, all do.
    """

    check: Literal["head_aligns"]
    run: str = ""
    kind: Literal["cross", "picture", "slots", "sequence"] = "cross"
    share: float = Field(alignment.LEARNED, gt=0, le=1)
    tokens: list[str] = Field(default_factory=list, max_length=500)
    asks: ClassVar[Asks] = "head"

    def problems(self, words: TaskWords, experiment: Experiment | None) -> Iterator[str]:
        """Yield what is wrong with the run, too."""
        yield from super().problems(words, experiment)
        if self.run and (wrong := wrong_run(self.run)) is not None:
            yield wrong
        if not self.run and experiment is None:
            yield N_("name a run, or add [experiment].")

    def judge(self, answer: str, work: Work) -> Verdict:
        """Measure the head in the last snapshot of the run."""
        run = named_run(self.run, work)
        modules = modules_by_kind(run.experiment).get(self.kind, [])
        steps = run.snapshot_steps()
        if not modules or not steps:
            raise StudentError("“{name}” has no such attention.", name=run.meta.name)
        snapshot = run.snapshot(steps[-1])
        scores = alignment.score(run.experiment, run.probe(), snapshot, tokens=self.tokens)
        layer, head = (int(number) for number in answer.split("."))
        of_kind = scores[scores["kind"] == self.kind]
        found = of_kind[(of_kind["layer"] == layer) & (of_kind["head"] == head)]
        if found.empty:
            raise StudentError(
                "There is no such head: layers 1 to {n_layers}, heads 1 to {n_heads}.",
                n_layers=len(modules),
                n_heads=max(of_kind["head"], default=0),
            )
        share, chance, n = found[["share", "chance", "n_tokens"]].iloc[0]
        words = N_(
            "Layer {layer}, head {head} puts {share} of its attention on the true source words of "
            "{n} tokens; even attention would put {chance}.",
            layer=layer,
            head=head,
            share=percent(share),
            n=int(n),
            chance=percent(chance),
        )
        return Verdict(bool(share >= self.share), words, run.id, {"share": float(share)})


class FailsWithout(Task):
    """One of the pupil's own runs, trained with a mistake, looks right and fails alone.

    mistake: its name. given_at_least: accuracy given the true tokens so far. alone_at_most: share
    of unseen examples that it then writes right by itself.
    """

    check: Literal["fails_without"]
    mistake: str = "no-causal-mask"
    given_at_least: float = Field(0.9, ge=0, le=1)
    alone_at_most: float = Field(0.5, ge=0, le=1)

    def problems(self, words: TaskWords, experiment: Experiment | None) -> Iterator[str]:
        """Yield what is wrong with the mistake, too."""
        yield from super().problems(words, experiment)
        if self.mistake not in MISTAKES:
            known = ", ".join(MISTAKES)
            yield N_(
                "there is no mistake {name}; use one of {known}.", name=self.mistake, known=known
            )
        if experiment is None:
            yield N_("the lesson trains nothing: add [experiment].")

    def judge(self, answer: str, work: Work) -> Verdict:
        """Let the newest run with the mistake write unseen examples by itself."""
        label = MISTAKES[self.mistake].label
        run = next((run for run in work.finished if self._is_made_in(run.experiment)), None)
        if run is None:
            raise StudentError("First train a run with “{mistake}” to its end.", mistake=label)
        found = result_of(run, "", writes_freely=True)
        if found.accuracy is None or found.written is None:
            raise StudentError("“{name}” has no weights to generate with.", name=run.meta.name)
        given, alone = found.accuracy, found.written.share
        words = N_(
            "“{name}” gets {given} of tokens right when given the true ones, but {alone} of {n} "
            "sentences when it generates.",
            name=run.meta.name,
            given=percent(given),
            alone=percent(alone),
            n=found.written.n,
        )
        is_right = given >= self.given_at_least and alone <= self.alone_at_most
        return Verdict(is_right, words, run.id, {"given": given, "alone": alone})

    def _is_made_in(self, experiment: Experiment) -> bool:
        training = experiment.training
        is_of_training = training is not None and self.mistake in training.mistakes
        return is_of_training or self.mistake in getattr(experiment.model, "mistakes", ())


class BugNamed(Task):
    """The pupil names the bug that a suspect hides, or says which of some runs has one.

    runs: ids of runs of which one has a bug; none: the suspect that the pupil trained last on Find
    the bug, whose bug is still hidden.
    """

    check: Literal["bug_named"]
    runs: list[str] = Field(default_factory=list, max_length=6)
    asks: ClassVar[Asks] = "choice"

    def problems(self, words: TaskWords, experiment: Experiment | None) -> Iterator[str]:
        """Yield what is wrong with the runs, too."""
        yield from super().problems(words, experiment)
        if len(self.runs) == 1 or len(set(self.runs)) != len(self.runs):
            yield N_("name no runs, or at least two different ones.")
        yield from filter(None, map(wrong_run, self.runs))

    def options(self, words: TaskWords) -> Mapping[str, str]:
        """Return the runs, or the bugs that a suspect can hide."""
        if self.runs:
            return {
                name: N_("Run {letter}", letter=chr(65 + i)) for i, name in enumerate(self.runs)
            }
        labels = {bug.name: bug.label for bug in possible(basis())}
        return dict(sorted(labels.items(), key=lambda pair: str(pair[1])))

    def judge(self, answer: str, work: Work) -> Verdict:
        """Compare with the settings of the runs."""
        if self.runs:
            runs = [named_run(run_id, work) for run_id in self.runs]
            given = next(run for run in runs if run.id == answer)
            bugs = [
                bug_of(other.experiment, given.experiment) for other in runs if other is not given
            ]
            is_right = any(bugs)
            words = N_("This run has no bug.")
            if bug := next(filter(None, bugs), None):
                words = N_("This run has the bug “{label}”.", label=bug.label)
            return Verdict(is_right, words, answer)
        suspects = [run for run in work.runs if run.problem is None and run.meta.is_suspect]
        if not suspects:
            raise StudentError("Train a new suspect first: its bug must still be hidden.")
        run = suspects[0]
        bug = bug_of(basis(), run.experiment)
        if bug is None or run.status.state != "finished":
            raise StudentError("Wait until “{name}” has finished.", name=run.meta.name)
        if bug.name == answer:
            return Verdict(True, bug.means, run.id)
        words = N_("“{name}” hides another bug.", name=run.meta.name)
        return Verdict(False, words, run.id)


CHECKS: Mapping[str, type[Task]] = {
    "reached": Reached,
    "smallest": Smallest,
    "head_aligns": HeadAligns,
    "fails_without": FailsWithout,
    "predicted_count": PredictedCount,
    "bug_named": BugNamed,
    "choice": Choice,
    "number": Number,
}
"""The checks by the name that a lesson file uses."""
