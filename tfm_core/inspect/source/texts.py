"""How the texts of each task are cut into tokens and joined again, where a model is used elsewhere.

A generated file and a page do what ``TextTask.tokenize`` and ``join_tgt`` do, and are tested
against them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tfm_core.config import CaptionTaskConfig, CorpusTaskConfig, OwnTextTaskConfig, TextTaskConfig
from tfm_core.data.own.task import own_task
from tfm_core.data.own.tokens import LABEL, Cutter
from tfm_core.data.tasks import corpus_task
from tfm_core.data.text.dates import MONTHS, WEEKDAYS
from tfm_core.data.text.english_korean import SUFFIXES
from tfm_core.data.text.korean_words import FULL_STOP_ENDING
from tfm_core.variants.languages import LANGUAGES
from tfm_core.variants.record import resolve


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a task's texts are cut and joined.

    cut, join: names of rules, which are macros of ``cuts.py.j2`` and ``joins.py.j2`` and functions
    of ``pages/components/asking.js``; cut is "" where texts aren't typed. has_breaks: line breaks
    are tokens. names: words that begin with a capital letter (dates). suffixes: tokens that follow
    a word without a space; ending: a last token that a full stop follows. merges: of pieces, two
    parts with a space between them, in the order in which they are made.
    """

    cut: str
    join: str
    has_breaks: bool = False
    names: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    ending: str = ""
    merges: tuple[str, ...] = ()


_NAMES = (*MONTHS, *WEEKDAYS, *dict.fromkeys(month[:3] for month in MONTHS))
SPELLINGS: dict[str, Spelling] = {
    "english-korean": Spelling(
        "words", "suffixed", suffixes=tuple(sorted(SUFFIXES)), ending=FULL_STOP_ENDING
    ),
    "dates": Spelling("dates", "plain", names=_NAMES),
    "numbers": Spelling("numbers", "plain"),
    "copy": Spelling("symbols", "spaced"),
    "reverse": Spelling("symbols", "spaced"),
    "sort": Spelling("symbols", "spaced"),
    "addition": Spelling("sum", "plain"),
    "modular-addition": Spelling("residues", "plain"),
    **dict.fromkeys(
        ("select", "sort-by-key", "brackets", "parity", "two-sum"), Spelling("symbols", "spaced")
    ),
    "sentiment": Spelling("opinion", "spaced"),
    "masked-words": Spelling("gaps", "sentence"),
    "span-corruption": Spelling("spans", "spaced"),
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


def _of_corpus(task: CorpusTaskConfig) -> Spelling:
    if task.unit == "characters":
        return Spelling("letters", "plain")
    if task.unit == "bpe":
        return Spelling("parts", "plain", merges=_merges(corpus_task(task).cutter))
    if corpus_task(task).generator is not None:
        return Spelling("spaces", "spaced")
    is_text = task.name != "grammar"
    return Spelling("running" if is_text else "words", "running", has_breaks=is_text)


def _of_own(task: OwnTextTaskConfig) -> Spelling:
    src, tgt = own_task(task).cutters
    return Spelling(_OWN_CUTS[src.unit], _OWN_JOINS[tgt.unit], merges=_merges(src))


def _merges(cutter: Cutter) -> tuple[str, ...]:
    return tuple(" ".join(pair) for pair in cutter.merges)


_BY_KIND: dict[str, Callable[[Any], Spelling]] = {
    "text": lambda task: SPELLINGS[task.name],
    "caption": lambda task: Spelling(
        "", "suffixed", suffixes=tuple(sorted(resolve(LANGUAGES[task.language].grammar).joined))
    ),
    "corpus": _of_corpus,
    "own": _of_own,
}


def spelling_of(
    task: TextTaskConfig | CorpusTaskConfig | CaptionTaskConfig | OwnTextTaskConfig,
) -> Spelling:
    """Return how the texts of a task are cut and joined; captions are only joined."""
    return _BY_KIND[task.kind](task)
