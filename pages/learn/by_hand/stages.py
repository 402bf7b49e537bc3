"""The stages of attention by hand: one-hot words, projections, heads, and six forms of code."""

from __future__ import annotations

import math

import streamlit as st

from pages.app import show
from pages.app.address import view, view_link
from pages.app.address.parameters import Text
from pages.app.model import question
from pages.app.typed import escape
from pages.components.pickers import number_sheet
from pages.i18n import N_, _
from pages.learn.by_hand import matrices as by_hand_matrices
from pages.learn.by_hand import words
from pages.learn.by_hand import words as by_hand_words
from pages.learn.by_hand.words import SCOPE, Given
from tfm_core.inspect.by_hand import attention, questions, text
from tfm_core.inspect.by_hand import forms as by_hand_forms
from tfm_core.inspect.by_hand.attention import Attended, Matrices
from tfm_core.plots.heads import by_hand as plots
from tfm_core.plots.heads.by_hand import Pick
from tfm_core.plots.sheet import SheetLine

AT = Text("at", first="", most=20)
FORMS = ("layer", "heads", "one", "einsum", "fused", "torch")  # in their order
_PICK = "hand-pick"
_PAIRS = {"scores", "scaled", "masked", "exp", "weights", "mix"}
_WORD_AND_NUMBER = {"query", "made-query", "output", "final"}


TITLES = (
    N_("1 · Scores: each query times each key"),
    N_("2 · Scale, and mask"),
    N_("3 · Softmax: each row adds up to 1"),
    N_("4 · Weighted sum of the values"),
)
SENTENCES = (
    N_("Click a number to frame what it is computed from."),
    N_("The spread of a sum of d products is √d."),
    N_("Exponentials, divided by their sum."),
    N_("Each output is the sum of all values, weighted."),
)


def one_hot(given: Given) -> None:
    """Q = K = V: the words themselves."""
    x = given.vectors
    attended = attention.attend(x, x, x, given.allowed, is_scaled=given.is_scaled)
    pick = pickers(given, x.shape[1])
    _sheet(_attention(attended, given, pick, ("Q = X", "K", "V = X")), given)
    scaled, plain = (
        attention.attend(x, x, x, given.allowed, is_scaled=is_scaled) for is_scaled in (True, False)
    )
    asked = questions.about_scale(
        scaled, plain, tuple(map(escape, given.words)), pick.query, is_scaled=given.is_scaled
    )
    numbers = f"{x.tobytes()!r} {given.allowed.tobytes()!r} {given.is_scaled}"
    if question.ask(asked, "scale", of=f"{given.words} {numbers} {pick.query}"):
        divided = _("Divided by √{d}", d=x.shape[1])
        line = plots.beside(
            [
                (name, found.weights, _("largest {weight:.4f}", weight=found.weights.max()))
                for name, found in ((divided, scaled), (_("Not divided"), plain))
            ],
            given.words,
            _("With and without the scale"),
            _("Without it rows are sharper, and gradients vanish."),
            scale="share",
        )
        number_sheet([line], key="hand-comparison")
    else:
        st.caption(_("Answer to see both side by side."))


def projections(given: Given) -> None:
    """W_Q, W_K and W_V turn each word into a query, a key and a value."""
    bar, overview = st.container(border=True, key="hand-lesson-bar"), st.container()
    left, right = st.columns(2, gap="medium")
    with right:
        made = by_hand_matrices.matrices(given, with_out=False)
    # the lesson starts from the matrices, and stands above them
    matrices, chart = by_hand_matrices.lesson(given, made, bar)
    attended = attention.multi_head(
        given.vectors, matrices, 1, given.allowed, is_scaled=given.is_scaled
    )
    (head,) = attended.heads
    with overview:
        line = plots.overview_line(
            head,
            given.words,
            _("All stages at this training step"),
            _("Move the training step above: every stage follows."),
        )
        number_sheet([line], key="hand-overview")
    with left:
        chart()
    with right:
        asked = questions.about_symmetry(head, tuple(map(escape, given.typed)))
        question.ask(asked, "symmetry", of=f"{given.typed} {head.products.tobytes()!r}")
    pick = pickers(given, given.vectors.shape[1])
    lines = _projected(given, matrices, head, pick)
    _sheet([*lines, *_attention(head, given, pick)], given)
    words = tuple(map(escape, given.typed))
    question.check(
        {
            "three-maps": questions.about_three_maps(head, words),
            "transposed-keys": questions.about_transposed_keys(head, words),
        },
        of=f"{given.typed} {head.products.tobytes()!r} {head.value.tobytes()!r}",
    )


