"""What a model must know of the data of an experiment, without making any; torch-free."""

from __future__ import annotations

from tfm_core.config import (
    CaptionTaskConfig,
    CorpusTaskConfig,
    EncoderOnlyConfig,
    Experiment,
    ImageTaskConfig,
    OwnTextTaskConfig,
    TextTaskConfig,
)
from tfm_core.config.shape import CaptionShape, ImageShape, Shape, TextShape
from tfm_core.data import caption_words
from tfm_core.data.text import text_task
from tfm_core.data.vocabulary import MASK, PAD, SPECIALS
from tfm_core.variants.tasks import TASK_KINDS


def data_shape(experiment: Experiment) -> Shape:
    """Return the sizes of the vocabularies, or of the pictures and their classes."""
    return TASK_KINDS[experiment.task.kind].shape()(experiment)


def text_shape(experiment: Experiment) -> TextShape:
    """Return the shape of a text task."""
    config = experiment.task_as(TextTaskConfig)
    task, answer = text_task(config), config.facts.answer
    sizes = len(task.src_vocabulary), len(task.tgt_vocabulary)
    if answer == "label":
        pooling = experiment.model_as(EncoderOnlyConfig).pooling
        return TextShape(*sizes, PAD, head=pooling, n_labels=len(task.tgt_vocabulary.tokens))
    mask_id = task.src_vocabulary.id_of(MASK) if answer == "blanks" else 0
    return TextShape(*sizes, PAD, mask_id=mask_id)


def own_shape(experiment: Experiment) -> TextShape:
    """Return the shape of custom sentences, which the configuration holds."""
    config = experiment.task_as(OwnTextTaskConfig)
    if config.facts.answer == "label":
        pooling = experiment.model_as(EncoderOnlyConfig).pooling
        n_labels = config.n_tgt - len(SPECIALS)
        return TextShape(config.n_src, config.n_tgt, PAD, head=pooling, n_labels=n_labels)
    return TextShape(config.n_src, config.n_tgt, PAD)


def corpus_shape(experiment: Experiment) -> TextShape:
    """Return the shape of a language model's text: one vocabulary, and no source."""
    n_words = len(text_task(experiment.task_as(CorpusTaskConfig)).tgt_vocabulary)
    return TextShape(n_words, n_words, PAD, one_vocabulary=True, has_source=False)


def image_shape(experiment: Experiment) -> ImageShape:
    """Return the shape of pictures of classes."""
    facts = experiment.task_as(ImageTaskConfig).facts
    return ImageShape(facts.image_size, facts.channels, facts.n_classes)


def caption_shape(experiment: Experiment) -> CaptionShape:
    """Return the shape of described pictures; the longest caption counts with <bos>."""
    config = experiment.task_as(CaptionTaskConfig)
    n_words, longest = len(caption_words.vocabulary(config)), caption_words.longest(config) + 1
    return CaptionShape(config.image_size, config.channels, n_words, longest, PAD)
