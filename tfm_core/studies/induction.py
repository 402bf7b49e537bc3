"""Induction heads: when they form, and what is lost without them.

After Olsson et al. 2022, "In-context Learning and Induction Heads" (arXiv 2209.11895), section
"Model analysis table": prefix matching is the attention from a token to the token behind its
earlier occurrence.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import CorpusTaskConfig, DecoderOnlyConfig, Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.data.tasks import corpus_task
from tfm_core.data.text.in_context import GENERATORS
from tfm_core.inspect.attention.heads import behind_earlier
from tfm_core.inspect.attention.trained import cached_by_folder, cached_by_weights
from tfm_core.inspect.knockouts.measure import Score, score_without
from tfm_core.inspect.knockouts.parts import Part
from tfm_core.probe.labels import modules_by_kind
from tfm_core.probe.types import Bools, Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph
from tfm_core.studies.phenomenon import (
    Example,
    Levels,
    Phenomenon,
    decoder_of,
    sequences,
    stays,
)
from tfm_core.studies.study import Arm

Head = tuple[int, int]
"""Layer and head, from 0."""
Formed = tuple[int, tuple[Head, ...], Head]
"""What ``formed`` returns where a head formed."""
THRESHOLD = 0.4
"""The share of attention that makes a head what it is called."""
_N_ELSEWHERE = 100
N_KNOCKED = 500


def _of_repeats(experiment: Experiment) -> Levels:
    n = len(GENERATORS[experiment.task.name].alphabet)
    return {N_("guessing"): 1 / n, N_("the whole repeat"): 1.0}


def _repeat(experiment: Experiment) -> Example:
    """Return a sequence with its stretch marked where it stands, and where it comes again."""
    (tokens,) = sequences(experiment, 1)
    again = GENERATORS[experiment.task.name].counts(tokens).index(True) - 1
    first = tokens.index(tokens[again])
    last = first + len(tokens) - again
    cuts = (0, first, last, again, len(tokens))
    pieces = ("".join(tokens[a:b]) for a, b in pairwise(cuts))
    return tuple((piece, n % 2 == 1) for n, piece in enumerate(pieces) if piece)


INDUCTION = Phenomenon(
    name="induction",
    title=N_("Induction heads"),
    base=PRESETS["induction"].experiment,
    arms=(
        Arm("two-layers", N_("two layers")),
        Arm("one-layer", N_("one layer"), {"model.n_layers": 1}),
        Arm(
            "fixed",
            N_("one layer, fixed distance"),
            {"model.n_layers": 1, "task.name": "fixed-repeats"},
        ),
    ),
    metrics=("validation-accuracy",),
    right=N_("only two layers"),
    wrong={
        N_("one layer, too"): Paragraph("discover/induction-one-layer"),
        N_("neither, because the letters are random"): N_(
            "The repeat isn't random: every letter came before."
        ),
    },
    paper="Olsson et al. 2022",
    address="https://arxiv.org/abs/2209.11895",
    levels=_of_repeats,
    example=_repeat,
)


def one_back(tokens: Sequence[str]) -> Bools:
    """Return (T, T): from each token, the one before it."""
    return np.eye(len(tokens), k=-1, dtype=np.bool_)


def share_on(maps: Floats, cells: Sequence[Bools]) -> Floats:
    """Return (H,), the mean attention on some cells, of the queries that have any.

    maps: (A, H, Q, K), padded at the end; cells: of each example, (T, T).
    """
    total, n = np.zeros(maps.shape[1]), 0
    for weights, chosen in zip(maps, cells, strict=True):
        length = len(chosen)
        rows = chosen.any(1)
        on = (weights[:, :length, :length].astype(np.float64) * chosen).sum(-1)  # (H, T)
        total, n = total + on[:, rows].sum(1), n + int(rows.sum())
    return total / n if n else np.full(maps.shape[1], np.nan)


def formed(steps: npt.NDArray[np.int64], matching: Floats, previous: Floats) -> Formed | None:
    """Return a step, the induction heads, and the head below that the first builds on, or None.

    steps, matching, previous: of ``head_scores``. The heads come in the order in which they form;
    the step is that of the first snapshot from which on the first of them is one.
    A head is one from the first snapshot on from which it always gives THRESHOLD of its attention
    to tokens behind an earlier occurrence, if it did not at the start, and if, at the end, a head
    of a layer below gives as much to the token before: an induction head builds on such a head
    (Elhage et al. 2021). Without one, a high score has another cause.
    """
    if not len(steps):
        return None
    last = previous[-1]
    firsts: list[tuple[int, Head]] = []
    for layer, head in np.ndindex(last.shape):
        is_one = stays(matching[:, layer, head] >= THRESHOLD)
        if layer and is_one[-1] and not is_one[0] and last[:layer].max() >= THRESHOLD:
            firsts.append((int(is_one.argmax()), (layer, head)))
    if not firsts:
        return None
    (index, (layer, _head)), *_others = firsts = sorted(firsts)
    below = np.unravel_index(last[:layer].argmax(), last[:layer].shape)
    heads = tuple(head for _index, head in firsts)
    return int(steps[index]), heads, (int(below[0]), int(below[1]))


def attentions_of(run: Run) -> list[str]:
    """Return the names of a decoder-only model's attentions, layer by layer."""
    return next(iter(modules_by_kind(run.experiment).values()))


