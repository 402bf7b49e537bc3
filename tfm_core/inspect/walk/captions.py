"""A few pictures and their captions for a walk, those of a run's probe or new ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tfm_core.anatomy import anatomy
from tfm_core.config import CaptionTaskConfig, Experiment
from tfm_core.config.shape import CaptionShape, patches_per_side
from tfm_core.data.caption_words import join
from tfm_core.data.captions import STATISTICS_OF, CaptionData, load_captions
from tfm_core.data.shape import data_shape
from tfm_core.data.vocabulary import BOS
from tfm_core.decoding import greedy
from tfm_core.inspect.attention.trained import at_once
from tfm_core.inspect.walk.forward import CaptionResult, Item, Subject, on_device, recorded
from tfm_core.inspect.walk.steps import WalkStep
from tfm_core.inspect.walk.texts import padded
from tfm_core.models.build import Model
from tfm_core.models.pictures import Captioner
from tfm_core.probe.items import caption_items
from tfm_core.probe.labels import patch_names


@dataclass(frozen=True, slots=True, eq=False)
class WordMaps:
    """The words of a caption that ask, <bos> first, without padding.

    maps: (T, side, side), one head's weights over the patches. writes: the word that is to follow
    each, with an arrow. boxes: of the digit that the following word names, or None.
    """

    words: Sequence[str]
    writes: Sequence[str]
    maps: npt.NDArray[np.float32]
    boxes: Sequence[Sequence[int] | None]


def word_maps(subject: Subject, step: WalkStep, example: int, head: int) -> WordMaps:
    """Return one head's weights of an example's true caption, from the step of cross-attention."""
    assert subject.described is not None
    following = subject.truth[example]  # <eos> last
    weights = subject.cache[f"{step.block}.cross_attention.weights"]  # (B, H, T, patches)
    n, side = len(following), round(weights.size(-1) ** 0.5)
    maps = weights[example, min(head, weights.size(1) - 1), :n].cpu().float().numpy()
    return WordMaps(
        (subject.tokens("tgt", example) or ())[:n],
        [f"→ {word}" for word in following],
        maps.reshape(n, side, side),
        [*subject.described.boxes[example], None],
    )


N_PICTURES = 6


def of_captions(
    experiment: Experiment,
    model: Model,
    items: Sequence[Item],
    images: npt.NDArray[np.uint8] | None,
) -> Subject:
    """Run a model on described pictures. items, images: as a probe holds them, or validation's."""
    config = experiment.task_as(CaptionTaskConfig)
    shape = data_shape(experiment)
    assert isinstance(shape, CaptionShape)
    assert isinstance(model, Captioner)
    patch_size = anatomy(experiment.model, shape).sizes["patch_size"]
    data = load_captions(
        config.replace(
            n_train=min(config.n_train, STATISTICS_OF),
            n_validation=min(config.n_validation, N_PICTURES + 2),
            n_test=8,
        ),
        seed=experiment.seed,
    )
    if images is None or not items:
        rows = range(min(N_PICTURES, len(data.validation)))
        items = caption_items(config, data.validation, rows, patch_size)
        images = data.validation.pictures(torch.tensor(rows)).numpy()
    n = at_once(experiment, len(items))
    items, images = items[:n], images[:n]
    tgt = padded([[BOS, *data.vocabulary.encode(tuple(item["tgt"]))] for item in items])
    inputs = on_device(model, data.normalise(torch.from_numpy(np.array(images))), tgt)
    patches = patch_names(patches_per_side(shape.image_size, patch_size))
    words: dict[str, Sequence[Sequence[str]]] = {
        "tokens": [patches],
        "patches": [patches],
        "tgt": _tokens(data, tgt),
        "vocabulary": _tokens(data, torch.arange(shape.tgt_vocabulary)[None]),
    }
    described = None
    if not inputs[0].is_meta:
        written = greedy(model, inputs[0], max_len=shape.tgt_len).ids.cpu()
        captions = [join(data.vocabulary.decode(row), data.config) for row in written.tolist()]
        truth = [str(item["tgt_text"]) for item in items]
        described = CaptionResult(written, captions, truth, [item["boxes"] for item in items])
        words["written"] = _tokens(data, described.written)
    return Subject(
        experiment.model, model, shape, inputs, recorded(model, inputs), words,
        truth=[[*item["tgt"], "<eos>"] for item in items], pictures=np.array(images),
        statistics=(data.mean, data.std), described=described,
    )  # fmt: skip


def _tokens(data: CaptionData, ids: Tensor) -> list[list[str]]:
    return [[data.vocabulary.token(i) for i in row] for row in ids.tolist()]
