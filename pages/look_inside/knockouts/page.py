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
from pages.app.navigation import head
from pages.app.runs.shown_run import MODELS
from pages.app.settings import glosses
from pages.components.effects import Tree, moving
from pages.components.pickers import PartButton, knock_board
from pages.i18n import N_, _, ngettext, paragraph
from pages.look_inside.knockouts import causes, closer
from pages.look_inside.knockouts.closer import SCOPE, Knocked
from tfm_core.inspect.attention.example import Example
from tfm_core.inspect.attention.map_view import map_view
from tfm_core.inspect.attention.trained import model_of
from tfm_core.inspect.knockouts import measure
from tfm_core.inspect.knockouts.example import example_without, most_moved, moved
from tfm_core.inspect.knockouts.measure import Replacement
from tfm_core.inspect.knockouts.parts import (
    EVEN,
    HAS_MEAN,
    KINDS,
    STACKS,
    SUBLAYERS,
    WITHOUT_CONTEXT,
    Part,
    heads_of,
    is_attention,
    name_of,
    parts_of,
)
from tfm_core.plots.heads import attention as plots
from tfm_core.probe.labels import kinds_of, modules_by_kind
from tfm_core.runs.run import Run
from tfm_core.sentences import loss_words, points

MAX_CHIPS = 12
REPLACEMENTS = {"zero": N_("Zero"), "mean": N_("Mean"), "even": N_("Even attention")}
MEAN = -1  # of all heads


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
    asked = Knocked(run, off, number, how, n)
    has_heads = bool(heads_of(run.experiment))
    is_next = run.meta.recorded and has_heads and not is_all
    importances: pd.DataFrame | None = None
    with place:
        if closer.is_requested("heads", *asked.question):
            importances = closer.measured(asked, st.empty())
        _board(asked, importances)
        bar = st.empty()
        if n and (importances is not None or not is_next):
            _offer(asked, is_measured=importances is not None)
    with right, st.container(key="knockouts-outcome"):
        _scores(asked)
        _example(asked)
        glosses.switch(run.experiment, key="knockouts-glosses")
    _closer(asked, importances, is_next=is_next)
    if is_next and importances is None:  # what is above is visible meanwhile
        closer.measured(asked, bar)
        closer.enqueue("heads", *asked.question)
        state.rerun()


def _closer(asked: Knocked, importances: pd.DataFrame | None, *, is_next: bool) -> None:
    """Show the chosen view. is_next: the heads are measured behind it."""
    chosen = view.ask(Closer, SCOPE).view
    if chosen == "attention":
        _attention(asked)
    elif chosen == "causes":
        causes.causes(asked.run, asked.example)
    elif not heads_of(asked.run.experiment):
        st.info(_("A recurrent network has no heads."))
    elif chosen == "pattern":
        closer.pattern(asked)
    elif not asked.n:
        st.info(paragraph("knockouts/one-example"))
    elif chosen == "pruning":
        closer.pruning(asked)
    elif importances is not None:
        closer.table(asked, importances)
    elif not is_next:  # else a bar shows the measurement
        st.info(_("Measure every head first."))


def _measuring(run: Run) -> tuple[Replacement, int, bool]:
    """Ask what replaces the output of a part, and on how many examples; and whether on all."""
    can_measure = measure.can_measure(run)
    first, most = (measure.n_first(run), measure.n_most(run)) if can_measure else (0, 0)
    able = {"zero": True, "mean": can_measure, "even": bool(heads_of(run.experiment))}
    names = {name: words for name, words in REPLACEMENTS.items() if able[name]}
    hidden = [*(["how"] if len(names) == 1 else []), *(["all"] if most <= first else [])]
    with st.container(horizontal=True, vertical_alignment="center"):
        chosen = view.ask(Measuring, SCOPE, hidden=hidden, how=_how(names), all=_all(first, most))
    return cast("Replacement", chosen.how), most if chosen.all else first, chosen.all


def _board(asked: Knocked, importances: pd.DataFrame | None) -> None:
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
        is_off, is_head = part in asked.off, part.kind == "head"
        name = _(name_of(part))
        return PartButton(part.code, row, group, _short(part), name, is_off, is_head, heat, worth)

    parts = parts_of(asked.run.experiment)
    in_layers = [part for part in parts if part.layer is not None]
    rest = [part for kind in kinds for part in parts if part.layer is None and part.kind == kind]
    buttons = [button(part) for part in (*in_layers, *rest)]
    knock_board(buttons, on_pick=closer.switch, key=f"knockouts-board-{asked.run.id}")


def _short(part: Part) -> str:
    """Return what stands on the button of a part."""
    if part.head is not None:
        return str(part.head + 1)
    if part.layer is not None:
        words = {"sublayer": _("all"), "residual": _("skip"), "norm": _("norm")}
        return words.get(part.kind, _("block"))
    if part.kind == "mask":
        is_causal = (part.stack, part.sublayer) == ("decoder", "self")
        padding = _("padding, cross") if part.sublayer == "cross" else _("padding")
        return _("causal") if is_causal else padding
    words = {"sublayer": _("context"), "start": _("summary"), "backward": _("backwards")}
    return words.get(part.kind, _(STACKS[part.stack]))


def _signed(change: float) -> str:
    return f"{change:+.4f}" if abs(change) < 0.1 else f"{change:+.2f}"


