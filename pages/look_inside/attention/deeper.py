"""What is asked of the maps: what heads do, which aligns, how two differ, and files to take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.address import view
from pages.app.runs import run_words, runs_access
from pages.app.typed import escape
from pages.components.buttons import svg_as_png
from pages.components.heads import pack_grid, pack_lines, standalone
from pages.i18n import N_, _, language, paragraph, speaking
from pages.look_inside.attention.maps import (
    OF_PICTURES,
    SCOPE,
    Shown,
    choose,
    grid_style,
    modules_of,
    open_head,
    written,
)
from tfm_core import byte_cache
from tfm_core.data.own.sets import set_of
from tfm_core.inspect.attention import alignment, head_statistics
from tfm_core.inspect.attention.comparison import check_same_tokens, compare, nearest, same_example
from tfm_core.inspect.attention.example import Example, example_of
from tfm_core.inspect.attention.head_roles import ROLES
from tfm_core.inspect.attention.trained import checkpoint_mark
from tfm_core.plots import export
from tfm_core.plots.heads.attention import difference_map, head_map
from tfm_core.plots.heads.head_scores import score_lines
from tfm_core.plots.palette import COLOURS
from tfm_core.probe.labels import KINDS, axes, modules_by_kind, written_tokens
from tfm_core.runs.record.snapshots import snapshot_path
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound
from tfm_core.sentences import StudentError

if TYPE_CHECKING:
    from streamlit.elements.lib.column_types import ColumnConfig

    from tfm_core.inspect.attention.validation import ValidationFigures

_FIGURE, _MIN, _ALL = "attention-filter", "attention-least", "attention-all-kinds"
_TABLE, _ALIGNED = "attention-heads-table", "attention-alignment-table"


def faded(shown: Shown) -> list[bool]:
    """Return which of all heads the filter of their table fades."""
    name, least = st.session_state.get(_FIGURE), st.session_state.get(_MIN, 0.0)
    if not name or not least or shown.chosen.deeper != "heads":
        return []
    try:
        frame = head_statistics.table(shown.experiment, measures(shown.run, shown.step)[0])
    except ValueError:
        return []
    if name not in frame:
        return []
    here = frame[frame["module"].isin(shown.modules)].sort_values(["layer", "head"])
    return [not value >= least for value in here[name]]


def measures(run: Run, step: int) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return statistics and alignment scores, maybe none, on the run's examples, by module.

    Raises ValueError.
    """
    run.snapshot(step)  # raises what is wrong with it
    changed = snapshot_path(run.folder, step).stat().st_mtime_ns
    of_step = head_statistics.of_step(run.folder, step, changed)
    return of_step, alignment.of_step(run.folder, step, changed)


def heads(shown: Shown) -> None:
    """Show the figures of the heads; a chosen row opens its head."""
    run, kind = shown.run, shown.chosen.kind
    try:
        statistics, scores, words = _measured(run, shown.step)
    except ValueError as error:
        show.problem(error)
        return
    frame = head_statistics.table(shown.experiment, statistics, scores)
    of_kind = frame[frame["kind"] == kind]
    names = [name for name in ("evenness", *ROLES) if name in of_kind]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            _("Show heads with a high share of"),
            [name for name in names if of_kind[name].notna().any()],
            index=None,
            format_func=lambda name: (
                _("even spread") if name == "evenness" else _(ROLES[name].label)
            ),
            key=_FIGURE,
            placeholder=_("all heads"),
            width=320,
        )
        if st.session_state.get(_FIGURE):
            st.slider(_("at least"), 0.0, 1.0, 0.5, 0.05, key=_MIN, width=260)
        if frame["kind"].nunique() > 1:
            st.toggle(_("All kinds of attention"), key=_ALL)
    if not st.session_state.get(_ALL) and len(modules_of(run)) > 1:
        frame = of_kind
    frame = frame.dropna(axis=1, how="all").reset_index(drop=True)
    repeated = ["module", "kind"] if frame["kind"].nunique() == 1 else ["module"]  # above, already
    st.dataframe(
        frame.drop(columns=repeated)
        .assign(label=frame["label"].map(_))
        .replace({"kind": {name: _(each.label) for name, each in KINDS.items()}}),
        key=_TABLE,
        hide_index=True,
        on_select=partial(_open_picked, run, frame, _TABLE),
        selection_mode="single-row",
        height=min(460, 38 + 35 * max(1, len(frame))),
        column_config=_columns(next(iter(statistics.values())).unit),
    )
    st.caption(words)


