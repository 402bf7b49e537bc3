"""The texts of a task, whatever the kind of its data: its words, and how they are cut."""

from __future__ import annotations

from tfm_core.config.corpus_tasks import CorpusTaskConfig
from tfm_core.config.own_tasks import OwnTextTaskConfig
from tfm_core.config.pretrained_tasks import (
    PretrainedAnswererConfig,
    PretrainedReaderConfig,
    PretrainedTextConfig,
)
from tfm_core.config.reads import NamedTaskConfig
from tfm_core.config.task import TextTaskConfig
from tfm_core.config.tuned_tasks import TunedLabelsConfig, TunedTextConfig
from tfm_core.data.corpus.task import CorpusTask, learned_task
from tfm_core.data.own.task import own_task
from tfm_core.data.text import TextTask, generated
from tfm_core.sentences import StudentError


def text_task(config: NamedTaskConfig) -> TextTask:
    """Return the task of a configuration; the same settings give the same object.

    Raises StudentError for a task without a text.
    """
    match config:
        case TextTaskConfig():
            return generated(config)
        case OwnTextTaskConfig():
            return own_task(config)
        case TunedLabelsConfig():
            from tfm_core.data.opened.tuned import tuned_labels  # with torch

            return tuned_labels(config)
        case PretrainedReaderConfig() | PretrainedAnswererConfig():
            from tfm_core.data.opened.task import reader  # with torch

            return reader(config)
        case CorpusTaskConfig():
            return corpus_task(config)
    if not config.has_model:
        raise StudentError(config.without_data)
    raise StudentError("{kind} has no text.", kind=type(config).__name__)


def corpus_task(config: CorpusTaskConfig) -> CorpusTask:
    """Return the task of a running text; an equal configuration gives the same object."""
    match config:
        case TunedTextConfig():
            from tfm_core.data.opened.tuned import tuned_writer  # with torch

            return tuned_writer(config)
        case PretrainedTextConfig():
            from tfm_core.data.opened.task import writer  # with torch

            return writer(config)
    return learned_task(config)
