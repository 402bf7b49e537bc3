"""What a walk is about: a model, a few examples, and everything its forward pass recorded."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tfm_core.config import (
    BlockConfig,
    CaptionerConfig,
    CaptionTaskConfig,
    EncoderDecoderConfig,
    Experiment,
    ImageTaskConfig,
    ModelConfig,
    RecurrentConfig,
    SequenceTaskConfig,
    ViTConfig,
)
from tfm_core.config.shape import Shape
from tfm_core.data.image_data import EMBEDDED, load_images, pixel_statistics
from tfm_core.data.text import text_task
from tfm_core.data.text_data import distinct_pairs, encode_src
from tfm_core.data.vocabulary import BOS
from tfm_core.inspect.capture import Recording, capture
from tfm_core.inspect.labels import CLS, has_cls
from tfm_core.models.build import CaptionShape, ImageShape, Model, TextShape, build_text, build_vit
from tfm_core.training.models import data_shape, new_model

MOST_REAL = 30_000_000  # parameters; a larger model is walked through by its shapes
N_TEXTS, N_PICTURES = 6, 10
BOOK_BATCH, BOOK_SRC, BOOK_TGT, BOOK_WORDS = 128, 28, 29, 10_000


NO_CAPTIONER = (
    "A model that describes pictures is a Vision Transformer's encoder and a text decoder, and the "
    "walk goes through each of them: choose a run of digits for the one, a run of translation for "
    "the other."
)


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """A model that was run once on a batch.

    inputs: source ids (B, S) and shifted target ids (B, T), or pictures (B, C, Y, X).
    tape: what was recorded; without values for a model on the meta device.
    words: name of a token list -> one list an example (``src``, ``tgt``, ``sequence``,
    ``patches``), or one for all (``vocabulary``, ``classes``, under the index 0).
    truth: what the model should answer, an example: target tokens with <eos>, or a class name.
    statistics: mean and deviation (C,) that the pictures were normalised with.
    """

    config: BlockConfig | RecurrentConfig
    model: Model
    shape: TextShape | ImageShape
    inputs: tuple[Tensor, ...]
    tape: Recording
    words: Mapping[str, Sequence[Sequence[str]]]
    truth: Sequence[Sequence[str]]
    pictures: npt.NDArray[np.uint8] | None = None
    statistics: tuple[Tensor, Tensor] | None = None
    note: str = ""

    @property
    def block(self) -> BlockConfig:
        """The settings of a Transformer's blocks; a recurrent model has none."""
        assert isinstance(self.config, BlockConfig)
        return self.config

    @property
    def reader(self) -> str:
        """The family, or what a text model is asked for where that says more."""
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
        return str(getattr(self.config, "family", ""))

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


Item = Mapping[str, Any]


def subject(
    experiment: Experiment,
    model: Model | None = None,
    *,
    items: Sequence[Item] = (),
    images: npt.NDArray[np.uint8] | None = None,
) -> Subject:
    """Run a model on a few examples and keep what it recorded.

    model: a trained one, in eval mode; None builds the experiment's untrained one, or, where it
    has more than MOST_REAL parameters, only its shapes. items, images: the examples, as a probe
    holds them; without them some are drawn.
    """
    if isinstance(experiment.task, CaptionTaskConfig):
        raise ValueError(NO_CAPTIONER)
    if model is None:
        with torch.device("meta"):
            model = new_model(experiment)
        if sum(p.numel() for p in model.parameters()) <= MOST_REAL:
            model = new_model(experiment).eval()
    if isinstance(experiment.task, ImageTaskConfig):
        return _of_pictures(experiment, experiment.task, model, items, images)
    return _of_texts(experiment, experiment.task, model, items)


def book_example() -> Subject:
    """Return the example of the texts by its shapes: 128 pairs of 28 and 29 tokens, d_model 512."""
    config = EncoderDecoderConfig(
        d_model=512, n_heads=8, d_ff=2048, n_encoder_layers=6, n_decoder_layers=6,
        norm_first=False, activation="relu", dropout=0.1,
    )  # fmt: skip
    shape = TextShape(BOOK_WORDS, BOOK_WORDS)
    return by_shape(config, shape, batch=BOOK_BATCH, src_len=BOOK_SRC, tgt_len=BOOK_TGT)


def by_shape(
    config: ModelConfig, shape: Shape, *, batch: int, src_len: int, tgt_len: int
) -> Subject:
    """Return a model of any size by its shapes: no memory, no values.

    Pictures have no lengths.
    """
    if isinstance(config, CaptionerConfig) or isinstance(shape, CaptionShape):
        raise ValueError(NO_CAPTIONER)
    with torch.device("meta"):
        if isinstance(shape, ImageShape):
            assert isinstance(config, ViTConfig)
            model: Model = build_vit(config, shape)
            side = shape.image_size
            inputs: tuple[Tensor, ...] = (torch.empty(batch, shape.channels, side, side),)
        else:
            assert not isinstance(config, ViTConfig)
            model = build_text(config, shape)
            lengths = (max(1, src_len) * shape.has_source, max(1, tgt_len))
            inputs = tuple(torch.empty(batch, n, dtype=torch.int64) for n in lengths)
    tape = _run(model, inputs)
    return Subject(config, model, shape, inputs, tape, {}, ())


