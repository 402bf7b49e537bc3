"""What a trace is of: a model, with values or by its shapes, and one recorded forward pass."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tfm_core.anatomy import Anatomy, anatomy
from tfm_core.choices.config import (
    CaptionTaskConfig,
    EncoderDecoderConfig,
    Experiment,
    ImageTaskConfig,
    ModelConfig,
    OwnPicturesTaskConfig,
    PretrainedPicturesConfig,
)
from tfm_core.choices.config.shape import CaptionShape, Shape, patches_per_side
from tfm_core.choices.variants.forms import CAUSAL, CAUSALITIES, Causality
from tfm_core.data.caption_words import join
from tfm_core.data.captions import STATISTICS_OF, CaptionData, load_captions
from tfm_core.data.image_data import EMBEDDED, load_images, pixel_statistics, read_embedded
from tfm_core.data.tasks import data_shape, text_task
from tfm_core.data.text_data import encode_src, sample_pairs
from tfm_core.data.user_data.pictures import load_user_pictures
from tfm_core.data.vocabulary import BOS, NONE, PAD
from tfm_core.decoding import greedy
from tfm_core.facts.architectures import Architecture
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.facts.storage import attention_numbers
from tfm_core.inspect.attention.trained import AT_ONCE, at_once, pixels_of_data
from tfm_core.models.build import ImageShape, Model, TextShape, build_model, init_on_meta
from tfm_core.models.pictures import Captioner
from tfm_core.pretrained.pictures import photographs
from tfm_core.probe.capture import ActivationCache, capture
from tfm_core.probe.items import caption_items
from tfm_core.probe.labels import CLS, patch_names
from tfm_core.sentences import N_, joined
from tfm_core.training.setup import new_model

Item = Mapping[str, Any]
"""An example as a probe holds it."""


@dataclass(frozen=True, slots=True, eq=False)
class CaptionResult:
    """The pictures of a trace in words, one entry an example.

    written: ids (B, T) that the model wrote by itself, up to <eos>, then padding. said, truth: the
    caption as it wrote it, and the true one. boxes: for each word of the true caption the box of
    the digit that it names, left, top, right and bottom in pixels, or None.
    """

    written: Tensor
    said: Sequence[str]
    truth: Sequence[str]
    boxes: Sequence[Sequence[Sequence[int] | None]]


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """A model that was run once on a batch.

    inputs: source ids (B, S) and shifted target ids (B, T), or pictures (B, C, Y, X), with
    target ids where they are described.
    cache: what was recorded; without values for a model on the meta device.
    words: name of a token list -> one list an example (``src``, ``tgt``, ``sequence``,
    ``patches``), or one for all (``vocabulary``, ``classes``, under the index 0).
    truth: what the model should answer, an example: target tokens with <eos>, or a class name.
    statistics: mean and deviation (C,) that the pictures were normalised with.
    described: what was written of the pictures, by a model with values that describes them.
    has_own_statistics: the pictures were normalised with their own mean and deviation.
    numbers: of a model that is laid out by its shapes, the same with values, run on one example.
    """

    config: ModelConfig
    model: Model
    shape: Shape
    inputs: tuple[Tensor, ...]
    cache: ActivationCache
    words: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    truth: Sequence[Sequence[str]] = ()
    pictures: npt.NDArray[np.uint8] | None = None
    statistics: tuple[Tensor, Tensor] | None = None
    has_own_statistics: bool = False
    note: str = ""
    described: CaptionResult | None = None
    numbers: Subject | None = None

    @property
    def anatomy(self) -> Anatomy:
        """The parts of the model."""
        return anatomy(self.config, self.shape)

    @property
    def reader(self) -> str:
        """The kind of model for the trace: its family, or its task where that is more specific."""
        shape = self.shape
        if isinstance(shape, TextShape):
            if shape.is_label:
                return "label"
            if shape.head == "pooler":
                return "pooler"
            if shape.mask_id:
                return "blanks"
            if not shape.has_source:
                return "language"
        return self.config.family

    @property
    def source(self) -> Tensor | None:
        """The source ids (B, S); a language model and a model of pictures have none."""
        first = self.inputs[0]
        return first if isinstance(self.shape, TextShape) and first.size(1) else None

    @property
    def memory_axis(self) -> str:
        """The axis that a decoder looks back at, as ``"S:src"``; "" where nothing looks back."""
        if not any(len(part.inputs) > 1 for part in self.anatomy.of_kind("stack")):
            return ""
        return "N:tokens" if self.anatomy.of_kind("stem") else "S:src"

    @property
    def order(self) -> Causality:
        """Which way a decoder's tokens look; the causal way where nothing is written."""
        written = (part.order for part in self.anatomy.attentions if part.order)
        return CAUSALITIES[next(written, CAUSAL.name)]

    @property
    def n_words(self) -> int:
        """The tokens that can be answered; none of a model that answers a class."""
        return int(getattr(self.shape, "tgt_vocabulary", 0))

    @property
    def looked_at(self) -> Subject:
        """The subject whose numbers are shown."""
        return self if self.numbers is None else self.numbers

    @property
    def is_real(self) -> bool:
        """Whether there are values to look at."""
        return not self.inputs[0].is_meta

    @property
    def n_examples(self) -> int:
        """Number of examples in the batch."""
        return self.inputs[0].size(0)

    def tokens(self, name: str, example: int) -> Sequence[str] | None:
        """Return the tokens that stand along an axis, or None where they have no names."""
        lists = self.words.get(name)
        return None if not lists else lists[example if len(lists) > 1 else 0]


