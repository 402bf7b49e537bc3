"""Knock-outs: switch parts of a trained model off, and see at once what that costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pandas as pd
import streamlit as st

from pages.app import show, state
from pages.app.address import view
from pages.app.model import answer
from pages.app.navigation import head, page_table
from pages.app.runs.shown_run import MODELS
from pages.components.effects import Tree, moving
from pages.components.pickers import PartButton, knock_board
from pages.i18n import N_, _, ngettext, paragraph
from pages.look_inside.knockouts import closer
from pages.look_inside.knockouts.closer import SCOPE, Knocked
from tfm_core.inspect.attention.example import Example
from tfm_core.inspect.attention.maps import map_view
from tfm_core.inspect.attention.trained import model_of
from tfm_core.inspect.knockouts import measure
from tfm_core.inspect.knockouts.measure import (
    Replacement,
    attention_moved,
    example_without,
    most_moved,
)
from tfm_core.inspect.knockouts.parts import (
    STACKS,
    SUBLAYERS,
    Part,
    board_name,
    heads_of,
    kind_of_attention,
    name_of,
    parts_of,
    what_goes,
)
from tfm_core.plots.heads.attention import head_map
from tfm_core.probe.labels import kinds_of, modules_by_kind
from tfm_core.runs.run import Run
from tfm_core.sentences import loss_words, points

MAX_CHIPS = 12
MEAN = "mean"  # of all heads
REPLACEMENTS = {"zero": N_("Zero"), "mean": N_("Mean"), "even": N_("Even attention")}


def _how(names: Mapping[str, str] = REPLACEMENTS) -> Any:
    return view.choice(
        N_("Replace by"), names, "zero", help=lambda: paragraph("knockouts/zero-or-mean")
    )


def _all(first: int = 0, most: int = 0) -> Any:
    """Offer to measure on more than the first examples."""
    label = N_("All {n} validation examples", n=f"{most:,}")
    return view.flag(label, help=N_("Off uses the first {n}.", n=first))


@dataclass(frozen=True)
class Measuring:
    """What stands in for a part that is off, and on which examples its loss is measured."""

    how: str = _how()
    all: bool = _all()


@dataclass(frozen=True)
class Closer:
    """The view below."""

    view: str = view.choice(
        N_("Look closer"),
        {
            "attention": N_("Attention before and after"),
            "heads": N_("Every head"),
            "pruning": N_("Removing heads"),
            "causes": N_("What decides"),
            "pattern": N_("Your pattern"),
        },
        look={"label_visibility": "collapsed"},
    )


@dataclass(frozen=True)
class Map:
    """The attention map that is shown before and after; layer and head count from 1."""

    map_kind: str = view.choice(N_("Attention"), {}, "")
    map_layer: str = view.choice(N_("Layer"), {}, "")
    map_head: str = view.choice(N_("Head"), {}, "")


def page() -> None:
    """Show the board of the model of the head's run."""
    show.header("knockouts")
    run = head.run(MODELS)
    if run is None:
        return
    try:
        probe = run.probe()
        number = head.example(run, probe.items, probe.images) or 0
        head.step([model_of(run)[1]])
    except ValueError as error:
        show.problem(error)
        return
    state.body(lambda: _view(run, number))


def _view(run: Run, number: int) -> None:
    try:
        _draw(run, number)
    except ValueError as error:
        show.problem(error)


def _draw(run: Run, number: int) -> None:
    off = closer.parts_off(run)
    left, right = st.columns([13, 9], gap="medium")
    with left:
        place = st.container()
        how, n, is_all = _measuring(run)
    knocked = Knocked(run, off, number, how, n)
    has_heads = bool(heads_of(run.experiment))
    is_next = run.meta.recorded and has_heads and not is_all
    importances: pd.DataFrame | None = None
    with place:
        if closer.is_requested("heads", *knocked.question):
            importances = closer.measured(knocked, st.empty())
        _board(knocked, importances)
        bar = st.empty()
        if n and (importances is not None or not is_next):
            _offer(knocked, is_measured=importances is not None)
    with right, st.container(key="knockouts-outcome"):
        _scores(knocked)
        _example(knocked)
        answer.gloss_switch(run.experiment, key="knockouts-glosses")
    _closer(knocked, importances, is_next=is_next)
    if is_next and importances is None:  # what is above is visible meanwhile
        closer.measured(knocked, bar)
        closer.enqueue("heads", *knocked.question)
        state.rerun()