def _run(model: Model, inputs: tuple[Tensor, ...]) -> Recording:
    with capture(model) as tape:
        model(*inputs)
    return tape


def _on(model: Model, *inputs: Tensor) -> tuple[Tensor, ...]:
    device = next(model.parameters()).device
    return tuple(tensor.to(device) for tensor in inputs)


def _of_texts(
    experiment: Experiment, config: SequenceTaskConfig, model: Model, items: Sequence[Item]
) -> Subject:
    task = text_task(config)
    pairs = [(tuple(item["src"]), tuple(item["tgt"])) for item in items]
    if not pairs:
        rng = random.Random(f"{config.name} {getattr(config, 'size', '')} {experiment.seed} walk")
        drawn = (
            distinct_pairs(task, N_TEXTS, rng)
            if config.max_src_len
            else [task.sample(rng) for _ in range(N_TEXTS)]
        )
        pairs = [(pair.src, pair.tgt) for pair in drawn]
    src = encode_src(task, [pair[0] for pair in pairs])
    answer = config.facts.answer
    targets = [[BOS, *task.tgt_vocabulary.encode(pair[1])] for pair in pairs]
    if answer != "sequence":  # no <eos> is answered, so the last token asks for nothing
        targets = [row[:-1] for row in targets]
    longest = max(map(len, targets))
    tgt_in = torch.tensor([row + [0] * (longest - len(row)) for row in targets])
    inputs = _on(model, src, tgt_in)
    tape = _run(model, inputs)
    names = (
        [[task.src_vocabulary.token(i) for i in src_row] for src_row in src.tolist()],
        [[task.tgt_vocabulary.token(i) for i in row] for row in tgt_in.tolist()],
    )
    shape = data_shape(experiment)
    assert isinstance(shape, TextShape)
    vocabulary = task.tgt_vocabulary
    every = [vocabulary.token(i) for i in range(len(vocabulary))]
    words = _text_words(*names, every)
    if has_cls(experiment):
        words["slots"] = [[CLS, *row] for row in words["slots"]]
    if answer == "blanks":
        words["tgt"] = words["src"]  # each place answers itself
    return Subject(
        experiment.model, model, shape, inputs, tape, words,
        truth=[[*pair[1], *(["<eos>"] if answer == "sequence" else [])] for pair in pairs],
    )  # fmt: skip


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


def _of_pictures(
    experiment: Experiment,
    config: ImageTaskConfig,
    model: Model,
    items: Sequence[Item],
    images: npt.NDArray[np.uint8] | None,
) -> Subject:
    shape = data_shape(experiment)
    assert isinstance(shape, ImageShape)
    assert isinstance(experiment.model, ViTConfig)
    labels = [int(item["label"]) for item in items]
    note = ""
    if images is None:
        images, labels, note = _some_pictures(config, experiment.seed)
    pixels = torch.from_numpy(np.array(images))
    if config.name != EMBEDDED:
        note += " Mean and deviation are those of these few pictures, so numbers differ a little."
    mean, std = _statistics(config, experiment.seed, pixels)
    scaled = pixels.float().div(255).sub(mean[:, None, None]).div(std[:, None, None])
    inputs = _on(model, scaled)
    side = shape.image_size // experiment.model.patch_size
    patches = [f"{row},{column}" for row in range(1, side + 1) for column in range(1, side + 1)]
    tokens = ["CLS", *patches] if experiment.model.pooling == "cls" else patches
    names = config.facts.class_names
    return Subject(
        experiment.model, model, shape, inputs, _run(model, inputs),
        {"tokens": [tokens], "patches": [patches], "classes": [list(names)]},
        truth=[[names[label]] for label in labels], pictures=images,
        statistics=(mean, std), note=note,
    )  # fmt: skip


def _some_pictures(
    config: ImageTaskConfig, seed: int
) -> tuple[npt.NDArray[np.uint8], list[int], str]:
    """Return a picture of each class from the set that comes with the app, or noise of its size."""
    if config.facts.channels == 1 and config.facts.image_size == 28:
        small = ImageTaskConfig(name=EMBEDDED)
        split = load_images(small, seed=seed).validation
        labels = split.labels.tolist()
        chosen = [labels.index(label) for label in range(N_PICTURES)]
        note = "" if config.name == EMBEDDED else "The pictures are digits that come with the app."
        if "fashion" in config.name:
            return split.images[chosen].numpy(), [], note
        return split.images[chosen].numpy(), list(range(N_PICTURES)), note
    facts = config.facts
    size = (N_PICTURES, facts.channels, facts.image_size, facts.image_size)
    noise = np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)
    return noise, [], "No picture of this task is here before a training; noise stands in."


def _statistics(config: ImageTaskConfig, seed: int, pixels: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and deviation (C,) as the training has them; of these pictures elsewhere."""
    if config.name == EMBEDDED:
        data = load_images(config, seed=seed)
        return data.mean, data.std
    return pixel_statistics(pixels)


def with_note(subject: Subject, note: str) -> Subject:
    """Return the subject with a sentence on where it comes from."""
    return dataclasses.replace(subject, note=" ".join(filter(None, (note, subject.note.strip()))))
