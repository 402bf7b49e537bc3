"""Pictures to words: compose a picture and see where the model looks for each word."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from pages.app import show, state
from pages.app.address import view
from pages.app.address.parameters import Number
from pages.app.model import question
from pages.app.navigation import head
from pages.app.runs.shown_run import Needs
from pages.app.typed import escape
from pages.components.digits import digit_pad
from pages.i18n import N_, _
from pages.try_it import answer
from tfm_core.choices.config import IMAGE_TASKS, CaptionTaskConfig
from tfm_core.data.own_picture import picture_to_input
from tfm_core.data.scenes import CANVAS, GRID, LARGE, SMALL, PlacedDigit
from tfm_core.inspect.attention.trained import model_of
from tfm_core.inspect.questions import Question
from tfm_core.inspect.text import caption_look, questions
from tfm_core.inspect.text.caption_look import CaptionReading, Piece
from tfm_core.plots.heads.captions import caption_strip
from tfm_core.plots.heads.patches import numbered
from tfm_core.runs.run import Run

SCOPE = "captions"
NEEDS = Needs(
    N_("a model that describes pictures"),
    lambda experiment: experiment.task.describes_pictures,
    first="recorded-captions",
    presets=("captions", "captions-korean"),
)
FIRST = {
    1: (PlacedDigit(3, 14, 14),),
    2: (PlacedDigit(3, 0, 14), PlacedDigit(7, 28, 14)),
    3: (PlacedDigit(3, 0, 0), PlacedDigit(7, 28, 0), PlacedDigit(5, 14, 28)),
}
"""The first picture, which has a plain caption, by number of digits."""
SCENE = Number("", first=0, low=0, high=50_000)
HAND = Number("", first=0, low=0, high=10_000)


@dataclass(frozen=True)
class Scene:
    """Which picture is laid out, and whether its digits may stand between what training used.

    scene: 0 is the first one, then those of the test set.
    """

    scene: int = view.held(SCENE)
    free: bool = view.flag(
        N_("Anywhere"),
        help=lambda: _("Training used every {n}th pixel; try positions in between.", n=GRID),
    )


def page() -> None:
    show.header("captions")
    run = head.run(NEEDS)
    if run is not None:
        head.step([model_of(run)[1]])
        state.body(lambda: _describe(run))  # moving a digit redraws only this part


def _describe(run: Run) -> None:
    left, right = st.columns([5, 7], gap="large")
    with left:
        area = st.container()
        pieces = _pieces(run)
        below = st.container()
        missing = [n for n, piece in enumerate(pieces, 1) if not piece.pixels.any()]
    reading = None
    with area:
        composed, overlapping = caption_look.preview(pieces)
        squares = [(p.placed.left, p.placed.top, p.placed.right, p.placed.bottom) for p in pieces]
        show.figure(
            numbered(composed, squares, first=1, bad=overlapping),
            _("{side} × {side} pixels; the model sees no outlines.", side=composed.shape[-1]),
            key="captions-scene-figure",
        )
        for n in missing:
            st.caption(_("Draw digit {n} on its pad.", n=n))
        try:
            reading = None if missing else caption_look.look_at_scene(run, pieces)
        except ValueError as error:
            show.problem(error)
    with right:
        if reading is None:
            st.caption(_("Complete the picture first."))
            return
        st.markdown(
            answer.in_a_line(
                (_("Model"), reading.example.answer_text or ""),
                (_("Truth"), reading.example.item["tgt_text"]),
                is_right=reading.is_right,
            )
        )
        if reading.words:
            chosen = answer.head_of(N_("Head"), reading.maps, SCOPE, run_id=run.id)
            _strip(reading, *chosen)
            _word_by_word(reading)
        else:
            st.caption(_("The model wrote no word."))
    with below:
        if reading.words:
            _inside(reading, *chosen)
            _check(run, pieces, reading)
    show.code(caption_look.look_at_picture)


def _pieces(run: Run) -> list[Piece]:
    """Draw the controls; return the digits. One that is not drawn yet has no ink."""
    task = run.experiment.task_as(CaptionTaskConfig)
    n = task.n_digits
    row = st.container(horizontal=True, vertical_alignment="bottom")
    buttons = row.container(horizontal=True, width="content")
    asked = view.ask(Scene, SCOPE, scene=view.held(SCENE, holds_for=run.id), places={"free": row})
    with buttons:
        st.button(
            _("Next picture"),
            icon=":material/casino:",
            key="captions-another",
            on_click=st.session_state.update,
            args=({f"{SCOPE}-scene": asked.scene + 1},),
            help=_("Unseen digits from the test set."),
        )
        if n > 1:
            st.button(
                _("Swap places"),
                icon=":material/swap_horiz:",
                key="captions-swap",
                on_click=_swap,
                args=(n,),
            )
    laid_out = [(placed, 0) for placed in FIRST.get(n, ())]
    if asked.scene or not laid_out:
        laid_out = caption_look.unseen_scene(run, max(0, asked.scene - 1))
    tabs = st.tabs([_("Digit {n}", n=i) for i in range(1, n + 1)])
    composed = []
    for i, (tab, (placed, hand)) in enumerate(zip(tabs, laid_out, strict=True), 1):
        with tab:
            step = 1 if asked.free else GRID
            composed.append(_piece(run, i, placed, hand, step, of=f"{run.id} {asked.scene}"))
    return composed


def _piece(run: Run, i: int, laid_out: PlacedDigit, hand: int, step: int, *, of: str) -> Piece:
    """Ask for a digit, at first as it is laid out; of: what it belongs to."""

    def ask(name: str, field: object) -> int:
        return int(view.one(field, f"{name}-{i}", SCOPE))

    def place(name: str, label: str, first: int) -> int:
        key = f"{SCOPE}-{name}-{i}"
        if key in st.session_state:
            st.session_state[key] = min(most, int(st.session_state[key]) // step * step)
        first = min(first, most)
        return ask(name, view.number(label, 0, most, first, step=step, holds_for=of))

    numbers = {str(digit): str(digit) for digit in range(10)}
    named = view.choice(N_("Number"), numbers, str(laid_out.number), is_list=True, holds_for=of)
    left, right = st.columns(2)
    with left:
        number = ask("number", named)
    with right:
        is_drawn = ask("drawn", view.flag(N_("Draw it"), holds_for=of))
        if not is_drawn:
            hand = ask("hand", view.held(dataclasses.replace(HAND, first=hand), holds_for=of))
            st.button(
                _("Change handwriting"),
                key=f"captions-another-{i}",
                icon=":material/draw:",
                on_click=st.session_state.update,
                args=({f"{SCOPE}-hand-{i}": hand + 1},),
            )
    side = LARGE
    if run.experiment.task_as(CaptionTaskConfig).sizes:
        is_large = view.flag(N_("Large"), default=laid_out.side >= LARGE, holds_for=of)
        side = LARGE if ask("large", is_large) else SMALL
    most = (CANVAS - side) // step * step
    across, down = st.columns(2)
    with across:
        at_left = place("left", N_("Left (pixels)"), laid_out.left)
    with down:
        at_top = place("top", N_("Top (pixels)"), laid_out.top)
    if is_drawn:
        pixels = _drawn(f"{SCOPE}-pad-{i}")
    else:
        hands = caption_look.unseen_digits(run, number)
        pixels = hands[hand % len(hands)]
    return Piece(PlacedDigit(number, at_left, at_top, side), pixels)


def _drawn(key: str) -> npt.NDArray[np.uint8]:
    """Ask for a drawing; return it as the model's digits are, without ink before there is one."""
    facts = IMAGE_TASKS["mnist-5000"]
    strokes = digit_pad(key=key)
    if strokes is None:
        return np.zeros((facts.image_size, facts.image_size), np.uint8)
    picture, _notes = picture_to_input(strokes, facts)
    digit: npt.NDArray[np.uint8] = picture[0]
    return digit