def _closer(knocked: Knocked, importances: pd.DataFrame | None, *, is_next: bool) -> None:
    """Show the chosen view. is_next: the heads are measured behind it."""
    chosen = view.ask(Closer, SCOPE).view
    if chosen == "attention":
        _attention(knocked)
    elif chosen == "causes":
        closer.causes(knocked.run, knocked.example)
    elif not heads_of(knocked.run.experiment):
        st.info(_("A recurrent network has no heads."))
    elif chosen == "pattern":
        closer.pattern(knocked)
    elif not knocked.n:
        st.info(paragraph("knockouts/one-example"))
    elif chosen == "pruning":
        closer.pruning(knocked)
    elif importances is not None:
        _table(knocked, importances)
    elif not is_next:  # else a bar shows the measurement
        st.info(_("Measure every head first."))


def _measuring(run: Run) -> tuple[Replacement, int, bool]:
    """Ask what replaces the output of a part, and on how many examples; and whether on all."""
    can_measure = measure.can_measure(run)
    first, most = (
        (measure.default_examples(run), measure.max_examples(run)) if can_measure else (0, 0)
    )
    able = {"zero": True, "mean": can_measure, "even": bool(heads_of(run.experiment))}
    names = {name: label for name, label in REPLACEMENTS.items() if able[name]}
    hidden = [*(["how"] if len(names) == 1 else []), *(["all"] if most <= first else [])]
    with st.container(horizontal=True, vertical_alignment="center"):
        chosen = view.ask(Measuring, SCOPE, hidden=hidden, how=_how(names), all=_all(first, most))
    return cast("Replacement", chosen.how), most if chosen.all else first, chosen.all


def _board(knocked: Knocked, importances: pd.DataFrame | None) -> None:
    """Show every part as a button, a layer a row; a head's colour is the rise of the loss."""
    rows_of_heads = () if importances is None else importances.itertuples()
    worth_of = {row.part: row for row in rows_of_heads}
    largest = max((row.rise for row in worth_of.values()), default=0.0)
    kinds = {
        "positions": _("Positions"),
        "mask": _("Masks"),
        "norm": _("Last norm"),
        "sublayer": _("Attention"),
        "start": _("First state"),
        "backward": _("Reading"),
    }

    def button(part: Part) -> PartButton:
        row, group = _("Model"), kinds.get(part.kind, "")
        if part.layer is not None:
            row = _(
                "{stack} {layer}", stack=_(STACKS[part.stack]).capitalize(), layer=part.layer + 1
            )
            group = _(SUBLAYERS[part.sublayer][1]).capitalize() if part.sublayer else ""
        heat, worth = None, ""
        if part in worth_of:
            measured = worth_of[part]
            heat = max(0.0, measured.rise / largest) if largest > 0 else 0.0
            rise, share = _signed(measured.rise), show.percent(measured.accuracy)
            worth = _("Without it: loss {rise}, {share} right", rise=rise, share=share)
        is_off, is_head = part in knocked.off, part.kind == "head"
        name = _(name_of(part))
        return PartButton(
            part.code, row, group, _(board_name(part)), name, is_off, is_head, heat, worth
        )

    parts = parts_of(knocked.run.experiment)
    in_layers = [part for part in parts if part.layer is not None]
    rest = [part for kind in kinds for part in parts if part.layer is None and part.kind == kind]
    buttons = [button(part) for part in (*in_layers, *rest)]
    knock_board(buttons, on_pick=closer.switch, key=f"knockouts-board-{knocked.run.id}")


def _signed(change: float) -> str:
    return f"{change:+.4f}" if abs(change) < 0.1 else f"{change:+.2f}"


def _offer(knocked: Knocked, *, is_measured: bool) -> None:
    """Offer to measure every head, or say how the board is read."""
    n_heads = len(heads_of(knocked.run.experiment))
    if not n_heads or is_measured:
        name = "numbers-and-loss" if n_heads else "recurrent"
        st.caption(paragraph(f"knockouts/{name}"))
        return
    st.button(
        _("Measure every head ({n})", n=n_heads),
        type="primary",
        icon=":material/grid_view:",
        key="knockouts-measure",
        on_click=closer.enqueue,
        args=("heads", *knocked.question),
    )


