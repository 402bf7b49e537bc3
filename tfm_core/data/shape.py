"""What a model must know of the data of an experiment, without making any; torch-free."""

from __future__ import annotations

from tfm_core.config import CaptionTaskConfig, Experiment, ImageTaskConfig, TextTaskConfig
from tfm_core.config.shape import CaptionShape, ImageShape, Shape, TextShape
from tfm_core.data import caption_words
from tfm_core.data.text import text_task
from tfm_core.data.vocabulary import PAD


def data_shape(experiment: Experiment) -> Shape:
    """Return the sizes of the vocabularies, or of the pictures and their classes."""
    if isinstance(experiment.task, ImageTaskConfig):
        facts = experiment.task.facts
        return ImageShape(facts.image_size, facts.channels, facts.n_classes)
    if isinstance(experiment.task, CaptionTaskConfig):
        words, drawn = caption_words.vocabulary(experiment.task), experiment.task.facts
        longest = caption_words.longest(experiment.task) + 1  # with <bos>
        return CaptionShape(drawn.image_size, drawn.channels, len(words), longest, PAD)
    assert isinstance(experiment.task, TextTaskConfig)
    task = text_task(experiment.task)
    return TextShape(len(task.src_vocabulary), len(task.tgt_vocabulary), PAD)
