"""What a generated file carries of a run's data, so that it can use the run's weights by itself.

Of pictures the mean and the deviation that the model's were normalised with, of texts the
vocabularies and how texts are cut and joined.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from tfm_core.config import (
    CaptionTaskConfig,
    CorpusTaskConfig,
    Experiment,
    ImageTaskConfig,
    OwnTextTaskConfig,
    TextTaskConfig,
)
from tfm_core.data import caption_words
from tfm_core.data.own.sets import SetMissing
from tfm_core.data.text import Pair, TextTask, text_task
from tfm_core.data.vocabulary import SPECIALS, Vocabulary
from tfm_core.inspect.attention.trained import data_of
from tfm_core.inspect.source.texts import Spelling, spelling_of
from tfm_core.probe.continuation import PROMPT


@dataclass(frozen=True, slots=True)
class Carried:
    """What a file carries; what a task has not is empty.

    mean and std: of pixels from 0 to 1, one a channel. src and tgt: tokens in the order of their
    ids, the special ones first. n_read: most tokens that the model reads of a running text, <bos>
    included; n_written: most tokens that it writes, <eos> included. example: a text to try, ""
    for pictures. verb: what the method is called that answers. tries_capitals: an unknown word is
    looked up in other capitals; reads_unknown: what is unknown then, too, is read as <unk>.
    """

    verb: str
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    classes: tuple[str, ...] = ()
    src: tuple[str, ...] = ()
    tgt: tuple[str, ...] = ()
    spelling: Spelling | None = None
    n_read: int = 0
    n_written: int = 0
    example: str = ""
    tries_capitals: bool = False
    reads_unknown: bool = False

    @property
    def argument(self) -> str:
        """The name of what the method takes."""
        return "picture" if self.mean else "prompt" if self.verb == "write" else "sentence"


VERBS = {"label": "label", "blanks": "fill", "sequence": "answer"}


def carried(experiment: Experiment) -> Carried:
    """Return what the file of a run carries.

    Raises ValueError, in a sentence, for pictures that cannot be had: their mean is not known then.
    """
    task = experiment.task
    if isinstance(task, ImageTaskConfig):
        mean, std = _statistics(experiment)
        return Carried("classify", mean, std, classes=task.facts.class_names)
    if isinstance(task, CaptionTaskConfig):
        mean, std = _statistics(experiment)
        words = _tokens(caption_words.vocabulary(task))
        longest = caption_words.longest(task)
        return Carried(
            "describe", mean, std, tgt=words, spelling=spelling_of(task), n_written=longest + 1
        )
    assert isinstance(task, TextTaskConfig | CorpusTaskConfig | OwnTextTaskConfig)
    texts = text_task(task)
    src, tgt = _tokens(texts.src_vocabulary), _tokens(texts.tgt_vocabulary)
    pair = _example(texts)
    if isinstance(task, CorpusTaskConfig):
        prompt = texts.join_tgt(pair.tgt[: PROMPT[task.unit]])
        return Carried(
            "write", src=src, tgt=tgt, spelling=spelling_of(task), n_read=task.max_tgt_len + 1,
            example=prompt.strip().partition("\n")[0], tries_capitals=True,
            reads_unknown=task.name != "grammar" and bool(task.data or task.text),
        )  # fmt: skip
    verb = "translate" if task.name == "english-korean" else VERBS[task.facts.answer]
    return Carried(
        verb, src=src, tgt=tgt, spelling=spelling_of(task), n_written=task.max_tgt_len + 1,
        example=texts.join_src(pair.src), tries_capitals=isinstance(task, OwnTextTaskConfig),
        reads_unknown=isinstance(task, OwnTextTaskConfig),
    )  # fmt: skip


def _example(task: TextTask) -> Pair:
    """Return a pair to try; where the examples of a run are gone, a few words it knows."""
    try:
        return task.sample(random.Random(1))
    except SetMissing:
        words = task.src_vocabulary.tokens[:3]
        return Pair(words, words, ((),) * len(words))


def _tokens(vocabulary: Vocabulary) -> tuple[str, ...]:
    return (*SPECIALS, *vocabulary.tokens)


def _statistics(experiment: Experiment) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and deviation of the pixels that the run trained on."""
    from tfm_core.data.captions import CaptionData
    from tfm_core.data.image_data import ImageData

    data = data_of(experiment)
    assert isinstance(data, ImageData | CaptionData)
    mean, std = (tuple(round(x, 6) for x in one.tolist()) for one in (data.mean, data.std))
    return mean, std
