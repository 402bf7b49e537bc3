"""What is lost: accuracy and loss before and after, and what is off, with undo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.i18n import _
from pages.knockouts import state
from pages.knockouts.board import signed
from pages.ui import page_table, show
from tfm_core.inspect.attention.trained import model_of
from tfm_core.inspect.knockouts import measure
from tfm_core.inspect.knockouts.measure import Replacement, Score
from tfm_core.inspect.knockouts.parts import (
    HAS_MEAN,
    KINDS,
    WITHOUT_CONTEXT,
    KnockedPart,
    kind_of_attention,
    name_of,
)
from tfm_core.runs.run import Run

MAX_CHIPS = 12


@dataclass(frozen=True, slots=True)
class Asked:
    """How parts are switched off, on the first n validation examples, and the example looked at.

    mark: of the checkpoint; what was measured with another is measured anew only when asked for.
    """

    how: Replacement
    n: int
    is_all: bool
    example: int
    mark: int

    def of(self, run: Run) -> state.Question:
        """Return what is to be measured of a run."""
        return run.id, self.mark, self.how, self.n


def outcome(run: Run, off: Sequence[KnockedPart], asked: Asked) -> None:
    """Show the figures with what is off, how far they moved, and what that is."""
    before = measure.measured(run, (), asked.how, asked.n)
    after = measure.measured(run, off, asked.how, asked.n)
    _figures(run, before, after)
    _chips(off)
    words = _(
        "{which} of {all} validation examples, each token given the true ones before it; weights "
        "of step {step}. With everything on: {accuracy}, loss {loss}."
    )
    if run.experiment.task.kind in ("image", "own-pictures"):
        words = _(
            "{which} of {all} validation pictures; weights of step {step}. With everything on: "
            "{accuracy}, loss {loss}."
        )
    count = f"{before.n:,}"
    which = _("All") if before.n == measure.n_validation(run) else _("The first {n}")
    st.caption(
        words.format(
            which=which.format(n=count),
            all=f"{measure.n_validation(run):,}",
            step=f"{model_of(run)[1]:,}",
            accuracy=show.percent(before.accuracy).replace(" ", "\u00a0"),
            loss=f"{before.loss:.4f}",
        )
    )
    both = measure.together(run, off, asked.how, asked.n)
    if both is not None:
        st.caption(_(measure.in_words(*both)))


def _figures(run: Run, before: Score, after: Score) -> None:
    is_picture = before.exact is None and run.experiment.task.kind != "corpus"
    with st.container(horizontal=True, gap="medium"):
        st.metric(
            _("Pictures right") if is_picture else _("Tokens right"),
            show.percent(after.accuracy),
            _points(after.accuracy - before.accuracy),
            width="content",
        )
        if before.exact is not None and after.exact is not None:
            st.metric(
                _("Whole answers right"),
                show.percent(after.exact),
                _points(after.exact - before.exact),
                width="content",
            )
        st.metric(
            _("Loss"),
            f"{after.loss:.3f}",
            signed(after.loss - before.loss),
            delta_color="inverse",
            width="content",
        )


def _points(change: float) -> str:
    return _("{change} points", change=f"{100 * change:+.1f}")


def _chips(off: Sequence[KnockedPart]) -> None:
    """Show what is off, each with a press that switches it on again."""
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        if not off:
            st.markdown(_("**Everything is on.** Press a part of the model to switch it off."))
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
            help=_("Take the last switch back"),
            disabled=not state.can_undo(),
            on_click=state.undo,
        )
        if off:
            st.button(
                _("All on again"),
                icon=":material/restart_alt:",
                key="knockouts-clear",
                on_click=state.clear,
            )


def last_in_words(run: Run, off: Sequence[KnockedPart], asked: Asked) -> None:
    """Say what switching the newest part off does, and lead to its attention."""
    if not off:
        return
    part = off[-1]
    is_recurrent = part.kind == "sublayer" and part.layer is None
    words = _(WITHOUT_CONTEXT if is_recurrent else KINDS[part.kind])
    if asked.how == "mean" and part.kind in HAS_MEAN:
        words = _("Its output is replaced by its mean over these {n} examples.", n=f"{asked.n:,}")
    name = _(name_of(part))
    st.caption(f"**{name[:1].upper()}{name[1:]}**: {words}")
    attention_link(run, part)


def attention_link(run: Run, part: KnockedPart) -> None:
    """Lead to a head, or to an attention, on the page that shows it in full."""
    kind = kind_of_attention(run.experiment, part)
    if not kind:
        return
    head = 1 if part.head is None else part.head + 1
    layer = 1 if part.layer is None else part.layer + 1
    st.page_link(
        page_table.path_of("attention"),
        label=_("Look at {part}", part=_(name_of(part))),
        icon=":material/visibility:",
        query_params={"run": run.id, "kind": kind, "layer": str(layer), "head": str(head)},
    )