def _open_picked(run: Run, frame: pd.DataFrame, key: str) -> None:
    """Open the head of the row that was picked in a table of heads. key: of the table."""
    rows = st.session_state[key].selection.rows
    if rows and rows[0] < len(frame):
        row = frame.iloc[rows[0]]
        open_head(run, row["kind"], int(row["layer"]) - 1, int(row["head"]) - 1)


def _measured(run: Run, step: int) -> tuple[Mapping[str, Any], Mapping[str, Any], str]:
    """Return statistics, alignment scores, and a sentence on where they were measured.

    Raises ValueError.
    """
    if run.has_checkpoint and st.toggle(
        _("Use the validation set"),
        key="attention-validation",
        help=_("Up to 1,000 validation examples, last checkpoint."),
    ):
        with st.spinner(_("Reading the validation set …")):
            figures = _over_validation(run.folder, checkpoint_mark(run))
        words = paragraph(
            "attention/heads-validation",
            n=f"{figures.n_examples:,}",
            all=f"{figures.n_all:,}",
            step=f"{figures.step:,}",
        )
        return figures.statistics, figures.alignment, words
    statistics, scores = measures(run, step)
    n_examples = next(iter(statistics.values())).n_examples
    words = paragraph("attention/heads-examples", n=n_examples, step=f"{step:,}")
    return statistics, scores, words


@lru_cache(maxsize=8)
def _over_validation(folder: Path, mark: int) -> ValidationFigures:
    from tfm_core.inspect.attention.validation import measured_over_validation

    return measured_over_validation(Run(folder))


def _columns(unit: str = "") -> dict[str, ColumnConfig | str | None]:
    """Return what the columns of a table of heads are called. unit: of distances."""
    number = st.column_config.NumberColumn
    share = partial(st.column_config.ProgressColumn, format="percent", min_value=0, max_value=1)
    return {
        "kind": _("Attention"),
        "layer": number(_("Layer"), width="small"),
        "head": number(_("Head"), width="small"),
        "label": st.column_config.TextColumn(_("What it does"), width="large"),
        "aligned": share(_("On the true source")),
        "aer": None,
        "entropy": number(
            _("Entropy (nats)"), format="%.2f", help=_("0: one key per query; log n: about n keys.")
        ),
        "evenness": share(_("Even spread"), help=_("100%: reads everything equally.")),
        "distance": number(
            _("Distance ({unit})", unit=unit),
            format="%.2f",
            help=_("Mean distance from query to key."),
        ),
        **{
            name: share(_(role.label).capitalize(), help=_(role.help))
            for name, role in ROLES.items()
        },
    }


def aligning(shown: Shown) -> None:
    """Show the score of every head over the training, and name the one that learned to align."""
    run = shown.run
    scores = _scores(run.folder, tuple(run.snapshot_steps()))
    best = alignment.best_head(scores, shown.step)
    if best is None:
        show.problem(_("The heads of this step cannot be scored."))
        return
    head = str(best["module"]), int(best["head"]) - 1
    aligned = alignment.aligned(scores, shown.step)
    st.markdown(_verdict(best, alignment.formed_at(scores, *head), aligned))
    left, right = st.columns([5, 4], gap="medium")
    with left:
        show.figure(
            score_lines(scores, chosen=head, at_step=shown.step),
            _("Attention on the true source; dotted: even attention."),
            key="attention-alignment",
        )
    with right:
        frame = scores[scores["step"] == shown.step]
        frame = frame.sort_values("share", ascending=False).reset_index(drop=True)
        help = _("Alignment error rate (Och & Ney 2003); 0: every row’s strongest cell is true.")
        rate = st.column_config.NumberColumn(_("Error rate"), format="%.3f", help=help)
        known = _columns()
        st.dataframe(
            frame[["layer", "head", "share", "aer"]],
            key=_ALIGNED,
            hide_index=True,
            on_select=partial(_open_picked, run, frame, _ALIGNED),
            selection_mode="single-row",
            height=min(340, 38 + 35 * max(1, len(frame))),
            column_config={**known, "share": known["aligned"], "aer": rate},
        )
        st.caption(_("Click beside a row to open that head."))
    if run.experiment.model.family == "decoder-only":
        st.caption(paragraph("attention/single-sequence"))


