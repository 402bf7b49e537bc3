"""Masks: which query may attend to which key, and what that does to scores, weights, output."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.app import show, state, typed
from pages.app.address import view
from pages.app.navigation import head
from pages.app.navigation.head import Moment
from pages.app.runs.shown_run import MODELS
from pages.components.pickers import MaskEdit, number_sheet
from pages.i18n import N_, _, content, paragraph
from tfm_core.choices.mistakes import MISTAKES
from tfm_core.inspect import mask_lab, mask_traps
from tfm_core.inspect.mask_lab import MASKS, PAD_TOKEN, MaskedAttention, Projected
from tfm_core.plots.heads.by_hand import board, masked_line
from tfm_core.plots.sheet import Place, SheetLine
from tfm_core.probe.types import Bools, Floats
from tfm_core.runs.run import Run

SCOPE = "masks"
MAX_TEXT = 600
EXAMPLE = "the cat sees the small dog"  # of the app's own grammar, as is its translation
EXAMPLE_TARGET = "고양이 는 작은 개 를 본 다"
_MAX_SHOWN = mask_lab.MAX_TOKENS - 2  # of a run's example: it may get two tokens around it
_EDITS = "masks-edits"
_WRITTEN = N_("What the decoder has written so far")
NEEDS = replace(
    MODELS,
    fits=lambda experiment: experiment.task.has_model and not experiment.task.class_names,
)
"""A model of pictures has no words to mask."""


@dataclass(frozen=True)
class Mask:
    """The mask, and what it is laid on."""

    mask: str = view.choice(
        N_("Mask"),
        {name: mask.label for name, mask in MASKS.items()},
        "combined",
        always_in_url=True,
        is_list=False,
        look={"label_visibility": "collapsed"},
    )
    pad: int = view.by(
        lambda asked: view.number(
            N_("Padding tokens at the end"),
            0,
            4,
            0 if asked.mask in {"none", "causal"} else 2,
            of=asked.mask,
        )
    )
    text: str = view.text(N_("Your sentence or tokens"), EXAMPLE, MAX_TEXT)


@dataclass(frozen=True)
class Below:
    """The part below the maps."""

    trap: str = view.choice(
        N_("Traps and code"),
        {
            "axis": N_("Wrong axis"),
            "float": N_("Float mask"),
            "precision": N_("Half precision"),
            "blind": N_("Nothing allowed"),
            "code": N_("Code"),
        },
    )


@dataclass(frozen=True, slots=True, eq=False)
class Laid:
    """A mask laid on tokens, with their scores.

    segments: the sequence of each token, from 0. projected: queries, keys and values. facts: whose
    scores they are.
    """

    kind: str
    segments: tuple[int, ...]
    window: int
    prefix: int
    projected: Projected
    facts: str

    def allowed(self, query: tuple[str, ...], key: tuple[str, ...]) -> Bools:
        """Return what the mask allows (Q, K) of these tokens."""
        return mask_lab.build_mask(
            self.kind,
            query,
            key,
            window=self.window,
            prefix=self.prefix,
            segments=self.segments,
        )

    @property
    def version(self) -> str:
        """Return a name of the mask as it is without clicks."""
        tokens = self.projected.query, self.projected.key
        parts = (self.kind, *tokens, self.segments, self.window, self.prefix)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    @property
    def clicked(self) -> tuple[Place, ...]:
        """Return the cells that were turned over by hand."""
        version, cells = st.session_state.get(_EDITS, ("", ()))
        return cells if version == self.version else ()


def page() -> None:
    """Ask for a mask and tokens; show what becomes of the scores, a trap, and the code."""
    show.header("masks")
    run = head.run(NEEDS, is_needed=False)
    state.body(partial(_choose, None if run is None else head.moment(run)))


def _choose(reader: Moment | None) -> None:
    top = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom", key="masks-facts"):
        sentence = st.container(width="stretch")
        choices = st.popover(_("Change"), icon=":material/tune:", key="masks-change")
    places = {"mask": top, "text": sentence, "pad": choices}
    try:
        text = view.by(lambda asked: _text(reader, asked.mask))
        with view.warnings_in(st.container()):  # some controls are folded
            asked = view.ask(Mask, SCOPE, places=places, text=text)
            laid = _laid(reader, asked, choices)
    except ValueError as error:
        show.problem(error)
        return
    st.fragment(_lab)(laid)  # a click on the mask draws only what it changes


def _text(reader: Moment | None, kind: str) -> object:
    """Offer a text of the run; a mask of packed sequences has two of them."""
    is_target = reader is not None and mask_lab.reads_target(reader.run, kind)
    cut = "target" if is_target else "packed" if kind == "packed" else "one"
    return view.text(
        _WRITTEN if is_target else N_("Your sentence or tokens"),
        _example(reader, kind),
        MAX_TEXT,
        help=N_(
            "At most {n} words; | separates packed sequences, {pad} is padding.",
            n=mask_lab.MAX_TOKENS,
            pad=PAD_TOKEN,
        ),
        of=f"own-{cut}" if reader is None else f"{reader.run.id}-{reader.example}-{cut}",
    )


def _example(reader: Moment | None, kind: str) -> str:
    message = EXAMPLE.split()
    if reader is not None:
        if mask_lab.reads_target(reader.run, kind):
            return " ".join(reader.item.get("tgt", ())[:_MAX_SHOWN])
        message = str(reader.item.get("src_text", EXAMPLE)).split(" ")[:_MAX_SHOWN]
    if kind != "packed" or len(message) < 2:
        return " ".join(message)
    half = len(message) // 2
    return f"{' '.join(message[:half])} | {' '.join(message[half:])}"


def _laid(reader: Moment | None, asked: Mask, choices: DeltaGenerator) -> Laid:
    """Return the mask on its tokens. Raises ValueError, in a sentence, for what cannot be read.

    choices: the place of what few change.
    """
    kind = asked.mask
    run = None if reader is None else reader.run
    read, note, is_of_run = _tokens(run, typed.check_length(asked.text, MAX_TEXT), kind)
    tokens, segments = mask_lab.segments_of(read)
    if kind != "packed" and segments[-1]:
        note = _("| separates sequences only under the packed mask.")
    reader = reader if is_of_run else None
    other = _target(reader, tokens) if kind == "cross" else ()
    if reader is not None and mask_lab.reads_target(reader.run, kind):
        other = tuple(reader.item.get("src", ()))
    window, prefix = _sizes(kind, max(2, len(tokens)))
    tokens = (*tokens, *[PAD_TOKEN] * asked.pad)
    segments = (*segments, *[segments[-1] + 1] * asked.pad)
    projected, words = None, ""
    if reader is not None:
        try:
            with choices:
                projected, words = _projected(reader, kind, tokens, other)
        except ValueError as error:
            note = _("Not from the current run: {why}", why=typed.escape(_(error)))
    if projected is None:
        query = ("<bos>", *other) if kind == "cross" else tokens
        projected, words = (
            mask_lab.seeded_projection(query, tokens),
            _("The scores come from random embeddings."),
        )
    return Laid(kind, segments, window, prefix, projected, f"{words} {note}".strip())


def _tokens(run: Run | None, text: str, kind: str) -> tuple[tuple[str, ...], str, bool]:
    """Return the tokens of a text, why the run does not read it, and whether it does."""
    if run is not None and PAD_TOKEN not in text:
        try:
            return mask_lab.task_words(run, text, kind), "", True
        except ValueError as error:
            why = _("Not from the current run: {why}", why=typed.escape(_(error)))
            return mask_lab.parse_tokens(text), why, False
    return mask_lab.parse_tokens(text), "", run is not None


def _target(reader: Moment | None, tokens: tuple[str, ...]) -> tuple[str, ...]:
    """Ask what the decoder has written; of a run's model, at first its own answer."""
    answer, of = EXAMPLE_TARGET, "own"
    if reader is not None:
        answer = " ".join(mask_lab.true_target(reader.run, tokens)) or EXAMPLE_TARGET
        of = f"{reader.run.id}-{' '.join(tokens)}"
    text = typed.check_length(
        view.one(view.text(_WRITTEN, answer, MAX_TEXT, of=of), "target", SCOPE), MAX_TEXT
    )
    return mask_lab.parse_tokens(text)[: mask_lab.MAX_TOKENS - 1]


