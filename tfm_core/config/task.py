"""What a model learns: the settings of a task."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tfm_core.config.base import CrossError, OneOf, setting, tagged
from tfm_core.config.caption_task import CaptionTaskConfig, CaptionTaskFacts
from tfm_core.config.corpus_tasks import CorpusTaskConfig, CorpusTaskFacts
from tfm_core.config.foreign import ForeignFacts, ForeignTaskConfig
from tfm_core.config.image_tasks import ImageTaskConfig, ImageTaskFacts
from tfm_core.config.own_pictures import OwnPicturesTaskConfig
from tfm_core.config.own_tasks import OwnTextTaskConfig, OwnTextTaskFacts
from tfm_core.config.pretrained_tasks import (
    AnswererFacts,
    LookConfig,
    LookFacts,
    OpenedConfig,
    PretrainedAnswererConfig,
    PretrainedPicturesConfig,
    PretrainedReaderConfig,
    PretrainedTextConfig,
    ReaderFacts,
)
from tfm_core.config.reads import TESTED, VALIDATED, SequenceTaskConfig, count_setting, task_setting
from tfm_core.config.text_tasks import TEXT_TASKS, TextTaskFacts, TextTaskName, shares
from tfm_core.config.tuned_tasks import TunedFacts, TunedLabelsConfig, TunedTextConfig
from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.operations import OPERATIONS, is_prime

_MODULAR = "modular-addition"


class TextTaskConfig(SequenceTaskConfig):
    """Sequence to sequence on generated pairs."""

    tasks: ClassVar[dict[str, TextTaskFacts]] = TEXT_TASKS
    kind: Literal["text"] = "text"
    name: TextTaskName = task_setting("english-korean")
    size: int = setting(1, N_("Size"), N_("Difficulty; depends on the task."), ge=1)
    operation: Annotated[str, OneOf(OPERATIONS)] = setting(
        "add", N_("Operation"), N_("What is computed of a and b."), needs={"name": (_MODULAR,)}
    )
    n_train: int = count_setting(
        20000, N_("Training pairs"), N_("Different pairs in training."), most=500_000, step=1000
    )
    n_validation: int = count_setting(500, N_("Validation pairs"), VALIDATED, most=50_000)
    n_test: int = count_setting(1000, N_("Test pairs"), TESTED, most=50_000)

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the settings to begin a task with. Raises ConfigError for an unknown one."""
        facts = TEXT_TASKS.get(name)
        return cls.parse({"name": name, **({"size": facts.default_size} if facts else {})})

    @property
    def n_training(self) -> int:
        """Examples of the training split, at most."""
        return self.n_train

    @property
    def facts(self) -> TextTaskFacts:
        """Label, help and lengths of this task."""
        return TEXT_TASKS[self.name]

    @property
    def calculates(self) -> bool:
        """Whether the operation says what is answered."""
        return self.name == _MODULAR

    @property
    def n_pairs(self) -> int | None:
        """How many pairs there are; None where they never run out."""
        if self.calculates:
            return OPERATIONS[self.operation].n_pairs(self.size)
        return None if self.facts.n_pairs is None else self.facts.n_pairs(self.size)

    @property
    def max_src_len(self) -> int:
        """Longest source in tokens, without special tokens."""
        return self.facts.max_src_len(self.size)

    @property
    def max_tgt_len(self) -> int:
        """Longest target in tokens, without special tokens."""
        return self.facts.max_tgt_len(self.size)

    @property
    def n_answers(self) -> int:
        """Most positions that a model answers: those of the target, and <eos> of a sequence."""
        return self.max_tgt_len + (self.facts.answer == "sequence")

    @model_validator(mode="after")
    def _size_in_range(self) -> Self:
        sizes = self.facts.sizes
        if self.size not in sizes:
            raise CrossError(
                "size",
                "size is {size}; for {label} it must be {lowest} to {highest}.",
                size=self.size,
                label=self.facts.label,
                lowest=sizes[0],
                highest=sizes[-1],
            )
        return self

    @model_validator(mode="after")
    def _can_divide(self) -> Self:
        if self.calculates and OPERATIONS[self.operation].divides and not is_prime(self.size):
            primes = [n for n in self.facts.sizes if is_prime(n)]
            near = sorted(primes, key=lambda n: abs(n - self.size))[:2]
            raise CrossError(
                "size",
                "Division needs a prime modulus; {size} is not prime. Try {near}.",
                size=self.size,
                near=", ".join(map(str, sorted(near))),
            )
        return self

    @model_validator(mode="after")
    def _pairs_for_each_split(self) -> Self:
        facts = self.facts
        if self.size not in facts.sizes or (total := self.n_pairs) is None:
            return self
        if min(shares((self.n_test, self.n_validation, self.n_train), total)) < 1:
            raise CrossError(
                "n_train",
                Paragraph(
                    "settings/no-training-pairs",
                    label=facts.label,
                    size=self.size,
                    total=total,
                    n_test=self.n_test,
                    n_validation=self.n_validation,
                ),
            )
        return self


AnyTask = (
    TextTaskConfig
    | ImageTaskConfig
    | CaptionTaskConfig
    | CorpusTaskConfig
    | OwnPicturesTaskConfig
    | OwnTextTaskConfig
    | PretrainedTextConfig
    | PretrainedReaderConfig
    | PretrainedPicturesConfig
    | PretrainedAnswererConfig
    | TunedTextConfig
    | TunedLabelsConfig
    | LookConfig
    | ForeignTaskConfig
)
TaskConfig = Annotated[AnyTask, Field(discriminator="kind")]
TaskFacts = (
    TextTaskFacts
    | ImageTaskFacts
    | CaptionTaskFacts
    | CorpusTaskFacts
    | OwnTextTaskFacts
    | ReaderFacts
    | AnswererFacts
    | TunedFacts
    | LookFacts
    | ForeignFacts
)
TASK_CONFIGS: dict[str, type[AnyTask]] = tagged(AnyTask, "kind")
"""The settings of each kind of task."""
TASK_FACTS: dict[str, TaskFacts] = {
    name: facts
    for config in TASK_CONFIGS.values()
    if not issubclass(config, OpenedConfig | ForeignTaskConfig)
    for name, facts in config.tasks.items()
}
"""Every task that a new model can learn, by name."""


def task_config(name: str) -> type[AnyTask]:
    """Return the class that holds the settings of a task. Raises KeyError for an unknown name."""
    kind = next((kind for kind, config in TASK_CONFIGS.items() if name in config.tasks), name)
    return TASK_CONFIGS[kind]


def facts_of(name: str) -> TaskFacts:
    """Return the facts of any task, those of opened models too. Raises KeyError."""
    facts: TaskFacts = task_config(name).tasks[name]
    return facts


def tasks_for(family: str) -> list[str]:
    """Return the names of the tasks that a family can learn, the one to begin with first."""
    return [name for name, facts in TASK_FACTS.items() if family in facts.families]