@byte_cache.cached
def _scores(folder: Path, steps: tuple[int, ...]) -> pd.DataFrame:
    """Return the scores at every snapshot. The steps are in the key: a live run gets new ones."""
    return alignment.score_over_training(Run(folder))


def _verdict(best: pd.Series[Any], formed: int | None, aligned: alignment.Aligned) -> str:
    values = {
        "layer": best["layer"],
        "head": best["head"],
        "share": show.percent(best["share"]),
        "aer": f"{best['aer']:.3f}",
    }
    if not aligned.n:
        return paragraph("attention/no-head-aligns", **values)
    if aligned.n == 1:
        words, step = paragraph("attention/one-head-aligns", **values), formed
    else:
        values |= {
            "n": aligned.n,
            "n_heads": aligned.n_heads,
            "low": show.percent(aligned.least),
            "high": show.percent(aligned.most),
        }
        words = paragraph("attention/heads-align", **values)
        step = aligned.step if aligned.are_all else None
    if aligned.n_heads == 1 or step is None:
        return words
    return words + " " + _("Aligned from step {step} on.", step=f"{step:,}")


class Versus(NamedTuple):
    """Another head. layer and head: from 0. step, run: None for the same."""

    layer: int
    head: int
    step: int | None = None
    run: str | None = None


def _versus(of: str = "") -> Versus | None:
    return written(
        r"([1-9][0-9]{0,8})\.([1-9][0-9]{0,8})\.([0-9]{0,9})\.(.*)",
        N_("layer, head, step and run, such as 1.2.."),
        lambda layer, head, step, run: Versus(
            int(layer) - 1, int(head) - 1, int(step) if step else None, run or None
        ),
        lambda one: ".".join(
            (
                str(one.layer + 1),
                str(one.head + 1),
                "" if one.step is None else str(one.step),
                one.run or "",
            )
        ),
        of=of,
    )


@dataclass(frozen=True)
class Comparison:
    """What the shown head is compared with: at first the next head, or the first snapshot."""

    versus: tuple[int, int, int | None, str | None] | None = _versus()


def compared(shown: Shown) -> None:
    """Choose what to compare the shown head with; show both maps and their difference."""
    run, chosen = shown.run, shown.chosen
    asked = view.ask(Comparison, SCOPE, versus=_versus(run.id)).versus
    versus = None if asked is None else Versus(*asked)
    n_heads, steps = run.experiment.model.n_heads, run.snapshot_steps()
    if versus is None and n_heads > 1:
        versus = Versus(chosen.layer, (chosen.head + 1) % n_heads)
    elif versus is None:
        versus = Versus(chosen.layer, chosen.head, steps[0] if steps else None)
    try:
        other = run if versus.run is None else runs_access.open_run(versus.run)
        if other.problem:
            raise StudentError(other.problem)
        modules = modules_by_kind(other.experiment).get(chosen.kind)
        if modules is None:
            name = other.meta.name
            raise ValueError(
                _("The run “{name}” has no such attention; choose another run.", name=name)
            )
        layer = min(versus.layer, len(modules) - 1)
        versus = versus._replace(
            layer=layer, head=min(versus.head, other.experiment.model.n_heads - 1)
        )
        _pickers(shown, other, versus, len(modules))
        _side_by_side(shown, other, versus, modules[layer])
    except (ValueError, RunNotFound) as error:
        show.problem(error)


_SAME_RUN, _SAME_STEP = "", -1  # a select box shows None as nothing chosen


def _pickers(shown: Shown, other: Run, versus: Versus, n_layers: int) -> None:
    run, is_own = shown.run, shown.number is None
    runs = {_SAME_RUN: _("This run")} if is_own else same_task(run, other)
    steps = [] if is_own else other.snapshot_steps()
    same = _("The same step") if other.id == run.id else _("The nearest step")
    step = versus.step if versus.step in steps else _SAME_STEP
    offered: dict[str, tuple[str, list[Any], Any, Callable[[Any], str]]] = {
        "run": (_("Compare with"), list(runs), versus.run or _SAME_RUN, runs.__getitem__),
        "layer": (_("Layer"), list(range(n_layers)), versus.layer, lambda i: str(i + 1)),
        "head": (
            _("Head"),
            list(range(other.experiment.model.n_heads)),
            versus.head,
            lambda i: str(i + 1),
        ),
        "step": (
            _("Step"),
            [_SAME_STEP, *steps],
            step,
            lambda at: same if at == _SAME_STEP else f"{at:,}",
        ),
    }

    def change(name: str) -> None:
        value: Any = st.session_state[f"attention-versus-{name}"]
        values = {**versus._asdict(), name: None if value in (_SAME_RUN, _SAME_STEP) else value}
        choose(**{f"{run.id}-versus": Versus(**values)})

    columns = st.columns([3, 1, 1, 2], vertical_alignment="bottom")
    for column, (name, (label, options, value, words)) in zip(
        columns, offered.items(), strict=True
    ):
        key = f"attention-versus-{name}"
        st.session_state[key] = value
        column.selectbox(label, options, format_func=words, key=key, on_change=change, args=(name,))


