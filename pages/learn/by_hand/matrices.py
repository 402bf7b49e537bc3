"""The projections: from a seed, edited by hand, or trained for a few gradient steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from pages.app import show
from pages.app.address import view, view_link
from pages.app.address.parameters import Number, Text
from pages.i18n import N_, _, paragraph
from pages.learn.by_hand.words import MAX_NUMBERS, SCOPE, Given
from tfm_core.inspect.by_hand import attention, learning
from tfm_core.inspect.by_hand import text as by_hand_text
from tfm_core.inspect.by_hand.attention import Matrices
from tfm_core.plots.chart import chart
from tfm_core.probe.types import Floats

SEED = Number("draw", first=1, low=0, high=9999)
MATRICES = {
    name: Text(query, first="", most=MAX_NUMBERS)
    for name, query in {"query": "wq", "key": "wk", "value": "wv", "out": "wo"}.items()
}
RATES = (0.1, 0.3, 1.0, 2.0, 4.0)
_BASE, _EDITED = "hand-matrices", "hand-edited"
LETTERS = {"query": "W_Q", "key": "W_K", "value": "W_V", "out": "W_O"}


def matrices(given: Given, *, with_out: bool) -> Matrices:
    """Show seed, button and editors; return the matrices. Raises ValueError, in a sentence."""
    d_model = given.vectors.shape[1]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        unknown = view_link.receive(SEED)
        seed = st.number_input(
            _("Seed of the matrices"), SEED.low, SEED.high, key=SEED.query, width=180
        )
        st.button(
            _("Draw new matrices"),
            icon=":material/casino:",
            key="hand-draw-new",
            on_click=lambda: st.session_state.update({SEED.query: (seed + 1) % (SEED.high + 1)}),
        )
    view_link.warn(unknown)
    view_link.say(SEED, seed)
    seeded = attention.random_matrices(d_model, seed)
    names = [name for name in LETTERS if with_out or name != "out"]
    base, version = _base(seeded, seed, names)
    with st.expander(_("Edit the matrices"), icon=":material/edit:"):
        made = {}
        for column, name in zip((*st.columns(2), *st.columns(2)), names, strict=False):
            with column:
                made[name] = _editor(name, getattr(base, name), version)
    changed = replace(base, **made)
    _edited()[d_model] = (seed, changed)
    for name, parameter in MATRICES.items():
        values, usual = getattr(changed, name), getattr(seeded, name)
        is_in_link = name in names and (values != usual).any()
        view_link.say(parameter, by_hand_text.text_of(values) if is_in_link else "")
    return changed


def _editor(name: str, values: Floats, version: int) -> Floats:
    columns = [str(index + 1) for index in range(values.shape[1])]
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


def _base(seeded: Matrices, seed: int, names: list[str]) -> tuple[Matrices, int]:
    d_model = len(seeded.query)
    signature = (d_model, seed)
    signature_before, base, version = st.session_state.get(_BASE, (None, seeded, 0))
    linked = _linked(d_model, names)
    is_on_page = f"hand-query-{version}" in st.session_state
    if signature_before == signature and is_on_page and not linked:
        return base, version
    kept_seed, edited = _edited().get(d_model, (None, seeded))
    base = replace(edited if kept_seed == seed else seeded, **linked)
    st.session_state[_BASE] = (signature, base, version + 1)
    return base, version + 1


def _linked(d_model: int, names: list[str]) -> dict[str, Floats]:
    """Return the matrices of a newly opened link; warn about invalid ones."""
    linked = {}
    for name in names:
        text = view_link.opened(MATRICES[name])
        if not text:
            continue
        try:
            linked[name] = by_hand_text.matrix_of(text, LETTERS[name], d_model)
        except ValueError as error:
            view_link.warn(_(error) + " " + _("The matrix of the seed is used instead."))
    return linked


def _edited() -> dict[int, tuple[int, Matrices]]:
    """Return the matrices of this session: d_model -> seed, matrices."""
    made: dict[int, tuple[int, Matrices]] = st.session_state.setdefault(_EDITED, {})
    return made


def _keep(d_model: int, seed: int, learned: Matrices) -> None:
    parts = {name: by_hand_text.rounded(getattr(learned, name)) for name in LETTERS}
    _edited()[d_model] = (seed, Matrices(**parts))
    _signature, base, version = st.session_state[_BASE]
    st.session_state[_BASE] = (None, base, version)  # the editors start anew


def lesson(
    given: Given, start: Matrices, bar: st.delta_generator.DeltaGenerator
) -> tuple[Matrices, Callable[[], None]]:
    """Train W_Q and W_K towards the target attention; draw the controls into ``bar``.

    Returns the matrices at the chosen step, and a function that draws the learning curve.
    """
    indices = range(len(given.typed))
    pairs = {f"{q + 1}-{k + 1}": (q, k) for q in indices for k in indices}
    with bar:
        for_targets, for_rate, for_step, for_loss = st.columns(
            [4, 3, 4, 4], vertical_alignment="bottom"
        )
        with for_targets:
            targets = _wanted(given.typed, pairs)
        with for_rate:
            rates = view.pick(N_("Learning rate"), RATES, 1.0, form="{:g}")
            rate = view.one(rates, "rate", SCOPE)
        wanted = [pairs[name] for name in targets]
        try:
            chosen = learning.targets_of(wanted, given.typed)
            learned = learning.learn(given.vectors, start, chosen, given.allowed, rate=rate)
        except ValueError as error:
            show.problem(error)
            return start, lambda: None
        with for_step:
            steps = view.number(N_("Training step"), 0, len(learned.losses) - 1, 0)
            step = int(view.one(steps, "learned", SCOPE))
        with for_loss:
            first, now = float(learned.losses[0]), float(learned.losses[step])
            st.markdown(_("Loss **{now:.4f}**, {first:.4f} before", now=now, first=first))
            seed = int(st.session_state.get(SEED.query, SEED.first))
            st.button(
                _("Continue from here"),
                key="hand-keep",
                disabled=step == 0,
                on_click=_keep,
                args=(given.vectors.shape[1], seed, learned.matrices[step]),
            )
    return learned.matrices[step], lambda: _chart(given.typed, chosen, learned, step)


def _wanted(words: tuple[str, ...], pairs: dict[str, tuple[int, int]]) -> list[str]:
    """Choose which word should attend to which; the link has the pairs as indices, ``3-2``."""
    offered = view.choices(
        N_("Target attention"),
        {name: _arrow(words, pair) for name, pair in pairs.items()},
        (f"{len(words)}-2",),
        of=str(len(words)),
        help=lambda: paragraph("by_hand/target"),
    )
    return list(view.one(offered, "wanted", SCOPE))


def _chart(
    words: tuple[str, ...], targets: dict[int, int], learned: learning.Lesson, step: int
) -> None:
    lines = {
        _arrow(words, (query, key)): learned.weights[:, query, key]
        for query, key in targets.items()
    }
    steps, chosen = range(len(learned.losses)), {"x": step}
    table = learning.LEARNED.table({"step": steps, "loss": learned.losses, **lines})
    loss = chart(table, x="step", y="loss", reference=chosen, height=180, marked=0)
    weights = chart(table, x="step", y=[*lines], reference=chosen, height=220, marked=0)
    show.figure(loss, _("The loss falls as the target weight nears 1."), key="hand-lesson")
    said = _("The weight of each chosen pair, step by step.")
    show.figure(weights, said, key="hand-lesson-weights")


def _arrow(words: tuple[str, ...], pair: tuple[int, int]) -> str:
    names = [f"{word} {n + 1}" if words.count(word) > 1 else word for n, word in enumerate(words)]
    return f"{names[pair[0]]} → {names[pair[1]]}"