def _ran(
    config: ModelConfig, shape: Shape, model: Model, *inputs: Tensor, **others: Any
) -> Subject:
    """Run a model once, on its own device; keep everything that it records."""
    device = next(model.parameters()).device
    there = tuple(tensor.to(device) for tensor in inputs)
    with capture(model) as cache:
        model(*there)
    return Subject(config, model, shape, there, cache, **others)


def with_note(subject: Subject, note: str) -> Subject:
    """Return the subject with a sentence on where it comes from."""
    return replace(subject, note=joined(*filter(None, (note, subject.note))))


MAX_REAL = 30_000_000  # parameters; a larger model is walked through by its shapes
BOOK_BATCH, BOOK_SRC, BOOK_TGT, BOOK_WORDS = 128, 28, 29, 10_000
BOOK_SEED, BOOK_PADDING, BOOK_LONGEST = 0, 6, 100  # longest: rows of a learned table
BOOK_BLOCKS = 6


def subject(
    experiment: Experiment,
    model: Model | None = None,
    *,
    items: Sequence[Item] = (),
    images: npt.NDArray[np.uint8] | None = None,
) -> Subject:
    """Run a model on a few examples and keep what it recorded.

    model: a trained one, in eval mode; None builds the experiment's untrained one, or, where it
    has more than MAX_REAL parameters or maps that are too large, only its shapes. items, images:
    the examples, as a probe holds them; without them some are drawn.
    """
    if model is None:
        with init_on_meta():
            model = new_model(experiment)
        is_small = attention_numbers(experiment) <= AT_ONCE
        if is_small and sum(p.numel() for p in model.parameters()) <= MAX_REAL:
            model = new_model(experiment).eval()
    walk = experiment.task.by_data(
        pairs=_of_texts, stream=_of_texts, pictures=_of_pictures, captions=_of_captions
    )
    return walk(experiment, model, items, images)


def book_example(position: str = "sinusoidal", *, with_numbers: bool = False) -> Subject:
    """Return the textbook example by its shapes: 128 pairs of 28 and 29 tokens, d_model 512.

    position: the kind that is added. with_numbers: it is built with weights too, drawn from
    BOOK_SEED, and run on one pair of sentences; this takes about a second.
    """
    config, shape = book_config(position)
    laid_out = by_shape(config, shape, batch=BOOK_BATCH, src_len=BOOK_SRC, tgt_len=BOOK_TGT)
    return replace(laid_out, numbers=_book_numbers(config, shape)) if with_numbers else laid_out


