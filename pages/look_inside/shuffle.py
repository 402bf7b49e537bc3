"""Shuffle the words of a sentence and see which model notices: a part of Positions."""

from __future__ import annotations

import streamlit as st

from pages.app import show, typed
from pages.app.address import view
from pages.app.navigation.head import Moment
from pages.app.typed import escape
from pages.i18n import N_, _, paragraph
from tfm_core.choices.config import built
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.inspect.masks import lab
from tfm_core.inspect.positions import shuffle
from tfm_core.plots.model import positions as plots

SCOPE = "positions"
EXAMPLE = "dog bites man and man runs"
MAX_TEXT = 300


def shuffled(moment: Moment | None) -> None:
    """Shuffle the words of a sentence, or the patches of a picture; see which model notices."""
    if moment is not None and moment.run.experiment.task.class_names:
        _shuffled_picture(moment)
        moment = None
    run = None if moment is None else moment.run
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    with left:
        sentence = view.text(
            N_("A sentence"),
            EXAMPLE if moment is None else str(moment.item.get("src_text") or EXAMPLE),
            MAX_TEXT,
            help=N_("With words of the current run's task, its model answers too."),
            of="own" if moment is None else f"{moment.run.id}-{moment.example}",
        )
        text = str(view.one(sentence, "text", SCOPE))
    with right:
        seed = _shuffle_again("shuffle")
    try:
        text = typed.within(text, MAX_TEXT)
        tokens = lab.read_tokens(text)
    except ValueError as error:
        show.problem(error)
        return
    try:
        answered = (
            None if moment is None else shuffle.of_run(moment.run, text, seed, step=moment.step)
        )
    except ValueError as error:
        answered = None
        st.warning(_("The current run is left out. {why}", why=_(error)), icon=":material/info:")
    order = shuffle.shuffled(len(tokens), seed)
    moved = [tokens[index] for index in order] if answered is None else answered[2]
    st.markdown(_("Shuffled: **{words}**", words=escape(" ".join(moved))))
    bars = _untrained(tokens, order)
    if run is not None and answered is not None:
        position = built(run.experiment.model).position
        kind = _(POSITIONS[position].label)
        if not run.experiment.model.has_blocks:
            kind = _("reads in order")
        bars[_("Current run: {kind}", kind=kind)] = (position, float(answered[0].mean()))
    show.figure(plots.noticed(bars), paragraph("positions/moved"), key="positions-noticed")
    if answered is not None:
        before, after = (escape(answer) or "∅" for answer in answered[1])
        with st.container(border=True):
            st.markdown(
                _(
                    "The current run answers “{before}”, shuffled “{after}”",
                    before=before,
                    after=after,
                )
            )
    show.code(shuffle.untrained)


def _shuffle_again(key: str) -> int:
    """Offer another order; return the seed of the order."""
    seed = "positions-shuffle"

    def again() -> None:
        st.session_state[seed] = st.session_state.get(seed, 0) + 1

    st.button(_("Shuffle again"), icon=":material/shuffle:", key=key, on_click=again)
    return int(st.session_state.get(seed, 0))


def _untrained(tokens: tuple[str, ...], order: list[int]) -> dict[str, tuple[str | None, float]]:
    """Return kind and change of an untrained model of each kind, by label."""
    bars: dict[str, tuple[str | None, float]] = {}
    for name, change in shuffle.untrained(tokens, order).items():
        if name == shuffle.CAUSAL:
            bars[_("None, with a causal mask")] = None, change
        else:
            bars[_(POSITIONS[name].label)] = name, change
    return bars


def _shuffled_picture(moment: Moment) -> None:
    """Shuffle the patches of one of the run's pictures, and let its model look at both."""
    run = moment.run
    try:
        images = run.probe().images
        if images is None:
            return
        seed = _shuffle_again("shuffle-patches")
        picture = images[moment.example or 0]
        moved, before, after = shuffle.of_picture(run, picture, seed, step=moment.step)
    except ValueError as error:
        show.problem(error)
        return
    names = run.experiment.task.class_names
    with st.container(horizontal=True):
        for drawn, probabilities in ((picture, before), (moved, after)):
            best = int(probabilities.argmax())
            pixels = drawn[0] if len(drawn) == 1 else drawn.transpose(1, 2, 0)
            answer = f"{names[best]}, {show.percent(float(probabilities[best]))}"
            st.image(pixels, caption=answer, width=168, alt=answer)
    st.caption(paragraph("positions/patches-shuffled"))
