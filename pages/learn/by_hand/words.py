"""Controls: words, vectors and mask, kept in the link."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.app import show, typed
from pages.app.address import view, view_link
from pages.app.address.parameters import Text
from pages.i18n import N_, _, paragraph
from tfm_core.inspect.by_hand import attention
from tfm_core.inspect.by_hand import text as by_hand_text
from tfm_core.probe.types import Bools, Floats

SCOPE = "hand"
MAX_NUMBERS = 400  # characters of vectors or a matrix
TURNED = Text("turned", first="", most=MAX_NUMBERS)
VECTORS = Text("vectors", first="", most=MAX_NUMBERS)
_BASE, _KEPT, _EDITS = "hand-base", "hand-kept", "hand-mask-edits"
_EDITOR = "hand-vectors"


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """What attention is computed on: words, vectors (T, D), mask (T, T), with or without scale.

    n_padding: how many of the last words are <pad>.
    """

    words: tuple[str, ...]
    vectors: Floats
    allowed: Bools
    is_scaled: bool
    n_padding: int = 0

    @property
    def typed(self) -> tuple[str, ...]:
        """The words without padding."""
        return self.words[: len(self.words) - self.n_padding]


_WIDTHS = {str(n): str(n) for n in range(attention.MIN, attention.MAX + 1)}
MAX_LETTERS = 100  # of the words together


def _width(default: str) -> str:
    help = N_("d_model; heads share it equally.")
    made: str = view.choice(N_("Numbers a word"), _WIDTHS, default, help=help)
    return made


@dataclass(frozen=True)
class TypedWords:
    """Words, the size of their vectors, and how they may attend."""

    words: str = view.text(
        N_("Your words"),
        " ".join(attention.FIRST_WORDS),
        MAX_LETTERS,
        help=N_("Two to six words, separated by spaces."),
    )
    numbers_one: str = _width("3")
    numbers_heads: str = _width("4")
    mask: str = view.choice(
        N_("Mask"),
        {"none": N_("None"), "causal": N_("Causal"), "padding": N_("Padding")},
        help=lambda: paragraph("by_hand/mask"),
    )
    scale: bool = view.flag(N_("Divide the scores by √d"), default=True)


def given(stage: str) -> Given:
    """Draw the controls; return their values. Raises ValueError, in a sentence."""
    label = _("Words, vectors, mask and scale")
    with st.expander(label, icon=":material/tune:", key="hand-setup"):
        left, right = st.columns([2, 3], gap="medium")
        with left:
            is_one = stage in ("one-hot", "projections")
            hidden = {"numbers_heads" if is_one else "numbers_one"}
            hidden |= {"scale"} if stage == "forms" else set()
            asked = view.ask(TypedWords, SCOPE, hidden=hidden)
        words = by_hand_text.words_of(typed.within(asked.words, MAX_LETTERS))
        with right:
            vectors = _vectors(words, int(asked.numbers_one if is_one else asked.numbers_heads))
    mask_kind = asked.mask
    n_padding = 1 if mask_kind == "padding" else 0
    words, vectors = attention.filled_up(words, vectors, n_padding)
    linked = view_link.opened(TURNED)
    if linked is not None:
        try:
            flipped = by_hand_text.pairs_of(linked, len(words))
            st.session_state[_EDITS] = ((mask_kind, len(words)), flipped)
        except ValueError as error:
            view_link.warn(_(error) + " " + _("The mask stays as it is."))
    clicks = _clicks(mask_kind, len(words))
    view_link.say(TURNED, ",".join(map(by_hand_text.text_of_indices, clicks)))
    allowed = attention.mask_of(mask_kind, len(words))
    for query, key in clicks:
        allowed[query, key] = not allowed[query, key]
    return Given(words, vectors, allowed, asked.scale, n_padding)


def _vectors(words: tuple[str, ...], n_numbers: int) -> Floats:
    base, version = _base(words, n_numbers)
    names = [str(index + 1) for index in range(n_numbers)]
    rows = [
        {"word": word, **{name: round(value, 4) for name, value in zip(names, row, strict=True)}}
        for word, row in zip(words, base.tolist(), strict=True)
    ]
    number = st.column_config.NumberColumn
    st.markdown(_("**Vectors**: click a number to change it"))
    edited = st.data_editor(
        rows,
        hide_index=True,
        column_config={
            "word": st.column_config.TextColumn(_("word"), disabled=True, width="small"),
            **{name: number(name, format="%.2f", step=0.01, width="small") for name in names},
        },
        key=f"{_EDITOR}-{version}",
        width="stretch",
    )
    _buttons(words, n_numbers, version)
    values = [[math.nan if row[name] is None else row[name] for name in names] for row in edited]
    vectors = by_hand_text.checked(values)
    by_word = dict(zip(attention.named(words), vectors.tolist(), strict=True))
    st.session_state.setdefault(_KEPT, {}).update(by_word)
    is_usual = (vectors == attention.first_vectors(*vectors.shape)).all()
    view_link.say(VECTORS, "" if is_usual else by_hand_text.text_of(vectors))
    return vectors


def _base(words: tuple[str, ...], n_numbers: int) -> tuple[Floats, int]:
    signature = (words, n_numbers)
    stored: tuple[Any, Floats, int, bool] | None = st.session_state.get(_BASE)
    linked = view_link.opened(VECTORS)
    is_on_page = stored is not None and f"{_EDITOR}-{stored[2]}" in st.session_state
    if not linked and stored is not None and stored[0] == signature and (is_on_page or stored[3]):
        st.session_state[_BASE] = (*stored[:3], False)
        return stored[1], stored[2]
    made = attention.with_kept(words, n_numbers, st.session_state.get(_KEPT, {}))
    if linked:
        try:
            made = by_hand_text.vectors_of(linked, len(words), n_numbers)
        except ValueError as error:
            view_link.warn(_(error) + " " + _("The first vectors are used instead."))
    return _start_from(signature, made)


def _start_from(signature: Any, vectors: Floats, *, is_new: bool = False) -> tuple[Floats, int]:
    """Reset the table; is_new: on request, so earlier edits are dropped."""
    version = 1 + (st.session_state[_BASE][2] if _BASE in st.session_state else 0)
    st.session_state[_BASE] = (signature, vectors, version, is_new)
    return vectors, version


def _buttons(words: tuple[str, ...], n_numbers: int, version: int) -> None:
    signature, n = (words, n_numbers), len(words)

    def start_from(vectors: Floats) -> None:
        _start_from(signature, vectors, is_new=True)

    with st.container(horizontal=True, gap="small"):
        st.button(
            _("One-hot"),
            key="hand-one-hot",
            help=_("Each word matches only itself."),
            on_click=lambda: start_from(attention.one_hot(n, n_numbers)),
        )
        st.button(
            _("Random"),
            key="hand-random",
            icon=":material/casino:",
            on_click=lambda: start_from(attention.random_vectors(n, n_numbers, version)),
        )


def flip(kind: str, n_words: int, query: int, key: int) -> None:
    cells = set(_clicks(kind, n_words))
    cells ^= {(query, key)}
    st.session_state[_EDITS] = ((kind, n_words), tuple(sorted(cells)))


def _clicks(kind: str, n_words: int) -> tuple[tuple[int, int], ...]:
    signature, cells = st.session_state.get(_EDITS, (None, ()))
    return cells if signature == (kind, n_words) else ()


def mask_kind() -> str:
    return str(st.session_state.get(f"{SCOPE}-mask") or "none")


def facts(given: Given) -> None:
    """Show which words may attend to nothing; offer to undo clicks."""
    kind, n = mask_kind(), len(given.words)
    clicks = _clicks(kind, n)
    blind = [word for word, row in zip(given.words, given.allowed, strict=True) if not row.any()]
    if blind:
        show.problem(
            _(
                "{words} may attend to nothing and get zeros.",
                words=", ".join(f"“{word}”" for word in blind),
            )
        )
    if clicks:
        st.button(
            _("Undo my clicks on the mask ({n})", n=len(clicks)),
            icon=":material/undo:",
            key="hand-undo",
            on_click=lambda: st.session_state.pop(_EDITS, None),
        )
