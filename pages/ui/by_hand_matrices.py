"""The projections: drawn from a seed, changed by hand, or learned in a few gradient steps."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.ui import show
from pages.ui.by_hand_words import Given
from pages.ui.run_words import escape
from pages.ui.words import _
from tfm_core.inspect import by_hand, by_hand_learning, by_hand_text
from tfm_core.inspect.by_hand import Floats, Matrices
from tfm_core.plots import by_hand_lesson as plots

_BASE = "hand-matrices"
_RATES = (0.1, 0.3, 1.0, 2.0, 4.0)
LETTERS = {"query": "W_Q", "key": "W_K", "value": "W_V", "out": "W_O"}


def matrices(given: Given, *, with_out: bool) -> Matrices:
    """Show seed, button and editors; return the matrices. Raises ValueError, in a sentence."""
    d_model = given.vectors.shape[1]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        seed = st.number_input(
            _("Seed of the matrices"), 0, 9999, 1, key="draw", bind="query-params", width=180,
            help=_("The same seed draws the same numbers, on every machine and in every link."),
        )  # fmt: skip
        st.button(
            _("Draw new ones"), icon=":material/casino:", key="hand-draw-new",
            on_click=lambda: st.session_state.update(draw=(int(seed) + 1) % 10_000),
        )  # fmt: skip
    base, version = _base(d_model, int(seed))
    names = [name for name in LETTERS if with_out or name != "out"]
    with st.expander(_("Change the matrices by hand"), icon=":material/edit:"):
        made = {}
        for column, name in zip(_columns(len(names)), names, strict=True):
            with column:
                made[name] = _editor(name, getattr(base, name), version)
    return replace(base, **made)


def _columns(n: int) -> list[st.delta_generator.DeltaGenerator]:
    first = st.columns(2)
    return [*first, *st.columns(2)][:n]


def _editor(name: str, values: Floats, version: int) -> Floats:
    columns = [str(place + 1) for place in range(values.shape[1])]
    rows = [dict(zip(columns, map(float, row), strict=True)) for row in values.tolist()]
    number = st.column_config.NumberColumn
    st.markdown(f"**{LETTERS[name].replace('_', chr(92) + '_')}**")
    edited = st.data_editor(
        rows,
        hide_index=True,
        column_config={
            column: number(column, format="%.2f", step=0.01, width="small") for column in columns
        },
        key=f"hand-{name}-{version}",
    )
    numbers = [[float("nan") if row[c] is None else row[c] for c in columns] for row in edited]
    return by_hand_text.checked(numbers)


def _base(d_model: int, seed: int) -> tuple[Matrices, str]:
    """Return what the editors start from, and a name that changes whenever that does."""
    signature, kept, version = st.session_state.get(_BASE, (None, None, 0))
    if signature == (d_model, seed) and kept is not None:
        return kept, f"{d_model}-{seed}-{version}"
    return by_hand.drawn(d_model, seed), f"{d_model}-{seed}-0"


def _keep(d_model: int, seed: int, learned: Matrices) -> None:
    version = st.session_state.get(_BASE, (None, None, 0))[2] + 1
    st.session_state[_BASE] = ((d_model, seed), learned, version)


def lesson(given: Given, start: Matrices) -> Matrices:
    """Let W_Q and W_K learn what the user wants; return them as they are at the chosen step."""
    pairs = _pairs(given.words)
    with st.container(border=True):
        st.markdown(_("**Let them learn.** Which word should attend to which?"))
        left, right = st.columns([2, 3], gap="medium")
        with left:
            targets = st.multiselect(
                _("Wanted"), list(pairs), default=[f"{len(given.words)}-2"],
                format_func=lambda name: _arrow(given.words, pairs.get(name, (0, 0))),
                key=f"wanted-{len(given.words)}", bind="query-params",
                help=_("A loss is written down for these pairs alone: −log of their weight."),
            )  # fmt: skip
            rate = st.select_slider(
                _("Learning rate"), _RATES, 1.0, key="hand-rate",
                help=_("How far each step goes downhill; too far, and the loss jumps."),
            )  # fmt: skip
        wanted = [pairs[name] for name in targets]
        try:
            chosen = by_hand_learning.targets_of(wanted, given.words)
            found = by_hand_learning.learn(
                given.vectors, start, chosen, given.allowed, rate=float(rate)
            )
        except ValueError as error:
            show.problem(escape(str(error)))
            return start
        with left:
            step = _step(found)
            _said(found, step)
            seed = int(st.session_state.get("draw", 1))
            st.button(
                _("Go on from here"), key="hand-keep", disabled=step == 0,
                on_click=_keep, args=(given.vectors.shape[1], seed, found.matrices[step]),
                help=_("These matrices become those of the page, in every stage."),
            )  # fmt: skip
        with right:
            _chart(given.words, chosen, found, step)
    return found.matrices[step]


def _chart(
    words: tuple[str, ...], targets: dict[int, int], found: by_hand_learning.Lesson, step: int
) -> None:
    lines = {
        _arrow(words, (query, key)): found.weights[:, query, key] for query, key in targets.items()
    }
    show.figure(
        plots.lesson(found.losses, lines, step),
        _("The loss falls as the wanted weight nears 1. Below, every number at this step."),
        key="hand-lesson",
    )


def _step(found: by_hand_learning.Lesson) -> int:
    last = len(found.losses) - 1
    return st.slider(
        _("Step of the learning"), 0, last, 0, key="learned", bind="query-params",
        help=_("0 is before learning; each step is one gradient of the loss above."),
    )  # fmt: skip


def _said(found: by_hand_learning.Lesson, step: int) -> None:
    st.markdown(
        _("Loss **{now:.4f}** at step {step}, {first:.4f} before learning.").format(
            now=float(found.losses[step]), step=step, first=float(found.losses[0])
        )
    )


def _pairs(words: tuple[str, ...]) -> dict[str, tuple[int, int]]:
    places = range(len(words))
    return {f"{q + 1}-{k + 1}": (q, k) for q in places for k in places}


def _arrow(words: tuple[str, ...], pair: tuple[int, int]) -> str:
    names = [f"{word} {n + 1}" if words.count(word) > 1 else word for n, word in enumerate(words)]
    return f"{names[pair[0]]} → {names[pair[1]]}"
