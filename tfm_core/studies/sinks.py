"""Attention sinks: the share of each head on the first token, over a training and after a move.

After Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks" (arXiv
2309.17453), section 3.1, and Guo et al. 2024 (arXiv 2410.13835). Torch-free but for ``moved``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.data.text.in_context import TRIGGERS, copy_floors
from tfm_core.inspect.attention.trained import (
    cached_by_folder,
    cached_by_weights,
    data_of,
    model_of,
)
from tfm_core.probe.labels import modules_by_kind
from tfm_core.probe.masks import recorded
from tfm_core.probe.types import Bools, Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, Sentence
from tfm_core.studies.phenomenon import Example, Levels, Phenomenon, over_runs, sequences, stays
from tfm_core.studies.study import Arm

FirstShares = tuple[npt.NDArray[np.int64], Floats, Floats, Floats]
"""What ``first_shares`` returns."""
FormedSink = tuple[int, int, int]
"""The step from which on a head is a sink, its layer and the head, from 0."""
Moved = tuple[Floats, Floats | None]
"""Mean attention (L, H) on the first position of a changed text, and on <bos>, if it is there."""
SHARE = 0.3
"""The share on the first token that makes a head a sink …"""
FACTOR = 3
"""… if it is as many times the even share …"""
FAR = 4
"""… over the queries at least as many positions behind it."""
_N_READ = 200
_ROUNDING = 0.005  # of shares in half precision


def _of_copies(experiment: Experiment) -> Levels:
    found = copy_floors(sequences(experiment))
    return {
        N_("from the previous letter only"): found.bigram,
        N_("and copied letters"): found.copying,
    }


def _copies(experiment: Experiment) -> Example:
    """Return a sequence, with each trigger marked between the letter and its copy."""
    (letters,) = sequences(experiment, 1)
    pieces: list[tuple[str, bool]] = []
    for t, letter in enumerate(letters):
        is_marked = letter in TRIGGERS or letters[t - 1 : t] in {(one,) for one in TRIGGERS}
        if pieces and pieces[-1][1] == is_marked:
            pieces[-1] = (pieces[-1][0] + letter, is_marked)
        else:
            pieces.append((letter, is_marked))
    return tuple(pieces)


SINKS = Phenomenon(
    name="sinks",
    title=N_("Attention sinks"),
    base=PRESETS["sinks"].experiment,
    arms=(
        Arm("softmax", N_("softmax")),
        Arm("zero", N_("softmax with a zero logit"), {"model.sink": "zero"}),
    ),
    metrics=("validation-loss",),
    right=N_("to the first token"),
    wrong={
        N_("to all letters evenly"): Paragraph("discover/sinks-even"),
        N_("to the previous letter, too"): Paragraph("discover/sinks-before"),
    },
    paper="Xiao et al. 2023, Guo et al. 2024, Miller 2023",
    address="https://arxiv.org/abs/2309.17453",
    levels=_of_copies,
    example=_copies,
)


def kind_of_first(experiment: Experiment) -> str | None:
    """Return the self-attention in which a model's first token is read; None without any.

    Of a model with a decoder, that of the decoder, which begins with <bos>.
    """
    kinds = [kind for kind in modules_by_kind(experiment) if kind not in ("cross", "picture")]
    return "decoder" if "decoder" in kinds else next(iter(kinds), None)


def on_first(weights: Floats, may_attend: Bools) -> tuple[Floats, float]:
    """Return (H,) the mean weight of the first key, and what even attention would give it.

    weights: (A, H, Q, K); may_attend: (A, Q, K). Of the queries that are FAR behind, every one
    counts the same; with none of these both are NaN.
    """
    is_far = may_attend[..., 0] & (np.arange(may_attend.shape[1]) >= FAR)  # (A, Q)
    if not is_far.any():
        return np.full(weights.shape[1], np.nan), float("nan")
    even = float((1 / may_attend.sum(-1)[is_far]).mean())
    first = np.moveaxis(weights[..., 0], 1, -1)[is_far].astype(np.float64)  # (queries, H)
    return first.mean(0), even


def by_position(weights: Floats, may_attend: Bools) -> tuple[Floats, Floats]:
    """Return (H, K), the mean weight of each key, and (K,) that of even attention.

    Only queries at least FAR positions behind a key count for it; NaN where there are none. Shapes
    as in ``on_first``.
    """
    n_queries, n_keys = may_attend.shape[1:]
    is_far = np.arange(n_queries)[:, None] - np.arange(n_keys)[None] >= FAR
    counted = may_attend & is_far  # (A, Q, K)
    n = counted.sum((0, 1)).astype(np.float64)
    n[n == 0] = np.nan
    even = (counted / np.maximum(may_attend.sum(-1, keepdims=True), 1)).sum((0, 1)) / n
    found: Floats = np.einsum("ahqk,aqk->hk", weights.astype(np.float64), counted) / n
    return found, even


def rests(no_token: Floats) -> bool:
    """Whether a head gives attention to no token at the end, beyond rounding."""
    return bool((no_token[-1] > _ROUNDING).any())


def strongest(shares: Floats) -> tuple[int, int]:
    """Return layer and head of the largest of shares (L, H)."""
    layer, head = np.unravel_index(int(np.nanargmax(shares)), shares.shape)
    return int(layer), int(head)


def first_shares(run: Run) -> FirstShares:
    """Return the share of each head on the first token at each snapshot of a run.

    The steps (S,) and shares (S, L, H); what even attention would give it (L,): more in a layer
    with a window; and what the extra logit takes, as shares: 0 without one. Raises ValueError for a
    damaged snapshot.
    """
    steps = run.snapshot_steps()
    found = [_shares_at(run, step) for step in steps]
    return (
        np.array(steps, np.int64),
        np.array([shares for shares, _rest, _even in found]),
        found[-1][2] if found else np.empty(0),
        np.array([rest for _shares, rest, _even in found]),
    )


def _maps_at(run: Run, step: int) -> list[tuple[Floats, Bools]]:
    kind = kind_of_first(run.experiment)
    if kind is None:
        return []
    modules = modules_by_kind(run.experiment)[kind]
    found = recorded(run.experiment, run.probe().items, run.snapshot(step))
    return [(weights, allowed) for name, _items, weights, allowed in found if name in modules]


@cached_by_folder
def _shares_at(run: Run, step: int) -> tuple[Floats, Floats, Floats]:
    shares, rest, even = [], [], []
    for weights, may_attend in _maps_at(run, step):
        found, uniform = on_first(weights, may_attend)
        shares.append(found)
        even.append(uniform)
        left = 1 - weights.astype(np.float64).sum(-1)  # (A, H, Q)
        is_row = may_attend.any(-1)
        rest.append(np.moveaxis(left, 1, -1)[is_row].mean(0).clip(0, 1))
    return np.array(shares), np.array(rest), np.array(even)


def positions_at(run: Run, step: int, layer: int, head: int) -> tuple[Floats, Floats]:
    """Return (K,) the mean weight of each position in a head at a snapshot, and the even one."""
    found, even = by_position(*_maps_at(run, step)[layer])
    return found[head], even


def formed(found: FirstShares) -> FormedSink | None:
    """Return the head that became a sink first, or None.

    It became one at the first snapshot from which it always is one, if it was none at the start.
    """
    steps, shares, even, _no_token = found
    if not len(steps):
        return None
    is_one = stays((shares >= SHARE) & (shares >= FACTOR * even[:, None]))
    formed_at = [
        (int(is_one[:, layer, head].argmax()), -float(shares[-1, layer, head]), layer, head)
        for layer, head in np.argwhere(is_one[-1] & ~is_one[0]).tolist()
    ]
    if not formed_at:
        return None
    index, _share, layer, head = min(formed_at)
    return int(steps[index]), layer, head


def in_words(found: Sequence[FormedSink | None]) -> Sentence:
    """Return when a sink formed in some runs, the first run's named, with mean, spread and n."""
    there = [one for one in found if one is not None]
    if not there:
        return N_("**Result:** no sink formed.")
    _step, layer, number = there[0]
    return N_(
        "**Result:** a sink formed at step {step} (seeds: {n}): {head}.",
        step=over_runs(one and one[0] for one in found),
        n=len(found),
        head=N_("layer {layer}, head {head}", layer=layer + 1, head=number + 1),
    )