def _scores(knocked: Knocked) -> None:
    """Show accuracy and loss, how they changed, and the parts that are off."""
    run, off, how, n = knocked.run, knocked.off, knocked.how, knocked.n
    if not n:
        _chips(off)
        st.caption(paragraph("knockouts/one-example"))
        return
    before, after = (measure.score_without(run, parts, how, n) for parts in ((), off))
    is_picture = before.exact is None and run.experiment.task.facts.answer != "text"
    shares = {
        _("Pictures right") if is_picture else _("Tokens right"): (before.accuracy, after.accuracy),
        _("Whole answers right"): (before.exact, after.exact),
    }
    with st.container(horizontal=True, gap="medium"):
        for label, (then, now) in shares.items():
            if then is not None and now is not None:
                change = _("{change} points", change=f"{points(then, now):+.1f}")
                st.metric(label, show.percent(now), change, width="content")
        st.metric(
            _("Loss"),
            loss_words(after.loss),
            _signed(after.loss - before.loss),
            delta_color="inverse",
            width="content",
        )
    _chips(off)
    st.caption(
        paragraph(
            "knockouts/baseline",
            n=f"{before.n:,}",
            all=f"{measure.n_validation(run):,}",
            step=f"{model_of(run)[1]:,}",
            accuracy=show.percent(before.accuracy).replace(" ", "\u00a0"),
            loss=loss_words(before.loss),
        )
    )
    both = measure.joint_effect(run, off, how, n)
    if both is not None:
        st.caption(_(measure.joint_effect_text(*both)))


def _chips(off: Sequence[Part]) -> None:
    """Show the parts that are off, to switch them on again."""
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        if not off:
            st.markdown(_("**Everything is on.** Press a part to switch it off."))
        for part in off[:MAX_CHIPS]:
            st.button(
                _(name_of(part)),
                icon=":material/close:",
                key=f"knockouts-on-{part.code}",
                help=_("Switch it on again"),
                on_click=closer.switch,
                args=(part.code,),
            )
        if len(off) > MAX_CHIPS:
            st.markdown(_("and {n} more", n=len(off) - MAX_CHIPS), width="content")
        st.button(
            _("Undo"),
            icon=":material/undo:",
            key="knockouts-undo",
            help=_("Undo the last switch"),
            disabled=not closer.can_undo(),
            on_click=closer.undo,
        )
        if off:
            st.button(_("All on"), key="knockouts-clear", on_click=closer.change)


def _both(knocked: Knocked) -> tuple[Example, Example]:
    """Return the example with everything on, and without the parts that are off."""
    before, after = (
        example_without(knocked.run, knocked.example, parts, knocked.how, knocked.n)
        for parts in ((), knocked.off)
    )
    return before, after


def _example(knocked: Knocked) -> None:
    """Show the answer with everything on, and without the parts that are off."""
    before, after = _both(knocked)
    experiment = knocked.run.experiment
    who = {_("Everything on"): before, **({_without(knocked.off): after} if knocked.off else {})}
    answers = [answer.answer_trees(experiment, example, name) for name, example in who.items()]
    parts = [answer.input_trees(experiment, before), *answers]
    lines: list[Tree] = [["div", "line", *part] for part in parts]
    if before.probabilities is not None:
        lines.append(answer.classes(experiment, after if knocked.off else before))
    moving({0: ["div", "", *lines]}, 0, animation="", key="knockouts-answers")
    if not knocked.off:
        return
    part = knocked.off[-1]
    message = _(what_goes(part, knocked.how, knocked.n))
    if len(knocked.off) > 1:
        name = _(name_of(part))
        message = f"**{name[:1].upper()}{name[1:]}**: {message}"
    st.caption(message)
    _attention_link(knocked.run, part)


def _without(off: Sequence[Part]) -> str:
    return ngettext("Without it", "Without them", len(off))


def _attention(knocked: Knocked) -> None:
    """Show one attention of the example before and after."""
    before, after = _both(knocked)
    changed = most_moved(before, after)
    if knocked.off and changed is None:
        st.caption(
            _(
                "No attention map changes, because no later attention reads what is off, or "
                "less than 0.05% of it moves."
            )
        )
        return
    kind, layer, head = _map(knocked, changed, len(next(iter(before.attention.values()))))
    experiment = knocked.run.experiment
    module = modules_by_kind(experiment)[kind][layer]
    share = show.percent(attention_moved(before, after, module, head))
    caption_after = _("{share} of the attention moved to other keys, on average.", share=share)
    for column, example, title, caption, name in zip(
        st.columns(2, gap="medium"),
        (before, after),
        (_("Everything on"), _without(knocked.off)),
        ("", caption_after),
        ("before", "after"),
        strict=True,
    ):
        shown = map_view(
            experiment,
            example,
            kind=kind,
            layer=layer,
            head=head,
            say=_,
            glosses=answer.glosses_of_run(experiment),
        )
        with column:
            figure = head_map(shown, title)
            show.figure(figure, caption, key=f"knockouts-map-{name}")
    gone = [p for p in knocked.off if p.module == module and p.kind in ("head", "sublayer")]
    if any(head is None or part.head in (None, head) for part in gone):
        st.caption(_("A disabled part still computes its weights. Look at later layers."))