def head_scores(run: Run) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """Return the snapshots' steps (S,), and the mean attention of each head (S, layers, H).

    First on tokens behind an earlier occurrence, of queries that have one; then on the token
    before. From the attention on the run's examples.
    """
    steps = run.snapshot_steps()
    found = [_at(run, step) for step in steps]
    return (
        np.array(steps, dtype=np.int64),
        np.array([matching for matching, _previous in found]),
        np.array([previous for _matching, previous in found]),
    )


@cached_by_folder
def _at(run: Run, step: int) -> tuple[Floats, Floats]:
    texts = [("<bos>", *item["tgt"]) for item in run.probe().attended]
    attention = run.snapshot(step).attention
    maps = [attention[name] for name in attentions_of(run)]
    matching, previous = ([cells(text) for text in texts] for cells in (behind_earlier, one_back))
    return (
        np.array([share_on(one, matching) for one in maps]),
        np.array([share_on(one, previous) for one in maps]),
    )


@cached_by_weights
def elsewhere(run: Run, task: str) -> tuple[float, Floats]:
    """Return accuracy on the repeat, and matching (layers, H), on new sequences of a task.

    They are repeats, read by the last weights. Raises ValueError.
    """
    import torch

    from tfm_core.probe.capture import capture

    model = decoder_of(run)
    config = run.experiment.task_as(CorpusTaskConfig)
    words, generator = corpus_task(config).tgt_vocabulary, GENERATORS[task]
    rng = random.Random(f"elsewhere {run.experiment.seed}")
    drawn = [generator.draw(rng, config.context) for _ in range(_N_ELSEWHERE)]
    rows = torch.tensor([[model.bos_id, *words.encode(tokens)] for tokens in drawn])
    with torch.inference_mode(), capture(model, only={"weights"}) as cache:
        logits = model(rows[:, :0], rows[:, :-1])
    counted = torch.tensor([generator.counts(tokens) for tokens in drawn])
    right = (logits.argmax(-1) == rows[:, 1:]) & counted
    cells = [behind_earlier(("<bos>", *tokens[:-1])) for tokens in drawn]
    maps = cache.of("weights")
    return (
        float(right.sum() / counted.sum()),
        np.array([share_on(maps[name].numpy(), cells) for name in attentions_of(run)]),
    )


@cached_by_weights
def copying(run: Run) -> Floats:
    """Return (layers, H): how much each head writes what it reads, from -1 to 1.

    The sum of the eigenvalues of the way from a token through the head's values to the logits, over
    the sum of their sizes (Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits",
    "Summarizing OV/QK matrices"). Of norms only their scale counts. Raises ValueError.
    """
    import torch

    from tfm_core.data.vocabulary import SPECIALS

    model = decoder_of(run)
    config = run.experiment.model_as(DecoderOnlyConfig)
    rows = []
    with torch.inference_mode():
        read = model.tgt_embedding.table.weight[len(SPECIALS) :].double()
        written = model.output.weight[len(SPECIALS) :].double()
        for layer in model.decoder.layers:
            block: Any = layer
            attention, scale = block.self_attention, block.self_attention_norm.weight.double()
            values = attention.in_projection.weight[-config.d_kv :].double()
            out, d = attention.out_projection.weight.double(), config.d_head
            heads = []
            for head in range(config.n_heads):
                columns = slice(head * d, (head + 1) * d)
                way = (read * scale) @ values[columns].T @ out[:, columns].T @ written.T
                found = torch.linalg.eigvals(way)
                heads.append(float(found.real.sum() / found.abs().sum()))
            rows.append(heads)
    return np.array(rows)


def without(run: Run, heads: Sequence[tuple[int, int]]) -> Score:
    """Return the score where heads (layer, head) give their mean. Raises ValueError."""
    parts = [Part("head", "decoder", layer, "self", head) for layer, head in heads]
    return score_without(run, parts, "mean", N_KNOCKED)
