"""One text, token by token: candidates, attention and forced tokens."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.components.writing_desk import DeskView, writing_desk
from pages.i18n import _, paragraph
from pages.translate import choice, how
from pages.translate.link import SAMPLE
from pages.ui import show
from pages.ui.settings import glosses
from pages.ui.typed import escape
from tfm_core.data.text.glosses import language_of
from tfm_core.inspect.attention.head_labels import aligning_head
from tfm_core.inspect.writing import steps
from tfm_core.inspect.writing.source import Source
from tfm_core.inspect.writing.steps import MEAN, Writing, in_nats
from tfm_core.runs.run import Run


def part(
    source: Source, run: Run, row: DeltaGenerator, method: str, choices: DeltaGenerator
) -> None:
    """Write with the page's settings and show every step.

    row: container of the method; choices: of what few change.
    """
    with row:
        sampling, seed, n = how.sampling(source, method)
    forced = choice.forced()
    writing = steps.write(source, sampling, seed=seed, n=n, forced=dict(forced))
    own = steps.write(source, sampling, seed=seed, n=n) if forced else None
    st.markdown(_verdict(writing, own))
    with choices:
        layer, head = _head(run, writing)
        glosses.switch(run.experiment, key="translate-glosses")
    writing_desk(
        writing,
        writing.looked(layer, head),
        DeskView(
            at=choice.at(),
            mark=f"{run.id} {source.mark} {sampling} {seed} {n} {forced}",
            forced=[source.vocabulary.token(id) for _place, id in forced],
            own=own,
            is_drawn=method == SAMPLE,
            glosses=glosses.shown(run.experiment),
            language=language_of(run.experiment),
        ),
        force=choice.force,
        undo=choice.undo,
        free=choice.begin_anew,
        move=choice.show,
        key="translate-desk",
    )
    st.caption(_special(writing))


def _verdict(writing: Writing, own: Writing | None) -> str:
    source = writing.source
    name = _("It writes") if own is None else _("With your tokens")
    words = [f":grey[{name}] **{escape(writing.text or '–')}**"]
    if source.truth is not None:
        truth = source.text(source.truth)
        words.append(f":grey[{_('Truth')}] **{escape(truth)}**")
        words.append(show.right_or_wrong(is_right=source.text(writing.words) == truth))
    words.append(f":grey[ln p] {in_nats(writing.score)}")
    return "\u2002 ".join(words)


def _head(run: Run, writing: Writing) -> tuple[int, int]:
    n_layers, n_heads = writing.attention.shape[:2]
    aligning = _aligning(str(run.folder), writing.source.step, run)
    chosen = choice.head(n_layers, n_heads, aligning)
    options = [
        (layer, head)
        for layer in range(n_layers)
        for head in ([MEAN, *range(n_heads)] if n_heads > 1 else [MEAN])
    ]
    if len(options) < 2:
        return chosen
    key = "translate-head-list"
    st.session_state[key] = chosen
    st.selectbox(
        _("Attention of the chosen token"),
        options,
        format_func=lambda one: _head_name(one, is_aligning=one == aligning),
        key=key,
        on_change=lambda: choice.pick(st.session_state[key]),
    )
    return chosen


@st.cache_data(show_spinner=False, max_entries=32)
def _aligning(folder: str, step: int, _run: Run) -> tuple[int, int] | None:
    return aligning_head(_run)


def _head_name(head: tuple[int, int], *, is_aligning: bool) -> str:
    layer, number = head
    if number == MEAN:
        return _("Layer {n}, mean of all heads", n=layer + 1)
    if is_aligning:
        return _("Layer {n}, head {head} (aligns best)", n=layer + 1, head=number + 1)
    return _("Layer {n}, head {head}", n=layer + 1, head=number + 1)


def _special(writing: Writing) -> str:
    family = writing.source.experiment.model.family
    words = {
        "encoder-only": paragraph("translate/desk-encoder"),
        "decoder-only": _("Colours and lines: attention of the chosen token."),
        "captioner": _("Orange: patches that this word's cross-attention reads."),
        "recurrent": _("Colours and lines: attention to the source."),
    }
    usual = _("Colours and lines: cross-attention of the chosen token.")
    legend = words.get(family, usual)
    if writing.source.experiment.task.is_opened:
        return legend
    step = show.count(writing.source.step)
    return f"{legend} {_('Weights of step {step}.', step=step)}"
