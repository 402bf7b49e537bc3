"""What a model must know of the data of an experiment, without making any; torch-free."""

from __future__ import annotations

from tfm_core.config import (
    CaptionTaskConfig,
    CorpusTaskConfig,
    EncoderOnlyConfig,
    Experiment,
    ImageTaskConfig,
    OpenedWordsConfig,
    OwnTextTaskConfig,
    PretrainedAnswererConfig,
    PretrainedReaderConfig,
    TextTaskConfig,
)
from tfm_core.config.shape import CaptionShape, ImageShape, Shape, TextShape
from tfm_core.config.tuned_tasks import TunedLabelsConfig
from tfm_core.data import caption_words
from tfm_core.data.tasks import text_task
from tfm_core.data.vocabulary import MASK, PAD, SPECIALS
from tfm_core.sentences import StudentError


def data_shape(experiment: Experiment) -> Shape:
    """Return the sizes of the vocabularies, or of the pictures and their classes.

    Raises StudentError for a model that cannot be built here.
    """
    task = experiment.task
    if not task.has_model:
        raise StudentError(task.without_data)
    match task:
        case CaptionTaskConfig():
            n_words = len(caption_words.vocabulary(task))
            longest = caption_words.longest(task) + 1  # with <bos>
            return CaptionShape(task.image_size, task.channels, n_words, longest, PAD)
        case ImageTaskConfig():
            return ImageShape(task.image_size, task.channels, task.facts.n_classes)
        case OpenedWordsConfig():
            return _opened_shape(task)
        case CorpusTaskConfig():
            n_words = len(text_task(task).tgt_vocabulary)
            return TextShape(n_words, n_words, PAD, one_vocabulary=True, has_source=False)
        case OwnTextTaskConfig():
            sizes = task.n_src, task.n_tgt  # the set need not be here
        case TextTaskConfig():
            words = text_task(task)
            sizes = len(words.src_vocabulary), len(words.tgt_vocabulary)
            if task.facts.answer == "blanks":
                return TextShape(*sizes, PAD, mask_id=words.src_vocabulary.id_of(MASK))
        case _:
            raise TypeError(f"Nothing knows the sizes of {type(task).__name__}.")
    if task.facts.answer == "label":
        pooling = experiment.model_as(EncoderOnlyConfig).pooling
        return TextShape(*sizes, PAD, head=pooling, n_labels=sizes[1] - len(SPECIALS))
    return TextShape(*sizes, PAD)


def _opened_shape(task: OpenedWordsConfig) -> TextShape:
    """Return the shape of a model from a folder; fine-tuned to labels, it gets a new layer."""
    pad_id = None if task.pad_id < 0 else task.pad_id
    match task:
        case TunedLabelsConfig():
            return TextShape(
                task.n_words,
                task.n_tgt,
                pad_id,
                head="mean",
                n_labels=task.n_tgt - len(SPECIALS),
                n_segments=task.n_segments,
                scale_embedding=False,
            )
        case PretrainedReaderConfig():
            return TextShape(
                task.n_words,
                task.n_words,
                pad_id,
                one_vocabulary=True,
                head=task.head,
                n_segments=task.n_segments,
                scale_embedding=False,
            )
    has_source = isinstance(task, PretrainedAnswererConfig)
    return TextShape(
        task.n_words,
        task.n_words,
        pad_id if has_source else None,
        one_vocabulary=True,
        output_bias=False,
        scale_embedding=False,
        has_source=has_source,
        bos_id=task.bos_id,
        eos_id=task.eos_id,
    )