MOVES: Mapping[str, str] = {
    "as it is": N_("unchanged: <bos> first"),
    "dropped": N_("without <bos>: a token of the text first"),
    "behind": N_("another token before <bos>"),
    "later": N_("<bos> as the sixth token"),
}
"""How the text is changed."""
_LATER = 5


def where_it_goes(found: Mapping[str, Moved]) -> Sentence:
    """Return whether the strongest head's attention goes with <bos> or stays where it stood.

    It does what at least half of its share does behind another token, and not less than half.
    """
    (whole, _bos), (behind, bos) = found["as it is"], found["behind"]
    at = strongest(whole)
    half = float(whole[at]) / 2
    token = 0.0 if bos is None else float(bos[at])
    position = float(behind[at])
    if token >= half > position:
        return N_("**Result:** the attention follows the token.")
    if position >= half > token:
        return N_("**Result:** the attention stays at the position.")
    return N_("**Result:** it is unclear whether the attention follows the token or the position.")


@cached_by_weights
def moved(run: Run) -> dict[str, Moved]:
    """Let the last weights read texts whose first token was moved, by MOVES. Raises ValueError."""
    import torch

    from tfm_core.probe.capture import capture

    model: Any = model_of(run)[0]
    split: Any = data_of(run.experiment).validation
    tgt = split.tgt[:_N_READ]
    src = getattr(split, "src", tgt[:, :0])[:_N_READ]
    names = modules_by_kind(run.experiment)[kind_of_first(run.experiment) or ""]
    bos, text = tgt[:, :1], tgt[:, 1:]
    other = text.roll(1, 0)  # what another example begins with
    readings = {
        "as it is": (tgt[:, :-1], 0),
        "dropped": (text, None),
        "behind": (torch.cat([other[:, :1], bos, text[:, :-2]], 1), 1),
        "later": (torch.cat([text[:, :_LATER], bos, text[:, _LATER:-2]], 1), _LATER),
    }
    found: dict[str, Moved] = {}
    for name, (rows, place) in readings.items():
        with torch.inference_mode(), capture(model, only={"weights"}) as cache:
            model(src, rows)
        maps = cache.of("weights")
        is_text = (rows != model.pad_id).numpy()
        first, on_bos = [], []
        for module in names:
            weights = maps[module].numpy()
            first.append(_on(weights, is_text, 0))
            on_bos.append(None if place is None else _on(weights, is_text, place))
        found[name] = np.array(first), None if place is None else np.array(on_bos)
    return found


def _on(weights: Floats, is_text: Bools, place: int) -> Floats:
    """Return (H,), the mean weight on one key, of queries FAR behind it. weights: (B, H, Q, K)."""
    is_far = is_text & (np.arange(is_text.shape[1]) >= place + FAR)
    if not is_far.any():
        return np.full(weights.shape[1], np.nan)
    found: Floats = np.moveaxis(weights[..., place], 1, -1)[is_far].astype(np.float64).mean(0)
    return found
