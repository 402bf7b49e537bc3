"""What is asked of the maps: what heads do, which aligns, and how two differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
import streamlit as st

from pages.app import show
from pages.app.accounts import visitors
from pages.app.address import view
from pages.app.runs import run_words, runs_access
from pages.app.typed import escape
from pages.i18n import N_, _, paragraph
from pages.look_inside.attention.maps import (
    OF_PICTURES,
    SCOPE,
    Shown,
    choose,
    modules_of,
    open_head,
)
from tfm_core.data.user_data.sets import set_of
from tfm_core.inspect.attention import alignment
from tfm_core.inspect.attention import heads as head_table
from tfm_core.inspect.attention.example import Example, example_of, nearest, same_example
from tfm_core.inspect.attention.heads import ROLES
from tfm_core.inspect.attention.maps import (
    check_same_tokens,
    compare_maps,
)
from tfm_core.plots.heads.attention import difference_map, head_map, score_lines
from tfm_core.probe.labels import KINDS, axes, modules_by_kind
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound
from tfm_core.sentences import StudentError

if TYPE_CHECKING:
    from streamlit.elements.lib.column_types import ColumnConfig

_FIGURE = "attention-filter"
_MIN = "attention-least"
_ALL = "attention-all-kinds"
_TABLE = "attention-heads-table"
_ALIGNED = "attention-alignment-table"
_TALLEST = {_TABLE: 460, _ALIGNED: 340}  # pixels


def faded(shown: Shown) -> list[bool]:
    """Return which of all heads the filter of their table fades."""
    name, threshold = st.session_state.get(_FIGURE), st.session_state.get(_MIN, 0.0)
    if not name or not threshold or shown.chosen.deeper != "heads":
        return []
    try:
        figures = head_table.displayed(head_table.table_of_step(shown.run, shown.step))
    except ValueError:
        return []
    of_kind = figures[figures["kind"] == shown.chosen.kind]
    return [not value >= threshold for value in of_kind.get(name, ())]


def heads(shown: Shown) -> None:
    """Show the figures of the heads; a chosen row opens its head."""
    run, kind = shown.run, shown.chosen.kind
    try:
        measured, message = _head_table(run, shown.step)
    except ValueError as error:
        show.problem(error)
        return
    frame = head_table.displayed(measured)
    of_kind = frame[frame["kind"] == kind]
    names = [name for name in ("evenness", *ROLES) if name in of_kind]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            _("Show heads with a high share of"),
            [name for name in names if of_kind[name].notna().any()],
            index=None,
            format_func=lambda name: (
                _("even spread") if name == "evenness" else _(ROLES[name]["label"])
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
    worded = frame.assign(label=frame["label"].map(_)).replace(
        {"kind": {name: _(each.label) for name, each in KINDS.items()}}
    )
    _head_list(
        run, worded.drop(columns=repeated), frame, _TABLE, _columns(measured["unit"].iloc[0])
    )
    st.caption(message)


def _head_list(
    run: Run, shown: pd.DataFrame, frame: pd.DataFrame, key: str, columns: Mapping[str, Any]
) -> None:
    """Show a table of heads, of a row each in a frame; one that is picked opens its head."""

    def open_picked() -> None:
        rows = st.session_state[key].selection.rows
        if rows and rows[0] < len(frame):
            row = frame.iloc[rows[0]]
            open_head(run, row["kind"], int(row["layer"]) - 1, int(row["head"]) - 1)

    st.dataframe(
        shown,
        key=key,
        hide_index=True,
        on_select=open_picked,
        selection_mode="single-row",
        height=min(_TALLEST[key], 38 + 35 * max(1, len(frame))),
        column_config=columns,
    )


def _head_table(run: Run, step: int) -> tuple[pd.DataFrame, str]:
    """Return the table of the heads, and a sentence on where it was measured. Raises ValueError."""
    if run.has_checkpoint and st.toggle(
        _("Use the validation set"),
        key="attention-validation",
        help=_("Uses up to 1,000 validation examples and the last checkpoint."),
    ):
        with st.spinner(_("Reading the validation set …")):
            table = head_table.over_validation(run)
        n, n_all, last = table[["n_examples", "n_all", "step"]].iloc[0]
        message = paragraph(
            "attention/heads-validation", n=f"{n:,}", all=f"{n_all:,}", step=f"{last:,}"
        )
        return table, message
    table = head_table.table_of_step(run, step)
    n = table["n_examples"].iloc[0]
    return table, paragraph("attention/heads-examples", n=n, step=f"{step:,}")


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
            _("Entropy (nats)"),
            format="%.2f",
            help=_("0 means one key per query; log n means about n keys."),
        ),
        "evenness": share(_("Even spread"), help=_("100% means equal attention to all keys.")),
        "distance": number(
            _("Distance ({unit})", unit=unit),
            format="%.2f",
            help=_("Mean distance from query to key."),
        ),
        **{
            name: share(_(role["label"]).capitalize(), help=_(role.get("help")))
            for name, role in ROLES.items()
        },
    }


def aligning(shown: Shown) -> None:
    """Show the score of every head over the training, and name the one that learned to align."""
    run = shown.run
    scores = alignment.score_over_training(run)
    at_step = scores[scores["step"] == shown.step]
    best = alignment.best_head(at_step.to_dict("records"))
    if best is None:
        show.problem(_("The heads of this step cannot be scored."))
        return
    head = str(best["module"]), int(best["head"]) - 1
    st.markdown(_verdict(scores, best, len(at_step)))
    left, right = st.columns([5, 4], gap="medium")
    with left:
        show.figure(
            score_lines(scores, chosen=head, at_step=shown.step),
            _("Attention on the true source. The dotted line is even attention."),
            key="attention-alignment",
        )
    with right:
        frame = at_step.sort_values("share", ascending=False).reset_index(drop=True)
        help = _(
            "Alignment error rate (Och & Ney 2003). 0 means that every row’s strongest "
            "cell is true."
        )
        rate = st.column_config.NumberColumn(_("Error rate"), format="%.3f", help=help)
        names = _columns()
        columns = {**names, "share": names["aligned"], "aer": rate}
        _head_list(run, frame[["layer", "head", "share", "aer"]], frame, _ALIGNED, columns)
        st.caption(_("Click beside a row to open that head."))
    if run.experiment.model.family == "decoder-only":
        st.caption(paragraph("attention/single-sequence"))


def _verdict(scores: pd.DataFrame, best: alignment.Row, n_heads: int) -> str:
    """Say which of the heads align at the step of the best one, and since when."""
    values = {
        "layer": best["layer"],
        "head": best["head"],
        "share": show.percent(best["share"]),
        "aer": f"{best['aer']:.3f}",
    }
    aligned = alignment.aligned(scores, best["step"])
    if aligned.empty:
        return paragraph("attention/no-head-aligns", **values)
    if len(aligned) == 1:
        message = paragraph("attention/one-head-aligns", **values)
        step = alignment.formed_at(scores, best["module"], best["head"])
    else:
        low, high = (show.percent(end) for end in aligned["share"].agg(["min", "max"]))
        n = {"n": len(aligned), "n_heads": n_heads}
        message = paragraph("attention/heads-align", low=low, high=high, **n, **values)
        step = int(aligned["since"].max()) if len(aligned) == n_heads else None
    if n_heads == 1 or step is None:
        return message
    return message + " " + _("Aligned from step {step} on.", step=f"{step:,}")


class Versus(NamedTuple):
    """Another head. layer and head: from 0. step, run: None for the same."""

    layer: int
    head: int
    step: int | None = None
    run: str | None = None


def _versus_field(of: str = "") -> Any:
    return view.written(
        r"([1-9][0-9]{0,8})\.([1-9][0-9]{0,8})\.([0-9]{0,9})\.(.*)",
        N_("layer, head, step and run, such as 1.2.."),
        lambda layer, head, step, run: Versus(
            int(layer) - 1, int(head) - 1, int(step) if step else None, run or None
        ),
        lambda versus: ".".join(
            (
                str(versus.layer + 1),
                str(versus.head + 1),
                "" if versus.step is None else str(versus.step),
                versus.run or "",
            )
        ),
        of=of,
    )


@dataclass(frozen=True)
class Comparison:
    """What the shown head is compared with: at first the next head, or the first snapshot."""

    versus: tuple[int, int, int | None, str | None] | None = _versus_field()


def compared(shown: Shown) -> None:
    """Choose what to compare the shown head with; show both maps and their difference."""
    run, chosen = shown.run, shown.chosen
    linked = view.ask(Comparison, SCOPE, versus=_versus_field(run.id)).versus
    versus = None if linked is None else Versus(*linked)
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
    for other in [*visitors.available_runs(), chosen]:
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
    moved, agreeing = compare_maps(left.weights, right.weights, left.allowed | right.allowed)
    left, right = left.part(chosen.tokens), right.part(chosen.tokens)
    whose = "" if other.id == run.id else f": {escape(other.meta.name)}"
    top = None if chosen.kind in OF_PICTURES else 1.0
    figures = [
        (_head_name(chosen, example.step), head_map(left, top=top)),
        (_head_name(versus, theirs.step) + whose, head_map(right, top=top)),
        (
            _("Second minus first"),
            difference_map(left, right, names=(_("first"), _("second"))),
        ),
    ]
    figures[2][1].data[0].colorbar.title.text = ""  # no room; the caption says it
    columns = zip(st.columns(3), figures, strict=True)
    for i, (column, (title, figure)) in enumerate(columns):
        with column:
            st.markdown(f"**{title}**")
            figure.update_layout(height=min(400, figure.layout.height))
            show.figure(figure, "", key=f"attention-compare-{i}")
    shares = {"moved": show.percent(moved), "agreeing": show.percent(agreeing)}
    show.prose(paragraph("attention/two-heads", **shares))


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


def _head_name(chosen: Any, step: int) -> str:
    return _(
        "Layer {layer}, head {head}, step {step}",
        layer=chosen.layer + 1,
        head=chosen.head + 1,
        step=f"{step:,}",
    )
