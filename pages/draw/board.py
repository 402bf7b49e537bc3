"""The board and what a run makes of it; a stroke draws this part of the page anew alone."""

from __future__ import annotations

import base64
from typing import Any

import streamlit as st

from pages.components.digit_lab import Look, digit_lab
from pages.components.digit_reader import Drawn, Picture, Reading, valid_drawn
from pages.draw import words
from pages.draw.link import BOARD, FIRST, PICTURE
from pages.i18n import _
from pages.ui import page_table, runs_access, state, view_link
from pages.ui.digit_models import LOOK_AGAIN, models, samples
from tfm_core.config import ImageTaskConfig, ViTConfig
from tfm_core.data import own_picture
from tfm_core.facts.batches import Batches
from tfm_core.inspect.attention.own_example import read_picture
from tfm_core.inspect.progress.pictures import picture_history
from tfm_core.probe.labels import patches_per_side
from tfm_core.runs.run import Run

_ON_BOARD = "draw-board"  # what stands on it, from run to run
_SAID = "draw-said"  # the number of the drawing that the address says
_TICK = 2.0  # seconds between two looks at a run that trains


def board(run: Run) -> None:
    """Ask for a drawing and show what the run reads in it, and where it looks."""
    loaded = models(str(run.folder), run)
    were_loaded, is_live, is_drawn = loaded.are_loaded, run.status.is_active, False

    def part() -> None:
        nonlocal is_drawn
        if loaded.are_loaded and not were_loaded:
            state.draw_anew()
        if is_live and not run.status.is_active:
            state.draw_anew()  # once: the page then makes a fragment that does not tick
        if is_drawn and not were_loaded:
            loaded.load()
        is_drawn = True
        _part(run, is_ready=were_loaded)

    tick = LOOK_AGAIN if not were_loaded else _TICK if is_live else None
    st.fragment(part, run_every=tick)()


def look_at(run: Run, picture: Picture) -> Look:
    """Return what a run makes of a drawing or picture (H, W). Raises ValueError, in a sentence."""
    given, notes = read_picture(run, picture)
    found = picture_history(run, given)
    classes = run.experiment.task_as(ImageTaskConfig).facts.class_names
    epochs = _epochs(run)
    told = [words.meant(found, index, classes, epochs) for index in range(len(classes))]
    best = int(found.shares[-1].argmax())
    since = told[best][0]
    assert since is not None
    return Look(
        Reading(found.steps, found.shares, since, words.answer(found, classes, epochs)),
        seen=given[0],
        how=" ".join(_(note) for note in notes),
        heads=found.heads,
        rollout=found.rollout,
        sinces=tuple(at for at, _sentence in told),
        sentences=tuple(sentence for _at, sentence in told),
    )


def _epochs(run: Run) -> words.Epochs:
    per_epoch = runs_access.curves(run).started.get("steps_per_epoch")
    if not per_epoch:
        return None
    batches = Batches.of_experiment(run.experiment)
    return lambda step: float(batches.whole(step) / per_epoch)


def _part(run: Run, *, is_ready: bool) -> None:
    key = f"draw-{run.id}"
    shown, pictures = _on_board(run, key), samples(run)
    picture, look = shown.picture(pictures), None
    note = _("Draw a digit: the bars answer at every stroke.")
    if not is_ready:
        note = _("Loading the model …")
    elif picture is not None:
        try:
            look = look_at(run, picture)
        except ValueError as error:
            note = _(error)
    _lab(run, shown, look, pictures, note, key)
    if look is not None:
        _links(run, look)
    _keep_in_address(run, shown, look, key)


def _lab(run: Run, shown: Drawn, look: Look | None, pictures: Picture, note: str, key: str) -> None:
    experiment = run.experiment
    model = experiment.model_as(ViTConfig)
    digit_lab(
        shown,
        look,
        samples=pictures,
        labels=[int(item["label"]) for item in run.probe().items[: len(pictures)]],
        classes=experiment.task_as(ImageTaskConfig).facts.class_names,
        shape=(model.n_layers, model.n_heads, patches_per_side(experiment) ** 2),
        note=note,
        key=key,
    )


def _on_board(run: Run, key: str) -> Drawn:
    """Return what stands on the board: what was drawn for this run or another, or the link's."""
    sent: Any = st.session_state.get(key)
    drawn = valid_drawn(sent.get("drawn") if sent else None)
    kept: Drawn = st.session_state.get(_ON_BOARD, Drawn(0, FIRST))
    if drawn is not None and drawn.number > kept.number:
        kept = drawn
    linked, problem = view_link.opened(BOARD), ""
    if linked is not None:
        wanted, problem = BOARD.follow(linked, FIRST)
        try:
            kept = Drawn(kept.number + 1, _from_link(run, wanted))
        except ValueError as error:
            kept, wanted, problem = Drawn(kept.number + 1, FIRST), FIRST, _(error)
        view_link.say(BOARD, wanted)
    view_link.warn(problem)
    st.session_state[_ON_BOARD] = kept
    return kept


def _from_link(run: Run, wanted: str) -> str:
    """Return what a link puts on the board. Raises ValueError where its drawing is damaged."""
    if not wanted.startswith(PICTURE):
        return wanted
    facts = run.experiment.task_as(ImageTaskConfig).facts
    picture = own_picture.from_text(wanted.removeprefix(PICTURE), facts)
    return base64.b64encode(picture.tobytes()).decode()


def _keep_in_address(run: Run, shown: Drawn, look: Look | None, key: str) -> None:
    """Say in the address what stands on the board, once the pen rests."""
    sent: Any = st.session_state.get(key)
    if not sent or sent.get("kept") != shown.number or st.session_state.get(_SAID) == shown.number:
        return
    st.session_state[_SAID] = shown.number
    number = shown.sample(len(samples(run)))
    if number is not None:
        view_link.say(BOARD, str(number))
    elif look is not None:
        view_link.say(BOARD, PICTURE + own_picture.to_text(look.seen[None]))
    state.draw_anew()  # the links that the strip offers hold it too


def _links(run: Run, look: Look) -> None:
    """Lead to where every map of this drawing can be opened."""
    own = PICTURE + own_picture.to_text(look.seen[None])
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        who = _("the CLS token") if run.experiment.has_cls else _("the mean of all patches")
        words_ = _("The maps show what {who}, which the classifier reads, takes from each patch.")
        st.caption(words_.format(who=who), width="content")
        st.page_link(
            page_table.path_of("attention"),
            label=_("Every cell of these maps"),
            icon=":material/visibility:",
            query_params={"run": run.id, "example": "own", "own": own},
        )