def _offer(asked: Knocked, *, is_measured: bool) -> None:
    """Offer to measure every head, or say how the board is read."""
    n_heads = len(heads_of(asked.run.experiment))
    if not n_heads or is_measured:
        name = "numbers-and-loss" if n_heads else "recurrent"
        st.caption(paragraph(f"knockouts/{name}"))
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            _("Measure every head ({n})", n=n_heads),
            type="primary",
            icon=":material/grid_view:",
            key="knockouts-measure",
            on_click=closer.enqueue,
            args=("heads", *asked.question),
        )
        st.caption(_("Numbers are heads."), width="content")


def _scores(asked: Knocked) -> None:
    """Show accuracy and loss, how they changed, and the parts that are off."""
    run, off, how, n = asked.run, asked.off, asked.how, asked.n
    if not n:
        _chips(off)
        st.caption(paragraph("knockouts/one-example"))
        return
    before, after = (measure.measured(run, parts, how, n) for parts in ((), off))
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
    both = measure.together(run, off, how, n)
    if both is not None:
        st.caption(_(measure.in_words(*both)))


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


def _both(asked: Knocked) -> tuple[Example, Example]:
    """Return the example with everything on, and without the parts that are off."""
    before, after = (
        example_without(asked.run, asked.example, parts, asked.how, asked.n)
        for parts in ((), asked.off)
    )
    return before, after


def _example(asked: Knocked) -> None:
    """Show the answer with everything on, and without the parts that are off."""
    before, after = _both(asked)
    experiment = asked.run.experiment
    who = {_("Everything on"): before, **({_without(asked.off): after} if asked.off else {})}
    answers = [answer.said(experiment, example, name) for name, example in who.items()]
    parts = [answer.given(experiment, before), *answers]
    lines: list[Tree] = [["div", "line", *part] for part in parts]
    if before.probabilities is not None:
        lines.append(answer.classes(experiment, after if asked.off else before))
    moving({0: ["div", "", *lines]}, 0, animation="", key="knockouts-answers")
    if asked.off:
        _in_words(asked)


def _without(off: Sequence[Part]) -> str:
    return ngettext("Without it", "Without them", len(off))


def _in_words(asked: Knocked) -> None:
    """Say what it means that the newest part is off."""
    part = asked.off[-1]
    is_recurrent = part.kind == "sublayer" and part.layer is None
    words = _(WITHOUT_CONTEXT if is_recurrent else KINDS[part.kind])
    if asked.how == "mean" and part.kind in HAS_MEAN:
        words = _("Its output is replaced by its mean over these {n} examples.", n=f"{asked.n:,}")
    if asked.how == "even" and is_attention(part):
        words = _(EVEN)
    if len(asked.off) > 1:
        name = _(name_of(part))
        words = f"**{name[:1].upper()}{name[1:]}**: {words}"
    st.caption(words)
    closer.attention_link(asked.run, part)


def _attention(asked: Knocked) -> None:
    """Show one attention of the example before and after."""
    before, after = _both(asked)
    changed = most_moved(before, after)
    if asked.off and changed is None:
        st.caption(
            _(
                "No attention map changes, because no later attention reads what is off, or "
                "less than 0.05% of it moves."
            )
        )
        return
    kind, layer, head = _map(asked, changed, len(next(iter(before.attention.values()))))
    experiment = asked.run.experiment
    module = modules_by_kind(experiment)[kind][layer]
    share = show.percent(moved(before, after, module, head))
    words = _("{share} of the attention moved to other keys, on average.", share=share)
    for column, example, title, caption, name in zip(
        st.columns(2, gap="medium"),
        (before, after),
        (_("Everything on"), _without(asked.off)),
        ("", words),
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
            glosses=glosses.shown(experiment),
        )
        with column:
            figure = plots.head_map(shown, title)
            show.figure(figure, caption, key=f"knockouts-map-{name}")
    gone = [p for p in asked.off if p.module == module and p.kind in ("head", "sublayer")]
    if any(head is None or part.head in (None, head) for part in gone):
        st.caption(_("A disabled part still computes its weights. Look at later layers."))


def _map(asked: Knocked, changed: str | None, n_heads: int) -> tuple[str, int, int | None]:
    """Choose kind, layer and head of the attention maps; no head is the mean of all.

    changed: the module that changed most, shown first; None if nothing is off: then the last layer.
    """
    experiment = asked.run.experiment
    kinds = modules_by_kind(experiment)
    kind = next((one for one, names in kinds.items() if changed in names), list(kinds)[-1])
    names = kinds[kind]
    layer = len(names) - 1 if changed is None else names.index(changed)
    mark = f"{asked.run.id}-{changed}-{'+'.join(part.code for part in asked.off)}"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(kinds) > 1:
            kind = st.selectbox(
                _("Attention"),
                list(kinds),
                index=list(kinds).index(kind),
                format_func=lambda name: _(kinds_of(experiment)[name].label),
                key=f"knockouts-kind-{mark}",
                width=280,
            )
        n_layers, head = len(kinds[kind]), MEAN
        layer = min(layer, n_layers - 1)
        if n_layers > 1:
            layer = st.segmented_control(
                _("Layer"),
                range(n_layers),
                default=layer,
                format_func=lambda i: str(i + 1),
                required=True,
                key=f"knockouts-layer-{mark}-{kind}",
            )
        if n_heads > 1:
            head = st.segmented_control(
                _("Head"),
                [MEAN, *range(n_heads)],
                default=MEAN,
                format_func=lambda i: _("Mean") if i == MEAN else str(i + 1),
                required=True,
                key=f"knockouts-head-{mark}",
            )
    return kind, int(layer), None if head == MEAN else int(head)


if __name__ == "__main__":
    page()