def _projected(
    reader: Moment, kind: str, tokens: tuple[str, ...], other: tuple[str, ...]
) -> tuple[Projected | None, str]:
    """Return scores of a head of the run's model, with words on whose; None where they are drawn.

    Raises ValueError, in a sentence, where the model has no such attention.
    """
    run = reader.run
    n_layers = len(mask_lab.modules_for(run, kind))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if view.one(view.flag(N_("Use random embeddings")), "seeded", SCOPE):
            return None, ""
        layer = _place(N_("Layer"), n_layers, "layer")
        head_number = _place(N_("Head"), run.experiment.model.n_heads, "head")
    made = mask_lab.run_projection(run, kind, tokens, other, layer, head_number, step=reader.step)
    message = _("Real projections: {origin}.", origin=typed.escape(_(made.origin)))
    if mask_lab.reads_target(run, kind):
        source = typed.escape(" ".join(other))
        message += " " + _("The tokens are its answer to “{source}”.", source=source)
    return made, message


def _place(label: str, count: int, name: str) -> int:
    """Ask for a layer or a head; return it from 0."""
    offered = view.number(label, 0, count - 1, 0, offset=1, look={"width": 110}, of=str(count))
    return int(view.one(offered, name, SCOPE))


def _sizes(kind: str, most: int) -> tuple[int, int]:
    """Ask how far a mask looks: tokens to each side, and tokens of the prefix."""
    window = prefix = 1
    if kind == "window":
        help = N_("The cost grows with the window only.")
        window = view.one(
            view.number(N_("Tokens to each side"), 0, most, 1, help=help), "window", SCOPE
        )
    if kind == "prefix":
        help = N_("0 gives a causal mask; all tokens give an encoder's mask.")
        offered = view.number(N_("Tokens of the prefix"), 0, most, min(3, most), help=help)
        prefix = view.one(offered, "prefix", SCOPE)
    return window, prefix