def same_task(run: Run, chosen: Run) -> dict[str, str]:
    """Return the runs of the same task and data: id -> name, this one first."""
    names = {_SAME_RUN: _("This run")}
    task = run.experiment.task
    for other in [*visitors.at_hand(), chosen]:
        if other.problem or other.id == run.id:
            continue
        theirs = other.experiment.task
        if (theirs.kind, theirs.name, set_of(theirs)) == (task.kind, task.name, set_of(task)):
            names[other.id] = run_words.name(other)
    return names


def _side_by_side(shown: Shown, other: Run, versus: Versus, their_module: str) -> None:
    """Show both maps and their difference. Raises ValueError where tokens differ."""
    run, chosen, example = shown.run, shown.chosen, shown.example
    theirs = _seen_by(shown, other, versus)
    their_names = axes(other.experiment, theirs.item, their_module)
    check_same_tokens((shown.names.query, shown.names.key), (their_names.query, their_names.key))
    left = shown.head(is_whole=True)
    right = replace(
        left,
        weights=theirs.attention[their_module][versus.head],
        may_attend=theirs.masks[their_module],
    )
    both = compare(left.weights, right.weights, left.allowed | right.allowed)
    left, right = left.part(chosen.tokens), right.part(chosen.tokens)
    whose = "" if other.id == run.id else f": {escape(other.meta.name)}"
    top = None if chosen.kind in OF_PICTURES else 1.0
    figures = [
        (_place(chosen, example.step), head_map(left, theme=state.theme(), top=top)),
        (_place(versus, theirs.step) + whose, head_map(right, theme=state.theme(), top=top)),
        (
            _("Second minus first"),
            difference_map(left, right, state.theme(), names=(_("first"), _("second"))),
        ),
    ]
    figures[2][1].data[0].colorbar.title.text = ""  # no room; the caption says it
    columns = zip(st.columns(3), figures, strict=True)
    for i, (column, (title, figure)) in enumerate(columns):
        with column:
            st.markdown(f"**{title}**")
            figure.update_layout(height=min(400, figure.layout.height))
            show.figure(figure, "", key=f"attention-compare-{i}")
    moved, agreeing = show.percent(both.moved), show.percent(both.agreeing)
    show.prose(paragraph("attention/two-heads", moved=moved, agreeing=agreeing))


def _seen_by(shown: Shown, other: Run, versus: Versus) -> Example:
    """Return the same example as the other run saw it. Raises ValueError where it did not."""
    is_same, steps = other.id == shown.run.id, other.snapshot_steps()
    if is_same and versus.step is None:
        return shown.example
    if shown.number is None or not steps:
        raise ValueError(_("Your own example can be compared only within this run."))
    probe = shown.probe if is_same else other.probe()
    index = same_example(shown.probe, probe, shown.number)
    step = nearest(shown.example.step if versus.step is None else versus.step, steps)
    return example_of(other.experiment, probe, other.snapshot(step), index)


def _place(of: Any, step: int) -> str:
    return _(
        "Layer {layer}, head {head}, step {step}",
        layer=of.layer + 1,
        head=of.head + 1,
        step=f"{step:,}",
    )


