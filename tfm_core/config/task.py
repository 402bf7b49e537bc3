"""What a model learns: the settings of a task."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tfm_core.config.base import Config, CrossError, knob
from tfm_core.config.caption_task import CAPTION_TASKS, CaptionTaskConfig, CaptionTaskFacts
from tfm_core.config.corpus_tasks import CORPUS_TASKS, CorpusTaskConfig, CorpusTaskFacts
from tfm_core.config.image_tasks import IMAGE_TASKS, ImageTaskFacts, ImageTaskName
from tfm_core.config.text_tasks import TEXT_TASKS, TextTaskFacts, TextTaskName


class TextTaskConfig(Config):
    """Sequence to sequence on generated pairs."""

    kind: Literal["text"] = "text"
    name: TextTaskName = knob("english-korean", "Task", "What the model learns.")
    size: int = knob(1, "Size", "How hard the task is; what it counts depends on the task.", ge=1)
    n_train: int = knob(
        20000,
        "Training pairs",
        "Different pairs to learn from.",
        ge=8,
        le=500_000,
        step=1000,
        advanced=True,
    )
    n_validation: int = knob(
        500,
        "Validation pairs",
        "Unseen pairs measured during training.",
        ge=8,
        le=50_000,
        step=100,
        advanced=True,
    )
    n_test: int = knob(
        1000,
        "Test pairs",
        "Unseen pairs measured once at the end.",
        ge=8,
        le=50_000,
        step=100,
        advanced=True,
    )

    @property
    def facts(self) -> TextTaskFacts:
        """Label, help and lengths of this task."""
        return TEXT_TASKS[self.name]

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
                "size is {size}, but for {label} it must be from {lowest} to {highest}.",
                size=self.size,
                label=self.facts.label,
                lowest=sizes[0],
                highest=sizes[-1],
            )
        return self


class ImageTaskConfig(Config):
    """Image classification."""

    kind: Literal["image"] = "image"
    name: ImageTaskName = knob("mnist-5000", "Task", "What the model learns.")
    shift: float = knob(
        1.0,
        "Shift",
        "Training pictures move by up to this many pixels.",
        ge=0,
        le=8,
        step=0.5,
        advanced=True,
    )
    rotation: float = knob(
        0.0,
        "Rotation",
        "Training pictures turn by up to this many degrees.",
        ge=0,
        le=45,
        step=1,
        advanced=True,
    )
    scale: float = knob(
        0.0,
        "Scale",
        "Training pictures grow or shrink by up to this share.",
        ge=0,
        le=0.5,
        step=0.05,
        advanced=True,
    )
    n_validation: int = knob(
        500,
        "Validation pictures",
        "Held out of the training set and measured during training.",
        ge=8,
        le=10_000,
        step=100,
        advanced=True,
    )

    @property
    def facts(self) -> ImageTaskFacts:
        """Label, help and picture shape of this task."""
        return IMAGE_TASKS[self.name]


SequenceTaskConfig = TextTaskConfig | CorpusTaskConfig
"""The tasks of tokens, with a source or without."""
TaskConfig = Annotated[
    TextTaskConfig | ImageTaskConfig | CaptionTaskConfig | CorpusTaskConfig,
    Field(discriminator="kind"),
]
TaskFacts = TextTaskFacts | ImageTaskFacts | CaptionTaskFacts | CorpusTaskFacts
TASK_FACTS: dict[str, TaskFacts] = {**TEXT_TASKS, **IMAGE_TASKS, **CAPTION_TASKS, **CORPUS_TASKS}
"""Every task by name."""

_CONFIGS: dict[
    type[TaskFacts],
    type[TextTaskConfig | ImageTaskConfig | CaptionTaskConfig | CorpusTaskConfig],
] = {
    TextTaskFacts: TextTaskConfig,
    ImageTaskFacts: ImageTaskConfig,
    CaptionTaskFacts: CaptionTaskConfig,
    CorpusTaskFacts: CorpusTaskConfig,
}


def task_config(
    name: str,
) -> type[TextTaskConfig | ImageTaskConfig | CaptionTaskConfig | CorpusTaskConfig]:
    """Return the class that holds the settings of a task. Raises KeyError for an unknown name."""
    return _CONFIGS[type(TASK_FACTS[name])]


def tasks_for(family: str) -> list[str]:
    """Return the names of the tasks that a family can learn, the one to begin with first."""
    return [name for name, facts in TASK_FACTS.items() if family in facts.families]
