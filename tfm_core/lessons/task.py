"""What a task of a lesson or a tour is: what its check may look at, and what it says."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field

from tfm_core.choices.config import Experiment
from tfm_core.choices.config.base import Config
from tfm_core.inspect.differences import settings
from tfm_core.lessons.words import TaskWords
from tfm_core.reading import is_number, is_whole
from tfm_core.runs.curves import Curves
from tfm_core.runs.run import ID, LESSON_ID, Run
from tfm_core.runs.store import LESSONS, RECORDED, RunStore
from tfm_core.sentences import N_, StudentError

Asks = Literal["nothing", "choice", "number", "head"]
"""What a pupil gives: nothing but a press, one of the options, a number, or layer and head."""

MAX_ANSWER = 200
"""Characters of an answer."""
MAX_NUMBER = 1e15


def _named(value: str) -> str:
    if LESSON_ID.fullmatch(value) is None:
        raise StudentError(
            "{value} isn't an id: use 2 to 40 lowercase letters, digits and -.",
            value=repr(value)[:60],
        )
    return value


Name = Annotated[str, AfterValidator(_named)]
Value = str | bool | int | float | list[str]


@dataclass(frozen=True, slots=True)
class Work:
    """What a check may look at.

    runs: of one participant in the lesson, the newest first; of a tour, the run that it leads over.
    experiment: what the lesson starts from, None where nothing is trained. words: of the task.
    curves: of the run of a tour so far. is_answered: whether its question was answered; what takes
    seconds to measure is left out before that.
    """

    words: TaskWords
    experiment: Experiment | None
    runs: Sequence[Run]
    store: RunStore
    curves: Curves = field(default_factory=Curves)
    is_answered: bool = False

    @property
    def run(self) -> Run:
        """The run of a tour."""
        return self.runs[0]

    @property
    def can_be_measured(self) -> bool:
        """Whether an answer is wanted, and the run has weights to measure it with."""
        return self.is_answered and self.run.has_checkpoint

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
            if not is_number(given, -MAX_NUMBER, MAX_NUMBER):
                raise StudentError("First enter a number.")
            return f"{given:.15g}"
        if self.asks == "choice":
            if not isinstance(given, str) or given not in self.options(words):
                raise StudentError("First choose an answer.")
            return given
        if self.asks == "head":
            if (
                isinstance(given, list | tuple)
                and len(given) == 2
                and all(is_whole(number, 1, 999) for number in given)
            ):
                return f"{given[0]}.{given[1]}"
            raise StudentError("First enter layer and head, both from 1.")
        return ""

    @abstractmethod
    def judge(self, answer: str, work: Work) -> Verdict:
        """Return whether an answer is right. Raises StudentError where that can't be told yet."""


def values_by_path(experiment: Experiment) -> dict[str, Any]:
    """Return the settings of an experiment that have an effect, by path; names as lists."""
    return {
        path: list(value) if isinstance(value, tuple) else value
        for path, (_label, value, _text) in settings(experiment).items()
    }


def with_value(experiment: Experiment, path: str, value: object) -> Experiment:
    """Return an experiment with another value of a setting. Raises ConfigError."""
    values = experiment.model_dump()
    section, _dot, name = path.rpartition(".")
    if section and not isinstance(values.get(section), dict):
        section, name = "model", path  # no such section: the error names the whole path
    (values[section] if section else values)[name] = value
    return Experiment.parse(values)


def wrong_run(run_id: str) -> str | None:
    """Return what is wrong with the id of a run, as far as any server can tell, or None."""
    if ID.fullmatch(run_id) is None:
        return N_("“{name}” isn't a run id.", name=run_id[:64])
    places = (RECORDED / run_id, RECORDED / LESSONS / run_id)
    if run_id.startswith("recorded-") and not any(place.is_dir() for place in places):
        return N_("no run {name} comes with the app.", name=run_id[:64])
    return None


def named_run(run_id: str, work: Work) -> Run:
    """Return the run with an id, or else the newest finished one. Raises StudentError."""
    if not run_id:
        if not work.finished:
            raise StudentError("First train a run of this lesson to its end.")
        return work.finished[0]
    run = work.store.get(run_id)
    if run.problem is not None:
        raise StudentError(run.problem)
    return run


def number_in(text: str) -> float | None:
    """Return a text as a number, None if it is none."""
    try:
        number = float(text.replace(",", "").replace(" ", ""))
    except ValueError:
        return None
    return number if abs(number) <= MAX_NUMBER else None