def _book_numbers(config: ModelConfig, shape: Shape) -> Subject:
    """Run the model of the example on one pair, each sentence with some padding at its end."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(BOOK_SEED)
        model = build_model(config, shape).eval()
        src = torch.randint(4, BOOK_WORDS, (1, BOOK_SRC))
        tgt = torch.randint(4, BOOK_WORDS, (1, BOOK_TGT))
    src[:, BOOK_SRC - BOOK_PADDING :] = PAD
    tgt[:, 0], tgt[:, BOOK_TGT - BOOK_PADDING :] = BOS, PAD
    made = _ran(config, shape, model, src, tgt)
    for name, module in model.named_modules():
        is_shown = name.endswith(("self_attention.in_projection", "positions"))
        for kind, weight in [] if is_shown else list(module.named_parameters(recurse=False)):
            setattr(module, kind, nn.Parameter(weight.detach().to("meta"), requires_grad=False))
    return made


def book_config(position: str = "sinusoidal") -> tuple[ModelConfig, Shape]:
    """Return model and shape of the textbook example."""
    config = EncoderDecoderConfig.model_validate(
        {
            "d_model": 512,
            "n_heads": 8,
            "d_ff": 2048,
            "n_encoder_layers": BOOK_BLOCKS,
            "n_decoder_layers": BOOK_BLOCKS,
            "norm_first": False,
            "activation": "relu",
            "dropout": 0.1,
            "position": position,
            "max_len": BOOK_LONGEST,
        }
    )
    return config, TextShape(BOOK_WORDS, BOOK_WORDS)


MAX_UNTRAINED = 1_000_000  # parameters of a model to scale that is walked through with numbers


def of_architecture(known: Architecture) -> Subject:
    """Return a model to scale: by its shapes, or with its first, random weights if it is small.

    A small one reads random ids, or digits that come with the app.
    """
    config, shape = known.model, known.shape
    is_small = parameter_table(config, shape).total < MAX_UNTRAINED
    if not is_small or isinstance(shape, CaptionShape):
        walked = by_shape(
            config, shape, batch=known.batch, src_len=known.src_len, tgt_len=known.tgt_len
        )
        return replace(walked, note=N_("Real size: shapes only, no numbers."))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(BOOK_SEED)
        model = build_model(config, shape).eval()
        if isinstance(shape, TextShape):
            lengths = (known.src_len * shape.has_source, known.tgt_len)
            inputs = tuple(
                torch.randint(4, shape.src_vocabulary, (known.batch, n)) for n in lengths
            )
            note = N_("Real size, random weights, random ids.")
            return _ran(config, shape, model, *inputs, note=note)
    images, labels = read_embedded()
    rows = torch.arange(known.batch) * len(images) // known.batch  # they are ordered by class
    names, classes = labels[rows].tolist(), range(shape.n_classes)
    made = _of_pixels(
        config,
        shape,
        model,
        images[rows],
        pixel_statistics(images[rows]),
        list(map(str, classes)),
        list(map(str, names)),
    )
    note = N_("Real size, random weights, the app's digits.")
    return replace(made, has_own_statistics=True, note=note)


def by_shape(
    config: ModelConfig, shape: Shape, *, batch: int, src_len: int, tgt_len: int
) -> Subject:
    """Return a model of any size by its shapes: no memory, no values.

    A picture has no length; its caption has ``tgt_len`` tokens, or the most that there can be.
    """
    with init_on_meta():
        model = build_model(config, shape).to("meta")
    with torch.device("meta"):
        if isinstance(shape, TextShape):
            lengths = (max(1, src_len) * shape.has_source, max(1, tgt_len))
            inputs = [torch.empty(batch, n, dtype=torch.int64) for n in lengths]
        else:
            inputs = [torch.empty(batch, shape.channels, shape.image_size, shape.image_size)]
        if isinstance(shape, CaptionShape):
            n = min(max(1, tgt_len), shape.tgt_len)
            inputs.append(torch.empty(batch, n, dtype=torch.int64))
    return _ran(config, shape, model, *inputs)


N_TEXTS = 6


def _of_texts(
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
            sample_pairs(task, N_TEXTS, rng)[0]
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
    truth = [[*pair[1], *end] for pair in pairs] if is_known else []
    return _ran(experiment.model, shape, model, src, tgt_in, words=words, truth=truth)


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


def _of_pictures(
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
    names = config.facts.class_names
    made = _of_pixels(
        experiment.model, shape, model, pixels, (mean, std), names, [names[i] for i in labels]
    )
    return replace(made, has_own_statistics=has_own, note=joined(*notes))


def _of_pixels(
    config: ModelConfig,
    shape: ImageShape,
    model: Model,
    pixels: Tensor,
    statistics: tuple[Tensor, Tensor],
    classes: Sequence[str],
    truth: Sequence[str],
) -> Subject:
    """Run a model on pictures, uint8 (B, C, Y, X). truth: the class of each, as far as known."""
    mean, std = (one[:, None, None] for one in statistics)
    sizes = anatomy(config, shape).sizes
    patches = list(patch_names(patches_per_side(sizes["side"], sizes["patch_size"])))
    return _ran(
        config,
        shape,
        model,
        pixels.float().div(255).sub(mean).div(std),
        words={
            "tokens": [["CLS"] * sizes["has_cls"] + patches],
            "patches": [patches],
            "classes": [list(classes)],
        },
        truth=[[name] for name in truth],
        pictures=pixels.numpy(),
        statistics=statistics,
    )


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
    words = N_("Before training, this task has no pictures; these are noise.")
    return *_noise(config, seed), words


def _own_pictures(
    config: OwnPicturesTaskConfig, seed: int
) -> tuple[npt.NDArray[np.uint8], list[int], str]:
    """Return pictures of the set, of different classes where it has as many; else noise."""
    try:
        split = load_user_pictures(config, seed=seed).validation
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
            data = load_user_pictures(config, seed=seed)
            return data.mean, data.std, False
    return *pixel_statistics(pixels), True


N_CAPTIONS = 6


def _of_captions(
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
    pixels = data.normalise(torch.from_numpy(np.array(images)))
    patches = patch_names(patches_per_side(shape.image_size, patch_size))
    words: dict[str, Sequence[Sequence[str]]] = {
        "tokens": [patches],
        "patches": [patches],
        "tgt": _tokens(data, tgt),
        "vocabulary": _tokens(data, torch.arange(shape.tgt_vocabulary)[None]),
    }
    made = _ran(
        experiment.model,
        shape,
        model,
        pixels,
        tgt,
        words=words,
        truth=[[*item["tgt"], "<eos>"] for item in items],
        pictures=np.array(images),
        statistics=(data.mean, data.std),
    )
    if not made.is_real:
        return made
    written = greedy(model, made.inputs[0], max_len=shape.tgt_len).ids.cpu()
    captions = [join(data.vocabulary.decode(row), data.config) for row in written.tolist()]
    true = [str(item["tgt_text"]) for item in items]
    described = CaptionResult(written, captions, true, [item["boxes"] for item in items])
    return replace(made, described=described, words={**words, "written": _tokens(data, written)})


def _tokens(data: CaptionData, ids: Tensor) -> list[list[str]]:
    return [[data.vocabulary.token(i) for i in row] for row in ids.tolist()]