def _lab(laid: Laid) -> None:
    """Show the five linked maps with the clicks in them, and what is asked for below."""
    query, key = laid.projected.query, laid.projected.key
    clicked = laid.clicked
    flow = mask_lab.masked_attention(
        laid.projected, mask_lab.toggle_cells(laid.allowed(query, key), clicked)
    )
    version = laid.version  # a session keeps what its callbacks hold
    edit = MaskEdit(version, clicked, lambda cells: _click(version, cells))
    number_sheet([masked_line(flow, query, key)], key="masks-editor", edit=edit, fits=True)
    message = [
        _(
            "**{n}** of {total} pairs are allowed.",
            n=int(flow.allowed.sum()),
            total=flow.allowed.size,
        )
    ]
    if len(flow.blind):
        which = ", ".join(f"`{token}`" for token in dict.fromkeys(query[n] for n in flow.blind))
        message.append(_("Queries that may attend to nothing get zeros: {which}.", which=which))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(" ".join(message), width="content")
        if clicked:
            st.button(
                _("Undo my clicks ({n})", n=len(clicked)),
                icon=":material/undo:",
                key="masks-undo",
                on_click=_click,
                args=(laid.version, ()),
            )
    st.caption(f"**{_(MASKS[laid.kind].label)}**: {_(MASKS[laid.kind].help)} {laid.facts}")
    _TRAPS[view.ask(Below, SCOPE).trap](laid, flow)


def _click(version: str, cells: tuple[Place, ...]) -> None:
    st.session_state[_EDITS] = (version, cells)


