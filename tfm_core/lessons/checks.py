"""The checks of tasks: what the app itself looks at to say whether a task is solved.

A task of a lesson file names its check; the fields of that check are the other keys of the task. A
check is a class here and its name in ``CHECKS``: reading a lesson, the page, results and
``lesson check`` find it there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field

from tfm_core.config import ConfigError, Experiment
from tfm_core.config.base import Config, plain
from tfm_core.data.shape import data_shape
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.inspect.attention import alignment
from tfm_core.inspect.bugs.bugs import BUGS, Bug, basis, bug_of, with_bug
from tfm_core.inspect.compare.differences import settings
from tfm_core.inspect.experiments import result
from tfm_core.inspect.questions import Question
from tfm_core.lessons.words import TaskWords
from tfm_core.mistakes import MISTAKES
from tfm_core.probe.labels import layer_of, modules_by_kind
from tfm_core.reading import is_number, is_whole
from tfm_core.runs.record.figures import last_measured
from tfm_core.runs.run import ID, LESSON_ID, Run
from tfm_core.runs.store import LESSONS, RECORDED, RunStore
from tfm_core.sentences import N_, Sentence, StudentError, percent

Asks = Literal["nothing", "choice", "number", "head"]
"""What a pupil gives: nothing but a press, one of the options, a number, or layer and head."""

Figure = Literal["accuracy", "sequence_accuracy", "loss"]
FIGURES: Mapping[str, str] = {
    "accuracy": N_("Accuracy"),
    "sequence_accuracy": N_("Whole sequences right"),
    "loss": N_("Loss"),
}
"""What a run is measured by: on test examples, where there were any, else on validation."""

MAX_ANSWER = 200
"""Characters of an answer."""
_MAX_NUMBER = 1e15


def _named(value: str) -> str:
    if LESSON_ID.fullmatch(value) is None:
        raise StudentError(
            "{value} is no id: use 2 to 40 small letters, digits and -.", value=repr(value)[:60]
        )
    return value


Name = Annotated[str, AfterValidator(_named)]
Value = str | bool | int | float | list[str]


@dataclass(frozen=True, slots=True)
class Work:
    """What a check may look at.

    runs: of one participant in the lesson, the newest first. experiment: what the lesson starts
    from, None where nothing is trained. words: of the task.
    """

    words: TaskWords
    experiment: Experiment | None
    runs: Sequence[Run]
    store: RunStore

    @property
    def finished(self) -> list[Run]:
        """The runs that trained to their end and can be read."""
        return [run for run in self.runs if run.problem is None and run.status.state == "finished"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an answer is right, and why. run: the id of the run that shows it, or ""."""

    is_right: bool
    sentence: str
    run: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)


class Task(Config):
    """A task: its id, the page on which to work, and the fields of its check.

    view: what the page's address says besides. asks: what the pupil gives.
    """

    model_config = ConfigDict(strict=True)

    check: str
    id: Name
    page: str = ""
    view: dict[str, str] = Field(default_factory=dict)

    asks: ClassVar[Asks] = "nothing"

    def problems(self, words: TaskWords, experiment: Experiment | None) -> Iterator[str]:
        """Yield what is wrong with the task in this lesson, in sentences."""
        if words.options:
            yield N_("only a choice or a number has options “- [ ]”.")

    def options(self, words: TaskWords) -> Mapping[str, str]:
        """Return the options of a choice: what is kept -> what is shown."""
        return {}

    def answer_of(self, given: object, words: TaskWords) -> str:
        """Return an answer as it is kept. Raises StudentError for what is none."""
        if self.asks == "number":
            if not is_number(given, -_MAX_NUMBER, _MAX_NUMBER):
                raise StudentError("Enter a number first.")
            return f"{given:.15g}"
        if self.asks == "choice":
            if not isinstance(given, str) or given not in self.options(words):
                raise StudentError("Choose an answer first.")
            return given
        if self.asks == "head":
            return _head_text(given)
        return ""

    def judge(self, answer: str, work: Work) -> Verdict:
        """Return whether an answer is right. Raises StudentError where that can't be told yet."""
        raise NotImplementedError


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
            if _number(option.text) is None:
                yield N_("“{text}” is not a number.", text=option.text[:MAX_ANSWER])

    def judge(self, answer: str, work: Work) -> Verdict:
        """Compare with the right number."""
        right, given = _number(work.words.right[0]), _number(answer)
        assert right is not None
        assert given is not None
        if abs(given - right) <= self.within * abs(right) + 1e-9:
            return Verdict(True, _why(work.words, work.words.right[0]))
        same = (option for option in work.words.options if _number(option.text) == given)
        return _asked(work.words, next((option.text for option in same), answer), ())


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
        if self.run and (wrong := _wrong_run(self.run)) is not None:
            yield wrong
        if not self.run and experiment is None:
            yield N_("name a run, or add [experiment].")

    def judge(self, answer: str, work: Work) -> Verdict:
        """Measure the head in the last snapshot of the run."""
        run = named_run(self.run, work)
        modules = modules_by_kind(run.experiment).get(self.kind, [])
        steps = run.snapshot_steps()
        if not modules or not steps:
            raise StudentError("“{name}” has no such attention to look at.", name=run.meta.name)
        snapshot = run.snapshot(steps[-1])
        scores = alignment.score(run.experiment, run.probe(), snapshot, tokens=self.tokens)
        layer, head = (int(number) for number in answer.split("."))
        module = next((name for name in modules if layer_of(name) == layer - 1), "")
        if module not in scores or head > len(scores[module].share):
            shown = [scores[name].share for name in modules if name in scores]
            raise StudentError(
                "There is no such head: layers 1 to {n_layers}, heads 1 to {n_heads}.",
                n_layers=len(modules),
                n_heads=max(map(len, shown), default=0),
            )
        share, chance = float(scores[module].share[head - 1]), scores[module].chance
        words = N_(
            "Layer {layer}, head {head}: {share} of its attention is on the true source words of "
            "{n} tokens; even attention has {chance}.",
            layer=layer,
            head=head,
            share=percent(share),
            n=scores[module].n_tokens,
            chance=percent(chance),
        )
        return Verdict(share >= self.share, words, run.id, {"share": share})