def heads(given: Given) -> None:
    d_model = given.vectors.shape[1]
    n_heads = _n_heads(d_model)
    matrices = by_hand_matrices.matrices(given, with_out=True)
    attended = attention.multi_head(
        given.vectors, matrices, n_heads, given.allowed, is_scaled=given.is_scaled
    )
    question.ask(questions.about_heads(given.vectors, n_heads), "heads", of=f"{d_model} {n_heads}")
    names = {str(n): N_("Head {n}", n=n) for n in range(1, n_heads + 1)}
    chosen = int(view.one(view.choice(N_("Written out"), names), "head", SCOPE))
    head = attended.heads[chosen - 1]
    pick = pickers(given, d_model)
    inside = pick.within(len(given.words), head.query.shape[1])
    letters = tuple(_("{letter} of head {n}", letter=letter, n=chosen) for letter in "QKV")
    lines = [
        plots.beside(
            [(_("Head {n}", n=n), head.weights, "") for n, head in enumerate(attended.heads, 1)],
            given.words,
            _("The maps of all heads"),
            _("Each head has its own part of Q and K."),
            scale="share",
        ),
        *_attention(head, given, inside, letters),
        plots.joined_line(
            attended,
            matrices.out,
            given.words,
            pick,
            _("5 · Concatenated, and mixed by W_O"),
            _("W_O mixes the outputs of the heads."),
        ),
    ]
    _sheet(lines, given)
    asked = questions.about_minus_one(attended, tuple(map(escape, given.typed)))
    question.check({"minus-one": asked}, of=f"{given.typed} {attended.joined.tobytes()!r}")


def forms(given: Given) -> None:
    n_heads = _n_heads(given.vectors.shape[1])
    matrices = by_hand_matrices.matrices(given, with_out=True)
    made = by_hand_forms.forms(given.vectors, matrices, n_heads, given.allowed)
    size = given.vectors.shape[1]
    question.ask(questions.about_size(given.vectors, n_heads), "size", of=f"{size} {n_heads}")
    _table(made)
    line = plots.beside(
        [
            (form.name, form.output, _("differs by {value:.2g}", value=form.difference))
            for form in made
        ],
        given.words,
        _("The outputs"),
        _("Point at a number: the same one lights up in every form."),
        ("word", ""),
    )
    number_sheet([line], key="hand-forms")
    if not given.allowed.any(1).all():
        st.caption(_("A query without keys gives NaN in nn.MultiheadAttention, zeros here."))
    by_name = dict(zip(FORMS, made, strict=True))
    labels = {name: form.name for name, form in by_name.items()}
    picked = view.one(view.choice(N_("The code of"), labels, "heads"), "form", SCOPE)
    st.code(by_name[picked].code, language="python")


def _table(made: tuple[by_hand_forms.CodeForm, ...]) -> None:
    worst = max(form.difference for form in made)
    if by_hand_forms.agree(made):
        values = {"n": len(made), "worst": worst}
        words = _("All {n} agree: they differ by at most **{worst:.2g}**.", **values)
        st.success(words, icon=":material/check:")
    elif not math.isfinite(worst) or any(math.isnan(form.difference) for form in made):
        st.warning(_("One gives NaN: a query has no keys."), icon=":material/warning:")
    show.facts(
        [
            (
                _(form.name),
                f"{form.difference:.3g}",
                "–" if form.weight_difference is None else f"{form.weight_difference:.3g}",
            )
            for form in made
        ],
        [_("form"), _("largest difference of the output"), _("of the weights")],
    )


