"""How a model's positions behave: texts longer than in training, and shuffled words.

A model that sees a bag of tokens gives every token the same vector wherever it stands.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfm_core.choices.config import Experiment, TextTaskConfig
from tfm_core.choices.variants.positions import NO_POSITIONS, POSITIONS, POSITIONS_OF_WORDS
from tfm_core.inspect.attention.trained import inputs_of, model_of, model_of_step
from tfm_core.inspect.tables import Column, Columns, share
from tfm_core.probe.labels import patches_per_side
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.data.text.task import Pair, TextTask
    from tfm_core.models.text import TextModel


PER_LENGTH = 32
"""Sequences measured at each length."""
DRAWS = 1500
"""Sequences drawn to find some of each length, where a task cannot be asked for one."""


RACE = Columns(
    step=Column(N_("step"), ","),
    length=Column(N_("source length (tokens)"), ","),
    right=share(N_("tokens right")),
)
Extrapolation = tuple[pd.DataFrame, int, str]
"""What ``extrapolate`` returns."""


def can_extrapolate(experiment: Experiment) -> str | None:
    """Return why a run's task has no longer sequences with the same words, or None."""
    config = experiment.task
    if config.picture_shape:
        return N_("All pictures have the same size, so none is longer.")
    if config.facts.answer == "text":
        return N_("A language model has no source that could be longer.")
    if not isinstance(config, TextTaskConfig) or _longer(config) is None:
        return N_(
            "{label} has no longer sequences; copy, reverse and sort do.", label=config.facts.label
        )
    return None


def extrapolate(run: Run) -> Extrapolation:
    """Let a run's last weights answer sequences up to twice the trained length, greedily.

    By the length of the source the share of right tokens, NaN where the model cannot read so much;
    the longest source that it was trained on; and why it cannot. Raises ValueError, in a sentence,
    where the task has no longer sequences or there are no weights.
    """
    from tfm_core.data.tasks import text_task
    from tfm_core.data.text_data import encode_src
    from tfm_core.decoding import greedy
    from tfm_core.models.pictures import VisionTransformer

    why = can_extrapolate(run.experiment)
    if why is not None:
        raise StudentError(why)
    config = run.experiment.task_as(TextTaskConfig)
    longer = _longer(config)
    assert longer is not None
    task = text_task(longer)
    model, _step = model_of(run)
    assert not isinstance(model, VisionTransformer)
    pools = _pools(config, longer, run.experiment.seed)
    shares, stopped = [], ""
    for length, pairs in pools.items():
        try:
            src = encode_src(task, [pair.src for pair in pairs], length=length)
            longest = max(len(pair.tgt) for pair in pairs) + 1
            written = greedy(model, src, max_len=longest).ids.tolist()
        except ValueError as error:
            stopped = stopped or str(error)
            shares.append(np.nan)
            continue
        answers = [task.tgt_vocabulary.decode(row) for row in written]
        right = [_right(answer, pair.tgt) for answer, pair in zip(answers, pairs, strict=True)]
        shares.append(float(np.mean(right)))
    found = pd.DataFrame({"length": list(pools), "tokens": shares}, dtype=np.float32)
    return found, config.max_src_len, stopped


def _right(answer: list[str], truth: tuple[str, ...]) -> float:
    same = sum(a == b for a, b in zip(answer, truth, strict=False))
    return same / max(len(answer), len(truth))


def _longer(config: TextTaskConfig) -> TextTaskConfig | None:
    """Return the same task up to twice as long, with the same words, where there is one."""
    from tfm_core.data.tasks import text_task

    if config.facts.hides:
        return None  # its size is no length
    own = text_task(config)
    for size in range(min(2 * config.size, config.facts.sizes[-1]), config.size, -1):
        longer = config.replace(size=size)
        task = text_task(longer)
        same_src = task.src_vocabulary.tokens == own.src_vocabulary.tokens
        if same_src and task.tgt_vocabulary.tokens == own.tgt_vocabulary.tokens:
            return longer
    return None


