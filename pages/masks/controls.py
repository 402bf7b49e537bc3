"""Controls: mask, tokens and the source of the scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.i18n import _
from pages.ui import state, typed
from pages.ui.accounts import visitors
from pages.ui.address import parameters, view_link
from tfm_core.inspect.masks import lab, scores
from tfm_core.inspect.masks.lab import MASKS, PAD_TOKEN, Projected
from tfm_core.runs.run import Run

MASK = parameters.named(
    "mask",
    {name: mask.label for name, mask in MASKS.items()},
    first="combined",
    key="masks-kind",
    is_always_said=True,
)


MAX_TEXT = 600
EXAMPLE = "the cat sees the small dog"  # of the app's own grammar, as is its translation
EXAMPLE_TARGET = "고양이 는 작은 개 를 본 다"
_TEXT, _TARGET, _PAD = "masks-text", "masks-target", "masks-pad"
_RUN, _FOLLOWED = "masks-run", "masks-run-followed"
_MAX_SHOWN = lab.MAX_TOKENS - 2  # of a run's example: it may get two tokens around it
_LAYER, _HEAD, _SEEDED = "masks-layer", "masks-head", "masks-seeded"


@dataclass(frozen=True, slots=True, eq=False)
class MaskChoice:
    """A mask and the tokens it is laid on. segments: the sequence of each token, from 0.

    other: what the decoder has written, for cross-attention; the source it translates, where
    ``tokens`` are what a run's decoder writes.
    """

    kind: str
    tokens: tuple[str, ...]
    segments: tuple[int, ...]
    other: tuple[str, ...]
    window: int
    prefix: int
    run: Run | None
    note: str = ""


def kind() -> str:
    """Choose the mask; a link may hold it."""
    chosen = view_link.choice(_("Mask"), MASK)
    st.caption(_(MASKS[chosen].help))
    return chosen


def choice(chosen: str, choices: DeltaGenerator) -> MaskChoice:
    """Ask for tokens and sizes. Raises ValueError, in a sentence, for what cannot be read.

    choices: the place of what few change.
    """
    with choices:
        run = _run()
        n_pad = st.slider(
            _("Padding tokens at the end"),
            0,
            4,
            0 if chosen in {"none", "causal"} else 2,
            key=f"{_PAD}-{chosen}",
            persist_state="session",
        )
    text = _text(run, chosen)
    tokens, note, is_run = _tokens(run, typed.within(text, MAX_TEXT), chosen)
    tokens, segments = lab.segments_of(tokens)
    if chosen != "packed" and segments[-1]:
        note = _("| separates sequences only under the packed mask.")
    other = _target(run if is_run else None, tokens) if chosen == "cross" else ()
    if run is not None and is_run and scores.reads_target(run, chosen):
        other = tuple(_item(run).get("src", ()))
    window, prefix = _sizes(chosen, len(tokens))
    return MaskChoice(
        chosen,
        (*tokens, *[PAD_TOKEN] * n_pad),
        (*segments, *[segments[-1] + 1] * n_pad),
        other,
        window,
        prefix,
        run if is_run else None,
        note,
    )


def projected(choice: MaskChoice, facts: DeltaGenerator, choices: DeltaGenerator) -> Projected:
    """Return scores of the current run's model where it can read the tokens, else seeded ones.

    facts: where the page says where they come from; choices: the place of what few change.
    """
    why = choice.note
    if choice.run is not None:
        try:
            with choices:
                at = _location(choice.run, choice.kind)
            if at is not None:
                made = scores.of_run(choice.run, choice.kind, choice.tokens, choice.other, *at)
                words = _("Real projections: {origin}.", origin=typed.escape(_(made.origin)))
                if scores.reads_target(choice.run, choice.kind):
                    source = typed.escape(" ".join(choice.other))
                    words += " " + _("The tokens are its answer to “{source}”.", source=source)
                facts.caption(f"{words} {choice.note}")
                return made
        except ValueError as error:
            why = _("Not from the current run: {why}", why=typed.escape(_(error)))
    query = ("<bos>", *choice.other) if choice.kind == "cross" else choice.tokens
    made = lab.seeded(query, choice.tokens)
    facts.caption(f"{_('Scores from random embeddings, untrained.')} {why}")
    return made


def _run() -> Run | None:
    """Choose the run whose model scores the tokens; None where seeded embeddings do."""
    runs = {
        run.id: run
        for run in visitors.at_hand()
        if run.problem is None and run.has_checkpoint and not run.experiment.task.class_names
    }
    if not runs:
        return None
    current = state.current_run_id()
    if st.session_state.get(_FOLLOWED, "") != current or st.session_state.get(_RUN) not in runs:
        st.session_state[_FOLLOWED] = current
        st.session_state[_RUN] = current if current in runs else None
    picked = st.selectbox(
        _("Which model"),
        list(runs),
        format_func=lambda run_id: _("The run “{name}”", name=runs[run_id].meta.name),
        key=_RUN,
        index=None,
        placeholder=_("None: random embeddings"),
        persist_state="session",
        on_change=_take_run,
    )
    state.name_run(picked)
    return None if picked is None else runs[picked]


def _take_run() -> None:
    """Make the picked run current and drop the text typed for another."""
    for key in list(st.session_state):
        if str(key).startswith((f"{_TEXT}-run", f"{_TARGET}-run")):
            del st.session_state[key]
    picked = st.session_state[_RUN]
    if picked is not None:
        st.session_state[_FOLLOWED] = picked
        state.set_current_run(picked)


def _text(run: Run | None, chosen: str) -> str:
    cut = "packed" if chosen == "packed" else "one"
    is_target = run is not None and scores.reads_target(run, chosen)
    key = f"{_TEXT}-{'run' if run else 'own'}-{'target' if is_target else cut}"
    st.session_state.setdefault(key, _example(run, chosen))
    return st.text_input(
        _("What the decoder has written so far") if is_target else _("Your sentence or tokens"),
        key=key,
        persist_state="session",
        help=_(
            "At most {n} words; | separates packed sequences, {pad} is padding.",
            n=lab.MAX_TOKENS,
            pad=PAD_TOKEN,
        ),
    )


def _example(run: Run | None, chosen: str) -> str:
    own = EXAMPLE
    if run is not None:
        item = _item(run)
        if scores.reads_target(run, chosen):
            return " ".join(item.get("tgt", ())[:_MAX_SHOWN])
        own = " ".join(str(item.get("src_text", EXAMPLE)).split(" ")[:_MAX_SHOWN])
    if chosen != "packed":
        return own
    words = own.split()
    half = max(1, len(words) // 2)
    return own if len(words) < 2 else f"{' '.join(words[:half])} | {' '.join(words[half:])}"


def _item(run: Run) -> Mapping[str, Any]:
    """Return the example of the run whose source is of a handy length; empty where it has none."""
    try:
        items = [item for item in run.probe().items if "src_text" in item]
    except ValueError:
        return {}
    return min(items, key=lambda item: abs(len(str(item["src_text"])) - 24), default={})


def _tokens(run: Run | None, text: str, chosen: str) -> tuple[tuple[str, ...], str, bool]:
    if run is not None and PAD_TOKEN not in text:
        try:
            return scores.words_of(run, text, chosen), "", True
        except ValueError as error:
            own = lab.read_tokens(text)
            return own, _("Not from the current run: {why}", why=typed.escape(_(error))), False
    return lab.read_tokens(text), "", run is not None


def _target(run: Run | None, tokens: tuple[str, ...]) -> tuple[str, ...]:
    key = f"{_TARGET}-{'run' if run else 'own'}"
    default = EXAMPLE_TARGET
    if run is not None:
        default = " ".join(scores.answer(run, tokens)) or default
        key += "-" + " ".join(tokens)
    st.session_state.setdefault(key, default)
    text = st.text_input(_("What the decoder has written so far"), key=key)
    return lab.read_tokens(typed.within(text, MAX_TEXT))[: lab.MAX_TOKENS - 1]


def _sizes(chosen: str, length: int) -> tuple[int, int]:
    window = prefix = 1
    most = max(2, length)
    if chosen == "window":
        window = st.slider(
            _("Tokens to each side"),
            0,
            most,
            1,
            key="masks-window",
            persist_state="session",
            help=_("The cost grows with the window only."),
        )
    if chosen == "prefix":
        prefix = st.slider(
            _("Tokens of the prefix"),
            0,
            most,
            min(3, most),
            key="masks-prefix",
            persist_state="session",
            help=_("0: a causal mask; all tokens: an encoder's."),
        )
    return window, prefix


def _location(run: Run, chosen: str) -> tuple[int, int] | None:
    """Choose a layer and a head, from 0; None for random embeddings."""
    modules = scores.module_of(run, chosen)
    n_heads = run.experiment.model.n_heads
    with st.container(horizontal=True, vertical_alignment="bottom"):
        is_seeded = st.toggle(_("Use random embeddings"), key=_SEEDED, persist_state="session")
        if is_seeded:
            return None
        layer = _number(_("Layer"), len(modules), f"{_LAYER}-{len(modules)}")
        head = _number(_("Head"), n_heads, f"{_HEAD}-{n_heads}")
    return layer, head


def _number(label: str, n: int, key: str) -> int:
    picked = st.selectbox(
        label,
        range(n),
        format_func=lambda index: str(index + 1),
        key=key,
        width=110,
        persist_state="session",
        disabled=n == 1,
    )
    return int(picked or 0)
