"""The model of the walk: the user's or the textbook example."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from pages.i18n import N_, _, paragraph
from pages.ui.address import view_link
from pages.ui.settings import model_choice
from pages.ui.settings.model_choice import Chosen
from pages.walk.link import BOOK, MINE, POSITION, SOURCE
from tfm_core import byte_cache
from tfm_core.config import Experiment
from tfm_core.facts.architectures import Architecture
from tfm_core.runs.run import Run

if TYPE_CHECKING:
    from tfm_core.inspect.walk.forward import Subject


def pick() -> tuple[str, Subject]:
    """Draw the choice; return a name of what was chosen, and the model after one forward pass.

    Raises ValueError, in a sentence, where it cannot be walked through.
    """
    left, right = st.columns([2, 3], vertical_alignment="bottom")
    unknown = view_link.receive(SOURCE)
    with left:
        picked = st.segmented_control(
            _("Walk through"),
            SOURCE.names,
            format_func=lambda name: _(SOURCE.labels[name]),
            required=True,
            key=SOURCE.query,
            persist_state="session",
            help=paragraph("walk/textbook"),
        )
    view_link.warn(unknown)
    view_link.say(SOURCE, picked or MINE)
    with right:
        if picked == BOOK:
            position = view_link.choice(_("Its positions"), POSITION)
            return f"{BOOK} {position}", _book(position)
        chosen = model_choice.chosen()
    return _of(chosen)


def _of(chosen: Chosen) -> tuple[str, Subject]:
    if chosen.experiment is None:
        known = chosen.architecture
        key = f"{known.model.model_dump_json()} {known.shape} {known.src_len} {known.tgt_len}"
        return key, _of_architecture(f"{key} {known.batch}", known)
    if chosen.run is not None and chosen.run.has_checkpoint:
        path = chosen.run.folder / "checkpoints" / "last" / "checkpoint.safetensors"
        walked = _trained(str(chosen.run.folder), path.stat().st_mtime_ns)
        return f"{chosen.run.id} {path.stat().st_mtime_ns}", walked
    text = chosen.experiment.model_dump_json()
    return text, _untrained(text)


@byte_cache.kept
def _book(position: str) -> Subject:
    from tfm_core.inspect.walk.forward import with_note
    from tfm_core.inspect.walk.subject import BOOK_SEED, book_example

    note = N_(
        "6 + 6 blocks. One pair's numbers, with random ids and weights (seed {seed}).",
        seed=BOOK_SEED,
    )
    return with_note(book_example(position, with_numbers=True), note)


def _of_architecture(key: str, architecture: Architecture) -> Subject:
    from tfm_core.inspect.walk.forward import with_note
    from tfm_core.inspect.walk.subject import of_architecture

    def walked() -> Subject:
        made = of_architecture(architecture)
        return with_note(made, architecture.note) if architecture.note else made

    return byte_cache.SHARED.get(("walk of", key), walked)


@byte_cache.kept
def _untrained(text: str) -> Subject:
    from tfm_core.inspect.walk.forward import with_note
    from tfm_core.inspect.walk.subject import subject

    walked = subject(Experiment.model_validate_json(text))
    if walked.is_real:
        return with_note(walked, N_("This model is untrained: its numbers are random."))
    return with_note(walked, N_("This model is large: shapes only."))


@byte_cache.kept
def _trained(folder: str, changed: int) -> Subject:
    from tfm_core.inspect.walk.forward import with_note
    from tfm_core.inspect.walk.subject import subject
    from tfm_core.training.checkpoints import load_model

    run = Run(Path(folder))
    model, step = load_model(run.experiment, run.folder / "checkpoints" / "last")
    try:
        probe = run.probe()
        walked = subject(run.experiment, model, items=probe.items, images=probe.images)
    except ValueError:  # no probe yet
        walked = subject(run.experiment, model)
    note = N_("The last checkpoint of the run, step {step:,}.", step=step)
    if run.experiment.training.ema_decay:
        note = N_("The averaged weights of the run's last checkpoint, step {step:,}.", step=step)
    return with_note(walked, note)
