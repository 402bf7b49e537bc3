"""The probe of a run, and the looks at it while the model learns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tfm_core.config import CaptionerConfig, CorpusTaskConfig
from tfm_core.data.caption_words import join
from tfm_core.data.captions import CaptionData
from tfm_core.data.corpus.task import CorpusTask
from tfm_core.data.image_data import ImageData
from tfm_core.data.text_data import TextData
from tfm_core.data.vocabulary import PAD, Vocabulary
from tfm_core.decoding import Decoded, greedy
from tfm_core.models.embedding import TokenEmbedding
from tfm_core.models.text import DecoderOnly, EncoderOnly
from tfm_core.models.vit import VisionTransformer
from tfm_core.probe import continuation
from tfm_core.probe.caption_items import items_of
from tfm_core.probe.capture import capture
from tfm_core.probe.types import MOST_EMBEDDED, Array, Snapshot
from tfm_core.training.loop import Trainer, autocast

N_SENTENCES = 6
N_PICTURES = 10


def probe_of(trainer: Trainer) -> dict[str, Any]:
    """Return the fixed validation examples of a run: ``kind``, ``items``, and ``images`` uint8.

    Texts: the first sentences. Pictures: the first of each class, then the first others.
    Captions: the first pictures, with ``images`` too.
    """
    data = trainer.data
    if isinstance(data, ImageData):
        chosen = _pictures(data)
        labels = data.validation.labels[chosen].tolist()
        images = data.validation.images[chosen].cpu().numpy()
        return {"kind": "image", "items": [{"label": label} for label in labels], "images": images}
    if isinstance(data, CaptionData):
        return _caption_probe(trainer, data)
    task = data.task
    if isinstance(task, CorpusTask):
        pairs = data.validation.pairs[:N_SENTENCES]
        return {"kind": "text", "items": continuation.items_of(task, pairs)}
    items = [
        {
            "src": list(pair.src),
            "tgt": list(pair.tgt),
            "alignment": [list(sources) for sources in pair.alignment],
            "src_text": task.join_src(pair.src),
            "tgt_text": task.join_tgt(pair.tgt),
        }
        for pair in data.validation.pairs[:N_SENTENCES]
    ]
    return {"kind": "text", "items": items}


def take(trainer: Trainer) -> Snapshot:
    """Look inside now: attention on the probe under the true target, and predictions."""
    with torch.inference_mode(), autocast(trainer):
        if isinstance(trainer.data, ImageData):
            return _take_pictures(trainer, trainer.data)
        if isinstance(trainer.data, CaptionData):
            return _take_captions(trainer, trainer.data)
        return _take_text(trainer, trainer.data)


def _caption_probe(trainer: Trainer, data: CaptionData) -> dict[str, Any]:
    assert isinstance(trainer.experiment.model, CaptionerConfig)
    rows = range(min(N_SENTENCES, len(data.validation)))
    patch_size = trainer.experiment.model.patch_size
    items = items_of(data.config, data.validation, rows, patch_size)
    images = data.validation.pictures(torch.tensor(rows, device=trainer.device))
    return {"kind": "caption", "items": items, "images": images.cpu().numpy()}


def _pictures(data: ImageData) -> Tensor:
    labels = data.validation.labels.tolist()
    firsts = [labels.index(label) for label in sorted(set(labels))]
    others = [index for index in range(len(labels)) if index not in set(firsts)]
    return torch.tensor([*firsts, *others][:N_PICTURES], device=data.validation.labels.device)


def _take_pictures(trainer: Trainer, data: ImageData) -> Snapshot:
    images = data.normalise(data.validation.images[_pictures(data)])
    with capture(trainer.model, only={"weights"}) as cache:
        probabilities = trainer.model(images).float().softmax(-1)
    return Snapshot(
        step=trainer.step,
        attention={name: _half(value) for name, value in cache.of("weights").items()},
        probabilities=_half(probabilities),
        positions=_positions(trainer),
    )


def _take_text(trainer: Trainer, data: TextData) -> Snapshot:
    tgt = data.validation.tgt[:N_SENTENCES]
    src = data.validation.src[:N_SENTENCES]
    return _take_words(trainer, src, tgt, data.task.tgt_vocabulary, data.task.join_tgt)


def _take_captions(trainer: Trainer, data: CaptionData) -> Snapshot:
    tgt = data.validation.tgt[:N_SENTENCES]
    rows = torch.arange(len(tgt), device=tgt.device)
    images = data.normalise(data.validation.pictures(rows))
    return _take_words(trainer, images, tgt, data.vocabulary, lambda row: join(row, data.config))


def _take_words(
    trainer: Trainer,
    src: Tensor,
    tgt: Tensor,
    vocabulary: Vocabulary,
    joined: Callable[[Sequence[str]], str],
) -> Snapshot:
    """Look at a model that writes: attention under the true target tgt (P, T), and its own words.

    src: what the model reads, ids or pictures.
    """
    assert not isinstance(trainer.model, VisionTransformer)
    with capture(trainer.model, only={"weights"}) as cache:
        logits = trainer.model(src, tgt[:, :-1])
    decoded = _answers(trainer, src, tgt, logits)
    tokens = [vocabulary.decode(row) for row in decoded.ids.tolist()]
    return Snapshot(
        step=trainer.step,
        attention={name: _half(value) for name, value in cache.of("weights").items()},
        ids=decoded.ids.cpu().numpy().astype(np.int32),
        confidence=_half(decoded.confidence),
        tokens=tokens,
        texts=[joined(tuple(row)) for row in tokens],
        positions=_positions(trainer),
        embeddings=_embeddings(trainer),
    )


def _answers(trainer: Trainer, src: Tensor, tgt: Tensor, logits: Tensor) -> Decoded:
    """Return what the model writes by itself: its answers to src, or how it continues a text.

    logits: its answers under the true target.
    """
    model, config, data = trainer.model, trainer.experiment.task, trainer.data
    assert not isinstance(model, VisionTransformer)
    if isinstance(config, CorpusTaskConfig):
        assert isinstance(model, DecoderOnly)
        assert isinstance(data, TextData)
        assert isinstance(data.task, CorpusTask)
        items = continuation.items_of(data.task, data.validation.pairs[:N_SENTENCES])
        prompts = tgt[:, 1 : 1 + items[0]["prompt"]]
        return Decoded(*continuation.continued(model, config, prompts))
    if not isinstance(model, EncoderOnly) and (decoded := _as_taught(logits, tgt[:, 1:])):
        return decoded
    return greedy(model, src, max_len=tgt.size(1) - 1)


def _as_taught(logits: Tensor, targets: Tensor) -> Decoded | None:
    """Return what ``greedy`` writes where every token is right given the true ones before it.

    Decoding follows the truth then, and one pass says all of it. Otherwise None.
    """
    confidence, ids = logits.float().softmax(-1).max(-1)
    is_padding = targets == PAD
    if not bool(((ids == targets) | is_padding).all()):
        return None
    longest = int((~is_padding).sum(1).max())
    return Decoded(targets[:, :longest], confidence.masked_fill(is_padding, 0.0)[:, :longest])


def _positions(trainer: Trainer) -> dict[str, Array]:
    return {
        name: _half(parameter)
        for name, parameter in trainer.model.named_parameters()
        if "positions" in name
    }


def _embeddings(trainer: Trainer) -> dict[str, Array]:
    return {
        name: _half(module.table.weight)
        for name, module in trainer.model.named_modules()
        if isinstance(module, TokenEmbedding) and module.table.weight.numel() <= MOST_EMBEDDED
    }


def _half(tensor: Tensor) -> Array:
    return tensor.detach().to("cpu", torch.float16).numpy()
