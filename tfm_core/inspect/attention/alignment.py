"""Known-answer score: does a head attend to the source words that a target word comes from?

Two figures against the true alignment of generated tasks: the share of attention on the true source
words, and the alignment error rate (Och & Ney 2003, section 5.1) with the strongest cell of each
row as the head's link.

Row t writes target token t (row 0 reads <bos>) and is compared with the sources of token t. The
<eos> row and tokens without a source do not count. A single source is a sure link; of several, each
is possible and none sure. In one sequence ("sequence") shares are of all attention, and the link is
the strongest source token.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import EncoderDecoderConfig, Experiment, RecurrentConfig
from tfm_core.choices.config.text_tasks import TEXT_TASKS
from tfm_core.choices.variants.record import resolve
from tfm_core.choices.variants.recurrent import ALIGNMENT_SCORES
from tfm_core.inspect.attention.trained import cached_by_folder, cached_by_snapshot
from tfm_core.inspect.questions import Question, choice_question
from tfm_core.inspect.tables import Column, Columns, share
from tfm_core.probe.labels import MapAxes, RowLabels, axes, kind_of, layer_of, modules_by_kind, rows
from tfm_core.probe.masks import on_examples, recorded
from tfm_core.probe.types import Bools, Floats, Probe, Snapshot
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError, percent

if TYPE_CHECKING:
    import pandas as pd


Row = Mapping[str, Any]
"""A head."""
LEARNED = 0.5  # share from which on a head is said to align
_WRITES = ("cross", "picture", "slots", "sequence")
"""Kinds of attention in which target meets source."""


@dataclass(eq=False)
class AlignmentTally:
    """Sums over examples; see the module for what is counted."""

    n_tokens: int = 0
    _share: Floats | float = 0.0
    _even: float = 0.0
    _sure_hits: npt.NDArray[np.int_] | int = 0
    _hits: npt.NDArray[np.int_] | int = 0
    _sure: int = 0

    def add(self, weights: Floats, truth: Bools, even: Floats | None = None) -> None:
        """Count one example. weights: (H, T, S), truth: bool (T, S), row t = target token t.

        even: (T, S), the even attention; None: 1 / S. Raises ValueError if shapes do not fit.
        """
        if weights.shape[1:] != truth.shape:
            raise StudentError(
                "The weights are {shape}, but the true alignment is {truth_shape}.",
                shape=weights.shape,
                truth_shape=truth.shape,
            )
        n_sources = truth.sum(-1)
        counted, sure = n_sources > 0, n_sources == 1
        weights = np.asarray(weights[:, counted], np.float32)
        self._even += float((truth / truth.shape[1] if even is None else truth * even).sum())
        truth, sure = truth[counted], sure[counted]
        links = weights.argmax(-1) if weights.size else np.zeros(weights.shape[:2], np.int_)
        hits = truth[np.arange(len(truth)), links]  # (H, T)
        self.n_tokens += len(truth)
        self._share = self._share + (weights * truth).sum((1, 2))
        self._hits = self._hits + hits.sum(-1)
        self._sure_hits = self._sure_hits + (hits & sure).sum(-1)
        self._sure += int(sure.sum())

    def add_maps(
        self,
        experiment: Experiment,
        module: str,
        items: Sequence[Mapping[str, Any]],
        weights: Floats,
        may_attend: Bools,
        tokens: Collection[str] = (),
    ) -> None:
        """Count the maps of one module on examples. weights: (P, H, Q, K), padded.

        may_attend: (P, Q, K). tokens: those that count; without any, all do.
        """
        for item, map_, allowed in zip(items, weights, may_attend, strict=True):
            truth = true_cells(item)
            if tokens:
                truth &= np.array([token in tokens for token in item["tgt"]], np.bool_)[:, None]
            even = even_over_source(experiment, item, module, allowed)
            self.add(rows_that_write(experiment, item, module, map_), truth, even)

    def rows(self) -> list[Row]:
        """Return a row a head. Raises StudentError where no token with a known source counted."""
        if not self.n_tokens:
            raise StudentError("No target token of this example has a known source.")
        # |A| links, one a token; |S| sure ones: 1 - (|A and S| + |A and P|) / (|A| + |S|)
        aer = 1 - (self._sure_hits + self._hits) / (self.n_tokens + self._sure)
        shares = np.asarray(self._share) / self.n_tokens
        same = {"chance": self._even / self.n_tokens, "n_tokens": self.n_tokens}
        errors = np.asarray(aer).tolist()
        return [
            {"head": head, "share": share, "aer": error, **same}
            for head, (share, error) in enumerate(zip(shares.tolist(), errors, strict=True), 1)
        ]


def true_cells(item: Mapping[str, Any]) -> Bools:
    """Return bool (T, S): the true sources of each target token. Raises StudentError without."""
    alignment: Sequence[Sequence[int]] | None = item.get("alignment")
    if alignment is None:
        raise StudentError("The true alignment of this example is unknown.")
    cells = np.zeros((len(alignment), len(item["src"])), np.bool_)
    for token, sources in enumerate(alignment):
        cells[token, list(sources)] = True
    return cells


def truth_on_map(experiment: Experiment, item: Mapping[str, Any], module: str) -> Bools:
    """Return bool (Q, K): the true alignment as cells of a module's map.

    All False where target does not meet source. Raises StudentError without an alignment.
    """
    names = axes(experiment, item, module)
    cells = np.zeros(names.shape, np.bool_)
    kind = kind_of(experiment, module).name
    if kind in _WRITES:
        truth = true_cells(item)
        first = _first_row(kind, item)
        cells[first : first + truth.shape[0], : truth.shape[1]] = truth
    return cells


def clearest_row(weights: Floats, may_attend: Bools, truth: Bools | None = None) -> int | None:
    """Return the row of a map (Q, K) that best shows what its head does; None without any.

    With a true alignment the row with the most weight on true cells; else the row with the largest
    weight among those with a choice of keys.
    """
    if truth is not None and truth.any():
        return int((weights * truth).sum(-1).argmax())
    chooses = may_attend.sum(-1) > 1
    return int(np.where(chooses, weights.max(-1), -1.0).argmax()) if chooses.any() else None


def can_be_scored(experiment: Experiment, probe: Probe) -> bool:
    """Return whether any attention of the model can be compared with a true alignment."""
    if not scored_modules(experiment):
        return False
    return any(any(item.get("alignment") or ()) for item in probe.items)


def scored_modules(experiment: Experiment) -> list[str]:
    """Return the modules in which target meets source, layer by layer."""
    kinds = modules_by_kind(experiment)
    return [name for kind in _WRITES for name in kinds.get(kind, [])]


def rows_that_write(
    experiment: Experiment, item: Mapping[str, Any], module: str, weights: Floats
) -> Floats:
    """Return (H, T, S): of a map (H, Q, K) the rows that write target tokens, over the source."""
    first = _first_row(kind_of(experiment, module).name, item)
    return weights[:, first : first + len(item["tgt"]), : len(item["src"])]


def even_over_source(
    experiment: Experiment, item: Mapping[str, Any], module: str, may_attend: Bools
) -> Floats:
    """Return (T, S): the even attention of each row that writes. may_attend: bool (Q, K)."""
    even: Floats = may_attend / np.maximum(may_attend.sum(-1, keepdims=True), 1)
    written = rows_that_write(experiment, item, module, even[None])
    return np.asarray(written[0])


SCORES = Columns(
    step=Column(N_("step (log)"), ",", {"type": "log"}),
    share=share(N_("attention on the true source words")),
    aer=Column("", ".3f"),  # alignment error rate, 0 is perfect
    chance=share(""),  # the share of even attention
)


def score(
    experiment: Experiment, probe: Probe, snapshot: Snapshot, *, tokens: Collection[str] = ()
) -> pd.DataFrame:
    """Return the scores of every head that can be scored, on the examples of the probe.

    A row a head: step, module, kind, layer and head from 1, share (of attention on true source
    words), aer, chance, and n_tokens, the target tokens that were counted. tokens: those that
    count; without any, all do. Raises StudentError if none occurs.
    """
    return _table(_rows(experiment, probe, snapshot, tokens))


def scores_of_snapshot(experiment: Experiment, probe: Probe, snapshot: Snapshot) -> list[Row]:
    """Return the rows of ``score``, none where nothing can be scored; without pandas."""
    is_known = can_be_scored(experiment, Probe(probe.kind, probe.attended))
    return _rows(experiment, probe, snapshot) if is_known else []


@cached_by_snapshot
def scores_of_step(run: Run, step: int) -> list[Row]:
    """Return the rows of a snapshot of a run, cached; do not change them. Raises ValueError."""
    return scores_of_snapshot(run.experiment, run.probe(), run.snapshot(step))


def _rows(
    experiment: Experiment, probe: Probe, snapshot: Snapshot, tokens: Collection[str] = ()
) -> list[Row]:
    rows: list[Row] = []
    scored = scored_modules(experiment)
    for module, *maps in recorded(experiment, probe.items, snapshot):
        if module in scored:
            place = {"step": snapshot.step, "module": module}
            place |= {"kind": kind_of(experiment, module).name, "layer": layer_of(module) + 1}
            rows += [{**place, **row} for row in score_maps(experiment, module, *maps, tokens)]
    return rows


def score_maps(experiment: Experiment, module: str, *maps: Any) -> list[Row]:
    """Return the rows of one module. maps: as ``AlignmentTally.add_maps`` takes them."""
    tally = AlignmentTally()
    tally.add_maps(experiment, module, *maps)
    return tally.rows()


def _table(rows: Sequence[Row]) -> pd.DataFrame:
    import pandas as pd

    columns = ("step", "module", "kind", "layer", "head", "share", "aer", "chance", "n_tokens")
    return pd.DataFrame(list(rows), columns=list(columns))


def score_over_training(run: Run) -> pd.DataFrame:
    """Return the scores of all readable snapshots, cached. Raises ValueError without a probe."""
    return _scores_at(run, tuple(run.snapshot_steps()))


@cached_by_folder
def _scores_at(run: Run, steps: Sequence[int]) -> pd.DataFrame:
    experiment, probe = run.experiment, run.probe()
    rows: list[Row] = []
    for step in steps:
        with contextlib.suppress(ValueError):
            rows += scores_of_snapshot(experiment, probe, run.snapshot(step))
    return _table(rows)


def best_head(rows: Iterable[Row]) -> Row | None:
    """Return the row with the largest share, if any."""
    known = (row for row in rows if not np.isnan(row["share"]))
    return max(known, key=lambda row: float(row["share"]), default=None)


def aligned(scores: pd.DataFrame, step: int) -> pd.DataFrame:
    """Return the rows of the heads that align at a step, with the step since when each does."""
    found = scores[(scores["step"] == step) & (scores["share"] >= LEARNED)]
    known = scores[scores["step"] <= step]
    since = [formed_at(known, str(row.module), int(row.head)) for row in found.itertuples()]
    return found.assign(since=since)


def formed_at(scores: pd.DataFrame, module: str, head: int) -> int | None:
    """Return the first step from which on a head (from 1) kept aligning, None where it does not."""
    of_head = scores[(scores["module"] == module) & (scores["head"] == head)].sort_values("step")
    formed = None
    for step, found in zip(of_head["step"], of_head["share"], strict=True):
        if found < LEARNED:
            formed = None
        elif formed is None:
            formed = int(step)
    return formed


def _first_row(kind: str, item: Mapping[str, Any]) -> int:
    """Return the row that writes the first target token: where <bos> is read, or position 0."""
    return len(item["src"]) if kind == "sequence" else 0


RNN_WIDTH = 64
"""d_model of all three."""
RNN_HEADS = 4
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
        3 * torch.randn(1, n, RNN_WIDTH, generator=generator) for n in (n_queries, n_keys)
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        attention = RecurrentAttention(resolve(ALIGNMENT_SCORES[score].layer)(RNN_WIDTH))
        mask = torch.ones(1, 1, n_keys, dtype=torch.bool)
        source = EncodedSource(memory, mask, attention.score.prepare(memory), memory[:, -1])
        weights: npt.NDArray[np.float32] = attention(states, source).weights[0].numpy()
    return weights


def rnn_tasks() -> list[str]:
    """Return the text tasks that all three models can learn."""
    families = {"recurrent", "encoder-decoder"}
    return [name for name, facts in TEXT_TASKS.items() if families <= set(facts.families)]


def rnn_models() -> dict[str, RecurrentConfig | EncoderDecoderConfig]:
    """Return the three models: one layer on each side, the same width."""
    one, many = (
        EncoderDecoderConfig(d_model=RNN_WIDTH, n_heads=n, d_ff=2 * RNN_WIDTH)
        for n in (1, RNN_HEADS)
    )
    additive = RecurrentConfig(cell="gru", attention="additive", d_model=RNN_WIDTH)
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
        scores = score_maps(experiment, module, items, maps[: len(items)], allowed)
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
        truth=[truth_on_map(experiment, item, module) for item in items],
    )


def probe_sentences(run: Run) -> list[str]:
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
