"""The models that can be walked through: a user's with values, or one by its shapes alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tfm_core.config import (
    CaptionerConfig,
    CaptionTaskConfig,
    EncoderDecoderConfig,
    Experiment,
    ImageTaskConfig,
    ModelConfig,
)
from tfm_core.config.shape import Shape
from tfm_core.inspect.walk_forward import Item, Subject, recorded
from tfm_core.inspect.walk_pictures import of_pictures
from tfm_core.inspect.walk_texts import of_texts
from tfm_core.models.build import CaptionShape, ImageShape, Model, TextShape, build_model
from tfm_core.training.models import new_model

MOST_REAL = 30_000_000  # parameters; a larger model is walked through by its shapes
BOOK_BATCH, BOOK_SRC, BOOK_TGT, BOOK_WORDS = 128, 28, 29, 10_000
NO_CAPTIONER = (
    "A model that describes pictures is a Vision Transformer's encoder and a text decoder, and the "
    "walk goes through each of them: choose a run of digits for the one, a run of translation for "
    "the other."
)


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
        return of_pictures(experiment, experiment.task, model, items, images)
    return of_texts(experiment, experiment.task, model, items)


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
        model = build_model(config, shape)
        if isinstance(shape, ImageShape):
            side = shape.image_size
            inputs: tuple[Tensor, ...] = (torch.empty(batch, shape.channels, side, side),)
        else:
            lengths = (max(1, src_len), max(1, tgt_len))
            inputs = tuple(torch.empty(batch, n, dtype=torch.int64) for n in lengths)
    tape = recorded(model, inputs)
    return Subject(config, model, shape, inputs, tape, {}, ())
