"""The first look at a model from a folder: a few examples, and one snapshot of it on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tfm_core.choices.config import (
    CorpusTaskConfig,
    Experiment,
    PretrainedAnswererConfig,
    PretrainedPicturesConfig,
    PretrainedReaderConfig,
    PretrainedTextConfig,
)
from tfm_core.data.opened_task import SENTENCES, reader, tokenizer_of
from tfm_core.data.tasks import corpus_task
from tfm_core.data.text.task import Pair
from tfm_core.data.vocabulary import NONE
from tfm_core.decoding import Decoded, greedy
from tfm_core.export.opened_as import MASK
from tfm_core.facts.storage import attention_numbers
from tfm_core.inspect.attention.example import head_answer
from tfm_core.inspect.attention.trained import inputs_of, model_of
from tfm_core.models.text import DecoderOnly, EncoderDecoder
from tfm_core.pretrained.pictures import photographs
from tfm_core.probe.capture import capture
from tfm_core.probe.items import continued, prompted_items
from tfm_core.probe.snapshot import half, positions_of
from tfm_core.probe.types import Array, Snapshot
from tfm_core.runs.run import Run

_MAX_KEPT = 32_000_000
"""Attention weights of a snapshot, where one example has not more: 64 MB."""


def first_look(run: Run) -> tuple[dict[str, Any], Snapshot]:
    """Return the probe of a run whose weights are there, and a snapshot of its model."""
    probe = _probe(run)
    images = probe.get("images")
    n_attended = len(probe["items"])
    if images is not None:  # a text is short, but a picture may have thousands of patches
        n_attended = max(1, min(n_attended, _MAX_KEPT // attention_numbers(run.experiment)))
        probe["n_attended"] = n_attended
    return probe, _snapshot(run, probe["items"], images, n_attended)


def _probe(run: Run) -> dict[str, Any]:
    """Return the examples that are looked at first, texts as far as the model is long enough.

    The target of a text is what the model answers: nobody knows a right one.
    """
    experiment = run.experiment
    if isinstance(experiment.task, PretrainedPicturesConfig):
        images = photographs(experiment.task.facts)
        return {"kind": "image", "items": [{"label": None} for _ in images], "images": images}
    if isinstance(experiment.task, PretrainedTextConfig):
        corpus, most = corpus_task(experiment.task), experiment.task.max_tgt_len
        known = tokenizer_of(experiment.task)
        cut = [known.tokens(one, is_whole=False, most=10**6)[:most] for one in SENTENCES]
        pairs = [Pair((), row, ((),) * len(row)) for row in cut]
        return {"kind": "text", "items": prompted_items(corpus, pairs)}
    task = experiment.task
    assert isinstance(task, PretrainedReaderConfig | PretrainedAnswererConfig)
    words, items = reader(task), []
    for sentence in words.sentences:
        text = sentence
        if getattr(task, "mask_id", NONE) != NONE:  # its last word is to be guessed
            text = f"{sentence.rpartition(' ')[0]} {MASK}."
        src = words.cut(text)
        tgt = _answer(run, src)[0][: task.max_tgt_len] if task.max_tgt_len else []
        items.append(
            {
                "src": list(src),
                "tgt": tgt,
                "alignment": [[] for _ in tgt],
                "src_text": text if text != sentence else words.join_src(src),
                "tgt_text": "",
            }
        )
    return {"kind": "text", "items": items}


def _snapshot(
    run: Run, items: list[dict[str, Any]], images: Array | None, n_attended: int
) -> Snapshot:
    """Look at a few examples, each by itself: no model needs padding then."""
    experiment, (model, step) = run.experiment, model_of(run)
    maps: list[dict[str, Array]] = []
    masks: list[dict[str, Array]] = []
    answers: list[Tensor] = []
    for number, item in enumerate(items):
        inputs = inputs_of(run, item, None if images is None else images[number])
        if number >= n_attended:
            with torch.inference_mode():
                answers.append(model(*inputs))
            continue
        with capture(model, only={"weights", "mask"}) as cache:
            answers.append(model(*inputs))
        found = cache.of("weights")
        maps.append({name: half(one[0]) for name, one in found.items()})
        masks.append(
            {
                name: np.broadcast_to(mask[0].any(0), maps[-1][name].shape[1:])
                for name, mask in cache.masks().items()
            }
        )
    names = list(maps[0])
    words: dict[str, Any] = {}
    if images is not None:
        words = {"probabilities": half(torch.cat(answers).softmax(-1))}
    elif getattr(experiment.task, "labels", "") and isinstance(model, DecoderOnly):
        words = _of_head(run, [item["tgt"][: item["prompt"]] for item in items])
    elif isinstance(model, DecoderOnly):
        words = _continuations(model, experiment, items)
    elif isinstance(experiment.task, PretrainedAnswererConfig):
        words = _answers(run, items)
    elif isinstance(experiment.task, PretrainedReaderConfig):
        words = _of_head(run, [item["src"] for item in items])
    return Snapshot(
        step=step,
        attention={name: _padded([one[name] for one in maps]) for name in names},
        masks={name: _padded([one[name] for one in masks])[:, None] for name in names},
        positions=positions_of(model),
        **words,
    )


def _continuations(
    model: DecoderOnly, experiment: Experiment, items: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return how a language model goes on from the prompts: the words of a snapshot."""
    config = experiment.task_as(CorpusTaskConfig)
    task = corpus_task(config)
    prompts = [task.tgt_vocabulary.encode(item["tgt"][: item["prompt"]]) for item in items]
    ids, confidence = continued(model, config, torch.tensor(prompts))
    tokens = [task.tgt_vocabulary.decode(row) for row in ids.tolist()]
    return {
        "ids": ids.numpy().astype(np.int32),
        "confidence": half(confidence),
        "tokens": tokens,
        "texts": [task.join_tgt(row) for row in tokens],
    }


