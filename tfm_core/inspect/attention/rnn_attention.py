"""Additive, scaled dot-product and multi-head attention on one task, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import EncoderDecoderConfig, RecurrentConfig
from tfm_core.choices.config.text_tasks import TEXT_TASKS
from tfm_core.choices.variants.alignment_scores import ALIGNMENT_SCORES
from tfm_core.choices.variants.record import resolve
from tfm_core.inspect.attention import alignment
from tfm_core.inspect.questions import Question, choice_question
from tfm_core.probe.labels import MapAxes, RowLabels, axes, modules_by_kind, rows
from tfm_core.probe.masks import on_examples
from tfm_core.probe.types import Snapshot
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, percent

WIDTH = 64
"""d_model of all three."""
HEADS = 4
"""Heads of the last one."""


@dataclass(frozen=True, slots=True, eq=False)
class CrossAttentionAtStep:
    """What a run's cross-attention does at the snapshot of ``step``.

    head: the one that aligns best, from 0; share: of its attention on true source words; aer: its
    alignment error rate; even: the share of even attention. For each sentence of the probe,
    weights: (H, Q, K); names: the tokens; rows: the row names; truth: bool (Q, K).
    """

    step: int
    head: int
    share: float
    aer: float
    even: float
    weights: list[npt.NDArray[np.float32]]
    names: list[MapAxes]
    rows: list[RowLabels]
    truth: list[npt.NDArray[np.bool_]]

    @property
    def is_scored(self) -> bool:
        """Whether any target token has a known source to hold the attention against."""
        return not np.isnan(self.share)

    @property
    def strongest_true(self) -> tuple[int, int]:
        """In how many rows the head's strongest cell is a true one, and how many have any."""
        hits = rows = 0
        for weights, truth in zip(self.weights, self.truth, strict=True):
            shown = weights[self.head][: truth.shape[0], : truth.shape[1]]
            known = np.flatnonzero(truth.any(1))
            hits += int(truth[known, shown[known].argmax(1)].sum())
            rows += len(known)
        return hits, rows


def untrained_weights(score: str, n_queries: int, n_keys: int) -> npt.NDArray[np.float32]:
    """Return the weights (Q, K) that an untrained score gives to random states.

    The states are the same for each score.
    """
    import torch

    from tfm_core.layers.recurrent import EncodedSource, RecurrentAttention

    generator = torch.Generator().manual_seed(0)
    states, memory = (
        3 * torch.randn(1, n, WIDTH, generator=generator) for n in (n_queries, n_keys)
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        attention = RecurrentAttention(resolve(ALIGNMENT_SCORES[score].layer)(WIDTH))
        mask = torch.ones(1, 1, n_keys, dtype=torch.bool)
        source = EncodedSource(memory, mask, attention.score.prepare(memory), memory[:, -1])
        weights: npt.NDArray[np.float32] = attention(states, source).weights[0].numpy()
    return weights


def tasks() -> list[str]:
    """Return the text tasks that all three models can learn."""
    families = {"recurrent", "encoder-decoder"}
    return [name for name, facts in TEXT_TASKS.items() if families <= set(facts.families)]


def models() -> dict[str, RecurrentConfig | EncoderDecoderConfig]:
    """Return the three models: one layer on each side, the same width."""
    one, many = (EncoderDecoderConfig(d_model=WIDTH, n_heads=n, d_ff=2 * WIDTH) for n in (1, HEADS))
    additive = RecurrentConfig(cell="gru", attention="additive", d_model=WIDTH)
    return {"additive": additive, "one-head": one, "many-heads": many}


def cross_attention_at(run: Run, snapshot: Snapshot | None = None) -> CrossAttentionAtStep | None:
    """Return what a run's cross-attention does at a snapshot (None: the last); None without one."""
    steps = run.snapshot_steps()
    if snapshot is None and not steps:
        return None
    try:
        snapshot = snapshot or run.snapshot(steps[-1])
        items = run.probe().attended
    except ValueError:  # being written
        return None
    experiment = run.experiment
    module = modules_by_kind(experiment)["cross"][-1]
    if module not in snapshot.attention:
        return None
    maps = snapshot.attention[module].astype(np.float32)  # (P, H, Q, K)
    try:
        allowed = on_examples(experiment, items, module, snapshot.masks, maps.shape[2:])
        scores = alignment.score_maps(experiment, module, items, maps[: len(items)], allowed)
        best = max(scores, key=lambda row: row["share"])
    except ValueError:  # a task whose answers come from no one word
        best = {"head": 1, "share": np.nan, "aer": np.nan, "chance": np.nan}
    names = [axes(experiment, item, module) for item in items]
    shapes = [each.shape for each in names]
    return CrossAttentionAtStep(
        step=snapshot.step,
        head=best["head"] - 1,
        share=best["share"],
        aer=best["aer"],
        even=best["chance"],
        weights=[m[:, :rows, :keys] for m, (rows, keys) in zip(maps, shapes, strict=False)],
        names=names,
        rows=[rows(experiment, item, module) for item in items],
        truth=[alignment.truth_on_map(experiment, item, module) for item in items],
    )


def sentences(run: Run) -> list[str]:
    """Return the source of each sentence of the probe; none before there is one."""
    try:
        return [str(item["src_text"]) for item in run.probe().attended]
    except ValueError:
        return []


def about_alignment(shares: Mapping[str, float]) -> Question | None:
    """Ask whose attention is most on the true words; None for fewer than two, or a tie.

    shares: model -> share of its attention on true source words.
    """
    order = sorted(shares, key=lambda name: -shares[name])
    if len(order) < 2 or shares[order[0]] == shares[order[1]]:
        return None
    why = {
        name: N_("It puts {share} of its attention on the true words.", share=percent(shares[name]))
        for name in order
    }
    return choice_question(
        N_("Which model puts the most attention on the true source words?"),
        order[0],
        why,
        why[order[0]],
    )


def about_growth(n: int, rnn: float, transformer: float) -> Question:
    """Ask how a recurrent step grows with length.

    n: how many times as long the sequences are. rnn, transformer: how many times as long the steps
    take, as measured.
    """
    answer = f"{rnn:.0f}"
    return choice_question(
        N_(
            "When sequences are {n} times as long, how many times as long does a "
            "step of the RNN take?",
            n=n,
        ),
        answer,
        {
            f"{transformer:.0f}": N_("That is the Transformer, which computes all tokens at once."),
            "1": N_("Each extra token adds a step."),
            f"{n * n}": N_("Pairs of tokens grow that fast, but an RNN visits each token once."),
        },
        N_(
            "An RNN computes one token after another. The Transformer took "
            "{times:.0f} times as long.",
            times=transformer,
        ),
    )