def _map(knocked: Knocked, changed: str | None, n_heads: int) -> tuple[str, int, int | None]:
    """Choose kind, layer and head of the attention maps; no head is the mean of all.

    changed: the module that changed most, shown first; None if nothing is off: then the last layer.
    """
    experiment = knocked.run.experiment
    kinds = modules_by_kind(experiment)
    kind = next((name for name, modules in kinds.items() if changed in modules), list(kinds)[-1])
    layer = len(kinds[kind]) if changed is None else kinds[kind].index(changed) + 1
    mark = f"{knocked.run.id}-{changed}-{'+'.join(part.code for part in knocked.off)}"

    def one_of(label: str, labels: Mapping[str, str], first: str, **more: Any) -> Any:
        is_asked = len(labels) > 1
        return view.choice(label, labels, first, when=lambda _chosen: is_asked, **more)

    def layers(chosen: Map) -> Any:
        names = {str(n): str(n) for n in range(1, len(kinds[chosen.map_kind]) + 1)}
        first, holds_for = str(min(layer, len(names))), f"{mark}-{chosen.map_kind}"
        return one_of(N_("Layer"), names, first, holds_for=holds_for, is_list=False)

    labels = {name: kinds_of(experiment)[name].label for name in kinds}
    width = {"width": 280}
    heads = {MEAN: N_("Mean")} | {str(n): str(n) for n in range(1, n_heads + 1) if n_heads > 1}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = view.ask(
            Map,
            SCOPE,
            map_kind=one_of(
                N_("Attention"), labels, kind, holds_for=mark, is_list=True, look=width
            ),
            map_layer=view.by(layers),
            map_head=one_of(N_("Head"), heads, MEAN, holds_for=mark, is_list=False),
        )
    head = None if chosen.map_head == MEAN else int(chosen.map_head) - 1
    return chosen.map_kind, int(chosen.map_layer) - 1, head


def _table(knocked: Knocked, importances: pd.DataFrame) -> None:
    """Show every head in a row, the most important first; the chosen one can be switched."""
    table = measure.by_head(knocked.run, importances, knocked.n)
    parts: list[Part] = table["part"].tolist()
    worded = {"stack": table["stack"].map(_), "attention": table["attention"].map(_)}
    number = st.column_config.NumberColumn
    event = st.dataframe(
        table.drop(columns="part").assign(**worded),
        key="knockouts-table",
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        height=min(420, 38 + 35 * len(parts)),
        column_config={
            "stack": _("Stack"),
            "attention": _("Attention"),
            "layer": number(_("Layer"), width="small"),
            "head": number(_("Head"), width="small"),
            "rise": number(
                _("Loss rises by"), format="%.4f", help=_("Below 0, the head does harm.")
            ),
            "loss": number(_("Loss without it"), format="%.4f"),
            "accuracy": number(_("Right without it"), format="percent"),
            "gradient": st.column_config.ProgressColumn(
                _("By its gradient"),
                format="percent",
                min_value=0,
                max_value=1,
                help=paragraph("knockouts/by-gradient"),
            ),
        },
    )
    st.caption(paragraph("knockouts/heads-alone", n=f"{knocked.n:,}"))
    chosen = event.selection.rows
    part = parts[chosen[0] if chosen and chosen[0] < len(parts) else 0]
    name = _(name_of(part))
    is_off = part in knocked.off
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            _("Switch on {part}", part=name) if is_off else _("Switch off {part}", part=name),
            icon=":material/power_settings_new:",
            key="knockouts-switch",
            on_click=closer.switch,
            args=(part.code,),
        )
        _attention_link(knocked.run, part)


def _attention_link(run: Run, part: Part) -> None:
    """Link to a head or an attention on the page Attention."""
    kind = kind_of_attention(run.experiment, part)
    if not kind:
        return
    layer, head = (part.layer or 0) + 1, (part.head or 0) + 1
    st.page_link(
        page_table.path_of("attention"),
        label=_("Open in Attention"),
        icon=":material/visibility:",
        query_params={"run": run.id, "kind": kind, "layer": str(layer), "head": str(head)},
    )


if __name__ == "__main__":
    page()