def take(shown: Shown) -> None:
    """Offer the view as a picture, as a page that works offline, as numbers, as a link."""
    name = f"attention-{shown.chosen.kind}-step-{shown.example.step}"
    one = f"{name}-layer-{shown.chosen.layer + 1}-head-{shown.chosen.head + 1}"
    made = {what: partial(make, shown) for what, make in FILES.items()}
    left, middle, right = st.columns(3, gap="medium")
    with left:
        st.markdown(_("**All heads**"))
        help = _("All heads at every snapshot.")
        _download(_("Animation (HTML, offline)"), made["page"], f"{name}.html", help)
        help = _("One line per weight, for every head.")
        _download(_("Numbers (CSV)"), made["numbers"], f"{name}.csv", help)
        st.caption(_("For PNG and SVG, see below the grid."))
    with middle:
        st.markdown(_("**This head**"))
        help = _("The map with zoom and hover, offline, 4.5 MB.")
        _download(_("Interactive page"), made["map-page"], f"{one}.html", help)
        _download("SVG", made["map"], f"{one}.svg")
        svg_as_png(
            FILES["map"](shown).decode(),
            name=one,
            label="PNG",
            help_text=_("Twice the size, with a title."),
            key="attention-take-png",
        )
        help = _("One line per cell: tokens and weight.")
        _download(_("Numbers (CSV)"), made["map-numbers"], f"{one}.csv", help)
        st.caption(_("For PNG and SVG, see below the lines."))
    with right:
        st.markdown(_("**What heads do**"))
        _download(_("Figures (CSV)"), made["heads"], f"heads-step-{shown.step}.csv")
        st.markdown(_("**Link to this view**"))
        st.code(state.run_link(shown.run.id), language=None, wrap_lines=True)


_TYPES = {"html": "text/html", "csv": "text/csv", "svg": "image/svg+xml"}


def _download(label: str, make: Callable[[], bytes], name: str, help: str = "") -> None:
    spoken = language()

    def made() -> bytes:
        with speaking(spoken):  # it is made when it is asked for, outside of the session
            return make()

    ending = name.rpartition(".")[2]
    st.download_button(
        label,
        made,
        file_name=name,
        mime=_TYPES[ending],
        help=help or None,
        key=f"attention-take-{ending}-{label}-{'layer' in name}",
        icon=":material/download:",
        on_click="ignore",
        width="stretch",
    )


def _page(shown: Shown) -> bytes:
    """Return all heads, and the chosen one as lines, as a page that plays."""
    style = replace(grid_style(shown, is_whole=True), theme="light", says=True)
    place = {"layer": shown.chosen.layer + 1, "head": shown.chosen.head + 1}
    return standalone(
        pack_grid(shown.heads(is_whole=True), style),
        pack_lines(shown.head(is_whole=True), ink=COLOURS["cross"], pin=shown.chosen.pin),
        title=f"{_(shown.kind.label)}: {run_words.name(shown.run)}",
        words=f"{_(shown.kind.help)} {_(shown.kind.look_for)}",
        which=_("Layer {layer}, head {head}", **place),
        theme="light",
    )


def _map(shown: Shown) -> bytes:
    return export.map_svg(shown.head(is_whole=True), title=_title(shown), top=shown.top, say=_)


def _map_page(shown: Shown) -> bytes:
    figure, words = head_map(shown.head(is_whole=True), top=shown.top), _(shown.kind.look_for)
    return export.page(figure, title=_title(shown), words=words, language=language(), say=_)


def _map_numbers(shown: Shown) -> bytes:
    return export.csv(_cells(shown, [(shown.chosen.layer, shown.chosen.head)]).iloc[:, 2:])


def _numbers(shown: Shown) -> bytes:
    n_heads = shown.experiment.model.n_heads
    return export.csv(_cells(shown, list(np.ndindex(len(shown.modules), n_heads))))


def _cells(shown: Shown, heads: Sequence[tuple[int, ...]]) -> pd.DataFrame:
    """Return one row a cell of some heads, after its layer and its head, from 1."""
    all_heads = shown.heads(by="read", is_whole=True)
    written = written_tokens(shown.experiment, shown.example.item, shown.module)
    tables = []
    for layer, head in heads:
        table = export.map_table(all_heads.head(layer, head), written)
        table.insert(0, "head", head + 1)
        table.insert(0, "layer", layer + 1)
        tables.append(table)
    return pd.concat(tables)


def _figures(shown: Shown) -> bytes:
    table = head_statistics.table(shown.experiment, *measures(shown.run, shown.step))
    return export.csv(table)


FILES: Mapping[str, Callable[[Shown], bytes]] = {
    "page": _page,
    "numbers": _numbers,
    "map-page": _map_page,
    "map": _map,
    "map-numbers": _map_numbers,
    "heads": _figures,
}


def _title(shown: Shown) -> str:
    return _(
        "{run}: {kind}, layer {layer}, head {head}, step {step:,}",
        run=shown.run.meta.name,
        kind=_(shown.kind.label),
        layer=shown.chosen.layer + 1,
        head=shown.chosen.head + 1,
        step=shown.example.step,
    )