def _pools(config: TextTaskConfig, longer: TextTaskConfig, seed: int) -> dict[int, list[Pair]]:
    """Return pairs by the exact length of their source, up to twice the trained one."""
    from tfm_core.data.tasks import text_task

    if config.name in {"copy", "reverse", "sort"}:
        shares = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
        lengths = {max(1, round(config.size * share)) for share in shares}
        task = text_task(longer)
        return {n: _of_length(task, n, seed) for n in sorted(lengths) if n <= longer.size}
    rng = random.Random(seed)
    pools: dict[int, list[Pair]] = {}
    for source in (config, longer):
        task = text_task(source)
        for _ in range(DRAWS):
            pair = task.sample(rng)
            pools.setdefault(len(pair.src), []).append(pair)
    enough = {n: pairs[:PER_LENGTH] for n, pairs in pools.items() if len(pairs) >= PER_LENGTH // 4}
    return dict(sorted(enough.items()))


def _of_length(task: TextTask, length: int, seed: int) -> list[Pair]:
    """Return PER_LENGTH pairs of random symbols with sources of exactly this length."""
    from tfm_core.data.text.task import Pair

    rng = random.Random(f"{seed} {length}")
    symbols = task.src_vocabulary.tokens
    sources = [tuple(rng.choices(symbols, k=length)) for _ in range(PER_LENGTH)]
    return [Pair(source, task.solve(source) or (), ()) for source in sources]


SEED = 3
CAUSAL = "causal"
"""A decoder without positions: its mask alone tells the order."""


CHANGES = Columns(
    change=Column(N_("mean change of a vector"), ".2e", {"tickformat": ".0%"}),
)
"""How much the vectors of a model's tokens move when the order changes: relative, 0 = not."""


def shuffled_order(n: int, seed: int = 0) -> list[int]:
    """Return an order of n places that is not the one they had; ``[0]`` for one."""
    if n < 2:
        return list(range(n))
    order = np.random.default_rng(seed).permutation(n).tolist()
    return order if order != list(range(n)) else [*order[1:], order[0]]


def untrained_changes(tokens: Sequence[str], order: Sequence[int]) -> dict[str, float]:
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


def shuffle_words(
    run: Run, text: str, order_seed: int = 0, *, step: int | None = None
) -> tuple[Floats, tuple[str, str], tuple[str, ...]]:
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
    order = shuffled_order(len(tokens), order_seed)
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


def shuffle_patches(
    run: Run, picture: npt.NDArray[np.uint8], order_seed: int = 0, *, step: int | None = None
) -> tuple[npt.NDArray[np.uint8], Floats, Floats]:
    """Shuffle the patches of a picture and ask the run's Vision Transformer of a step.

    Return the picture in its new order, and the probabilities (classes,) before and after.
    picture: uint8 (C, height, width). Raises ValueError, in a sentence, without such weights.
    """
    import torch

    side = patches_per_side(run.experiment)
    channels, height, width = picture.shape
    rows, columns = height // side, width // side
    grid = picture.reshape(channels, side, rows, side, columns).transpose(1, 3, 0, 2, 4)
    flat = grid.reshape(side**2, channels, rows, columns)[shuffled_order(side**2, order_seed)]
    moved = flat.reshape(side, side, channels, rows, columns).transpose(2, 0, 3, 1, 4)
    moved = np.ascontiguousarray(moved.reshape(picture.shape))
    model, _step = model_of_step(run, step)
    with torch.inference_mode():
        before, after = (
            model(*inputs_of(run, {}, each)).float().softmax(-1)[0].numpy()
            for each in (picture, moved)
        )
    return moved, before, after


def _change(model: TextModel, ids: Tensor, order: Sequence[int], *, is_causal: bool) -> Floats:
    import torch

    with torch.no_grad():
        before = _hidden(model, ids, is_causal)[0][list(order)]
        after = _hidden(model, ids[:, list(order)], is_causal)[0]
        change: Floats = ((after - before).norm(dim=-1) / before.norm(dim=-1)).numpy()
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