def _n_heads(d_model: int) -> int:
    fitting = {str(n): str(n) for n in range(2, d_model + 1) if d_model % n == 0}
    return int(view.one(view.choice(N_("Heads"), fitting), f"heads-{d_model}", SCOPE))


def _attention(
    attended: Attended, given: Given, pick: Pick, letters: tuple[str, ...] = ("Q", "K", "V")
) -> list[SheetLine]:
    q, k, v = letters
    titles, sentences = (list(map(_, words)) for words in (TITLES, SENTENCES))
    if not given.is_scaled:
        titles[1] = _("2 · Not divided, and mask")
    return plots.attention_lines(attended, given.words, pick, titles, sentences, (q, k, v))


def _projected(given: Given, matrices: Matrices, head: Attended, pick: Pick) -> list[SheetLine]:
    x, words = given.vectors, given.words
    parts = (
        (_("Queries: what a word looks for"), "query", matrices.query, head.query, pick.query),
        (_("Keys: what a word offers"), "key", matrices.key, head.key, pick.key),
        (_("Values: what a word passes on"), "value", matrices.value, head.value, pick.key),
    )
    return [
        plots.projection_line(title, kind, x, matrix, made, words, (word, pick.dimension))
        for title, kind, matrix, made, word in parts
    ]


def _sheet(lines: list[SheetLine], given: Given) -> None:
    by_hand_words.facts(given)
    number_sheet(lines, key="hand-sheet", on_pick=lambda b, i, j: clicked(given, b, i, j))


def pickers(given: Given, n_numbers: int) -> Pick:
    """Choose the query, key and number that are written out; clicks on the tables do so too."""
    n = len(given.words)
    first = _first(given)
    linked = view_link.opened(AT)
    if linked is not None:
        try:
            st.session_state[_PICK] = Pick(*text.indices_of(linked, (n, n, n_numbers)))
        except ValueError as error:
            view_link.warn(_(error) + " " + _("Another number is written out instead."))
    stored: Pick = st.session_state.get(_PICK, first)
    pick = stored.within(n, n_numbers)
    places = pick.query, pick.key, pick.dimension
    view_link.say(AT, "" if pick == first else text.text_of_indices(places))
    with st.container(horizontal=True):
        query = _select(_("Query"), "query", given.words, pick.query)
        key = _select(_("Key"), "key", given.words, pick.key)
        names = [str(index + 1) for index in range(n_numbers)]
        dimension = _select(_("Number"), "dimension", names, pick.dimension)
    return Pick(query, key, dimension)


def _first(given: Given) -> Pick:
    """Return the first choice: the two words whose first vectors are alike."""
    return Pick(*attention.alike_pair(len(given.typed)), 0)


def _select(label: str, name: str, options: tuple[str, ...] | list[str], index: int) -> int:
    key = f"hand-at-{name}"
    st.session_state[key] = index

    def picked() -> None:
        old: Pick = st.session_state.get(_PICK, Pick(index, index, 0))
        parts = {"query": old.query, "key": old.key, "dimension": old.dimension}
        st.session_state[_PICK] = Pick(**{**parts, name: st.session_state[key]})

    return st.selectbox(
        label,
        range(len(options)),
        format_func=lambda i: options[i],
        key=key,
        on_change=picked,
        width=150,
    )


def clicked(given: Given, board: str, row: int, column: int) -> None:
    """Write out the number that was clicked; a click on the mask also flips its cell."""
    n = len(given.words)
    if board == "mask":
        words.flip(words.mask_kind(), n, row, column)
    old: Pick = st.session_state.get(_PICK, _first(given))
    if board in _PAIRS or board == "mask":
        new = Pick(row, column, old.dimension)
    elif board in _WORD_AND_NUMBER:
        new = Pick(row, old.key, column)
    elif board == "key":  # transposed: words across
        new = Pick(old.query, column, row)
    else:
        new = Pick(old.query, row, column)
    st.session_state[_PICK] = new