def code(laid: Laid, flow: MaskedAttention) -> None:
    """Show code that makes this mask, turns it into the other form and hands it to PyTorch."""
    show.prose(content("masks_conventions"))
    st.dataframe(
        [
            {
                _("where"): _(where),
                _("True means"): _(true_means),
                _("shape"): shape,
                _("a float mask is"): _(additive),
            }
            for where, true_means, shape, additive in mask_lab.CONVENTIONS
        ],
        hide_index=True,
        width="stretch",
    )
    left, right = st.columns(2)
    with left:
        st.header(_("This mask: bool, True = may attend"), anchor=False)
        made = mask_lab.mask_code(
            laid.kind,
            laid.projected.query,
            laid.projected.key,
            window=laid.window,
            prefix=laid.prefix,
            segments=laid.segments,
        )
        st.code(mask_lab.mask_literal(flow.allowed) if laid.clicked else made, language="python")
        st.header(_("Additive form, and back"), anchor=False)
        st.code(mask_lab.ADDITIVE, language="python")
    with right:
        st.header(_("Scaled dot-product attention: True = may attend"), anchor=False)
        st.code(mask_lab.HOUSE_SDPA, language="python")
        st.header(_("nn.MultiheadAttention: True = forbidden"), anchor=False)
        st.code(mask_lab.HOUSE_MHA, language="python")


def wrong_axis(laid: Laid, flow: MaskedAttention) -> None:
    """Show padding masked as keys, and by mistake as queries, under the rest of the mask."""
    projected = laid.projected
    rest = laid.allowed(
        mask_lab.without_padding(projected.query), mask_lab.without_padding(projected.key)
    )
    _explain("padding-on-queries")
    try:
        if len(projected.query) != len(projected.key):
            raise ValueError(_("This needs self-attention: choose any mask but cross-attention."))
        is_padding = np.array([token == PAD_TOKEN for token in projected.key])
        masked = mask_traps.wrong_axis(projected, is_padding, rest, laid.clicked)
    except ValueError as error:
        st.info(_(error), icon=":material/info:")
        return
    (wrong, leaked), (alone, leaked_alone) = masked["wrong"], masked["alone"]
    maps = {_("Keys masked: right"): masked["right"][0], _("Queries masked: wrong"): wrong}
    captions = [
        _("The columns of padding are empty."),
        paragraph("masks/leak", leaked=show.percent(leaked))
        if leaked
        else paragraph("masks/no-leak"),
    ]
    if not leaked and leaked_alone:
        maps[_("Queries masked: padding half alone")] = alone
        captions.append(paragraph("masks/leak-in-encoder", leaked=show.percent(leaked_alone)))
    _side_by_side(maps, projected.query, projected.key, captions, "axis")
    if laid.kind in {"none", "causal"}:
        st.caption(
            _(
                "“{mask}” ignores padding; the maps here add a padding mask.",
                mask=_(MASKS[laid.kind].label),
            )
        )


def float_mask(laid: Laid, flow: MaskedAttention) -> None:
    """Show a mask as bool, and by mistake as numbers, which are added to the scores."""
    _explain("float-mask")
    try:
        right, wrong, share = mask_traps.float_mask(laid.projected, flow.allowed)
    except ValueError as error:
        st.info(_(error), icon=":material/info:")
        return
    maps = {_("Bool: right"): right, _("Float, added: wrong"): wrong}
    leaked = show.percent(share)
    captions = [
        _("Forbidden keys have no weight."),
        _("Queries spend {leaked} of their attention on forbidden keys.", leaked=leaked),
    ]
    _side_by_side(maps, laid.projected.query, laid.projected.key, captions, "float")


def _explain(name: str) -> None:
    """Show what a mistake is, and the code as it should be and as it is written."""
    mistake = MISTAKES[name]
    st.markdown(_(mistake.help))
    st.code(f"{mistake.right}  # right\n{mistake.wrong}", "python", wrap_lines=True)


