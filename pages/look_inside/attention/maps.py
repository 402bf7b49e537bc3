"""What of a model's attention is shown: all heads as small maps, one of them as a map and lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import streamlit as st

from pages.app import show, state
from pages.app.address import view
from pages.app.address.parameters import Choice, Number
from pages.app.model import answer
from pages.app.navigation import head
from pages.app.runs import runs_access
from pages.app.typed import escape
from pages.components import live_figure
from pages.components.heads import (
    Frame,
    GridStyle,
    OverPicture,
    SnapshotAnimation,
    head_grid,
    head_lines,
    single_frame,
)
from pages.i18n import N_, _
from tfm_core.choices.config import Experiment
from tfm_core.inspect.attention import alignment, heads
from tfm_core.inspect.attention.alignment import clearest_row
from tfm_core.inspect.attention.example import Example, example_of
from tfm_core.inspect.attention.heads import Row
from tfm_core.inspect.attention.maps import MapView, first_heads, map_view
from tfm_core.plots.heads import attention as plots
from tfm_core.plots.heads.attention import MANY_KEYS, outline_cells
from tfm_core.plots.palette import COLOURS, ORANGE, VERMILION
from tfm_core.probe.labels import (
    CLS,
    KINDS,
    AttentionKind,
    MapAxes,
    RowNames,
    axes,
    kinds_of,
    modules_by_kind,
)
from tfm_core.probe.types import Probe
from tfm_core.runs.run import Run

SCOPE = "attention"
MEAN = "mean"
OF_PICTURES = ("patches", "picture")  # kinds of attention with small weights
ARITHMETIC = "arithmetic"
QUESTIONS = {
    ARITHMETIC: N_("Arithmetic"),
    "answer": N_("Answer by token"),
    "compare": N_("Compare"),
    "heads": N_("What heads do"),
    "alignment": N_("Which head aligns"),
    "rollout": N_("Rollout"),
    "explain": N_("Explanations"),
    "positions": N_("Positions"),
    "take": N_("Export"),
}
KIND_COLOURS = {
    "encoder": "encoder",
    "slots": "encoder",
    "patches": "encoder",
    "cross": "cross",
    "picture": "cross",
}
MAX_ROWS = 64
HIGHEST = 430  # pixels of a map: it fits the first screen
MAX_VALUES = 2_000_000  # of a whole animation: 4 MB of float16
MAX_POINTS = 200  # of the curve above it
PLACE = "([1-9][0-9]{0,3})"  # a position in a link, from 1
_MAX = 98  # layers and heads that a link may name, less one; a run has its own number of each


def _stretch(first: str, last: str) -> tuple[int, int] | None:
    return (int(first) - 1, int(last)) if int(first) <= int(last) else None


def _number_field(count: int = _MAX + 1, first: int = 0, of: str = "") -> Any:
    """Keep a layer or a head, which counts from 1 in the link and from 0 here."""
    high = max(count - 1, 0)
    number = Number("", low=0, high=high, first=min(first, high), offset=1, always_in_url=True)
    return view.held(number, of=of)


def _rows_field(kind: AttentionKind | None = None) -> Any:
    """Offer what the rows of a kind of attention are called by."""
    return view.choice(
        N_("Name rows by"),
        {"written": N_("the token written"), "read": N_("the token read")},
        "written" if kind is not None and kind.is_named_by_written else "read",
        help=N_("Each row reads one token and writes the next."),
        of="" if kind is None else kind.name,
        when=lambda _chosen: kind is not None and bool(kind.written),
    )


def _patch_field(names: tuple[str, ...] = ()) -> Any:
    choice = Choice("", names=names, first=names[0] if names else "")
    return view.held(choice, when=lambda chosen: chosen.kind == "patches")


@dataclass(frozen=True)
class Chosen:
    """What is shown of an example.

    cell: query and key of the arithmetic. pin: side, "q" or "k", and number of the pinned token.
    patch: whose attention is drawn over a picture. deeper: the question that is answered below.
    tokens: the stretch of a text that maps show, the second behind its end.
    """

    kind: str = view.choice(N_("Attention"), {}, "", always_in_url=True)
    layer: int = _number_field()
    head: int = _number_field()
    rows: str = _rows_field()
    small: str = view.choice(
        N_("Small maps"),
        {"picture": N_("over the picture"), "matrix": N_("patch by patch")},
        when=lambda chosen: chosen.kind == "patches",
    )
    patch: str = _patch_field()
    deeper: str = view.held(Choice("", names=tuple(QUESTIONS), first=""))
    cell: tuple[int, int] | None = view.written(
        f"{PLACE},{PLACE}",
        N_("two positions, such as 3,5"),
        lambda query, key: (int(query) - 1, int(key) - 1),
        lambda cell: f"{cell[0] + 1},{cell[1] + 1}",
    )
    pin: tuple[str, int] | None = view.written(
        f"([qk]){PLACE}",
        N_("q or k and a position, such as q3"),
        lambda side, place: (side, int(place) - 1),
        lambda pin: f"{pin[0]}{pin[1] + 1}",
    )
    tokens: tuple[int, int] | None = view.written(
        f"{PLACE}-{PLACE}",
        N_("two positions, such as 5-30"),
        _stretch,
        lambda tokens: f"{tokens[0] + 1}-{tokens[1]}",
        when=lambda chosen: chosen.kind not in OF_PICTURES,
    )


@dataclass(frozen=True)
class PatchByPatch:
    """How the attention of patches is drawn beside the picture."""

    view: str = view.choice(
        N_("Patch by patch"),
        {"map": N_("Map"), "lines": N_("Lines")},
        look={"label_visibility": "collapsed"},
    )


def ask(run: Run) -> Chosen:
    """Ask which attention is shown, and how."""
    of_kinds = modules_of(run)
    kinds, n_heads = kinds_of(run.experiment), run.experiment.model.n_heads
    linked = [view.fields(Chosen, SCOPE)[name].parameter for name in ("layer", "head")]
    is_linked = any(view.new_value(parameter) is not None for parameter in linked)
    best = {} if is_linked else first_heads(run)
    first = next(iter(of_kinds))
    kind = view.held(Choice("", names=(first,), first=first, always_in_url=True))
    if len(of_kinds) > 1:
        names = {name: KINDS[name].short for name in of_kinds}
        kind = view.choice(N_("Attention"), names, first, always_in_url=True)

    def place(chosen: Any, which: int) -> Any:
        count = (len(of_kinds[chosen.kind]), n_heads)[which]
        return _number_field(count, best.get(chosen.kind, (0, 0))[which], f"{run.id}-{chosen.kind}")

    return view.ask(
        Chosen,
        SCOPE,
        kind=kind,
        layer=view.by(partial(place, which=0)),
        head=view.by(partial(place, which=1)),
        rows=view.by(lambda chosen: _rows_field(kinds[chosen.kind])),
        patch=_patch_field(patches_of(run)),
    )


def choose(**changes: Any) -> None:
    """Change what is shown."""
    view.put(SCOPE, **changes)


def open_head(run: Run, kind: str, layer: int, head: int) -> None:
    choose(**{"kind": kind, f"{run.id}-{kind}-layer": layer, f"{run.id}-{kind}-head": head})


def modules_of(run: Run) -> dict[str, list[str]]:
    """Return the modules of each kind of attention that can be shown, the most telling first."""
    of_kinds, steps = modules_by_kind(run.experiment), run.snapshot_steps()
    if steps and not run.experiment.task.has_model:  # a look may lack some
        seen = run.snapshot(steps[-1]).attention
        of_kinds = {kind: names for kind, names in of_kinds.items() if seen.keys() >= {*names}}
    first = {kind: of_kinds[kind] for kind in ("picture", "cross") if kind in of_kinds}
    return first | of_kinds


def patches_of(run: Run) -> tuple[str, ...]:
    """Return the patches of a model that reads pictures, and the mean of them."""
    modules = modules_by_kind(run.experiment).get("patches")
    if modules is None:
        return ()
    names = axes(run.experiment, {}, modules[0]).query
    return (*names, MEAN) if run.experiment.has_cls else (MEAN, *names)


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """An example as a model saw it, and what of its attention is shown.

    number: of the example among the run's; None for one of the visitor's own. top: the weight of
    the darkest colour; None for the largest of each map. film: its maps at every snapshot.
    """

    run: Run
    probe: Probe
    number: int | None
    example: Example
    chosen: Chosen
    top: float | None
    film: Film | None

    @property
    def experiment(self) -> Experiment:
        return self.run.experiment

    @property
    def kind(self) -> AttentionKind:
        return kinds_of(self.experiment)[self.chosen.kind]

    @property
    def modules(self) -> list[str]:
        return modules_by_kind(self.experiment)[self.chosen.kind]

    @property
    def module(self) -> str:
        return self.modules[self.chosen.layer]

    @property
    def rows_by(self) -> RowNames:
        return cast("RowNames", self.chosen.rows)

    @property
    def names(self) -> MapAxes:
        return axes(self.experiment, self.example.item, self.module)

    @property
    def step(self) -> int:
        """The step of the example's maps; of one's own, the last that the run kept."""
        steps = self.run.snapshot_steps()
        return self.example.step if self.number is not None else max(steps, default=0)

    @property
    def film_name(self) -> str:
        return "" if self.film is None else self.film.animation.name

    @property
    def examples(self) -> tuple[Example, ...]:
        """The example at every step of the film."""
        return (self.example,) if self.film is None else self.film.examples

    def all_heads(self, *, by: RowNames | None = None, is_whole: bool = False) -> MapView:
        """Return all heads of the chosen attention. is_whole: not only the chosen stretch."""
        all_heads = map_view(
            self.experiment,
            self.example,
            kind=self.chosen.kind,
            by=by or self.rows_by,
            say=_,
            glosses=answer.glosses_of_run(self.experiment),
        )
        return all_heads.part(None if is_whole else self.chosen.tokens)

    def head(self, *, by: RowNames | None = None, is_whole: bool = False) -> MapView:
        """Return the chosen head."""
        all_heads = self.all_heads(by=by, is_whole=is_whole)
        return all_heads.head(self.chosen.layer, self.chosen.head)

    def labels(self) -> list[Row]:
        """Return what each head does, a row a head."""
        if self.number is None:
            rows = heads.rows_of_example(self.experiment, self.example)
        else:
            rows = heads.rows_of_step(self.run, self.example.step)
        return heads.rows_of_kind(self.experiment, rows, self.chosen.kind)


class Film(NamedTuple):
    """Maps of every snapshot, and the example and what each head does at each."""

    animation: SnapshotAnimation
    examples: tuple[Example, ...]
    labels: tuple[list[Row], ...]


def film_of(run: Run, probe: Probe, kind: str, number: int, step: int) -> Film | None:
    """Return the film of an example; None where there is none or it is too large."""
    steps, experiment = run.snapshot_steps(), run.experiment
    modules = modules_by_kind(experiment)[kind]
    n_cells = math.prod(axes(experiment, probe.items[number], modules[0]).shape)
    n_values = len(steps) * len(modules) * experiment.model.n_heads * n_cells
    if len(steps) < 2 or n_values > MAX_VALUES:
        return None
    examples, maps = [], []
    for moment in steps:
        try:
            example = example_of(experiment, probe, run.snapshot(moment), number)
            maps.append(example.maps(modules))
        except ValueError:
            continue  # the page reports the problem when that step is chosen
        examples.append(example)
    if step not in [example.step for example in examples]:
        return None
    labels = [
        heads.rows_of_kind(experiment, heads.rows_of_step(run, example.step), kind)
        for example in examples
    ]
    frames = [
        _frame_of(experiment, example, _short(rows))
        for example, rows in zip(examples, labels, strict=True)
    ]
    name = f"{run.id} {kind} {number}"
    animation = SnapshotAnimation(name, frames, np.stack(maps), _curve(run))
    return Film(animation, tuple(examples), tuple(labels))


def _short(rows: Sequence[Row]) -> tuple[str, ...]:
    return tuple(_(row["short"]) for row in rows)


def _frame_of(experiment: Experiment, example: Example, labels: tuple[str, ...]) -> Frame:
    if example.probabilities is not None:
        best, label = int(example.probabilities.argmax()), example.item.get("label")
        share = show.percent(float(example.probabilities[best]))
        answer = _("{name}, with {share}", name=experiment.task.class_names[best], share=share)
        return Frame(example.step, answer, None if label is None else best == label, labels)
    is_right = None
    if example.answer is not None and experiment.task.facts.answer != "text":
        is_right = tuple(example.answer) == tuple(example.item["tgt"])
    return Frame(example.step, example.answer_text, is_right, labels)


def _curve(run: Run) -> tuple[list[int], list[float], str, str] | None:
    """Return the training loss, its points as dense at the start as the snapshots are."""
    points = runs_access.curves(run).steps
    steps, loss = np.asarray(points["step"]), np.asarray(points["loss"])
    steps, loss = steps[np.isfinite(loss)], loss[np.isfinite(loss)]
    if len(steps) < 2:
        return None
    dense = np.unique(np.geomspace(1, len(steps), MAX_POINTS).astype(int) - 1)
    values = [round(float(value), 4) for value in loss[dense]]
    return steps[dense].tolist(), values, _("Training loss"), COLOURS["train"]


def stretch_picker(shown: Shown) -> None:
    """Choose which tokens of a long text the maps show."""
    n = max(shown.names.shape)
    if n < MANY_KEYS or shown.chosen.kind in OF_PICTURES:
        return
    key = "attention-stretch"
    first, end = shown.chosen.tokens or (0, n)
    st.session_state[key] = (first + 1, min(end, n)) if first < n else (1, n)

    def picked() -> None:
        low, high = st.session_state[key]
        choose(tokens=None if (low, high) == (1, n) else (low - 1, high))

    st.slider(_("Tokens"), 1, n, key=key, on_change=picked, width=480)


def grid(shown: Shown, *, dim: list[bool]) -> None:
    """Show all heads of the chosen attention; a click picks one. dim: the heads to fade."""
    run, kind, steps = shown.run, shown.chosen.kind, shown.run.snapshot_steps()
    labels, title = shown.labels(), _("All heads: {kind}", kind=_(shown.kind.label))
    head_grid(
        shown.all_heads(),
        replace(grid_style(shown), dim=dim, title=title),
        on_pick=lambda layer, head: open_head(run, kind, layer, head),
        key="attention-heads",
        on_step=lambda step: head.go_to(step, steps),
    )
    st.caption(_("Click a head to see it large. {look_for}", look_for=_(shown.kind.look_for)))
    n = labels[0]["n_examples"] if labels else 0
    if n > 1:
        st.caption(_("Labels are means over {n} examples.", n=n))


def grid_style(shown: Shown, *, is_whole: bool = False) -> GridStyle:
    """Return how all heads are drawn."""
    all_heads = shown.all_heads(is_whole=is_whole)
    animation = single_frame(all_heads.weights, shown.example.step, _short(shown.labels()))
    if shown.film is not None:
        film = shown.film.animation
        animation = replace(film, weights=all_heads.cut(film.weights))
    return GridStyle(
        chosen=(shown.chosen.layer, shown.chosen.head),
        theme=state.theme(),
        top=shown.top,
        animation=animation,
        step=shown.example.step,
        over=_over_picture(shown),
    )


def _over_picture(shown: Shown) -> OverPicture | None:
    """Return the picture that the small maps are drawn over; None for matrices."""
    patch, picture = shown.chosen.patch, shown.example.picture
    if shown.chosen.kind != "patches" or shown.chosen.small == "matrix" or picture is None:
        return None
    row, who = None, _("mean of all patches")
    if patch != MEAN:
        row = shown.names.query.index(patch)
        who = _("read by CLS") if patch == CLS else _("read by patch {patch}", patch=patch)
    return OverPicture(picture, row, int(shown.experiment.has_cls), who)


def can_compute(run: Run) -> bool:
    """Return whether the arithmetic of a map is known, from the model or from what a look kept."""
    return run.experiment.task.has_model or run.experiment.task.name == "look"


def one_map(shown: Shown) -> None:
    """Show the chosen head as a map; a click or Enter on a cell opens its arithmetic."""
    matrix = shown.head()
    is_computed = can_compute(shown.run)
    figure = plots.head_map(matrix, top=shown.top)
    try:
        cells = alignment.truth_on_map(shown.experiment, shown.example.item, shown.module)
    except ValueError:  # nobody knows them
        cells = np.zeros(shown.names.shape, np.bool_)
    truth = matrix.cut(cells)
    outline_cells(figure, truth, ORANGE)
    _explanation(matrix, truth, shown.chosen.kind)
    if is_computed and shown.chosen.deeper == ARITHMETIC:
        cells = np.zeros(shown.names.shape, np.bool_)
        cells[cell_of(shown)] = True
        outline_cells(figure, matrix.cut(cells), VERMILION, 3)
    figure.update_layout(
        uirevision=f"{shown.chosen.kind} {matrix.query} {matrix.key}",
        height=min(figure.layout.height, HIGHEST),
    )
    rows_before, keys_before = matrix.first

    def picked(query: int, key: int) -> None:
        choose(cell=(query + rows_before, key + keys_before), deeper=ARITHMETIC)

    name = _("Map of the head: arrow keys move, Enter computes a cell")
    live_figure.live_figure(
        figure,
        key="attention-map",
        follows=True,
        on_pick=picked if is_computed else None,
        name=name if is_computed else _("Map of the head"),
    )
    if is_computed:
        st.caption(_("Click a cell to compute it."))


def cell_of(shown: Shown) -> tuple[int, int]:
    """Return the chosen cell, else the strongest of the head."""
    if shown.chosen.cell is not None:
        query, key = shown.chosen.cell
        return min(query, len(shown.names.query) - 1), min(key, len(shown.names.key) - 1)
    weights = shown.example.attention[shown.module][shown.chosen.head]
    row, column = np.unravel_index(int(weights.argmax()), weights.shape)
    return int(row), int(column)


def _explanation(matrix: MapView, truth: npt.NDArray[np.bool_], kind: str) -> None:
    """Say in words what the frames mean and what the clearest row of the map reads."""
    sentences = []
    if truth.any():
        sentences.append(
            _("Orange frames mark the digit that the word names.")
            if kind == "picture"
            else _("Orange frames mark the true source of each token.")
        )
    row = clearest_row(matrix.weights, matrix.allowed, truth)
    if row is not None:
        best = int(matrix.weights[row].argmax())
        cells = [name.split(",") for name in (matrix.query[row], matrix.key[best])]
        if all(len(place) == 2 and all(map(str.isdigit, place)) for place in cells):
            sentence = _(
                "The patch in row {row}, column {column} looks most at row {to_row}, column "
                "{to_column} ({weight}).",
                row=cells[0][0],
                column=cells[0][1],
                to_row=cells[1][0],
                to_column=cells[1][1],
                weight=f"{matrix.weights[row, best]:.2f}",
            )
        else:
            sentence = _("For example, row {reading}.", reading=in_words(matrix, [row])[0])
        sentences.append(sentence)
    if sentences:
        st.caption(" ".join(sentences))


def in_words(matrix: MapView, rows: Iterable[int]) -> list[str]:
    """Return a sentence for each of some rows, safe in Markdown."""
    best = np.asarray(matrix.weights).argmax(-1)
    return [
        _(
            "{query}; reads “{key}” ({place}) most, {weight}",
            query=escape(matrix.query_words[i]),
            key=escape(matrix.key[best[i]]),
            place=best[i] + 1 + matrix.first[1],
            weight=f"{matrix.weights[i, best[i]]:.3f}",
        )
        for i in rows
    ]


def list_in_words(shown: Shown) -> None:
    """Offer the map of the head as a list: each query and the key that it reads most."""
    matrix = shown.head()
    n = len(matrix.query_words)
    with st.expander(_("This map in words"), icon=":material/text_fields:"):
        rows = in_words(matrix, range(min(n, MAX_ROWS)))
        st.markdown("\n".join(f"- {line}" for line in rows))
        if n > MAX_ROWS:
            st.caption(_("The first {n} of {all} rows; “Export” has them all.", n=MAX_ROWS, all=n))


def as_lines(shown: Shown) -> None:
    """Show the chosen head as lines from keys to queries: the thicker, the more weight."""
    head_lines(
        shown.head(),
        ink=COLOURS[KIND_COLOURS.get(shown.chosen.kind, "decoder")],
        pin=shown.chosen.pin,
        on_pin=lambda pin: choose(pin=pin),
        key="attention-lines",
    )


def patch_by_patch(shown: Shown) -> None:
    if view.ask(PatchByPatch, SCOPE).view == "lines":
        as_lines(shown)
    else:
        one_map(shown)