def _swap(n: int) -> None:
    """Let each digit take the place and the size of the next one."""
    for name in ("left", "top", "large"):
        keys = [f"{SCOPE}-{name}-{i}" for i in range(1, n + 1)]
        values = [st.session_state[key] for key in keys if key in st.session_state]
        st.session_state.update(zip(keys, [*values[1:], *values[:1]], strict=False))


def _strip(reading: CaptionReading, layer: int, number: int) -> None:
    """Show the attention of each word over the picture."""
    assert reading.example.picture is not None
    figure = caption_strip(
        caption_look.chosen_maps(reading, layer, number),
        reading.example.picture,
        [word.text for word in reading.words],
        [word.box for word in reading.words],
        state.theme(),
        notes=[show.percent(word.likely[0][1]) for word in reading.words],
    )
    show.figure(
        figure,
        _("Orange: attention. Outlined: the digit named. Below: probability."),
        key="captions-strip",
    )


def _word_by_word(reading: CaptionReading) -> None:
    """Show each word with its probability, and what else was likely."""
    st.header(_("Word by word"), anchor=False)
    rows = [
        {
            "n": index + 1,
            "word": word.text,
            "probability": word.likely[0][1],
            "instead": " · ".join(
                f"{text} {show.percent(p)}" for text, p in word.likely[1:] if round(p, 3) > 0
            )
            or "–",
        }
        for index, word in enumerate(reading.words)
    ]
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        height=38 + 35 * len(rows),
        column_config={
            "n": st.column_config.NumberColumn(_("Step"), width="small"),
            "word": _("Writes"),
            "probability": st.column_config.ProgressColumn(
                _("Probability"), format="percent", min_value=0, max_value=1
            ),
            "instead": st.column_config.TextColumn(_("Instead"), width="large"),
        },
    )


def _inside(reading: CaptionReading, layer: int, number: int) -> None:
    """Show how much attention of each word is in the box of the digit that it names."""
    rows = caption_look.scores(reading, layer, number)
    if rows.empty or reading.even is None:
        st.caption(_("None of these digits was named."))
        return
    st.header(_("Attention in the true box"), anchor=False)
    lines = [
        _(
            "**{word}**: {share}; best head (layer {layer}, head {head}): {best}",
            word=escape(row.word),
            share=show.percent(row.share),
            layer=row.layer,
            head=row.head,
            best=show.percent(row.best),
        )
        for row in rows.itertuples()
    ]
    st.markdown("\n".join(f"- {line}" for line in lines))
    st.caption(_("Uniform attention would give {share}.", share=show.percent(reading.even)))


def _check(run: Run, pieces: list[Piece], reading: CaptionReading) -> None:
    """Ask what the model writes once two digits change places, and how many keys a word has."""
    asked: dict[str, Question | None] = {"patches": questions.about_patches(reading)}
    if len(pieces) > 1:
        with suppress(ValueError):  # of two sizes they may overlap then
            swapped = caption_look.look_at_scene(run, caption_look.exchanged(pieces))
            asked = {"swap": questions.about_swap(reading, swapped), **asked}
    scene = [(piece.placed, hash(piece.pixels.tobytes())) for piece in pieces]
    question.check(asked, of=f"{run.id} {reading.example.step} {scene}")


if __name__ == "__main__":
    page()
