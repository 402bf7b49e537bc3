"""A few texts for a walk, those of a run's probe or samples, through their model."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tfm_core.config import Experiment, SequenceTaskConfig
from tfm_core.data.shape import data_shape
from tfm_core.data.tasks import text_task
from tfm_core.data.text_data import distinct_pairs, encode_src
from tfm_core.data.vocabulary import NONE, PAD
from tfm_core.inspect.walk.forward import Item, Subject, on_device, recorded
from tfm_core.models.build import Model, TextShape
from tfm_core.probe.labels import CLS

N_TEXTS = 6


def of_texts(
    experiment: Experiment,
    model: Model,
    items: Sequence[Item],
    images: npt.NDArray[np.uint8] | None,
) -> Subject:
    """Run a model on texts. items: as a probe holds them; without any some are samples.

    There are no images to look at.
    """
    config = experiment.task_as(SequenceTaskConfig)
    task = text_task(config)
    pairs = [(tuple(item["src"]), tuple(item["tgt"])) for item in items]
    if not pairs:
        rng = random.Random(
            f"{experiment.task.name} {getattr(config, 'size', '')} {experiment.seed} walk"
        )
        samples = (
            distinct_pairs(task, N_TEXTS, rng)
            if config.max_src_len
            else [task.sample(rng) for _ in range(N_TEXTS)]
        )
        pairs = [(pair.src, pair.tgt) for pair in samples]
    if task.src_vocabulary.specials.pad == NONE and config.has_source:
        pairs = pairs[:1]  # nothing could fill up the shorter ones
    src = encode_src(task, [pair[0] for pair in pairs])
    answer = experiment.task.facts.answer
    begin = task.tgt_vocabulary.specials.bos
    targets = [[begin, *task.tgt_vocabulary.encode(pair[1])] for pair in pairs]
    if answer == "vectors":  # nothing is written: one position asks for the text's vector
        targets = [row[:1] for row in src.tolist()]
    elif answer != "sequence":  # no <eos> is answered, so the last token asks for nothing
        targets = [row[:-1] for row in targets]
    if task.tgt_vocabulary.specials.pad == NONE:  # nothing could fill up the shorter ones
        shortest = min(map(len, targets))
        targets = [row[:shortest] for row in targets]
        pairs = [(source, target[:shortest]) for source, target in pairs]
    tgt_in = padded(targets, task.tgt_vocabulary.specials.pad)
    inputs = on_device(model, src, tgt_in)
    cache = recorded(model, inputs)
    names = (
        [list(task.src_vocabulary.row(src_row)) for src_row in src.tolist()],
        [list(task.tgt_vocabulary.row(row)) for row in tgt_in.tolist()],
    )
    shape = data_shape(experiment)
    assert isinstance(shape, TextShape)
    vocabulary = task.tgt_vocabulary
    is_answered = answer != "vectors"
    every = [vocabulary.token(i) for i in range(len(vocabulary))] if is_answered else []
    words = _text_words(*names, every)
    if experiment.has_cls:
        words["slots"] = [[CLS, *row] for row in words["slots"]]
    if answer == "blanks":
        words["tgt"] = words["src"]  # each view answers itself
    end = [experiment.task.end] if answer == "sequence" else []
    is_known = not (config.is_opened and config.has_source)
    return Subject(
        experiment.model,
        model,
        shape,
        inputs,
        cache,
        words,
        truth=[[*pair[1], *end] for pair in pairs] if is_known else [],
    )


def padded(rows: Sequence[Sequence[int]], pad: int = PAD) -> Tensor:
    """Return ids (B, T), padded to the longest row."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[pad] * (longest - len(row))] for row in rows])


def _text_words(
    src: list[list[str]], tgt: list[list[str]], vocabulary: Sequence[str]
) -> dict[str, Sequence[Sequence[str]]]:
    """Return the token lists of the axes; a sequence is source and target without a gap."""
    width = len(src[0]) + len(tgt[0])
    joined = [[*(word for word in s if word != "<pad>"), *t] for s, t in zip(src, tgt, strict=True)]
    slots = [[*s, *["<pad>"] * (len(t) - len(s))] for s, t in zip(src, tgt, strict=True)]
    return {
        "src": src,
        "tgt": tgt,
        "slots": slots,
        "sequence": [[*row, *["<pad>"] * (width - len(row))] for row in joined],
        "vocabulary": [list(vocabulary)],
    }
