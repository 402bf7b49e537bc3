"""A task, whatever the kind of its data: its words, its examples, and what a model knows of both.

The table stands above every kind, whose modules are imported when they are asked for.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfm_core.choices.config import (
    CorpusTaskConfig,
    Experiment,
    ModelConfig,
    OpenedWordsConfig,
    PretrainedAnswererConfig,
    PretrainedReaderConfig,
    TunedLabelsConfig,
)
from tfm_core.choices.config.reads import NamedTaskConfig
from tfm_core.choices.config.shape import CaptionShape, ImageShape, Shape, TextShape
from tfm_core.choices.variants.record import resolve
from tfm_core.data.vocabulary import MASK, PAD, SPECIALS, Vocabulary
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from tfm_core.data.download import Progress
    from tfm_core.data.moving import Data
    from tfm_core.data.text.corpus import CorpusTask
    from tfm_core.data.text.task import TextTask


@dataclass(frozen=True)
class Task:
    """What a model learns. Here: maps alone, of a model that is not here.

    made_by, loaded_by: module and function that return its words and its examples.
    """

    config: Any
    made_by: str = ""
    loaded_by: str = ""

    @property
    def words(self) -> TextTask | None:
        """How texts are cut, joined and answered; None where none are read. Raises ValueError."""
        if not self.made_by:
            return None
        words: TextTask = resolve(f"tfm_core.data.{self.made_by}")(self.config)
        return words

    @property
    def answers(self) -> Vocabulary | None:
        """Every token that is answered; None where classes are. Raises ValueError."""
        words = self.words
        return None if words is None else words.tgt_vocabulary

    def load(self, seed: int, progress: Progress | None) -> Data:
        """Return its examples, see ``load``."""
        loaded = resolve(f"tfm_core.data.{self.loaded_by}")
        data: Data = loaded(self.config, seed=seed, progress=progress)
        return data

    def shape(self, model: ModelConfig) -> Shape:
        """Return the sizes of the vocabularies, or of the pictures and their classes."""
        raise StudentError(self.config.without_data)


class PairTask(Task):
    """A text and its answer: another text, a label, or its hidden words."""

    @property
    def sizes(self) -> tuple[int, int]:
        """How many tokens are read, and how many answered."""
        assert self.words is not None
        return len(self.words.src_vocabulary), len(self.words.tgt_vocabulary)

    def shape(self, model: ModelConfig) -> TextShape:
        """See Task."""
        sizes, answer = self.sizes, self.config.facts.answer
        if answer == "blanks" and self.words is not None:
            return TextShape(*sizes, PAD, mask_id=self.words.src_vocabulary.id_of(MASK))
        if answer == "label" and model.pool is not None:
            return TextShape(*sizes, PAD, head=model.pool.name, n_labels=sizes[1] - len(SPECIALS))
        return TextShape(*sizes, PAD)


class UserPairTask(PairTask):
    """Pairs of a set, which need not be here."""

    @property
    def sizes(self) -> tuple[int, int]:
        """See PairTask."""
        return self.config.n_src, self.config.n_tgt


class StreamTask(Task):
    """A text to continue."""

    def load(self, seed: int, progress: Progress | None) -> Data:
        """See Task."""
        from tfm_core.data.text_data import load_corpus

        return load_corpus(corpus_task(self.config), seed=seed)

    def shape(self, model: ModelConfig) -> TextShape:
        """See Task."""
        assert self.words is not None
        n_words = len(self.words.tgt_vocabulary)
        return TextShape(n_words, n_words, PAD, one_vocabulary=True, has_source=False)


class OpenedTask(Task):
    """What a model from a folder reads or writes, cut by its own tokenizer."""

    def shape(self, model: ModelConfig) -> TextShape:
        """See Task; a model that learns labels gets a new last layer."""
        task: OpenedWordsConfig = self.config
        n_words, n_answers = task.n_words, task.n_words
        pad_id = None if task.pad_id < 0 else task.pad_id
        ends: dict[str, Any] = {"one_vocabulary": True}
        match task:
            case TunedLabelsConfig():
                n_answers, n_labels = task.n_tgt, task.n_tgt - len(SPECIALS)
                ends = {"head": "mean", "n_labels": n_labels, "n_segments": task.n_segments}
            case PretrainedReaderConfig():
                ends |= {"head": task.head, "n_segments": task.n_segments}
            case _:
                has_source = isinstance(task, PretrainedAnswererConfig)
                pad_id = pad_id if has_source else None
                ends |= {"output_bias": False, "has_source": has_source}
                ends |= {"bos_id": task.bos_id, "eos_id": task.eos_id}
        return TextShape(n_words, n_answers, pad_id, scale_embedding=False, **ends)


class OpenedStreamTask(OpenedTask, StreamTask):
    """A text that a model from a folder continues, or learns."""


class PictureTask(Task):
    """Pictures of a class each."""

    def shape(self, model: ModelConfig) -> ImageShape:
        """See Task."""
        return ImageShape(self.config.image_size, self.config.channels, self.config.facts.n_classes)


class CaptionTask(Task):
    """Pictures that are described."""

    @property
    def answers(self) -> Vocabulary:
        """See Task."""
        from tfm_core.data.caption_words import vocabulary

        return vocabulary(self.config)

    def shape(self, model: ModelConfig) -> CaptionShape:
        """See Task."""
        from tfm_core.data.caption_words import longest

        n_words, length = len(self.answers), longest(self.config) + 1  # with <bos>
        return CaptionShape(self.config.image_size, self.config.channels, n_words, length, PAD)


_KINDS: dict[str, tuple[Callable[..., Task], *tuple[str, ...]]] = {
    "text": (PairTask, "text:generated", "text_data:load_text"),
    "own": (UserPairTask, "user_data.task:user_task", "text_data:load_user_texts"),
    "corpus": (StreamTask, "text.corpus:learned_task"),
    "image": (PictureTask, "", "image_data:load_images"),
    "own-pictures": (PictureTask, "", "user_data.pictures:load_user_pictures"),
    "caption": (CaptionTask, "", "captions:load_captions"),
    "pretrained": (OpenedStreamTask, "opened_task:writer"),
    "pretrained-reader": (OpenedTask, "opened_task:reader"),
    "pretrained-answerer": (OpenedTask, "opened_task:reader"),
    "pretrained-pictures": (PictureTask,),
    "tuned-text": (OpenedStreamTask, "opened_task:tuned_writer"),
    "tuned-labels": (OpenedTask, "opened_task:tuned_labels", "opened_task:load_tuned_labels"),
    "foreign": (Task,),
}
"""By the kind of the settings: its class, what returns its words, and what its examples."""


def task_of(config: NamedTaskConfig) -> Task:
    """Return the task of settings."""
    kind, *made = _KINDS[config.kind]
    return kind(config, *made)


def text_task(config: NamedTaskConfig) -> TextTask:
    """Return how a task's texts are cut, joined and answered; of equal settings the same object.

    Raises StudentError for a task without a text.
    """
    words = task_of(config).words
    if words is None:
        why = N_("{kind} has no text.", kind=type(config).__name__)
        raise StudentError(why if config.has_model else config.without_data)
    return words


def corpus_task(config: CorpusTaskConfig) -> CorpusTask:
    """Return the task of a running text; an equal configuration gives the same object."""
    words: Any = text_task(config)
    corpus: CorpusTask = words
    return corpus


def data_shape(experiment: Experiment) -> Shape:
    """Return what a model must know of the data of an experiment, without making any; torch-free.

    Raises StudentError for a model that cannot be built here.
    """
    return task_of(experiment.task).shape(experiment.model)


def load(config: NamedTaskConfig, *, seed: int, progress: Progress | None = None) -> Data:
    """Return the data of a task on the CPU; the same seed makes the same splits.

    progress: called with (done, total, words) during a download. Raises ValueError for unavailable
    data.
    """
    if config.without_data:
        raise StudentError(config.without_data)
    was_on = gc.isenabled()
    gc.disable()  # scanning a hundred thousand pairs takes a third of the time
    try:
        return task_of(config).load(seed, progress)
    finally:
        if was_on:
            gc.enable()
