"""Shuffle the words and see which model notices."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _, paragraph
from pages.ui import show, typed
from pages.ui.runs import shown_run
from pages.ui.typed import escape
from tfm_core.config import ImageTaskConfig, built
from tfm_core.inspect.masks import lab
from tfm_core.inspect.positions import shuffle
from tfm_core.plots.model import positions as plots
from tfm_core.runs.run import Run
from tfm_core.variants.positions import POSITIONS

MAX_TEXT = 300
EXAMPLE = "dog bites man and man runs"
_TEXT, _SEED = "positions-text", "positions-shuffle"


def view() -> None:
    run = shown_run.current_run()
    if run is not None and not run.has_checkpoint:
        run = None
    if run is not None and run.experiment.task.class_names:
        _picture(run)
        run = None
    key = f"{_TEXT}-{'own' if run is None else run.id}"
    st.session_state.setdefault(key, _example(run))
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    with left:
        text = st.text_input(
            _("A sentence"),
            key=key,
            help=_("With words of the current run's task, its model answers too."),
        )
    with right:
        _button("shuffle")
    seed = st.session_state.get(_SEED, 0)
    try:
        text = typed.within(text, MAX_TEXT)
    except ValueError as error:
        show.problem(error)
        return
    try:
        own = None if run is None else shuffle.of_run(run, text, seed)
    except ValueError as error:
        own = None
        st.warning(_("The current run is left out. {why}", why=_(error)), icon=":material/info:")
    try:
        tokens = lab.read_tokens(text)
    except ValueError as error:
        show.problem(error)
        return
    order = shuffle.shuffled(len(tokens), seed)
    moved = [tokens[index] for index in order] if own is None else own[2]
    st.markdown(_("Shuffled: **{words}**", words=escape(" ".join(moved))))
    _bars(tokens, order, run, own)
    if own is not None:
        _answers(*own[1])
    show.code(shuffle.untrained)


def _bars(
    tokens: tuple[str, ...],
    order: list[int],
    run: Run | None,
    own: tuple[shuffle.VectorChange, tuple[str, str], tuple[str, ...]] | None,
) -> None:
    bars: dict[str, tuple[str | None, float]] = {}
    for result in shuffle.untrained(tokens, order):
        if result.name == shuffle.CAUSAL:
            name, label = None, _("None, with a causal mask")
        else:
            name, label = result.name, _(POSITIONS[result.name].label)
        bars[label] = (name, float(result.change.mean()))
    if run is not None and own is not None:
        position = built(run.experiment.model).position
        kind = _(POSITIONS[position].label)
        if not run.experiment.model.has_blocks:
            kind = _("reads in order")
        label = _("Current run: {kind}", kind=kind)
        bars[label] = (position, float(own[0].change.mean()))
    show.figure(plots.noticed(bars), paragraph("positions/moved"), key="positions-noticed")


def _answers(before: str, after: str) -> None:
    with st.container(border=True):
        st.markdown(
            _(
                "The current run answers “{before}”, shuffled “{after}”",
                before=escape(before) or "∅",
                after=escape(after) or "∅",
            )
        )


def _picture(run: Run) -> None:
    """Shuffle the patches of one of the run's pictures, and let its model look at both."""
    try:
        images = run.probe().images
        if images is None:
            return
        left, right = st.columns([4, 1], vertical_alignment="bottom")
        with left:
            index = st.slider(
                _("Picture of the current run"), 1, len(images), key="shuffle-picture"
            )
        with right:
            _button("shuffle-patches")
        picture = images[index - 1]
        moved, before, after = shuffle.of_picture(run, picture, st.session_state.get(_SEED, 0))
    except ValueError as error:
        show.problem(error)
        return
    names = run.experiment.task_as(ImageTaskConfig).facts.class_names
    with st.container(horizontal=True):
        for drawn, probabilities in ((picture, before), (moved, after)):
            best = int(probabilities.argmax())
            pixels = drawn[0] if len(drawn) == 1 else drawn.transpose(1, 2, 0)
            answer = f"{names[best]}, {show.percent(float(probabilities[best]))}"
            st.image(pixels, caption=answer, width=168, alt=answer)
    st.caption(paragraph("positions/patches-shuffled"))


def _button(key: str) -> None:
    st.button(_("Shuffle again"), icon=":material/shuffle:", key=key, on_click=_again)


def _again() -> None:
    st.session_state[_SEED] = st.session_state.get(_SEED, 0) + 1


def _example(run: Run | None) -> str:
    if run is None:
        return EXAMPLE
    try:
        texts = [str(item.get("src_text", "")) for item in run.probe().items]
    except ValueError:
        return EXAMPLE
    return min(filter(None, texts), key=lambda text: abs(len(text) - 30), default=EXAMPLE)
