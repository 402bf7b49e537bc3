"""The language-model tasks by name: texts that a decoder-only model learns to continue.

A corpus has no source: the model sees what was written so far and predicts the next token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import model_validator

from tfm_core.choices.config.base import CrossError, OneOf, setting
from tfm_core.choices.config.reads import NamedTaskConfig, task_setting
from tfm_core.choices.config.text_tasks import set_id
from tfm_core.choices.variants.tasks import UNITS
from tfm_core.reading import is_text
from tfm_core.sentences import N_, Paragraph, words

MIN_CHARACTERS, MAX_CHARACTERS = 20, 200_000
MIN_TOKENS = 20  # of which a tenth is for validation and a tenth for the test
LONGEST_SENTENCE: dict[str, int] = {"words": 16, "characters": 110}
"""Longest sentence of the toy grammar in tokens, without special ones."""


@dataclass(frozen=True, slots=True)
class CorpusTaskFacts:
    """Label and help of a corpus, and which settings of CorpusTaskConfig say something about it.

    unseen: what is new in an unseen example. unit: the only one that there is, or "". max_context:
    the longest one, or 0.
    """

    label: str
    help: str
    settings: tuple[str, ...]
    unseen: str = N_("Sequences are drawn independently of training.")
    families: tuple[str, ...] = ("decoder-only",)
    answer: str = "text"
    unit: str = ""
    max_context: int = 0


_DRAWN = ("context", "n_train", "n_validation", "n_test")
_FACTS: dict[str, dict[str, Any]] = {
    "grammar": {"settings": ("unit", "n_train", "n_validation", "n_test")},
    "own-text": {"settings": ("unit", "context", "text")},
    "repeats": {"settings": _DRAWN, "unit": "characters", "max_context": 64},
    "fixed-repeats": {"settings": _DRAWN, "unit": "characters", "max_context": 64},
    "markov-chains": {"settings": _DRAWN, "unit": "characters"},
    "column-sums": {"settings": _DRAWN, "unit": "characters", "max_context": 192},
    "back-copy": {"settings": _DRAWN, "unit": "characters"},
    "lines": {"settings": _DRAWN, "unit": "words"},
}
CORPUS_TASKS = {
    name: CorpusTaskFacts(**words(f"choices/tasks/{name}"), **facts)
    for name, facts in _FACTS.items()
}


class CorpusTaskConfig(NamedTaskConfig):
    """A language model's text: that of a set, ``data``, or ``text``, or the app's.

    A text in the configuration itself is kept in files and run folders, not in links.
    """

    tasks: ClassVar[dict[str, CorpusTaskFacts]] = CORPUS_TASKS
    data_kind = "stream"
    kind: Literal["corpus"] = "corpus"
    name: Annotated[str, OneOf(CORPUS_TASKS)] = task_setting("own-text")
    unit: Annotated[str, OneOf(UNITS)] = setting("unit", "words")
    context: int = setting("context", 64, ge=4, le=512, step=16)
    n_train: int = setting("n_train-sentences", 20000, ge=8, le=200_000, step=1000, advanced=True)
    n_validation: int = setting(
        "n_validation-sentences", 500, ge=8, le=50_000, step=100, advanced=True
    )
    n_test: int = setting("n_test-sentences", 1000, ge=8, le=50_000, step=100, advanced=True)
    text: str = setting("text", "")
    data: str = set_id("")

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the settings to begin a task with. Raises ConfigError for an unknown one."""
        facts = CORPUS_TASKS.get(name)
        return cls.parse({"name": name, **({"unit": facts.unit} if facts and facts.unit else {})})

    @property
    def facts(self) -> CorpusTaskFacts:
        """Label and help of this corpus."""
        return CORPUS_TASKS[self.name]

    @property
    def max_tgt_len(self) -> int:
        """Longest sequence in tokens, without special tokens."""
        return LONGEST_SENTENCE[self.unit] if self.name == "grammar" else self.context - 1

    @model_validator(mode="after")
    def _text_is_usable(self) -> Self:
        if self.name == "grammar" and self.unit not in LONGEST_SENTENCE:
            raise CrossError("unit", N_("The toy grammar needs words or characters as tokens."))
        unit, most = self.facts.unit, self.facts.max_context
        if unit and self.unit != unit:
            raise CrossError(
                "unit",
                N_(
                    "“{task}” needs {unit} as tokens.",
                    task=self.facts.label,
                    unit=UNITS[unit].plural,
                ),
            )
        if most and self.context > most:
            raise CrossError(
                "context",
                "context is {context}; for “{task}” it must be at most {most}.",
                context=self.context,
                task=self.facts.label,
                most=most,
            )
        if self.text:
            problem = text_problem(self.text, self.unit)
            if problem is not None:
                raise CrossError("text", problem)
        return self


def text_problem(text: str, unit: str, *, most: int = MAX_CHARACTERS) -> str | None:
    """Return what keeps a text from being learned from, in a sentence, or None.

    most: characters that it may have.
    """
    if not MIN_CHARACTERS <= len(text) <= most:
        return Paragraph(
            "settings/text-length",
            n_text=len(text),
            least_characters=MIN_CHARACTERS,
            most_characters=most,
        )
    if not is_text(text, most):
        return N_("The text has a broken character; save it as UTF-8.")
    tokens = UNITS[unit].cut(even_lines(text))
    if len(tokens) < MIN_TOKENS:
        if unit == "words":
            return N_(
                "The text has {n} words; it needs {least}. "
                "Paste more, or use characters as tokens.",
                n=len(tokens),
                least=MIN_TOKENS,
            )
        return N_(
            "The text has {n} characters; it needs {least}. Paste more.",
            n=len(tokens),
            least=MIN_TOKENS,
        )
    if len(set(tokens)) < 2:
        return N_("The text repeats one token: {tokens!r}.", tokens=tokens[0][:20])
    return None


def even_lines(text: str) -> str:
    """Return a text in which every line ends alike."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
