"""Controls, accuracy and loss before and after, and the parts that are off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from pages.components.pickers import Thumbnail, thumbnails
from pages.i18n import N_, _, paragraph
from pages.knockouts import state
from pages.knockouts.board import signed
from pages.knockouts.link import ALL, EXAMPLE, HOW
from pages.ui import show
from pages.ui.address import view_link
from pages.ui.fact_line import fact_line
from pages.ui.model.task_panels import example_name
from pages.ui.navigation import page_table
from pages.ui.runs import shown_run
from tfm_core.inspect.attention.trained import checkpoint_mark, model_of
from tfm_core.inspect.knockouts import measure
from tfm_core.inspect.knockouts.measure import Replacement, Score
from tfm_core.inspect.knockouts.parts import (
    EVEN,
    HAS_MEAN,
    KINDS,
    WITHOUT_CONTEXT,
    Part,
    heads_of,
    is_attention,
    kind_of_attention,
    name_of,
)
from tfm_core.probe.types import Probe
from tfm_core.runs.run import Run
from tfm_core.sentences import loss_words, points

MAX_CHIPS = 12


@dataclass(frozen=True, slots=True)
class Measurement:
    """What replaces a part's output, on the first n validation examples, and the example shown.

    mark: of the checkpoint; another one is measured only on request.
    """

    how: Replacement
    n: int
    is_all: bool
    example: int
    mark: int

    def of(self, run: Run) -> state.Question:
        return run.id, self.mark, self.how, self.n


def scores(run: Run, off: Sequence[Part], measurement: Measurement) -> None:
    """Show accuracy and loss, how they changed, and the parts that are off."""
    if not measurement.n:
        _chips(off)
        st.caption(paragraph("knockouts/one-example"))
        return
    before = measure.measured(run, (), measurement.how, measurement.n)
    after = measure.measured(run, off, measurement.how, measurement.n)
    _figures(run, before, after)
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
    both = measure.together(run, off, measurement.how, measurement.n)
    if both is not None:
        st.caption(_(measure.in_words(*both)))


def _figures(run: Run, before: Score, after: Score) -> None:
    is_picture = before.exact is None and run.experiment.task.facts.answer != "text"
    with st.container(horizontal=True, gap="medium"):
        st.metric(
            _("Pictures right") if is_picture else _("Tokens right"),
            show.percent(after.accuracy),
            _points(before.accuracy, after.accuracy),
            width="content",
        )
        if before.exact is not None and after.exact is not None:
            st.metric(
                _("Whole answers right"),
                show.percent(after.exact),
                _points(before.exact, after.exact),
                width="content",
            )
        st.metric(
            _("Loss"),
            loss_words(after.loss),
            signed(after.loss - before.loss),
            delta_color="inverse",
            width="content",
        )


def _points(before: float, after: float) -> str:
    return _("{change} points", change=f"{points(before, after):+.1f}")


def _chips(off: Sequence[Part]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        if not off:
            st.markdown(_("**Everything is on.** Press a part to switch it off."))
        for part in off[:MAX_CHIPS]:
            st.button(
                _(name_of(part)),
                icon=":material/close:",
                key=f"knockouts-on-{part.code}",
                help=_("Switch it on again"),
                on_click=state.switch,
                args=(part.code,),
            )
        if len(off) > MAX_CHIPS:
            st.markdown(_("and {n} more", n=len(off) - MAX_CHIPS), width="content")
        st.button(
            _("Undo"),
            icon=":material/undo:",
            key="knockouts-undo",
            help=_("Undo the last switch"),
            disabled=not state.can_undo(),
            on_click=state.undo,
        )
        if off:
            st.button(
                _("All on"),
                key="knockouts-clear",
                on_click=state.clear,
            )


def last_in_words(run: Run, off: Sequence[Part], measurement: Measurement) -> None:
    if not off:
        return
    part = off[-1]
    is_recurrent = part.kind == "sublayer" and part.layer is None
    words = _(WITHOUT_CONTEXT if is_recurrent else KINDS[part.kind])
    if measurement.how == "mean" and part.kind in HAS_MEAN:
        words = _(
            "Its output is replaced by its mean over these {n} examples.", n=f"{measurement.n:,}"
        )
    if measurement.how == "even" and is_attention(part):
        words = _(EVEN)
    if len(off) > 1:
        name = _(name_of(part))
        words = f"**{name[:1].upper()}{name[1:]}**: {words}"
    st.caption(words)
    attention_link(run, part)


def attention_link(run: Run, part: Part) -> None:
    """Link to a head or an attention on the page Attention."""
    kind = kind_of_attention(run.experiment, part)
    if not kind:
        return
    head = 1 if part.head is None else part.head + 1
    layer = 1 if part.layer is None else part.layer + 1
    st.page_link(
        page_table.path_of("attention"),
        label=_("Open in Attention"),
        icon=":material/visibility:",
        query_params={"run": run.id, "kind": kind, "layer": str(layer), "head": str(head)},
    )


def controls(run: Run, probe: Probe) -> Measurement:
    """Choose the example, what replaces the output of a part, and how many examples to measure."""
    can_measure = measure.can_measure(run)
    n_first, n_most = (measure.n_first(run), measure.n_most(run)) if can_measure else (0, 0)
    count = len(probe.items)
    facts, choices = fact_line("knockouts")
    problems = st.container()
    with choices, view_link.warnings_in(problems):
        problem = view_link.receive(EXAMPLE)
        st.session_state[EXAMPLE.key] = min(int(st.session_state[EXAMPLE.key]), count - 1)
        index = _example(run, probe)
        how = _replacement(run, can_measure=can_measure)
        if n_most > n_first:
            problem = problem or view_link.receive(ALL)
            st.toggle(
                _("All {n} validation examples", n=f"{n_most:,}"),
                key=ALL.key,
                help=_("Off: the first {n}.", n=n_first),
            )
        shown_run.recorded_note(run, key="knockouts")
        view_link.warn(problem)
    view_link.say(EXAMPLE, index)
    is_all = n_most > n_first and bool(st.session_state[ALL.key])
    view_link.say(ALL, is_all)
    facts.caption(shown_run.facts_of(run, _("example {n}", n=index + 1), _(_REPLACED[how])))
    return Measurement(
        how=how,
        n=n_most if is_all else n_first,
        is_all=is_all,
        example=index,
        mark=checkpoint_mark(run),
    )


_REPLACED: dict[Replacement, str] = {
    "zero": N_("replaced by zero"),
    "mean": N_("replaced by its mean"),
    "even": N_("replaced by even attention"),
}


def _replacement(run: Run, *, can_measure: bool) -> Replacement:
    """Choose what replaces a part's output; without examples there are no means."""
    able = {
        "zero",
        "mean" if can_measure else "zero",
        "even" if heads_of(run.experiment) else "zero",
    }
    names = tuple(name for name in HOW.names if name in able)
    if len(names) == 1:
        return "zero"
    fitting = replace(HOW, names=names)
    chosen = view_link.choice(_("Replace by"), fitting, help=paragraph("knockouts/zero-or-mean"))
    return next(name for name in _REPLACED if name == chosen)


def _example(run: Run, probe: Probe) -> int:
    """Choose one of the run's examples, by picture or by text."""
    if probe.images is None:
        return st.selectbox(
            _("Example"),
            range(len(probe.items)),
            format_func=lambda i: example_name(run.experiment, probe.items[i], i + 1),
            key=EXAMPLE.key,
        )
    return choose_picture(run, probe, EXAMPLE.key, _("Example"))


def choose_picture(run: Run, probe: Probe, key: str, label: str) -> int:
    """Choose a picture of the run's examples; the key holds its number, from 0."""
    index = int(st.session_state[key])
    assert probe.images is not None
    pictures = zip(probe.images, probe.items, strict=True)
    thumbnails(
        [
            Thumbnail(picture, example_name(run.experiment, item, number))
            for number, (picture, item) in enumerate(pictures, 1)
        ],
        chosen=index,
        label=label,
        on_pick=lambda picked: st.session_state.update({key: picked}),
        key=f"{key}-pictures",
    )
    return index
