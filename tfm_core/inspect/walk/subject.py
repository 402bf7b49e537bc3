"""The models that can be walked through: a user's with values, or one by its shapes alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tfm_core.anatomy import stacks
from tfm_core.choices.config import DEPTHS, EncoderDecoderConfig, Experiment, ModelConfig
from tfm_core.choices.config.shape import CaptionShape, Shape
from tfm_core.data.vocabulary import BOS, PAD
from tfm_core.facts.architectures import Architecture
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.facts.storage import attention_numbers
from tfm_core.inspect.attention.trained import AT_ONCE
from tfm_core.inspect.walk.forward import Item, Subject, recorded
from tfm_core.inspect.walk.inputs import of_captions, of_digits, of_pictures, of_texts
from tfm_core.models.build import ImageShape, Model, TextShape, build_model, init_on_meta
from tfm_core.sentences import N_
from tfm_core.training.setup import new_model


@dataclass(frozen=True, slots=True)
class StepEntry:
    """A step's number in the walk, its name and its title."""

    number: int
    name: str
    title: str


def n_blocks(config: ModelConfig) -> int:
    """Return how many blocks there are to open one by one; a recurrent model's walk opens none."""
    return max((stack.n_layers for stack in stacks(config)), default=1)


@lru_cache(maxsize=64)
def walk_index(config: ModelConfig, shape: Shape) -> tuple[StepEntry, ...]:
    """Return the steps of a model of this kind, in order; a deep one has those of a flat one.

    Raises ValueError, in a sentence, where no walk fits the model.
    """
    from tfm_core.inspect.walk.build import walk

    flat = config.model_copy(update={name: 1 for name in DEPTHS if hasattr(config, name)})
    steps = walk(by_shape(flat, shape, batch=1, src_len=3, tgt_len=3))
    return tuple(StepEntry(n, step.name, step.title) for n, step in enumerate(steps, 1))


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
        pairs=of_texts, stream=of_texts, pictures=of_pictures, captions=of_captions
    )
    return walk(experiment, model, items, images)


def book_example(position: str = "sinusoidal", *, with_numbers: bool = False) -> Subject:
    """Return the textbook example by its shapes: 128 pairs of 28 and 29 tokens, d_model 512.

    position: the kind that is added. with_numbers: it is built with weights too, drawn from
    BOOK_SEED, and run on one pair of sentences; this takes about a second.
    """
    config, shape = _book(position)
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
    cache = recorded(model, (src, tgt))
    for name, module in model.named_modules():
        is_shown = name.endswith(("self_attention.in_projection", "positions"))
        for kind, weight in [] if is_shown else list(module.named_parameters(recurse=False)):
            setattr(module, kind, nn.Parameter(weight.detach().to("meta"), requires_grad=False))
    return Subject(config, model, shape, (src, tgt), cache, {}, ())


def book_entry(name: str) -> StepEntry:
    """Return a step of the walk through the example of the texts."""
    return next(entry for entry in walk_index(*_book()) if entry.name == name)


def _book(position: str = "sinusoidal") -> tuple[ModelConfig, Shape]:
    config = EncoderDecoderConfig.model_validate(
        {
            "d_model": 512, "n_heads": 8, "d_ff": 2048, "n_encoder_layers": BOOK_BLOCKS,
            "n_decoder_layers": BOOK_BLOCKS, "norm_first": False, "activation": "relu",
            "dropout": 0.1, "position": position, "max_len": BOOK_LONGEST,
        }
    )  # fmt: skip
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
            cache = recorded(model, inputs)
            return Subject(config, model, shape, inputs, cache, {}, (), note=note)
    note = N_("Real size, random weights, the app's digits.")
    return replace(of_digits(config, shape, model, known.batch), note=note)


def by_shape(
    config: ModelConfig, shape: Shape, *, batch: int, src_len: int, tgt_len: int
) -> Subject:
    """Return a model of any size by its shapes: no memory, no values.

    A picture has no length; its caption has ``tgt_len`` tokens, or the most that there can be.
    """
    with init_on_meta():
        model = build_model(config, shape).to("meta")
    with torch.device("meta"):
        inputs = _meta_inputs(shape, batch, max(1, src_len), max(1, tgt_len))
    cache = recorded(model, inputs)
    return Subject(config, model, shape, inputs, cache, {}, ())


def _meta_inputs(shape: Shape, batch: int, src_len: int, tgt_len: int) -> tuple[Tensor, ...]:
    if isinstance(shape, TextShape):
        lengths = (src_len * shape.has_source, tgt_len)
        return tuple(torch.empty(batch, n, dtype=torch.int64) for n in lengths)
    images = torch.empty(batch, shape.channels, shape.image_size, shape.image_size)
    if isinstance(shape, ImageShape):
        return (images,)
    return images, torch.empty(batch, min(tgt_len, shape.tgt_len), dtype=torch.int64)
