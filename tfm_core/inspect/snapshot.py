"""The probe of a run, and the looks at it while the model learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from tfm_core.config import CorpusTaskConfig
from tfm_core.data.corpus.task import CorpusTask
from tfm_core.data.image_data import ImageData
from tfm_core.data.text_data import TextData
from tfm_core.decoding import greedy
from tfm_core.inspect import continuation
from tfm_core.inspect.capture import capture
from tfm_core.models.text import DecoderOnly, TokenEmbedding
from tfm_core.models.vit import VisionTransformer
from tfm_core.runs.snapshots import MOST_EMBEDDED, Array, Snapshot
from tfm_core.training.loop import Trainer, autocast

N_SENTENCES = 6
N_PICTURES = 10


def probe_of(trainer: Trainer) -> dict[str, Any]:
    """Return the fixed validation examples of a run: ``kind``, ``items``, and ``images`` uint8.

    Texts: the first sentences. Pictures: the first of each class, then the first others.
    """
    data = trainer.data
    if isinstance(data, ImageData):
        chosen = _pictures(data)
        labels = data.validation.labels[chosen].tolist()
        images = data.validation.images[chosen].cpu().numpy()
        return {"kind": "image", "items": [{"label": label} for label in labels], "images": images}
    task = data.task
    if isinstance(task, CorpusTask):
        pairs = data.validation.pairs[:N_SENTENCES]
        return {"kind": "text", "items": continuation.items_of(task, pairs)}
    items = [
        {
            "src": list(pair.src),
            "tgt": list(pair.tgt),
            "alignment": [list(places) for places in pair.alignment],
            "src_text": task.join_src(pair.src),
            "tgt_text": task.join_tgt(pair.tgt),
        }
        for pair in data.validation.pairs[:N_SENTENCES]
    ]
    return {"kind": "text", "items": items}


def take(trainer: Trainer) -> Snapshot:
    """Look inside now: attention on the probe under the true target, and predictions."""
    with autocast(trainer):
        if isinstance(trainer.data, ImageData):
            return _take_pictures(trainer, trainer.data)
        return _take_text(trainer, trainer.data)


def _pictures(data: ImageData) -> Tensor:
    labels = data.validation.labels.tolist()
    firsts = [labels.index(label) for label in sorted(set(labels))]
    others = [place for place in range(len(labels)) if place not in set(firsts)]
    return torch.tensor([*firsts, *others][:N_PICTURES], device=data.validation.labels.device)


def _take_pictures(trainer: Trainer, data: ImageData) -> Snapshot:
    images = data.normalise(data.validation.images[_pictures(data)])
    with capture(trainer.model, only={"weights"}) as tape:
        probabilities = trainer.model(images).float().softmax(-1)
    return Snapshot(
        step=trainer.step,
        attention={name: _half(value) for name, value in tape.of("weights").items()},
        probabilities=_half(probabilities),
        positions=_positions(trainer),
    )


def _take_text(trainer: Trainer, data: TextData) -> Snapshot:
    assert not isinstance(trainer.model, VisionTransformer)
    src = data.validation.src[:N_SENTENCES]
    tgt_in = data.validation.tgt[:N_SENTENCES, :-1]
    with capture(trainer.model, only={"weights"}) as tape:
        trainer.model(src, tgt_in)
    ids, confidence = _answers(trainer, data)
    vocabulary = data.task.tgt_vocabulary
    tokens = [vocabulary.decode(row) for row in ids.tolist()]
    return Snapshot(
        step=trainer.step,
        attention={name: _half(value) for name, value in tape.of("weights").items()},
        ids=ids.cpu().numpy().astype(np.int32),
        confidence=_half(confidence),
        tokens=tokens,
        texts=[data.task.join_tgt(tuple(row)) for row in tokens],
        positions=_positions(trainer),
        embeddings=_embeddings(trainer),
    )


def _answers(trainer: Trainer, data: TextData) -> tuple[Tensor, Tensor]:
    """Return ids and confidence (P, T) of what is written: an answer, or a text continued."""
    model, config = trainer.model, trainer.experiment.task
    assert not isinstance(model, VisionTransformer)
    if isinstance(config, CorpusTaskConfig) and isinstance(data.task, CorpusTask):
        assert isinstance(model, DecoderOnly)
        items = continuation.items_of(data.task, data.validation.pairs[:N_SENTENCES])
        prompts = data.validation.tgt[:N_SENTENCES, 1 : 1 + items[0]["prompt"]]
        return continuation.continued(model, config, prompts)
    src = data.validation.src[:N_SENTENCES]
    written = greedy(model, src, max_len=data.validation.tgt.size(1) - 1)
    return written.ids, written.confidence


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
