"""The probe of a run, and the looks at it while the model learns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tfm_core.choices.config import CaptionerConfig, CorpusTaskConfig
from tfm_core.data.caption_words import join
from tfm_core.data.captions import CaptionData
from tfm_core.data.image_data import ImageData
from tfm_core.data.moving import data_as
from tfm_core.data.text.corpus import CorpusTask
from tfm_core.data.text_data import TextData
from tfm_core.data.vocabulary import PAD, Specials, Vocabulary
from tfm_core.decoding import Decoded, greedy
from tfm_core.facts.storage import MAX_EMBEDDED, N_PICTURES, N_SENTENCES
from tfm_core.models.build import Model
from tfm_core.models.ends import TokenEmbedding
from tfm_core.models.pictures import VisionTransformer
from tfm_core.models.text import DecoderOnly
from tfm_core.probe.capture import capture, evaluating
from tfm_core.probe.items import caption_items, continued, prompted_items
from tfm_core.probe.types import RELATIVE, Array, Snapshot
from tfm_core.training.loop import Trainer

_OURS = Specials()


def probe_of(trainer: Trainer) -> dict[str, Any]:
    """Return the fixed validation examples of a run: ``kind``, ``items``, and ``images`` uint8.

    Texts: the first sentences. Pictures: the first of each class, then the first others.
    Captions: the first pictures, with ``images`` too.
    """
    probe = trainer.experiment.task.by_data(
        pairs=text_probe, stream=text_probe, pictures=image_probe, captions=caption_probe
    )
    return probe(trainer)


def take(trainer: Trainer, n_attended: int | None = None) -> Snapshot:
    """Look inside now: attention on the probe given the true target, and predictions.

    n_attended: how many examples, the first ones, have attention; None for all.
    """
    snapshot = trainer.experiment.task.by_data(
        pairs=text_snapshot,
        stream=text_snapshot,
        pictures=image_snapshot,
        captions=caption_snapshot,
    )
    with torch.inference_mode(), trainer.autocast():
        return snapshot(trainer, n_attended)


def text_probe(trainer: Trainer) -> dict[str, Any]:
    """Return the first texts, see ``probe_of``; those to continue with their prompts."""
    data = data_as(trainer.data, TextData)
    task = data.task
    if isinstance(task, CorpusTask):
        return {"kind": "text", "items": _prompted(data)}
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


def image_probe(trainer: Trainer) -> dict[str, Any]:
    """Return pictures of every class, see ``probe_of``."""
    data = data_as(trainer.data, ImageData)
    chosen = _pictures(data)
    labels = data.validation.labels[chosen].tolist()
    images = data.validation.images[chosen].cpu().numpy()
    return {
        "kind": "image",
        "items": [{"label": label} for label in labels],
        "images": images,
        "mean": data.mean.tolist(),
        "std": data.std.tolist(),
    }


def caption_probe(trainer: Trainer) -> dict[str, Any]:
    """Return the first described pictures, see ``probe_of``."""
    data = data_as(trainer.data, CaptionData)
    rows = range(min(N_SENTENCES, len(data.validation)))
    patch_size = trainer.experiment.model_as(CaptionerConfig).patch_size
    items = caption_items(data.config, data.validation, rows, patch_size)
    images = data.validation.pictures(torch.tensor(rows, device=trainer.device))
    return {"kind": "caption", "items": items, "images": images.cpu().numpy()}


def _prompted(data: TextData) -> list[dict[str, Any]]:
    assert isinstance(data.task, CorpusTask)
    return prompted_items(data.task, data.validation.pairs[:N_SENTENCES])


def _pictures(data: ImageData) -> Tensor:
    labels = data.validation.labels.tolist()
    firsts = [labels.index(label) for label in sorted(set(labels))]
    others = [index for index in range(len(labels)) if index not in set(firsts)]
    return torch.tensor([*firsts, *others][:N_PICTURES], device=data.validation.labels.device)


def image_snapshot(trainer: Trainer, n_attended: int | None = None) -> Snapshot:
    """Look at a model that gives a picture a class, see ``take``."""
    data = data_as(trainer.data, ImageData)
    images = data.normalise(data.validation.images[_pictures(data)])
    seen, logits = _watched(trainer, n_attended, images)
    return replace(
        seen,
        probabilities=half(logits.float().softmax(-1)),
    )


def text_snapshot(trainer: Trainer, n_attended: int | None = None) -> Snapshot:
    """Look at a model that answers or continues texts, see ``take``."""
    data = data_as(trainer.data, TextData)
    tgt, src = data.validation.tgt[:N_SENTENCES], data.validation.src[:N_SENTENCES]
    task = data.task
    decode = _continued if isinstance(task, CorpusTask) else _answers
    return _of_words(trainer, n_attended, src, tgt, task.tgt_vocabulary, task.join_tgt, decode)


def caption_snapshot(trainer: Trainer, n_attended: int | None = None) -> Snapshot:
    """Look at a model that describes pictures, see ``take``."""
    data = data_as(trainer.data, CaptionData)
    tgt = data.validation.tgt[:N_SENTENCES]
    rows = torch.arange(len(tgt), device=tgt.device)
    images = data.normalise(data.validation.pictures(rows))

    return _of_words(
        trainer,
        n_attended,
        images,
        tgt,
        data.vocabulary,
        partial(join, config=data.config),
        _answers,
    )


def _of_words(
    trainer: Trainer,
    n_attended: int | None,
    src: Tensor,
    tgt: Tensor,
    vocabulary: Vocabulary,
    joined: Callable[[Sequence[str]], str],
    decode: Callable[[Trainer, Tensor, Tensor, Tensor], Decoded],
) -> Snapshot:
    """Look at a model that writes: attention given the true target tgt (P, T), and its own words.

    src: ids or pictures. decode: (trainer, src, tgt, logits) -> what the model generates.
    """
    seen, logits = _watched(
        trainer, n_attended, src, decoder_input(tgt[:, :-1], vocabulary.specials)
    )
    decoded = decode(trainer, src, tgt, logits)
    tokens = [vocabulary.decode(row) for row in decoded.ids.tolist()]
    return replace(
        seen,
        ids=decoded.ids.cpu().numpy().astype(np.int32),
        confidence=half(decoded.confidence),
        tokens=tokens,
        texts=[joined(tuple(row)) for row in tokens],
        embeddings=_embeddings(trainer),
    )


def decoder_input(tgt: Tensor, specials: Specials = _OURS) -> Tensor:
    """Return ids (P, T) with padding for <eos>, which a decoder without a causal mask would see.

    An opened model, which has one, keeps its own: its <eos> may begin a text, too.
    """
    return tgt.masked_fill(tgt == specials.eos, specials.pad) if specials == _OURS else tgt


def _watched(trainer: Trainer, n_attended: int | None, *inputs: Tensor) -> tuple[Snapshot, Tensor]:
    """Return attention, masks and routing on the first ``n_attended`` examples, and all logits."""
    model = trainer.eval_model
    with capture(model, only={"weights", "mask", "gates"}) as cache:
        logits: Tensor = model(*(part[:n_attended] for part in inputs))
    if len(logits) < len(inputs[0]):
        with evaluating(model):
            logits = torch.cat([logits, model(*(part[n_attended:] for part in inputs))])
    seen = Snapshot(
        step=trainer.step,
        attention={name: half(value) for name, value in cache.of("weights").items()},
        masks=cache.masks(),
        positions=positions_of(model),
        routing={name: _gates(value) for name, value in cache.of("gates").items()},
    )
    return seen, logits


def _gates(gates: Tensor) -> Array:
    """Return shares of experts in half precision, in which none that counts becomes 0."""
    least = torch.finfo(torch.float16).smallest_normal
    return half(torch.where(gates > 0, gates.clamp(min=least), gates))


def _answers(trainer: Trainer, src: Tensor, tgt: Tensor, logits: Tensor) -> Decoded:
    """Return the model's own answers to src."""
    model = trainer.eval_model
    assert not isinstance(model, VisionTransformer)
    # one that sees the tokens behind it reads its answers off them, and has none to write by
    follows_truth = trainer.experiment.model.writes_from_past
    if follows_truth and (decoded := _as_taught(logits, tgt[:, 1:])):
        return decoded
    return greedy(model, src, max_len=tgt.size(1) - 1)


