"""Pictures of the model and of a step: patches, attention of words, caption; and its functions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from pages.components import picture as model_picture
from pages.i18n import _, paragraph
from pages.ui import show, state
from pages.ui.model import walk_steps
from pages.ui.settings import glosses
from pages.ui.typed import escape
from pages.walk import source, tensor
from tfm_core.plots.heads.captions import caption_strip
from tfm_core.plots.model import walk as plots

if TYPE_CHECKING:
    from pages.ui.settings.model_choice import Chosen
    from pages.walk.source import Walked
    from tfm_core.inspect.walk.forward import Subject
    from tfm_core.inspect.walk.steps import WalkStep
    from tfm_core.runs.run import Run


def whole_model(walked: Walked, chosen: Chosen | str, example: int) -> None:
    """Draw the whole model at work; a click explains a step or knocks a part out."""
    from tfm_core.inspect.picture import picture
    from tfm_core.inspect.walk.subject import n_blocks

    subject = walked.subject
    count = n_blocks(subject.config)  # a session keeps what its callbacks hold
    run = None if isinstance(chosen, str) else chosen.run

    def explain(name: str, block: int) -> None:
        walk_steps.go(name)
        if block:
            st.session_state[f"walk-layer-{count}"] = min(block, count) - 1

    board = None
    if run is not None and source.takes_drawing(run):
        board = model_picture.Board(not subject.truth, partial(source.draw, run))
    model_picture.draw(
        picture(subject, example, whole=walked.whole),
        theme=state.theme(),
        glosses={} if run is None else glosses.shown(run.experiment),
        on_step=explain,
        knocks=_knocks(run) if subject.is_real else None,
        training=_training(run, walked, example),
        board=board,
        key="walk-model",
    )
    source.follow(run)


def _knocks(run: Run | None) -> model_picture.Knocks | None:
    from tfm_core.inspect.knockouts.parts import name_of, parts_of

    if run is None:
        return None
    parts = parts_of(run.experiment)
    codes = {
        (part.module, -1 if part.head is None else part.head): part.code
        for part in parts
        if part.kind in ("head", "sublayer", "layer")
    }
    chosen = source.parts_out(run)
    out = {part.code: _(name_of(part)) for part in parts if part.code in chosen}
    return model_picture.Knocks(codes, out, source.knock)


def _training(run: Run | None, walked: Walked, example: int) -> model_picture.Training | None:
    if run is None or not walked.steps:
        return None
    return model_picture.Training(
        walked.steps,
        walked.step,
        f"{walked.name} {example} {source.parts_out(run)} {state.theme()}",
        run.status.is_active,
        partial(source.scrub, walked.steps),
    )


def cut(subject: Subject, example: int) -> None:
    if subject.pictures is None:
        return
    size = getattr(subject.config, "patch_size", 1)
    figure = plots.cut_picture(subject.pictures[example], size, state.theme())
    show.live_figure(figure, _("The patches, row by row from the top left."), key="walk-picture")


def looks(subject: Subject, step: WalkStep, example: int) -> None:
    """Show where each word looks, over the picture, in the head that the map is shown of."""
    if subject.described is None or subject.pictures is None:
        return
    from tfm_core.inspect.walk.captions import word_maps

    head = tensor.chosen_head(subject)
    maps = word_maps(subject, step, example, head)
    figure = caption_strip(
        maps.maps,
        subject.pictures[example],
        maps.words,
        maps.boxes,
        state.theme(),
        notes=maps.writes,
    )
    show.figure(figure, paragraph("walk/looks", n=head + 1), key="walk-looks")


def written(subject: Subject, example: int) -> None:
    if subject.described is None or subject.pictures is None:
        return
    caption, truth = subject.described.said[example], subject.described.truth[example]
    with st.container(border=True, horizontal=True, gap="medium", vertical_alignment="center"):
        st.image(subject.pictures[example][0], width=98, alt=truth)
        st.markdown(
            _(":grey[Model]  \n**{caption}**", caption=escape(caption or "–")), width="content"
        )
        st.markdown(_(":grey[Truth]  \n**{caption}**", caption=escape(truth)), width="content")
        st.markdown(show.right_or_wrong(is_right=caption == truth), width="content")


def used(step: WalkStep) -> None:
    """Show each function of the step's code: what it does, and a call of it with its result."""
    from tfm_core.inspect.walk import functions

    shown = functions.used(step)
    if not shown:
        return
    st.subheader(_("The functions used"), anchor=False)
    for function, session in shown:
        with st.container(gap="xsmall"):
            st.markdown(f"`{function.name}` {_(function.says)}")
            st.code(session, language="python", wrap_lines=True)
