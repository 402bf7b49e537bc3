"""Tasks with a user's sentences: the id of the set, and what a model must know of it.

A configuration opens where the set is missing. Lengths and sizes are those of the set, which never
changes; ``data.own.task`` refuses a configuration with others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from tfm_core.config.base import set_fact
from tfm_core.config.reads import SequenceTaskConfig, task_setting
from tfm_core.config.text_tasks import SEQUENCE_FAMILIES
from tfm_core.sentences import N_, Paragraph

OwnTextTaskName = Literal["own-pairs", "own-labels"]
MAX_TOKENS = 512
"""Of a sentence, without special tokens."""
MAX_WORDS = 100_000
"""Of a vocabulary, special tokens included."""


@dataclass(frozen=True, slots=True)
class OwnTextTaskFacts:
    """Label and help of a task, who learns it, and the set that it begins with.

    unseen: what is new in an unseen example. example: the settings of the set that comes with the
    app.
    """

    label: str
    help: str
    unseen: str
    families: tuple[str, ...]
    answer: Literal["sequence", "label"]
    example: dict[str, Any]
    hides: bool = False


OWN_TEXT_TASKS: dict[str, OwnTextTaskFacts] = {
    "own-pairs": OwnTextTaskFacts(
        N_("Your sentence pairs"),
        N_("Answer a sentence, as in your pairs."),
        Paragraph("settings/unseen-pairs"),
        SEQUENCE_FAMILIES,
        "sequence",
        {"data": "example-pairs", "src_len": 9, "tgt_len": 7, "n_src": 32, "n_tgt": 37},
    ),
    "own-labels": OwnTextTaskFacts(
        N_("Your labelled sentences"),
        N_("Give a sentence one of your labels."),
        Paragraph("settings/unseen-labels"),
        ("encoder-only",),
        "label",
        {"data": "example-labels", "src_len": 11, "tgt_len": 1, "n_src": 86, "n_tgt": 8},
    ),
}


def set_id(default: Any = ...) -> Any:
    """Return the field that names a set; links and files carry it, no control shows it."""
    return Field(
        default,
        title=N_("Data"),
        description=N_("The id of your data set."),
        pattern=r"^([0-9a-f]{20}|example-[a-z]{3,20})?$",
        json_schema_extra={"carried": True},
    )


class OwnTextTaskConfig(SequenceTaskConfig):
    """A user's sentences: pairs, or with labels."""

    tasks: ClassVar[dict[str, OwnTextTaskFacts]] = OWN_TEXT_TASKS
    kind: Literal["own"] = "own"
    name: OwnTextTaskName = task_setting("own-pairs")
    data: str = set_id()
    src_len: int = set_fact(N_("Longest source"), ge=1, le=MAX_TOKENS)
    tgt_len: int = set_fact(N_("Longest target"), ge=1, le=MAX_TOKENS)
    n_src: int = set_fact(N_("Source vocabulary"), ge=5, le=MAX_WORDS)
    n_tgt: int = set_fact(N_("Target vocabulary"), ge=5, le=MAX_WORDS)

    @model_validator(mode="before")
    @classmethod
    def _begins_with_the_example(cls, values: Any) -> Any:
        """Take the set that comes with the app where none is named."""
        if not isinstance(values, dict) or values.get("data"):
            return values
        facts = OWN_TEXT_TASKS.get(str(values.get("name", "own-pairs")))
        return values if facts is None else {**values, **facts.example}

    @property
    def facts(self) -> OwnTextTaskFacts:
        """Label and help of this task, and what is answered."""
        return OWN_TEXT_TASKS[self.name]

    @property
    def max_src_len(self) -> int:
        """Longest source in tokens, without special tokens."""
        return self.src_len

    @property
    def max_tgt_len(self) -> int:
        """Longest target in tokens, without special tokens."""
        return self.tgt_len

    @property
    def n_answers(self) -> int:
        """Most positions that a model answers: those of the target, and <eos> of a sequence."""
        return self.tgt_len + (self.facts.answer == "sequence")
