"""What a page needs to ask a model that it carries as an ONNX file: how texts are cut, and joined.

The names of the rules are those of ``pages/components/asking.js``, which has the rules themselves;
a test holds both against ``TextTask.tokenize`` and ``join_tgt``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tfm_core.config import (
    CaptionTaskConfig,
    CorpusTaskConfig,
    Experiment,
    ImageTaskConfig,
    OwnTextTaskConfig,
    TextTaskConfig,
)
from tfm_core.config.shape import TextShape
from tfm_core.data.corpus.task import corpus_task
from tfm_core.data.own.task import own_task
from tfm_core.data.own.tokens import LABEL
from tfm_core.data.shape import data_shape
from tfm_core.data.text.dates import MONTHS, WEEKDAYS
from tfm_core.data.text.english_korean import SUFFIXES
from tfm_core.data.text.korean_words import FULL_STOP_ENDING
from tfm_core.data.vocabulary import BOS, PAD, UNK
from tfm_core.inspect.source.carried import Carried
from tfm_core.probe.continuation import LENGTH
from tfm_core.variants.languages import LANGUAGES
from tfm_core.variants.record import resolve

How = Literal["write", "slots", "continue", "classes"]
"""write: token after token, behind a source or a picture; slots: all at once; continue: a text;
classes: of a picture."""


@dataclass(frozen=True, slots=True)
class Spelled:
    """How a task's texts are cut and joined. cut: a rule's name, "" where texts aren't typed.

    names: words that begin with a capital letter (dates). joined: tokens that stand behind a word
    without a space; ending: one behind which a full stop follows, as the last. merges: of pieces,
    two parts with a space between them, in the order in which they are made.
    """

    cut: str
    join: str
    names: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    ending: str = ""
    merges: tuple[str, ...] = ()


_NAMES = (*MONTHS, *WEEKDAYS, *dict.fromkeys(month[:3] for month in MONTHS))
SPELLED: dict[str, Spelled] = {
    "english-korean": Spelled(
        "words", "suffixed", joined=tuple(sorted(SUFFIXES)), ending=FULL_STOP_ENDING
    ),
    "dates": Spelled("dates", "plain", names=_NAMES),
    "numbers": Spelled("numbers", "plain"),
    "copy": Spelled("symbols", "spaced"),
    "reverse": Spelled("symbols", "spaced"),
    "sort": Spelled("symbols", "spaced"),
    "addition": Spelled("sum", "plain"),
    "sentiment": Spelled("opinion", "spaced"),
    "masked-words": Spelled("gaps", "sentence"),
    "span-corruption": Spelled("spans", "spaced"),
}
"""By the name of a text task."""

_OWN_CUTS = {"words": "running", "spaces": "spaces", "characters": "signs", "bpe": "pieces"}
_OWN_JOINS = {
    "words": "running",
    "spaces": "spaced",
    "characters": "plain",
    "bpe": "united",
    LABEL: "spaced",
}


@dataclass(frozen=True, slots=True)
class Asking:
    """How a model is asked.

    most_read: tokens of a source, or of a text to continue with <bos>; most_written: tokens of an
    answer. never: ids that are not written. mask_id: of a hidden word, 0 where there is none.
    is_drawn: whether a drawing becomes such a picture.
    """

    how: How
    spelled: Spelled
    most_read: int
    most_written: int
    never: tuple[int, ...] = ()
    mask_id: int = 0
    is_drawn: bool = False


def asking(experiment: Experiment, data: Carried) -> Asking:
    """Return how the model of an experiment is asked. data: of ``carried``."""
    task = experiment.task
    if isinstance(task, CorpusTaskConfig):
        return Asking(
            "continue",
            _of_corpus(task),
            most_read=data.n_read,
            most_written=LENGTH[task.unit],
            never=(PAD, BOS, UNK),
        )
    if isinstance(task, CaptionTaskConfig):
        joined = resolve(LANGUAGES[task.language].grammar).joined
        spelled = Spelled("", "suffixed", joined=tuple(sorted(joined)))
        return Asking("write", spelled, 0, data.n_written)
    if isinstance(task, TextTaskConfig | OwnTextTaskConfig):
        shape = data_shape(experiment)
        assert isinstance(shape, TextShape)
        is_slots = experiment.model.family == "encoder-only"
        return Asking(
            "slots" if is_slots else "write",
            _of_own(task) if isinstance(task, OwnTextTaskConfig) else SPELLED[task.name],
            most_read=task.max_src_len,
            most_written=task.n_answers,
            mask_id=shape.mask_id if is_slots else 0,
        )
    facts = experiment.task_as(ImageTaskConfig).facts
    is_drawn = facts.channels == 1 and all(name.isdigit() for name in facts.class_names)
    return Asking("classes", Spelled("", ""), 0, 0, is_drawn=is_drawn)


def _of_own(task: OwnTextTaskConfig) -> Spelled:
    src, tgt = own_task(task).cutters
    merges = tuple(" ".join(pair) for pair in src.merges)
    return Spelled(_OWN_CUTS[src.unit], _OWN_JOINS[tgt.unit], merges=merges)


def _of_corpus(task: CorpusTaskConfig) -> Spelled:
    if task.unit == "characters":
        return Spelled("letters", "plain")
    if task.unit == "bpe":
        merges = tuple(" ".join(pair) for pair in corpus_task(task).cutter.merges)
        return Spelled("parts", "plain", merges=merges)
    return Spelled("words" if task.name == "grammar" else "running", "running")


def as_json(how: Asking, data: Carried) -> Mapping[str, Any]:
    """Return what the page is told, as JSON takes it."""
    spelled = how.spelled
    return {
        "how": how.how,
        "cut": spelled.cut,
        "join": spelled.join,
        "names": spelled.names,
        "joined": spelled.joined,
        "ending": spelled.ending,
        "merges": spelled.merges,
        "tries_capitals": data.tries_capitals,
        "reads_unknown": data.reads_unknown,
        "most_read": how.most_read,
        "most_written": how.most_written,
        "never": how.never,
        "mask_id": how.mask_id,
        "is_drawn": how.is_drawn,
        "src": data.src,
        "tgt": data.tgt,
        "classes": data.classes,
        "mean": data.mean,
        "std": data.std,
        "example": data.example,
    }
