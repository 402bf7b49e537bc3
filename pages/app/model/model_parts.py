"""The parts of a model to open: its picture, in which one is chosen, and a list of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.app import state
from pages.components import picture as model_picture
from pages.i18n import _
from tfm_core import byte_cache
from tfm_core.choices.config import ModelConfig
from tfm_core.choices.config.shape import Shape
from tfm_core.facts.architectures import Architecture
from tfm_core.trace.parts import OpenPart, name_of, open_parts

if TYPE_CHECKING:
    from tfm_core.trace.picture import Picture

_FIRST = (
    "encoder.layers.0.self_attention",
    "decoder.layers.0.self_attention",
    "decoder.cross_attention",
)


def open_part(known: Architecture, drawn: DeltaGenerator, *, key: str) -> OpenPart:
    """Draw a model's picture in a place, and the list of its parts here; return the open one.

    Picture and list open the same part. key: begins the keys of both.
    """
    lengths = {"src_len": known.src_len, "tgt_len": known.tgt_len}
    parts = open_parts(known.model, known.shape, **lengths)
    picture = _by_shape(known.model, known.shape, **lengths)
    chosen, listed = f"{key}-block", f"{key}-block-list"

    def remember(name: str) -> None:
        st.session_state[chosen] = name

    name = st.session_state.get(chosen)
    if name not in parts:
        name = next(first for first in (*_FIRST, *parts) if first in parts)
    st.session_state[listed] = name
    st.selectbox(  # first: the picture shows the part that the list picks
        _("One block close up"),
        list(parts),
        format_func=lambda name: _(parts[name].title),
        key=listed,
        on_change=lambda: remember(st.session_state[listed]),
    )
    with drawn:
        model_picture.draw_parts(
            picture,
            theme=state.theme(),
            parts=model_picture.Parts(
                [[name_of(stage) for stage in lane.stages] for lane in picture.lanes],
                {name: part.rows for name, part in parts.items()},
                name,
                remember,
            ),
            key=f"{key}-picture",
        )
    return parts[name]


@byte_cache.cached
def _by_shape(model: ModelConfig, shape: Shape, *, src_len: int, tgt_len: int) -> Picture:
    from tfm_core.trace.picture import picture
    from tfm_core.trace.subject import by_shape

    return picture(by_shape(model, shape, batch=1, src_len=src_len, tgt_len=tgt_len))