def half_precision(laid: Laid, flow: MaskedAttention) -> None:
    """Show what becomes of masked scores in each type."""
    show.prose(content("masks_precision"))
    projected = laid.projected
    query = mask_traps.mixed_row(flow.allowed)
    allowed = np.arange(len(projected.key)) < (len(projected.key) + 1) // 2
    message = _("The scores of the first query in each type, with half of its keys forbidden.")
    if query is not None:
        allowed = flow.allowed[query]
        token = projected.query[query]
        message = _("The scores of query {n}, `{token}`, in each type.", n=query + 1, token=token)
    results = mask_traps.precision(projected.scores[query or 0], allowed)
    fills = {"lowest": _("the type's lowest number"), "-inf": "−∞", "-1e9": "−1e9", "-1e4": "−1e4"}
    st.table(
        {
            _("masked with"): [fills[fill] for fill in mask_traps.FILLS],
            **{
                name: [_(verdict) for verdict in results["verdict"][results["dtype"] == name]]
                for name in mask_traps.TYPES
            },
        },
        hide_index=True,
        border="horizontal",
    )
    st.caption(message + " " + paragraph("masks/types"))
    with st.expander(_("All the numbers")):
        _every_number(results, fills)


def _every_number(results: pd.DataFrame, fills: Mapping[str, str]) -> None:
    rows = [
        {
            _("type"): result.dtype,
            _("masked with"): fills[result.fill],
            _("stored as"): _("refused") if result.stored is None else _short(result.stored),
            _("leak"): "–" if result.stored is None else _short(result.leak),
            _("all forbidden"): _weights(result.blind),
            _("forbidden twice"): _weights(result.twice),
        }
        for result in results.itertuples()
    ]
    st.dataframe(rows, hide_index=True, width="stretch", height="content")
    st.caption(_("“Leak” is the largest weight of a forbidden key. “Twice” adds two masks."))


def blind_row(laid: Laid, flow: MaskedAttention) -> None:
    """Show a fully masked row under each way to compute the softmax."""
    show.prose(content("masks_blind_row"))
    projected = laid.projected
    query = flow.blind[0] if flow.blind else 0
    maps = mask_traps.blind_row(projected, query)
    names = {
        "naive": _("−∞, then softmax"),
        "-1e9": _("−1e9, then softmax"),
        "ours": _("this app"),
    }
    here, later = mask_traps.nan_rows(projected, query)
    _side_by_side(
        {names[name]: weights[None] for name, weights in maps.items()},
        [projected.query[query]],
        projected.key,
        [
            paragraph("masks/blind-row", here=here, later=later, n=len(projected.query)),
            _("A large negative number averages all forbidden keys."),
            _("Zeros: the token reads nothing."),
        ],
        "blind",
    )
    st.markdown(_("PyTorch on such a row:"))
    st.dataframe(
        [
            {_("module"): name, _("fully masked row"): _(words)}
            for name, words in mask_traps.torch_blind_rows().items()
        ],
        hide_index=True,
        width="content",
    )


def _side_by_side(
    maps: Mapping[str, Floats],
    query: Sequence[str],
    key: Sequence[str],
    captions: Sequence[str],
    name: str,
) -> None:
    """Show weights in one row of the page, each with its words."""
    columns = st.columns(len(maps))
    for n, (column, title, message) in enumerate(zip(columns, maps, captions, strict=True)):
        with column:
            weights = board(title, maps[title], query, columns=key, scale="share")
            number_sheet([SheetLine("", (weights,))], key=f"masks-{name}-{n}", fits=True)
            st.caption(message)


def _short(value: float) -> str:
    return "NaN" if math.isnan(value) else f"{value:.4g}"


def _weights(values: Sequence[float]) -> str:
    if not values:
        return "–"
    if any(math.isnan(value) for value in values):
        return "NaN"
    same = max(values) - min(values) < 1e-3
    return _("all {x}", x=f"{values[0]:.3f}") if same else _("unmasked")


_TRAPS = {
    "axis": wrong_axis,
    "float": float_mask,
    "precision": half_precision,
    "blind": blind_row,
    "code": code,
}


if __name__ == "__main__":
    page()
