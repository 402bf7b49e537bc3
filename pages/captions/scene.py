"""The picture to describe: digits, handwriting and positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st

from pages.components.digits import digit_pad
from pages.i18n import _
from tfm_core.config import IMAGE_TASKS, CaptionTaskConfig
from tfm_core.data.own_picture import picture_to_input
from tfm_core.data.scenes import CANVAS, GRID, LARGE, SMALL, PlacedDigit
from tfm_core.inspect.text.caption_look import Piece, unseen_digits, unseen_scene
from tfm_core.runs.run import Run

_FIELDS = ("number", "left", "top")
_SCENE = "captions-scene"  # the last test picture shown, and its run
_FREE = "captions-free"
FIRST = {
    1: (PlacedDigit(3, 14, 14),),
    2: (PlacedDigit(3, 0, 14), PlacedDigit(7, 28, 14)),
    3: (PlacedDigit(3, 0, 0), PlacedDigit(7, 28, 0), PlacedDigit(5, 14, 28)),
}
"""The first picture, by number of digits."""


def pieces(run: Run) -> tuple[list[Piece], list[str]]:
    """Draw the controls; return the digits, and hints for those not drawn yet.

    A digit that is not drawn has no ink but keeps its place.
    """
    task = run.experiment.task_as(CaptionTaskConfig)
    _lay_out_first(run)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            _("Next picture"),
            icon=":material/casino:",
            key="captions-another",
            on_click=lambda: _lay_out(run, st.session_state.get(_SCENE, {}).get("row", -1) + 1),
            help=_("Unseen digits from the test set."),
        )
        if task.n_digits > 1:
            st.button(
                _("Swap places"),
                icon=":material/swap_horiz:",
                key="captions-swap",
                on_click=_swap,
                args=(task.n_digits,),
            )
        is_free = st.toggle(
            _("Anywhere"),
            key=_FREE,
            persist_state="session",
            help=_("Training used every {n}th pixel; try positions in between.", n=GRID),
        )
    tabs = st.tabs([_("Digit {n}", n=i + 1) for i in range(task.n_digits)])
    composed, missing = [], []
    for i, tab in enumerate(tabs):
        with tab:
            piece = _piece(run, task, i, 1 if is_free else GRID)
        composed.append(piece)
        if not piece.pixels.any():
            missing.append(_("Draw digit {n} on its pad.", n=i + 1))
    return composed, missing


def _piece(run: Run, task: CaptionTaskConfig, i: int, step: int) -> Piece:
    left, right = st.columns(2)
    with left:
        number = st.selectbox(
            _("Number"), range(10), key=_key("number", i), persist_state="session"
        )
    with right:
        is_drawn = st.toggle(_("Draw it"), key=_key("drawn", i), persist_state="session")
        if not is_drawn:
            hand = _key("hand", i)

            def another() -> None:
                st.session_state[hand] = st.session_state.get(hand, i) + 1

            st.button(
                _("Change handwriting"),
                key=_key("another", i),
                icon=":material/draw:",
                on_click=another,
            )
    side = LARGE
    if task.sizes:
        is_large = st.toggle(_("Large"), value=True, key=_key("large", i), persist_state="session")
        side = LARGE if is_large else SMALL
    most = (CANVAS - side) // step * step
    across, down = st.columns(2)
    with across:
        at_left = _slider(_("Left (pixels)"), "left", i, most, step)
    with down:
        at_top = _slider(_("Top (pixels)"), "top", i, most, step)
    pixels = _drawn(i) if is_drawn else _unseen(run, number, i)
    return Piece(PlacedDigit(number, at_left, at_top, side), pixels)


def _slider(label: str, name: str, i: int, most: int, step: int) -> int:
    key = _key(name, i)
    value = min(most, int(st.session_state.get(key, 0)) // step * step)
    st.session_state[key] = value
    return st.slider(label, 0, most, step=step, key=key, persist_state="session")


def _drawn(i: int) -> npt.NDArray[np.uint8]:
    facts = IMAGE_TASKS["mnist-5000"]
    strokes = digit_pad(key=_key("pad", i))
    if strokes is None:
        return np.zeros((facts.image_size, facts.image_size), np.uint8)
    picture, _notes = picture_to_input(strokes, facts)
    digit: npt.NDArray[np.uint8] = picture[0]
    return digit


def _unseen(run: Run, number: int, i: int) -> npt.NDArray[np.uint8]:
    hands = unseen_digits(run, number)
    pixels: npt.NDArray[np.uint8] = hands[st.session_state.get(_key("hand", i), i) % len(hands)]
    return pixels


def _lay_out_first(run: Run) -> None:
    """Lay out a picture with a plain caption, if this run has none yet."""
    scene: dict[str, Any] = st.session_state.get(_SCENE, {})
    if scene.get("run") == run.id:
        return
    n = run.experiment.task_as(CaptionTaskConfig).n_digits
    if n not in FIRST:
        _lay_out(run, 0)
        return
    st.session_state[_SCENE] = {"run": run.id, "row": -1}
    for i, placed in enumerate(FIRST[n]):
        _place(i, placed, hand=0)


def _lay_out(run: Run, row: int) -> None:
    st.session_state[_SCENE] = {"run": run.id, "row": row}
    for i, (placed, hand) in enumerate(unseen_scene(run, row)):
        _place(i, placed, hand=hand)


def _place(i: int, placed: PlacedDigit, *, hand: int) -> None:
    for name in _FIELDS:
        st.session_state[_key(name, i)] = getattr(placed, name)
    st.session_state[_key("large", i)] = placed.side >= LARGE
    st.session_state[_key("hand", i)] = hand
    st.session_state[_key("drawn", i)] = False


def _swap(n: int) -> None:
    other_squares = [
        {name: st.session_state.get(_key(name, i)) for name in ("left", "top", "large")}
        for i in range(n)
    ]
    for i in range(n):
        for name, value in other_squares[(i + 1) % n].items():
            if value is not None:
                st.session_state[_key(name, i)] = value


def _key(name: str, i: int) -> str:
    return f"captions-{name}-{i}"
