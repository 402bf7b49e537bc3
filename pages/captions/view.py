"""The model's sentence, its attention per word, and how much of it is in the true box."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from pages.i18n import _
from pages.ui import show, state
from pages.ui.typed import escape
from tfm_core.inspect.text.caption_look import MEAN, CaptionReading, Piece, chosen_maps, scores
from tfm_core.plots.heads.captions import caption_scene, caption_strip
from tfm_core.probe.types import Array
from tfm_core.runs.run import Run

_LAYER, _HEAD = "captions-layer", "captions-head"


def sentence(reading: CaptionReading) -> None:
    item = reading.example.item
    with st.container(border=True, horizontal=True, gap="medium", vertical_alignment="center"):
        st.markdown(
            f":grey[{_('Model')}]  \n**{escape(reading.example.answer_text or '–')}**",
            width="content",
        )
        st.markdown(f":grey[{_('Truth')}]  \n**{escape(item['tgt_text'])}**", width="content")
        st.markdown(show.right_or_wrong(is_right=reading.is_right), width="content")


def heads(run: Run, reading: CaptionReading) -> tuple[int, int]:
    """Choose a decoder layer and a head of it, or MEAN."""
    n_layers, n_heads = reading.maps.shape[:2]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        layer = n_layers - 1
        if n_layers > 1:
            picked = st.segmented_control(
                _("Decoder layer"),
                range(n_layers),
                format_func=lambda n: str(n + 1),
                default=layer,
                required=True,
                key=f"{_LAYER}-{run.id}",
            )
            layer = layer if picked is None else picked
        head = st.segmented_control(
            _("Head"),
            [MEAN, *range(n_heads)],
            format_func=lambda n: _("Mean") if n == MEAN else str(n + 1),
            default=MEAN,
            required=True,
            wrap=True,
            key=f"{_HEAD}-{run.id}",
        )
    return layer, MEAN if head is None else head


def strip(reading: CaptionReading, layer: int, head: int) -> None:
    assert reading.example.picture is not None
    figure = caption_strip(
        chosen_maps(reading, layer, head),
        reading.example.picture,
        [word.text for word in reading.words],
        [word.box for word in reading.words],
        state.theme(),
        notes=[show.percent(word.likely[0][1]) for word in reading.words],
    )
    show.figure(
        figure,
        _("Orange: attention. Outlined: the digit named. Below: probability."),
        key="captions-strip",
    )


def picture(pieces: Sequence[Piece], composed: Array, overlapping: frozenset[int]) -> None:
    squares = [(p.placed.left, p.placed.top, p.placed.right, p.placed.bottom) for p in pieces]
    show.figure(
        caption_scene(composed, squares, overlapping),
        _("{side} × {side} pixels; the model sees no outlines.", side=composed.shape[-1]),
        key="captions-scene-figure",
    )


def inside(reading: CaptionReading, layer: int, head: int) -> None:
    rows = scores(reading, layer, head)
    if rows.empty or reading.even is None:
        st.caption(_("None of these digits was named."))
        return
    st.header(_("Attention in the true box"), anchor=False)
    lines = [
        _(
            "**{word}**: {share}; best head (layer {layer}, head {head}): {best}",
            word=escape(row.word),
            share=show.percent(row.share),
            layer=row.layer,
            head=row.head,
            best=show.percent(row.best),
        )
        for row in rows.itertuples()
    ]
    st.markdown("\n".join(f"- {line}" for line in lines))
    st.caption(_("Uniform attention would give {share}.", share=show.percent(reading.even)))


def word_by_word(reading: CaptionReading) -> None:
    st.header(_("Word by word"), anchor=False)
    rows = [
        {
            "n": index + 1,
            "word": word.text,
            "probability": word.likely[0][1],
            "instead": " · ".join(
                f"{text} {show.percent(p)}" for text, p in word.likely[1:] if round(p, 3) > 0
            )
            or "–",
        }
        for index, word in enumerate(reading.words)
    ]
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        height=38 + 35 * len(rows),
        column_config={
            "n": st.column_config.NumberColumn(_("Step"), width="small"),
            "word": _("Writes"),
            "probability": st.column_config.ProgressColumn(
                _("Probability"), format="percent", min_value=0, max_value=1
            ),
            "instead": st.column_config.TextColumn(_("Instead"), width="large"),
        },
    )