def _answer(run: Run, src: Sequence[str]) -> tuple[list[str], Decoded]:
    """Return what an encoder-decoder writes about a text, in tokens without the end, and in ids."""
    task = run.experiment.task_as(PretrainedAnswererConfig)
    vocabulary = reader(task).src_vocabulary
    model, _step = model_of(run)
    assert isinstance(model, EncoderDecoder)
    written = greedy(model, torch.tensor([vocabulary.encode(src)]), max_len=task.n_answers)
    return list(vocabulary.decode(written.ids[0].tolist())), written


def _answers(run: Run, items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what an encoder-decoder answers: the words of a snapshot."""
    found = [_answer(run, item["src"]) for item in items]
    words = reader(run.experiment.task_as(PretrainedAnswererConfig))
    return {
        "ids": _padded([written.ids[0].numpy().astype(np.int32) for _tokens, written in found]),
        "confidence": _padded([half(written.confidence[0]) for _tokens, written in found]),
        "tokens": [tokens for tokens, _written in found],
        "texts": [words.join_tgt(tokens) for tokens, _written in found],
    }


def _of_head(run: Run, texts: list[list[str]]) -> dict[str, Any]:
    """Return what a head answers to texts: the words of a snapshot; none without a head."""
    found = [head_answer(run, tokens) for tokens in texts]
    if not all(found):
        return {}
    return {
        "confidence": _padded([one["confidence"].astype(np.float16) for one in found]),
        "tokens": [list(one["answer"]) for one in found],
        "texts": [one["answer_text"] for one in found],
    }


def _padded(arrays: list[Array]) -> Array:
    """Return arrays of several sizes as one, with zeros behind them."""
    shape = np.max([one.shape for one in arrays], axis=0)
    whole = np.zeros((len(arrays), *shape), arrays[0].dtype)
    for number, one in enumerate(arrays):
        region = (slice(number, number + 1), *(slice(size) for size in one.shape))
        whole[region] = one[None]
    return whole
