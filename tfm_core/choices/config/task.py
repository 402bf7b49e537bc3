"""What a model learns: the settings of a task."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tfm_core.choices.config.base import tagged
from tfm_core.choices.config.corpus_tasks import CorpusTaskConfig, CorpusTaskFacts
from tfm_core.choices.config.image_tasks import (
    CaptionTaskConfig,
    ImageTaskConfig,
    ImageTaskFacts,
    OwnPicturesTaskConfig,
)
from tfm_core.choices.config.pretrained_tasks import (
    ForeignTaskConfig,
    OpenedConfig,
    OpenedFacts,
    PretrainedAnswererConfig,
    PretrainedPicturesConfig,
    PretrainedReaderConfig,
    PretrainedTextConfig,
    TunedLabelsConfig,
    TunedTextConfig,
)
from tfm_core.choices.config.text_tasks import (
    OwnTextTaskConfig,
    OwnTextTaskFacts,
    TextTaskConfig,
    TextTaskFacts,
)

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
    | ForeignTaskConfig
)
TaskConfig = Annotated[AnyTask, Field(discriminator="kind")]
TaskFacts = TextTaskFacts | ImageTaskFacts | CorpusTaskFacts | OwnTextTaskFacts | OpenedFacts
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
