"""Shuffle the words: which model notices? Real forward passes, before and after.

A model that sees a bag of tokens gives every token the same vector wherever it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfm_core.choices.variants.positions import NO_POSITIONS, POSITIONS, POSITIONS_OF_WORDS
from tfm_core.inspect.attention.trained import inputs_of, model_of_step
from tfm_core.inspect.masks.lab import Array
from tfm_core.inspect.tables import Column, Columns
from tfm_core.probe.labels import patches_per_side
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.models.text import TextModel

SEED = 3
CAUSAL = "causal"
"""A decoder without positions: its mask alone tells the order."""


CHANGES = Columns(
    change=Column(N_("mean change of a vector"), ".2e", {"tickformat": ".0%"}),
)
"""How much the vectors of a model's tokens move when the order changes: relative, 0 = not."""


def shuffled(n: int, seed: int = 0) -> list[int]:
    """Return an order of n places that is not the one they had; ``[0]`` for one."""
    if n < 2:
        return list(range(n))
    order = np.random.default_rng(seed).permutation(n).tolist()
    return order if order != list(range(n)) else [*order[1:], order[0]]


def untrained(tokens: Sequence[str], order: Sequence[int]) -> dict[str, float]:
    """Return the mean change in an untrained encoder, by kind, and in a causal stack without any.

    Two layers of 32 dimensions, the same first weights for all. order: of the shuffled words.
    """
    import torch

    from tfm_core.choices.config import EncoderOnlyConfig
    from tfm_core.data.vocabulary import Vocabulary
    from tfm_core.models.build import TextShape, build_text

    vocabulary = Vocabulary(tuple(dict.fromkeys(tokens)))
    ids = torch.tensor([vocabulary.encode(list(tokens))])
    changes = {}
    for name in (*POSITIONS_OF_WORDS, CAUSAL):
        kind = NO_POSITIONS if name == CAUSAL else POSITIONS[name]
        values = {"d_model": 32, "position": kind.name, "max_len": 512}
        config = EncoderOnlyConfig.parse(values)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            model = build_text(config, TextShape(len(vocabulary), len(vocabulary))).eval()
            if kind.has_table:  # as strong as the waves: training makes them so
                assert isinstance(model.src_positions, torch.nn.Module)
                for parameter in model.src_positions.parameters():
                    torch.nn.init.normal_(parameter, std=1.0)
        changes[name] = float(_change(model, ids, order, is_causal=name == CAUSAL).mean())
    return changes


def of_run(
    run: Run, text: str, order_seed: int = 0, *, step: int | None = None
) -> tuple[Array, tuple[str, str], tuple[str, ...]]:
    """Ask the run's model with the weights of a step, and say what it answers before and after.

    First comes how much each token's vector moves, (T,); last the words in their new order.
    Raises ValueError, in a sentence, for words the model does not know, and for a run of pictures.
    """
    import torch

    from tfm_core.data.tasks import text_task
    from tfm_core.decoding import greedy
    from tfm_core.models.pictures import Captioner, VisionTransformer

    config = run.experiment.task
    if config.picture_shape is not None:
        raise StudentError("This run reads pictures, so it has no words to shuffle.")
    if not config.has_source:
        raise StudentError("This run is a language model, so it has no source to shuffle.")
    task = text_task(config)
    tokens = task.tokenize(text)
    model, _step = model_of_step(run, step)
    assert not isinstance(model, VisionTransformer | Captioner)
    order = shuffled(len(tokens), order_seed)
    moved = tuple(tokens[index] for index in order)
    ids = torch.tensor([task.src_vocabulary.encode(tokens)])
    written = (
        greedy(model, source, max_len=config.max_tgt_len + 1) for source in (ids, ids[:, order])
    )
    before, after = (
        task.join_tgt(task.tgt_vocabulary.decode(one.ids[0].tolist())) for one in written
    )
    is_causal = run.experiment.model.family == "decoder-only"
    change = _change(model, ids, order, is_causal=is_causal)
    return change, (before, after), moved


def of_picture(
    run: Run, picture: npt.NDArray[np.uint8], order_seed: int = 0, *, step: int | None = None
) -> tuple[npt.NDArray[np.uint8], Array, Array]:
    """Shuffle the patches of a picture and ask the run's Vision Transformer of a step.

    Return the picture in its new order, and the probabilities (classes,) before and after.
    picture: uint8 (C, height, width). Raises ValueError, in a sentence, without such weights.
    """
    import torch

    side = patches_per_side(run.experiment)
    channels, height, width = picture.shape
    rows, columns = height // side, width // side
    grid = picture.reshape(channels, side, rows, side, columns).transpose(1, 3, 0, 2, 4)
    flat = grid.reshape(side**2, channels, rows, columns)[shuffled(side**2, order_seed)]
    moved = flat.reshape(side, side, channels, rows, columns).transpose(2, 0, 3, 1, 4)
    moved = np.ascontiguousarray(moved.reshape(picture.shape))
    model, _step = model_of_step(run, step)
    with torch.inference_mode():
        before, after = (
            model(*inputs_of(run, {}, each)).float().softmax(-1)[0].numpy()
            for each in (picture, moved)
        )
    return moved, before, after


def _change(model: TextModel, ids: Tensor, order: Sequence[int], *, is_causal: bool) -> Array:
    import torch

    with torch.no_grad():
        before = _hidden(model, ids, is_causal)[0][list(order)]
        after = _hidden(model, ids[:, list(order)], is_causal)[0]
        change: Array = ((after - before).norm(dim=-1) / before.norm(dim=-1)).numpy()
    return change


def _hidden(model: TextModel, ids: Tensor, is_causal: bool) -> Tensor:
    """Return (1, T, d_model): what the stack that reads the source makes of each token."""
    from torch import nn

    from tfm_core.choices.mistakes.parts import unmasked
    from tfm_core.layers.masks import causal_mask
    from tfm_core.models.recurrent import RecurrentTranslator
    from tfm_core.models.text import DecoderOnly, EncoderDecoder, EncoderOnly

    if isinstance(model, (EncoderDecoder, RecurrentTranslator)):
        return model.encode(ids)[0]
    has_cls = isinstance(model, EncoderOnly) and model.has_cls
    if isinstance(model, EncoderOnly) and has_cls:
        ids = nn.functional.pad(ids, (1, 0), value=model.cls_id)
    positions = model.positions if isinstance(model, DecoderOnly) else model.src_positions
    stack = model.decoder if isinstance(model, DecoderOnly) else model.encoder
    length = ids.size(1)
    if isinstance(model, DecoderOnly):
        order = model.order_mask(length, ids.device)
    else:
        order = (causal_mask if is_causal else unmasked)(length, ids.device)
    hidden: Tensor = stack(positions(model.src_embedding(ids)), mask=order)
    return hidden[:, int(has_cls) :]
