"""A few examples for a walk, those of a run's probe or others, through their model."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tfm_core.anatomy import anatomy
from tfm_core.choices.config import (
    CaptionTaskConfig,
    Experiment,
    ImageTaskConfig,
    ModelConfig,
    OwnPicturesTaskConfig,
    PretrainedPicturesConfig,
)
from tfm_core.choices.config.shape import CaptionShape, patches_per_side
from tfm_core.data.caption_words import join
from tfm_core.data.captions import STATISTICS_OF, CaptionData, load_captions
from tfm_core.data.embedded import read_embedded
from tfm_core.data.image_data import EMBEDDED, load_images, pixel_statistics
from tfm_core.data.own.pictures import load_own_pictures
from tfm_core.data.tasks import data_shape, text_task
from tfm_core.data.text_data import distinct_pairs, encode_src
from tfm_core.data.vocabulary import BOS, NONE, PAD
from tfm_core.decoding import greedy
from tfm_core.inspect.attention.trained import at_once, pixels_of_data
from tfm_core.inspect.walk.forward import CaptionResult, Item, Subject, on_device, recorded
from tfm_core.inspect.walk.steps import WalkStep
from tfm_core.models.build import ImageShape, Model, TextShape
from tfm_core.models.pictures import Captioner
from tfm_core.pretrained.pictures import photographs
from tfm_core.probe.items import caption_items
from tfm_core.probe.labels import CLS, patch_names
from tfm_core.sentences import N_, joined

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
    config = experiment.task
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
    is_known = config.is_trained_here or not config.has_source
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


N_PICTURES = 10


def of_pictures(
    experiment: Experiment,
    model: Model,
    items: Sequence[Item],
    images: npt.NDArray[np.uint8] | None,
) -> Subject:
    """Run a model on pictures. items, images: as a probe holds them; None takes some of the app.

    Images without items are somebody's own; they are normalised as the training set was. Raises
    ValueError, in a sentence, without that set.
    """
    config = experiment.task_as(ImageTaskConfig)
    shape = data_shape(experiment)
    assert isinstance(shape, ImageShape)
    labels = [item["label"] for item in items if item.get("label") is not None]
    is_own = images is not None and not items
    notes: list[str] = []
    if images is None:
        images, labels, note = _some_pictures(config, experiment.seed)
        notes += [note] if note else []
    n = at_once(experiment, len(images))
    images, labels = images[:n], labels[:n]
    pixels = torch.from_numpy(np.array(images))
    mean, std, has_own = _statistics(config, experiment.seed, pixels)
    if is_own or not config.is_trained_here:  # its own mean would make another picture of it
        (mean, std), has_own = pixels_of_data(experiment), False
    scaled = pixels.float().div(255).sub(mean[:, None, None]).div(std[:, None, None])
    inputs = on_device(model, scaled)
    names = config.facts.class_names
    return Subject(
        experiment.model, model, shape, inputs, recorded(model, inputs),
        {**_places(experiment.model, shape), "classes": [list(names)]},
        truth=[[names[label]] for label in labels], pictures=images,
        statistics=(mean, std), has_own_statistics=has_own, note=joined(*notes),
    )  # fmt: skip


def of_digits(config: ModelConfig, shape: ImageShape, model: Model, batch: int) -> Subject:
    """Run a model of 28 x 28 grey pictures on a batch of the digits that come with the app."""
    images, labels = read_embedded()
    rows = torch.arange(batch) * len(images) // batch  # they are ordered by class
    pixels, names = images[rows], [str(label) for label in labels[rows].tolist()]
    mean, std = pixel_statistics(pixels)
    scaled = pixels.float().div(255).sub(mean[:, None, None]).div(std[:, None, None])
    inputs = on_device(model, scaled)
    return Subject(
        config, model, shape, inputs, recorded(model, inputs),
        {**_places(config, shape), "classes": [[str(digit) for digit in range(shape.n_classes)]]},
        truth=[[name] for name in names], pictures=pixels.numpy(),
        statistics=(mean, std), has_own_statistics=True,
    )  # fmt: skip


def _places(config: ModelConfig, shape: ImageShape) -> dict[str, Sequence[Sequence[str]]]:
    """Return the names of the patches, and of all tokens."""
    sizes = anatomy(config, shape).sizes
    side = patches_per_side(sizes["side"], sizes["patch_size"])
    patches = [f"{row},{column}" for row in range(1, side + 1) for column in range(1, side + 1)]
    return {"tokens": [["CLS"] * sizes["has_cls"] + patches], "patches": [patches]}


def _some_pictures(
    config: ImageTaskConfig, seed: int
) -> tuple[npt.NDArray[np.uint8], list[int], str]:
    """Return a picture of each class from the set that comes with the app, or noise of its size."""
    if isinstance(config, PretrainedPicturesConfig):
        return photographs(config.facts), [], ""
    if isinstance(config, OwnPicturesTaskConfig):
        return _own_pictures(config, seed)
    if config.facts.channels == 1 and config.facts.image_size == 28:
        small = ImageTaskConfig(name=EMBEDDED)
        split = load_images(small, seed=seed).validation
        labels = split.labels.tolist()
        chosen = [labels.index(label) for label in range(N_PICTURES)]
        note = "" if config.name == EMBEDDED else N_("The pictures are the app's digits.")
        if "fashion" in config.name:
            return split.images[chosen].numpy(), [], note
        return split.images[chosen].numpy(), list(range(N_PICTURES)), note
    words = N_("This task has no pictures before training; these are noise.")
    return *_noise(config, seed), words


def _own_pictures(
    config: OwnPicturesTaskConfig, seed: int
) -> tuple[npt.NDArray[np.uint8], list[int], str]:
    """Return pictures of the set, of different classes where it has as many; else noise."""
    try:
        split = load_own_pictures(config, seed=seed).validation
    except ValueError as error:
        return *_noise(config, seed), str(error)
    chosen = split.labels.argsort(stable=True)
    chosen = chosen[:: max(1, len(chosen) // N_PICTURES)][:N_PICTURES]
    return split.images[chosen].numpy(), split.labels[chosen].tolist(), ""


def _noise(config: ImageTaskConfig, seed: int) -> tuple[npt.NDArray[np.uint8], list[int]]:
    facts = config.facts
    size = (N_PICTURES, facts.channels, facts.image_size, facts.image_size)
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8), []


def _statistics(config: ImageTaskConfig, seed: int, pixels: Tensor) -> tuple[Tensor, Tensor, bool]:
    """Return mean and deviation (C,) of the training set, or of these pictures, and which it is."""
    if config.name == EMBEDDED:
        data = load_images(config, seed=seed)
        return data.mean, data.std, False
    if isinstance(config, OwnPicturesTaskConfig):
        with suppress(ValueError):  # the set is gone
            data = load_own_pictures(config, seed=seed)
            return data.mean, data.std, False
    return *pixel_statistics(pixels), True


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


N_CAPTIONS = 6


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
            n_validation=min(config.n_validation, N_CAPTIONS + 2),
            n_test=8,
        ),
        seed=experiment.seed,
    )
    if images is None or not items:
        rows = range(min(N_CAPTIONS, len(data.validation)))
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