class FailsWithout(Task):
    """One of the pupil's own runs, trained with a mistake, looks right and fails alone.

    mistake: of ``tfm_core.mistakes``. given_at_least: accuracy given the true tokens so far.
    alone_at_most: share of unseen examples that it then writes right by itself.
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
        run = next((run for run in work.finished if self.mistake in made_in(run.experiment)), None)
        if run is None:
            raise StudentError("Train a run with “{mistake}” to its end first.", mistake=label)
        found = result.read(run, "", writes_freely=True)
        if found.accuracy is None or found.written is None:
            raise StudentError("“{name}” kept no weights to write with.", name=run.meta.name)
        given, alone = found.accuracy, found.written.share
        words = N_(
            "“{name}”: {given} of tokens right while it is given the true ones, {alone} of {n} "
            "sentences right when it writes alone.",
            name=run.meta.name,
            given=percent(given),
            alone=percent(alone),
            n=found.written.n,
        )
        is_right = given >= self.given_at_least and alone <= self.alone_at_most
        return Verdict(is_right, words, run.id, {"given": given, "alone": alone})


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
            if option.is_right or _number(option.text) is None:
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
        n, given = self.count(work.experiment), _number(answer) or 0.0
        figures = {"predicted": given, "count": float(n)}
        if abs(given - n) <= self.within * n:
            return Verdict(True, N_("It has {n} parameters.", n=f"{n:,}"), figures=figures)
        why = _why(
            work.words, next((o.text for o in work.words.options if _number(o.text) == given), "")
        )
        if why:
            return Verdict(False, why, figures={"predicted": given})
        words = N_("That is too many.") if given > n else N_("That is too few.")
        return Verdict(False, words, figures={"predicted": given})


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
            yield N_("name at least two runs, each once, or none.")
        yield from filter(None, map(_wrong_run, self.runs))

    def options(self, words: TaskWords) -> Mapping[str, str]:
        """Return the runs, or the bugs that a suspect can hide."""
        if self.runs:
            return {
                name: N_("Run {letter}", letter=chr(65 + i)) for i, name in enumerate(self.runs)
            }
        labels = {bug.name: bug.label for bug in BUGS.values() if _can_be_hidden(bug)}
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
            words = N_("Nothing is wrong with this one.")
            if bug := next(filter(None, bugs), None):
                words = N_("It has a bug: {label}.", label=bug.label)
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
        words = N_("“{name}” hides something else.", name=run.meta.name)
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


def values_by_path(experiment: Experiment) -> dict[str, Any]:
    """Return the settings of an experiment that have an effect, by path; names as lists."""
    return {
        path: list(one.value) if isinstance(one.value, tuple) else one.value
        for path, one in settings(experiment).items()
    }


def with_value(experiment: Experiment, path: str, value: object) -> Experiment:
    """Return an experiment with another value of a setting. Raises ConfigError."""
    values = experiment.model_dump()
    section, _dot, name = path.rpartition(".")
    if section and not isinstance(values.get(section), dict):
        section, name = "model", path  # no such section: the error names the whole path
    (values[section] if section else values)[name] = value
    return Experiment.parse(values)


def n_parameters(experiment: Experiment) -> int:
    """Return the parameters of a model, without building it."""
    return parameter_table(experiment.model, data_shape(experiment)).total


def made_in(experiment: Experiment) -> tuple[str, ...]:
    """Return the mistakes of an experiment."""
    return (*getattr(experiment.model, "mistakes", ()), *experiment.training.mistakes)


def _wrong_run(run_id: str) -> str | None:
    """Return what is wrong with the id of a run, as far as any server can tell, or None."""
    if ID.fullmatch(run_id) is None:
        return N_("“{name}” is no id of a run.", name=run_id[:64])
    places = (RECORDED / run_id, RECORDED / LESSONS / run_id)
    if run_id.startswith("recorded-") and not any(place.is_dir() for place in places):
        return N_("no run {name} comes with the app.", name=run_id[:64])
    return None


def named_run(run_id: str, work: Work) -> Run:
    """Return the run with an id, or else the newest finished one. Raises StudentError."""
    if not run_id:
        if not work.finished:
            raise StudentError("Train a run in this lesson first, to its end.")
        return work.finished[0]
    run = work.store.get(run_id)
    if run.problem is not None:
        raise StudentError(run.problem)
    return run


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


def _is_number(value: object) -> bool:
    return is_number(value, -_MAX_NUMBER, _MAX_NUMBER)


def _number(text: str) -> float | None:
    try:
        number = float(text.replace(",", "").replace(" ", ""))
    except ValueError:
        return None
    return number if abs(number) <= _MAX_NUMBER else None


def _head_text(given: object) -> str:
    if (
        isinstance(given, list | tuple)
        and len(given) == 2
        and all(is_whole(number, 1, 999) for number in given)
    ):
        return f"{given[0]}.{given[1]}"
    raise StudentError("Enter layer and head first, both from 1.")


def _label(experiment: Experiment | None, path: str) -> str:
    return path if experiment is None else settings(experiment)[path].label


def _can_be_hidden(bug: Bug) -> bool:
    try:
        return bug_of(basis(), with_bug(basis(), bug)) is not None
    except (ConfigError, KeyError):
        return False
