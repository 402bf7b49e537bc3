"""Attention by hand: every number from a few short vectors to the output, and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import streamlit as st

from pages.app import article, show, typed
from pages.app.address import view
from pages.app.address.parameters import Text
from pages.app.article import Figures, Made
from pages.app.typed import escape
from pages.components.pickers import number_sheet
from pages.i18n import N_, _, paragraph
from tfm_core.inspect import by_hand, by_hand_text
from tfm_core.inspect.by_hand import Matrices
from tfm_core.plots.chart import chart
from tfm_core.plots.heads import by_hand as plots
from tfm_core.plots.heads.by_hand import Pick
from tfm_core.plots.sheet import SheetLine
from tfm_core.probe.types import Bools, Floats

SCOPE = "hand"
MAX_LETTERS, MAX_NUMBERS = 100, 400  # characters of the words together, and of vectors or a matrix
MAX_SEED = 9999
RATES = (0.1, 0.3, 1.0, 2.0, 4.0)
FORMS = ("layer", "heads", "one", "einsum", "fused", "torch")  # in their order
LETTERS = {"query": "W_Q", "key": "W_K", "value": "W_V", "out": "W_O"}
AT = Text("at", first="", most=20)
TURNED = Text("turned", first="", most=MAX_NUMBERS)
VECTORS = Text("vectors", first="", most=MAX_NUMBERS)
MATRICES = {
    name: Text(query, first="", most=MAX_NUMBERS)
    for name, query in {"query": "wq", "key": "wk", "value": "wv", "out": "wo"}.items()
}
_KEPT, _OF = "hand-kept", "hand-vectors-of"
_PAIRS = {"scores", "scaled", "masked", "exp", "weights", "mix", "mask"}
_WORD_AND_NUMBER = {"query", "made-query", "output", "final"}
_WIDTHS = {str(n): str(n) for n in range(by_hand.MIN, by_hand.MAX + 1)}


@dataclass(frozen=True)
class ByHand:
    """The stage that is shown."""

    stage: str = view.choice(
        N_("Stage"),
        {
            "one-hot": N_("Words"),
            "projections": N_("Projections"),
            "heads": N_("Heads"),
            "forms": N_("Six ways"),
        },
        look={"label_visibility": "collapsed"},
    )


def _width(default: str) -> str:
    help = N_("d_model; heads share it equally.")
    made: str = view.choice(N_("Numbers per word"), _WIDTHS, default, help=help)
    return made


@dataclass(frozen=True)
class TypedWords:
    """Words, the size of their vectors, and how they may attend."""

    words: str = view.text(
        N_("Your words"),
        " ".join(by_hand.FIRST_WORDS),
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


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """What attention is computed on: words, vectors (T, D), mask (T, T), with or without scale.

    typed: the words without padding. turned: the cells of the mask that were turned over by hand.
    """

    words: tuple[str, ...]
    typed: tuple[str, ...]
    vectors: Floats
    allowed: Bools
    is_scaled: bool
    turned: tuple[tuple[int, ...], ...]


def calculator(_made: Made) -> None:
    """Show one stage; the link holds which, the words and their vectors."""
    stage = view.ask(ByHand, SCOPE).stage
    stages = {"one-hot": one_hot, "projections": projections, "heads": heads, "forms": forms}
    stages[stage](_ask_inputs(stage))


def _ask_inputs(stage: str) -> Inputs:
    """Draw the controls; return their values. Raises ValueError, in a sentence."""
    label = _("Words, vectors, mask and scale")
    with st.expander(label, icon=":material/tune:", key="hand-setup"):
        left, right = st.columns([2, 3], gap="medium")
        with left:
            is_one = stage in ("one-hot", "projections")
            hidden = {"numbers_heads" if is_one else "numbers_one"}
            hidden |= {"scale"} if stage == "forms" else set()
            settings = view.ask(TypedWords, SCOPE, hidden=hidden)
        words = by_hand_text.words_of(typed.check_length(settings.words, MAX_LETTERS))
        n_numbers = int(settings.numbers_one if is_one else settings.numbers_heads)
        with right:
            vectors = _vectors(words, n_numbers)
    n_padding = 1 if settings.mask == "padding" else 0
    padded, vectors = by_hand.pad_words(words, vectors, n_padding)
    n = len(padded)
    turned = _parse(
        _field(TURNED, "turned", holds_for=f"{settings.mask} {n}"),
        lambda pairs: by_hand_text.pairs_of(pairs, n),
        N_("The mask stays as it is."),
    )
    allowed = by_hand.mask_of(settings.mask, n)
    for query, key in turned or ():
        allowed[query, key] = not allowed[query, key]
    return Inputs(padded, words, vectors, allowed, settings.scale, turned or ())


def _field(parameter: Text, name: str, **more: str) -> view.Field:
    """Return the field of a text that no widget of its own asks for."""
    return view.placed(view.held(parameter, **more), name, SCOPE)


def _parse(field: view.Field, parse: Callable[[str], Any], instead: str) -> Any:
    """Parse the text of a field; None where it is empty. instead: names the default it gets."""
    written = view.drawn(field)
    try:
        return parse(written) if written else None
    except ValueError as error:
        view.warn(_(error) + " " + _(instead))
        _write(field, "")
        return None


def _write(field: view.Field, value: str) -> None:
    """Put a text into the session and the address; "" means the default."""
    st.session_state[field.parameter.key] = value
    view.write_query(field.parameter, value)


def _table(
    field: view.Field, name: str, usual: Floats, instead: str, words: tuple[str, ...] = ()
) -> Floats:
    """Show an editable table, kept in the address; return its numbers. Raises ValueError.

    name: in messages. usual: the default numbers. words: labels of the rows, if any.
    """
    linked = _parse(
        field, lambda written: by_hand_text.table_of(written, name, *usual.shape), instead
    )
    table = usual if linked is None else linked
    editor = f"{field.parameter.key}-editor"
    base, last, version, of = st.session_state.get(editor, (table, table, 0, words))
    is_drawn = f"{editor}-{version}" in st.session_state
    if not is_drawn or of != words or not np.array_equal(table, last):
        base, version = table, version + 1  # the editor starts anew
    if words:
        st.markdown(_("**Vectors**: click a number to change it"))
    else:
        st.markdown(f"**{escape(name)}**")
    columns = [str(index + 1) for index in range(usual.shape[1])]
    short = [[round(value, 4) for value in row] for row in base.tolist()]
    rows: list[dict[str, Any]] = [dict(zip(columns, row, strict=True)) for row in short]
    number = st.column_config.NumberColumn
    config: dict[str, Any] = {
        column: number(column, format="%.2f", step=0.01, width="small") for column in columns
    }
    if words:
        rows = [{"word": word, **row} for word, row in zip(words, rows, strict=True)]
        config["word"] = st.column_config.TextColumn(_("word"), disabled=True, width="small")
    edited = st.data_editor(
        rows, hide_index=True, column_config=config, key=f"{editor}-{version}", width="stretch"
    )
    made = by_hand_text.rounded(
        [[math.nan if row[c] is None else row[c] for c in columns] for row in edited]
    )
    st.session_state[editor] = (base, made, version, words)
    _write(field, "" if (made == usual).all() else by_hand_text.text_of(made))
    return made


def _vectors(words: tuple[str, ...], n_numbers: int) -> Floats:
    """Show the vectors; a word that was there before keeps its own."""
    field, of = _field(VECTORS, "vectors"), (words, n_numbers)
    key = field.parameter.key
    usual = by_hand.first_vectors(len(words), n_numbers)
    is_changed = st.session_state.get(_OF) != of
    st.session_state[_OF] = of
    if is_changed and view.new_value(field.parameter) is None:
        kept = by_hand.keep_vectors(words, n_numbers, st.session_state.get(_KEPT, {}))
        st.session_state[key] = "" if (kept == usual).all() else by_hand_text.text_of(kept)
    instead = N_("The first vectors are used instead.")
    vectors = _table(field, _("The table of vectors"), usual, instead, words)
    kept_by_name = dict(zip(by_hand.unique_names(words), vectors.tolist(), strict=True))
    st.session_state.setdefault(_KEPT, {}).update(kept_by_name)

    version = st.session_state[f"{key}-editor"][2]

    def start_from(made: Floats) -> None:
        st.session_state[key] = by_hand_text.text_of(made)

    with st.container(horizontal=True, gap="small"):
        st.button(
            _("One-hot"),
            key="hand-one-hot",
            help=_("Each word matches only itself."),
            on_click=lambda: start_from(by_hand.one_hot(len(words), n_numbers)),
        )
        st.button(
            _("Random"),
            key="hand-random",
            icon=":material/casino:",
            on_click=lambda: start_from(by_hand.random_vectors(len(words), n_numbers, version)),
        )
    return vectors


def _matrices(inputs: Inputs, *, with_out: bool) -> Matrices:
    """Show seed, button and editors; return the matrices. Raises ValueError, in a sentence."""
    d_model = inputs.vectors.shape[1]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        label = N_("Seed of the matrices")
        entry = view.number(label, 0, MAX_SEED, 1, look={"width": 180}, is_typed=True)
        seed = int(view.one(entry, "draw", SCOPE))
        st.button(
            _("Draw new matrices"),
            icon=":material/casino:",
            key="hand-draw-new",
            on_click=lambda: st.session_state.update({"hand-draw": (seed + 1) % (MAX_SEED + 1)}),
        )
    seeded = by_hand.random_matrices(d_model, seed)
    names = [name for name in LETTERS if with_out or name != "out"]
    made = {}
    instead = N_("The matrix of the seed is used instead.")
    with st.expander(_("Edit the matrices"), icon=":material/edit:"):
        for column, name in zip((*st.columns(2), *st.columns(2)), names, strict=False):
            field = _field(MATRICES[name], name, of=str(d_model), holds_for=str(seed))
            with column:
                made[name] = _table(field, LETTERS[name], getattr(seeded, name), instead)
    return replace(seeded, **made)


def _continue_from(learned: Matrices) -> None:
    """Start from trained matrices."""
    for name in LETTERS:
        key = _field(MATRICES[name], name, of=str(len(learned.query))).parameter.key
        st.session_state[key] = by_hand_text.text_of(getattr(learned, name))


def _train(
    inputs: Inputs, start: Matrices, bar: st.delta_generator.DeltaGenerator
) -> tuple[Matrices, Callable[[], None]]:
    """Train W_Q and W_K towards the target attention; draw the controls into ``bar``.

    Returns the matrices at the chosen step, and a function that draws the learning curve.
    """
    with bar:
        for_targets, for_rate, for_step, for_loss = st.columns(
            [4, 3, 4, 4], vertical_alignment="bottom"
        )
        with for_targets:
            targets = _ask_targets(inputs.typed)
        with for_rate:
            rates = view.pick(N_("Learning rate"), RATES, 1.0, form="{:g}")
            rate = view.one(rates, "rate", SCOPE)
        try:
            chosen = by_hand.targets_of(targets, inputs.typed)
            losses, weights, matrices = by_hand.learn(
                inputs.vectors, start, chosen, inputs.allowed, rate=rate
            )
        except ValueError as error:
            show.problem(error)
            return start, lambda: None
        with for_step:
            steps = view.number(N_("Training step"), 0, len(losses) - 1, 0)
            step = int(view.one(steps, "learned", SCOPE))
        with for_loss:
            first, now = float(losses[0]), float(losses[step])
            st.markdown(_("Loss **{now:.4f}**, {first:.4f} before", now=now, first=first))
            st.button(
                _("Continue from here"),
                key="hand-keep",
                disabled=step == 0,
                on_click=_continue_from,
                args=(matrices[step],),
            )

    def draw() -> None:
        lines = {
            _arrow(inputs.typed, (query, key)): weights[:, query, key]
            for query, key in chosen.items()
        }
        columns = {"step": range(len(losses)), "loss": losses, **lines}
        table = by_hand.LEARNED.table(columns)
        settings: dict[str, Any] = {"x": "step", "reference": {"x": step}, "marked": 0}
        caption = _("The loss falls as the target weight nears 1.")
        show.figure(chart(table, y="loss", height=180, **settings), caption, key="hand-lesson")
        caption = _("The weight of each chosen pair, step by step.")
        figure = chart(table, y=[*lines], height=220, **settings)
        show.figure(figure, caption, key="hand-lesson-weights")

    return matrices[step], draw


def _ask_targets(words: tuple[str, ...]) -> list[tuple[int, int]]:
    """Choose which word should attend to which; the link has the pairs as indices, ``3-2``."""
    indices = range(len(words))
    pairs = {f"{query + 1}-{key + 1}": (query, key) for query in indices for key in indices}
    offered = view.choices(
        N_("Target attention"),
        {name: _arrow(words, pair) for name, pair in pairs.items()},
        (f"{len(words)}-2",),
        of=str(len(words)),
        help=lambda: paragraph("by_hand/target"),
    )
    return [pairs[name] for name in view.one(offered, "wanted", SCOPE)]


def _arrow(words: tuple[str, ...], pair: tuple[int, int]) -> str:
    names = [f"{word} {n + 1}" if words.count(word) > 1 else word for n, word in enumerate(words)]
    return f"{names[pair[0]]} → {names[pair[1]]}"


def one_hot(inputs: Inputs) -> None:
    """Q = K = V: the words themselves."""
    x = inputs.vectors
    scaled, plain = (
        by_hand.attend(x, x, x, inputs.allowed, is_scaled=is_scaled) for is_scaled in (True, False)
    )
    pick = _pick(inputs, x.shape[1])
    attended = scaled if inputs.is_scaled else plain
    _sheet(_attention(attended, inputs, pick, ("Q = X", "K", "V = X")), inputs, pick)
    about = by_hand_text.about_scale(
        scaled, plain, tuple(map(escape, inputs.words)), pick.query, is_scaled=inputs.is_scaled
    )
    numbers = f"{x.tobytes()!r} {inputs.allowed.tobytes()!r} {inputs.is_scaled}"
    if article.ask(about, "scale", of=f"{inputs.words} {numbers} {pick.query}"):
        divided = _("Divided by √{d}", d=x.shape[1])
        line = plots.beside(
            [
                (name, made.weights, _("largest {weight:.4f}", weight=made.weights.max()))
                for name, made in ((divided, scaled), (_("Not divided"), plain))
            ],
            inputs.words,
            _("With and without the scale"),
            _("Without it rows are sharper, and gradients vanish."),
            scale="share",
        )
        number_sheet([line], key="hand-comparison")


def projections(inputs: Inputs) -> None:
    """W_Q, W_K and W_V turn each word into a query, a key and a value."""
    bar, overview = st.container(border=True, key="hand-lesson-bar"), st.container()
    left, right = st.columns(2, gap="medium")
    with right:
        made = _matrices(inputs, with_out=False)
    # the lesson starts from the matrices, and stands above them
    matrices, draw = _train(inputs, made, bar)
    head = _heads(inputs, matrices, 1).heads[0]
    with overview:
        number_sheet([plots.overview_line(head, inputs.words)], key="hand-overview")
    words = tuple(map(escape, inputs.typed))
    with left:
        draw()
    with right:
        about = by_hand_text.about_symmetry(head, words)
        article.ask(about, "symmetry", of=f"{inputs.typed} {head.products.tobytes()!r}")
    pick = _pick(inputs, inputs.vectors.shape[1])
    lines = plots.projection_lines(inputs.vectors, matrices, head, inputs.words, pick)
    _sheet([*lines, *_attention(head, inputs, pick)], inputs, pick)
    article.check(
        {
            "three-maps": by_hand_text.about_three_maps(head, words),
            "transposed-keys": by_hand_text.about_transposed_keys(head, words),
        },
        of=f"{inputs.typed} {head.products.tobytes()!r} {head.value.tobytes()!r}",
    )


def heads(inputs: Inputs) -> None:
    """Heads side by side, each with its part of the numbers."""
    d_model = inputs.vectors.shape[1]
    n_heads = _n_heads(d_model)
    matrices = _matrices(inputs, with_out=True)
    attended = _heads(inputs, matrices, n_heads)
    article.ask(
        by_hand_text.about_heads(inputs.vectors, n_heads), "heads", of=f"{d_model} {n_heads}"
    )
    names = {str(n): N_("Head {n}", n=n) for n in range(1, n_heads + 1)}
    chosen = int(view.one(view.choice(N_("Written out"), names), "head", SCOPE))
    head = attended.heads[chosen - 1]
    pick = _pick(inputs, d_model)
    inside = pick.within(len(inputs.words), head.query.shape[1])
    q, k, v = (_("{letter} of head {n}", letter=letter, n=chosen) for letter in "QKV")
    maps = plots.beside(
        [(_("Head {n}", n=n), head.weights, "") for n, head in enumerate(attended.heads, 1)],
        inputs.words,
        _("The maps of all heads"),
        _("Each head has its own part of Q and K."),
        scale="share",
    )
    lines = _attention(head, inputs, inside, (q, k, v))
    joined = plots.joined_line(attended, matrices.out, inputs.words, pick)
    _sheet([maps, *lines, joined], inputs, pick)
    about = by_hand_text.about_minus_one(attended, tuple(map(escape, inputs.typed)))
    article.check({"minus-one": about}, of=f"{inputs.typed} {attended.joined.tobytes()!r}")


def forms(inputs: Inputs) -> None:
    """The same attention written in six ways."""
    size = inputs.vectors.shape[1]
    n_heads = _n_heads(size)
    matrices = _matrices(inputs, with_out=True)
    made = by_hand.forms(inputs.vectors, matrices, n_heads, inputs.allowed)
    article.ask(by_hand_text.about_size(inputs.vectors, n_heads), "size", of=f"{size} {n_heads}")
    _differences(made)
    line = plots.beside(
        [
            (form.name, form.output, _("differs by {value:.2g}", value=form.difference))
            for form in made
        ],
        inputs.words,
        _("The outputs"),
        _("Point at a number: the same one lights up in every form."),
        ("word", ""),
    )
    number_sheet([line], key="hand-forms")
    if not inputs.allowed.any(1).all():
        st.caption(_("A query without keys gives NaN in nn.MultiheadAttention, zeros here."))
    by_name = dict(zip(FORMS, made, strict=True))
    labels = {name: form.name for name, form in by_name.items()}
    picked = view.one(view.choice(N_("The code of"), labels, "heads"), "form", SCOPE)
    st.code(by_name[picked].code, language="python")


def _differences(made: tuple[by_hand.CodeForm, ...]) -> None:
    worst = max(form.difference for form in made)
    if by_hand.agree(made):
        values = {"n": len(made), "worst": worst}
        words = _("All {n} agree: they differ by at most **{worst:.2g}**.", **values)
        st.success(words, icon=":material/check:")
    elif not np.isfinite([form.difference for form in made]).all():
        st.warning(_("One result is NaN, because a query has no keys."), icon=":material/warning:")
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


def _heads(inputs: Inputs, matrices: Matrices, n_heads: int) -> by_hand.MultiHead:
    return by_hand.multi_head(
        inputs.vectors, matrices, n_heads, inputs.allowed, is_scaled=inputs.is_scaled
    )


def _attention(
    attended: by_hand.Attended,
    inputs: Inputs,
    pick: Pick,
    letters: tuple[str, str, str] = ("Q", "K", "V"),
) -> list[SheetLine]:
    return plots.attention_lines(attended, inputs.words, pick, letters, is_scaled=inputs.is_scaled)


def _sheet(lines: list[SheetLine], inputs: Inputs, pick: Pick) -> None:
    """Show the sheet that is worked on, with what the mask leaves of it."""
    blind = [word for word, row in zip(inputs.words, inputs.allowed, strict=True) if not row.any()]
    if blind:
        words = ", ".join(f"“{word}”" for word in blind)
        show.problem(_("{words} may attend to nothing and get zeros.", words=words))
    if inputs.turned:
        st.button(
            _("Undo my clicks on the mask ({n})", n=len(inputs.turned)),
            icon=":material/undo:",
            key="hand-undo",
            on_click=_turn,
            args=((),),
        )

    def clicked(board: str, row: int, column: int) -> None:
        """Write out the number that was clicked; a click on the mask also flips its cell."""
        if board == "mask":
            _turn({*inputs.turned} ^ {(row, column)})
        if board in _PAIRS:
            _write_out(Pick(row, column, pick.dimension))
        elif board in _WORD_AND_NUMBER:
            _write_out(Pick(row, pick.key, column))
        elif board == "key":  # transposed: words across
            _write_out(Pick(pick.query, column, row))
        else:
            _write_out(Pick(pick.query, row, column))

    number_sheet(lines, key="hand-sheet", on_pick=clicked)


def _turn(cells: Collection[tuple[int, ...]]) -> None:
    st.session_state["hand-turned"] = ",".join(map(by_hand_text.text_of_indices, sorted(cells)))


def _write_out(pick: Pick) -> None:
    st.session_state["hand-at"] = by_hand_text.text_of_indices(
        (pick.query, pick.key, pick.dimension)
    )


def _pick(inputs: Inputs, n_numbers: int) -> Pick:
    """Choose the query, key and number that are written out; clicks on the tables do so too."""
    n, field = len(inputs.words), _field(AT, "at")
    sizes = (n, n, n_numbers)
    before = st.session_state.get("hand-at", "")
    if before:  # there may be fewer words or numbers by this time
        places = zip(map(int, before.split("-")), sizes, strict=True)
        st.session_state["hand-at"] = "-".join(str(min(place, size)) for place, size in places)
    first = (*by_hand.similar_pair(len(inputs.typed)), 0)
    instead = N_("Another number is written out instead.")
    chosen = (
        _parse(field, lambda written: by_hand_text.indices_of(written, sizes), instead) or first
    )
    _write(field, "" if chosen == first else by_hand_text.text_of_indices(chosen))
    pick = Pick(*chosen)
    with st.container(horizontal=True):
        _select(_("Query"), "query", inputs.words, pick)
        _select(_("Key"), "key", inputs.words, pick)
        _select(_("Number"), "dimension", [str(index + 1) for index in range(n_numbers)], pick)
    return pick


def _select(label: str, name: str, options: tuple[str, ...] | list[str], pick: Pick) -> None:
    key = f"hand-at-{name}"
    st.session_state[key] = getattr(pick, name)
    st.selectbox(
        label,
        range(len(options)),
        format_func=lambda i: options[i],
        key=key,
        on_change=lambda: _write_out(replace(pick, **{name: st.session_state[key]})),
        width=150,
    )


FIGURES: Figures = {"calculator": calculator}
GUESSES = ("scale", "symmetry", "three-maps", "transposed-keys", "heads", "minus-one", "size")
"""The questions that the stages ask."""

if __name__ == "__main__":
    article.draw("by-hand", FIGURES)
