"""The stage: what a run shows at each snapshot, for one kind of attention; torch-free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tfm_core.choices.config import Experiment
from tfm_core.data.text.english_korean import Glosses, glosses_of, language_of
from tfm_core.inspect.attention import heads
from tfm_core.inspect.attention.alignment import truth_on_map
from tfm_core.inspect.attention.example import example_of
from tfm_core.inspect.attention.maps import MapView, map_view, telling_heads
from tfm_core.inspect.attention.trained import cached_by_snapshot
from tfm_core.probe import items
from tfm_core.probe.items import is_language
from tfm_core.probe.labels import CLS, AttentionKind, kinds_of, modules_by_kind, patches_per_side
from tfm_core.probe.types import Array, Probe, Snapshot
from tfm_core.runs.run import Run
from tfm_core.sentences import StudentError

Surface = Literal["map", "picture", "words", "none"]
MAX_CLASSES = 3
_FIRST_KINDS = ("cross", "picture")
_SURFACES: dict[str, Surface] = {"patches": "picture", "picture": "words"}  # of other kinds: map


Shown = Mapping[str, Any]
"""Plain values for the browser: an example, an answer or a snapshot of a stage."""


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """All snapshots of a run, for one kind of attention on one example.

    examples: source and truth as text, and the tokens that are the truth. frames: a snapshot each:
    its step; labels, a few words for each head, row by row; answers to every example: tokens of a
    text and how sure each is, the likeliest classes of a picture, and whether it is right, None for
    a text to continue. maps: weights float16 (F, L, H, Q, K), or None. surface: ``map``: queries
    down, keys across; ``words``: K patches for each of Q words; ``picture``: K patches, Q = 1: the
    CLS row, or the mean of all rows. side: patches to a side, else 0. kinds: names of all kinds;
    kind_words: in words. pictures: uint8 (P, C, height, width), or None. glosses: of target tokens.
    language: of the words that are read, as in ``en``, or None. truth: the cells of a map, row and
    column, where the true alignment is. telling: the heads that show most at the last snapshot, as
    numbers row by row, the best first.
    """

    kind: str | None
    kinds: tuple[str, ...]
    example: int
    n_attended: int
    examples: tuple[Shown, ...]
    frames: tuple[Shown, ...]
    surface: Surface
    maps: MapView | None = None
    side: int = 0
    pictures: Array | None = None
    has_cls: bool = False
    kind_words: tuple[AttentionKind, ...] = ()
    glosses: Glosses | None = None
    language: str | None = None
    truth: tuple[tuple[int, int], ...] = ()
    telling: tuple[int, ...] = ()

    @property
    def weights(self) -> Array | None:
        """Return the weights as drawn: NaN where the mask forbids."""
        return None if self.maps is None else self.maps.seen()

    @property
    def steps(self) -> tuple[int, ...]:
        """Return the steps of the frames, ascending."""
        return tuple(frame["step"] for frame in self.frames)


def read_stage(
    run: Run,
    kind: str | None = None,
    example: int | None = None,
    steps: Sequence[int] | None = None,
) -> Stage:
    """Return the stage of a run as it is now; unknown choices fall back to the first.

    steps: of the snapshots, by default all; damaged ones are left out. Raises StudentError without
    a readable probe.
    """
    experiment, probe = run.experiment, run.probe()
    kinds = tuple(sorted(modules_by_kind(experiment), key=lambda name: name not in _FIRST_KINDS))
    words = tuple(kinds_of(experiment)[name] for name in kinds)
    n_attended = len(probe.attended)
    chosen = kind if kind in kinds else next(iter(kinds), None)
    index = example if example is not None and 0 <= example < n_attended else _telling(probe)
    frames: list[Shown] = []
    views: list[MapView] = []
    for step in run.snapshot_steps() if steps is None else steps:
        try:
            frame, view = _frame(run, probe, step, chosen, index)
        except ValueError:
            continue  # damaged: reported where that step is opened
        if views and (view is None or view.weights.shape != views[0].weights.shape):
            continue
        frames.append(frame)
        if view is not None:
            views.append(view)
    examples = tuple(_shown(experiment, item) for item in probe.items)
    surface: Surface = "none"
    if chosen is not None and views:
        surface = _SURFACES.get(chosen, "map")
    return Stage(
        kind=chosen,
        kinds=kinds,
        example=index,
        n_attended=n_attended,
        examples=examples,
        frames=tuple(frames),
        surface=surface,
        maps=_together(views) if surface != "none" else None,
        side=patches_per_side(experiment) if surface in ("picture", "words") else 0,
        pictures=probe.images,
        has_cls=experiment.has_cls and surface != "none",
        kind_words=words,
        glosses=glosses_of(experiment),
        language=language_of(experiment),
        truth=_truth(experiment, probe, index, chosen) if chosen and surface == "map" else (),
        telling=telling_heads(run, frames[-1]["step"], chosen) if views and chosen else (),
    )


def _telling(probe: Probe) -> int:
    """Return the example to begin with: the first, or the longest text to continue."""
    items = probe.attended
    if not items or not is_language(items[0]):
        return 0
    return max(range(len(items)), key=lambda index: len(items[index]["tgt"]))


def _truth(
    experiment: Experiment, probe: Probe, index: int, kind: str
) -> tuple[tuple[int, int], ...]:
    """Return the cells of the true alignment on the maps of a kind; none where it is unknown."""
    module = modules_by_kind(experiment)[kind][0]
    try:
        cells = np.argwhere(truth_on_map(experiment, probe.items[index], module))
    except StudentError:
        return ()
    return tuple((int(row), int(column)) for row, column in cells)


def _together(views: Sequence[MapView]) -> MapView:
    """Return the maps (F, L, H, Q, K) of all snapshots; a mask may have changed between two."""
    masks = [view.may_attend for view in views if view.may_attend is not None]
    return replace(
        views[0],
        weights=np.stack([view.weights for view in views]),
        may_attend=np.stack(masks) if masks else None,
    )


def _frame(
    run: Run, probe: Probe, step: int, kind: str | None, index: int
) -> tuple[Shown, MapView | None]:
    """Return what a snapshot shows, cached. Raises ValueError."""
    snapshot = run.snapshot(step)
    frame = {"step": step, "answers": _answers(run, step), "labels": ()}
    modules = [] if kind is None else modules_by_kind(run.experiment)[kind]
    if kind is None or any(module not in snapshot.attention for module in modules):
        return frame, None
    example = example_of(run.experiment, probe, snapshot, index)
    view = map_view(run.experiment, example, kind=kind)
    if kind == "patches":
        cls = CLS in view.key
        view = replace(
            view,
            weights=over_picture(view.weights, has_cls=cls),
            may_attend=None,
            query=(),
            query_words=(),
            key=view.key[cls:],
        )
    rows = heads.rows_of_kind(run.experiment, heads.rows_of_step(run, step), kind)
    return {**frame, "labels": tuple(row["short"] for row in rows)}, view


def over_picture(maps: Array, *, has_cls: bool) -> Array:
    """Return (L, H, 1, patches) of (L, H, Q, K): the row of CLS, or else the mean of all rows."""
    if has_cls:
        return np.asarray(maps[:, :, :1, 1:])
    return np.asarray(maps.astype(np.float32).mean(2, keepdims=True).astype(np.float16))


@cached_by_snapshot
def _answers(run: Run, step: int) -> tuple[Shown, ...]:
    probe, snapshot = run.probe(), run.snapshot(step)
    return tuple(_answer(run.experiment, probe, snapshot, n) for n in range(len(probe.items)))


def _answer(experiment: Experiment, probe: Probe, snapshot: Snapshot, index: int) -> Shown:
    item = probe.items[index]
    answer: Shown = {"tokens": (), "sure": [], "classes": [], "right": None}
    if snapshot.probabilities is not None:
        names = experiment.task.class_names
        row = np.asarray(snapshot.probabilities[index], np.float32)
        best = [int(number) for number in np.argsort(-row, kind="stable")[:MAX_CLASSES]]
        label = item.get("label")
        classes = [[names[number], round(float(row[number]), 4)] for number in best]
        return {**answer, "classes": classes, "right": None if label is None else best[0] == label}
    if snapshot.tokens is None:
        return answer
    tokens = tuple(snapshot.tokens[index])
    sure = [] if snapshot.confidence is None else snapshot.confidence[index][: len(tokens)]
    right = items.is_right(experiment, item, tokens)
    rounded = [round(float(share), 3) for share in sure]
    return {**answer, "tokens": tokens, "sure": rounded, "right": right}


def _shown(experiment: Experiment, item: Mapping[str, Any]) -> Shown:
    if experiment.task.class_names:
        label = item.get("label")
        name = "" if label is None else experiment.task.class_names[label]
        return {"source": "", "truth": name, "tokens": ()}
    tokens = () if is_language(item) else tuple(item["tgt"])
    if not experiment.task.has_model:
        tokens = tuple(item["tgt_text"].split())
    return {"source": item.get("src_text", ""), "truth": item["tgt_text"], "tokens": tokens}