def _continued(trainer: Trainer, src: Tensor, tgt: Tensor, logits: Tensor) -> Decoded:
    """Return the model's continuation of the prompts."""
    model, config = trainer.eval_model, trainer.experiment.task_as(CorpusTaskConfig)
    assert isinstance(model, DecoderOnly)
    n = _prompted(data_as(trainer.data, TextData))[0]["prompt"]
    return Decoded(*continued(model, config, tgt[:, 1 : 1 + n]))


def _as_taught(logits: Tensor, targets: Tensor) -> Decoded | None:
    """Return what ``greedy`` writes if every token is right given the true ones; else None."""
    confidence, ids = logits.float().softmax(-1).max(-1)
    is_padding = targets == PAD
    if not bool(((ids == targets) | is_padding).all()):
        return None
    longest = int((~is_padding).sum(1).max())
    return Decoded(targets[:, :longest], confidence.masked_fill(is_padding, 0.0)[:, :longest])


def positions_of(model: Model) -> dict[str, Array]:
    """Return what a model has learned of positions, by the names of its parameters."""
    return {
        name: half(parameter)
        for name, parameter in model.named_parameters()
        if "positions" in name or name.endswith(RELATIVE)
    }


def _embeddings(trainer: Trainer) -> dict[str, Array]:
    return {
        name: half(module.table.weight)
        for name, module in trainer.eval_model.named_modules()
        if isinstance(module, TokenEmbedding) and module.table.weight.numel() <= MAX_EMBEDDED
    }


def half(tensor: Tensor) -> Array:
    """Return a tensor as a snapshot keeps it."""
    return tensor.detach().to("cpu", torch.float16).numpy()
