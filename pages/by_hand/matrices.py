"""The projections: drawn from a seed, changed by hand, or learned in a few gradient steps."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.by_hand.words import Given
from pages.i18n import _
from pages.ui import show, url_choice
from pages.ui.run_words import escape
from tfm_core.inspect.by_hand import attention, learning
from tfm_core.inspect.by_hand import text as by_hand_text
from tfm_core.inspect.by_hand.attention import Floats, Matrices
from tfm_core.plots import by_hand_lesson as plots

_BASE, _MADE = "hand-matrices", "hand-made"
_WANTED = "wanted"
_RATES = (0.1, 0.3, 1.0, 2.0, 4.0)
LETTERS = {"query": "W_Q", "key": "W_K", "value": "W_V", "out": "W_O"}
QUERIES = {"query": "wq", "key": "wk", "value": "wv", "out": "wo"}


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
    drawn = attention.drawn(d_model, int(seed))
    names = [name for name in LETTERS if with_out or name != "out"]
    base, version = _base(drawn, int(seed), names)
    with st.expander(_("Change the matrices by hand"), icon=":material/edit:"):
        made = {}
        for column, name in zip(_columns(len(names)), names, strict=True):
            with column:
                made[name] = _editor(name, getattr(base, name), version)
    changed = replace(base, **made)
    _made()[d_model] = (int(seed), changed)
    _say_in_link(changed, drawn, names)
    return changed


def out_of_link(stage: str) -> None:
    """Take out of the link what a stage does not show; the session keeps it."""
    if stage == "one-hot":
        for name in LETTERS:
            url_choice.say(_key(name), QUERIES[name], None)
    if stage != "projections":
        url_choice.say(_WANTED, _WANTED, None)


def _say_in_link(made: Matrices, drawn: Matrices, names: list[str]) -> None:
    """Put those of the matrices that are shown and differ from the drawn ones into the link."""
    for name, query in QUERIES.items():
        values, usual = getattr(made, name), getattr(drawn, name)
        is_said = name in names and (values != usual).any()
        url_choice.say(_key(name), query, by_hand_text.text_of(values) if is_said else None)


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


def _base(drawn: Matrices, seed: int, names: list[str]) -> tuple[Matrices, int]:
    """Return what the editors start from, and a number that changes whenever that does."""
    d_model = len(drawn.query)
    signature = (d_model, seed)
    known, base, version = st.session_state.get(_BASE, (None, drawn, 0))
    asked = _asked(d_model, names)
    is_on_page = f"hand-query-{version}" in st.session_state
    if known == signature and is_on_page and not asked:
        return base, version
    kept_seed, kept = _made().get(d_model, (None, drawn))
    base = replace(kept if kept_seed == seed else drawn, **asked)
    st.session_state[_BASE] = (signature, base, version + 1)
    return base, version + 1


def _asked(d_model: int, names: list[str]) -> dict[str, Floats]:
    """Return the matrices of a link that was opened just now; say which of them cannot be."""
    asked = {}
    for name in names:
        text = url_choice.opened(_key(name), QUERIES[name])
        if text is None:
            continue
        try:
            asked[name] = by_hand_text.matrix_of(text, LETTERS[name], d_model)
        except ValueError as error:
            url_choice.warn(f"{escape(_(error))} {_('The matrix of the seed is used instead.')}")
    return asked


def _made() -> dict[int, tuple[int, Matrices]]:
    """Return what became of the matrices in this session: d_model -> their seed, and they."""
    found: dict[int, tuple[int, Matrices]] = st.session_state.setdefault(_MADE, {})
    return found


def _keep(d_model: int, seed: int, learned: Matrices) -> None:
    parts = {name: by_hand_text.rounded(getattr(learned, name)) for name in LETTERS}
    _made()[d_model] = (seed, Matrices(**parts))
    _signature, base, version = st.session_state[_BASE]
    st.session_state[_BASE] = (None, base, version)  # the editors start anew


def _key(name: str) -> str:
    return f"hand-link-{name}"


def lesson(given: Given, start: Matrices) -> Matrices:
    """Let W_Q and W_K learn what the user wants; return them as they are at the chosen step."""
    pairs = _pairs(given.words)
    with st.container(border=True):
        st.markdown(_("**Let them learn.** Which word should attend to which?"))
        left, right = st.columns([2, 3], gap="medium")
        with left:
            targets = _wanted(given.words, pairs)
            rate = st.select_slider(
                _("Learning rate"), _RATES, 1.0, key="rate", bind="query-params",
                help=_("How far each step goes downhill; too far, and the loss jumps."),
            )  # fmt: skip
        wanted = [pairs[name] for name in targets]
        try:
            chosen = learning.targets_of(wanted, given.words)
            found = learning.learn(given.vectors, start, chosen, given.allowed, rate=float(rate))
        except ValueError as error:
            show.problem(escape(_(error)))
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


def _wanted(words: tuple[str, ...], pairs: dict[str, tuple[int, int]]) -> list[str]:
    """Ask which word should attend to which; the link says the pairs as places, ``3-2``."""
    first, key = [f"{len(words)}-2"], f"wanted-{len(words)}"
    labels = {name: _arrow(words, pair) for name, pair in pairs.items()}
    url_choice.renamed_several(key, _WANTED, labels)
    unknown = url_choice.read_several(key, _WANTED, list(pairs), first)
    targets = st.multiselect(
        _("Wanted"), list(pairs), format_func=lambda name: labels.get(name, name),
        key=key, persist_state="session",
        help=_("A loss is written down for these pairs alone: −log of their weight."),
    )  # fmt: skip
    url_choice.warn(unknown)
    url_choice.say_several(_WANTED, targets, first)
    return targets


def _chart(
    words: tuple[str, ...], targets: dict[int, int], found: learning.Lesson, step: int
) -> None:
    lines = {
        _arrow(words, (query, key)): found.weights[:, query, key] for query, key in targets.items()
    }
    show.figure(
        plots.lesson(found.losses, lines, step),
        _("The loss falls as the wanted weight nears 1. Below, every number at this step."),
        key="hand-lesson",
    )


def _step(found: learning.Lesson) -> int:
    last = len(found.losses) - 1
    return st.slider(
        _("Step of the learning"), 0, last, 0, key="learned", bind="query-params",
        help=_("0 is before learning; each step is one gradient of the loss above."),
    )  # fmt: skip


def _said(found: learning.Lesson, step: int) -> None:
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
