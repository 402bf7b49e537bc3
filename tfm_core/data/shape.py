"""What a model must know of the data of an experiment, without making any; torch-free."""

from __future__ import annotations

from tfm_core.config import (
    CaptionTaskConfig,
    CorpusTaskConfig,
    EncoderOnlyConfig,
    Experiment,
    ImageTaskConfig,
)
from tfm_core.config.shape import CaptionShape, ImageShape, Shape, TextShape
from tfm_core.data import caption_words
from tfm_core.data.text import text_task
from tfm_core.data.vocabulary import MASK, PAD


def data_shape(experiment: Experiment) -> Shape:
    """Return the sizes of the vocabularies, or of the pictures and their classes."""
    if isinstance(experiment.task, ImageTaskConfig):
        facts = experiment.task.facts
        return ImageShape(facts.image_size, facts.channels, facts.n_classes)
    if isinstance(experiment.task, CaptionTaskConfig):
        n_words, drawn = len(caption_words.vocabulary(experiment.task)), experiment.task.facts
        longest = caption_words.longest(experiment.task) + 1  # with <bos>
        return CaptionShape(drawn.image_size, drawn.channels, n_words, longest, PAD)
    task = text_task(experiment.task)
    if isinstance(experiment.task, CorpusTaskConfig):
        words = len(task.tgt_vocabulary)
        return TextShape(words, words, PAD, one_vocabulary=True, has_source=False)
    sizes = len(task.src_vocabulary), len(task.tgt_vocabulary)
    answer, model = experiment.task.facts.answer, experiment.model
    if answer == "label" and isinstance(model, EncoderOnlyConfig):
        return TextShape(*sizes, PAD, head=model.pooling, n_labels=len(task.tgt_vocabulary.tokens))
    mask_id = task.src_vocabulary.id_of(MASK) if answer == "blanks" else 0
    return TextShape(*sizes, PAD, mask_id=mask_id)
