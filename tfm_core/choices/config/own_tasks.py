"""Tasks with a user's sentences: the id of the set, and what a model must know of it.

A configuration opens where the set is missing. Lengths and sizes are those of the set, which never
changes; ``data.user_data.task`` refuses a configuration with others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import model_validator

from tfm_core.choices.config.base import OneOf, set_fact
from tfm_core.choices.config.reads import NamedTaskConfig, task_setting
from tfm_core.choices.config.text_tasks import SEQUENCE_FAMILIES
from tfm_core.sentences import N_, words

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


OWN_TEXT_TASKS = {
    "own-pairs": OwnTextTaskFacts(
        families=SEQUENCE_FAMILIES,
        answer="sequence",
        example={"data": "example-pairs", "src_len": 9, "tgt_len": 7, "n_src": 32, "n_tgt": 37},
        **words("choices/tasks/own-pairs"),
    ),
    "own-labels": OwnTextTaskFacts(
        families=("encoder-only",),
        answer="label",
        example={"data": "example-labels", "src_len": 11, "tgt_len": 1, "n_src": 86, "n_tgt": 8},
        **words("choices/tasks/own-labels"),
    ),
}


def set_id(default: Any = ...) -> Any:
    """Return the field that names a set; links and files carry it, no control shows it."""
    return set_fact(N_("Data"), default=default, pattern=r"^([0-9a-f]{20}|example-[a-z]{3,20})?$")


class OwnTextTaskConfig(NamedTaskConfig):
    """A user's sentences: pairs, or with labels."""

    tasks: ClassVar[dict[str, OwnTextTaskFacts]] = OWN_TEXT_TASKS
    kind: Literal["own"] = "own"
    name: Annotated[str, OneOf(OWN_TEXT_TASKS)] = task_setting("own-pairs")
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
    def objective(self) -> str:
        """Answers need not follow from what is read."""
        return "own"

    @property
    def max_src_len(self) -> int:
        """Longest source in tokens, without special tokens."""
        return self.src_len

    @property
    def max_tgt_len(self) -> int:
        """Longest target in tokens, without special tokens."""
        return self.tgt_len
