"""The model of the walk: the user's or the textbook example."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from pages.i18n import N_, _, paragraph
from pages.ui import show
from pages.ui.address import view_link
from pages.ui.settings import model_choice
from pages.ui.settings.model_choice import Chosen
from pages.walk.link import BOOK, MINE, OUT, POSITION, SOURCE, TEXT, WEIGHTS
from tfm_core import byte_cache
from tfm_core.config import Experiment
from tfm_core.facts.architectures import Architecture
from tfm_core.inspect.knockouts.parts import parts_of
from tfm_core.runs.run import Run
from tfm_core.variants.tasks import TASK_KINDS

if TYPE_CHECKING:
    from tfm_core.inspect.walk.forward import Subject


def pick() -> Chosen | str:
    """Draw the choice; return the model, or the positions of the textbook example.

    Raises ValueError, in a sentence, for a model that cannot be built.
    """
    unknown = view_link.receive(SOURCE)
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
    if picked == BOOK:
        return view_link.choice(_("Its positions"), POSITION)
    return model_choice.chosen()


def walked(chosen: Chosen | str) -> tuple[str, Subject]:
    """Return a name of what is walked through, and the model after one forward pass.

    Of a run, draws the choice of the step and the field for a sentence or a digit. Raises
    ValueError, in a sentence, where it cannot be walked through.
    """
    if isinstance(chosen, str):
        return f"{BOOK} {chosen}", _book(chosen)
    if chosen.experiment is None:
        known = chosen.architecture
        key = f"{known.model.model_dump_json()} {known.shape} {known.src_len} {known.tgt_len}"
        return key, _of_architecture(f"{key} {known.batch}", known)
    if chosen.run is not None and chosen.run.has_checkpoint:
        return _of_run(chosen.run)
    text = chosen.experiment.model_dump_json()
    return text, _untrained(text)


def _of_run(run: Run) -> tuple[str, Subject]:
    from tfm_core.inspect.errors.answers import steps_of, weights_mark

    steps = steps_of(run)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        step = view_link.weights_step(WEIGHTS, steps)
        own = _own(run)
    mark, folder, out = weights_mark(run, step), str(run.folder), parts_out(run)
    name = f"{run.id} {step} {mark} {out}"
    try:
        return f"{name} {own}", _trained(folder, step, mark, own, out)
    except ValueError as error:
        if not own:
            raise
        show.problem(error)
    return name, _trained(folder, step, mark, "", out)


def parts_out(run: Run) -> tuple[str, ...]:
    """Return the codes of the run's parts that are knocked out; the link says them."""
    view_link.warn(view_link.receive(OUT))
    codes = {part.code for part in parts_of(run.experiment)}
    out = tuple(code for code in st.session_state[OUT.key] if code in codes)
    view_link.say(OUT, out)
    return out


def knock(code: str) -> None:
    """Knock out a part, or put it back."""
    out = st.session_state[OUT.key]
    st.session_state[OUT.key] = (
        tuple(one for one in out if one != code) if code in out else (*out, code)
    )


def _own(run: Run) -> str:
    """Ask for the reader's own sentence; return "" where there is none."""
    if TASK_KINDS[run.experiment.task.kind].own_text is None:
        return ""
    view_link.warn(view_link.receive(TEXT))
    typed = st.text_input(
        _("Your sentence"),
        key=TEXT.key,
        persist_state="session",
        placeholder=_("Use the words of the task, then press Enter."),
    )
    view_link.say(TEXT, typed)
    return typed.strip()


@byte_cache.cached
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


@byte_cache.cached
def _untrained(text: str) -> Subject:
    from tfm_core.inspect.walk.forward import with_note
    from tfm_core.inspect.walk.subject import subject

    walked = subject(Experiment.model_validate_json(text))
    if walked.is_real:
        return with_note(walked, N_("This model is untrained: its numbers are random."))
    return with_note(walked, N_("This model is large: shapes only."))


@byte_cache.cached
def _trained(folder: str, step: int, mark: int, text: str, out: tuple[str, ...]) -> Subject:
    from tfm_core.inspect.attention.own_example import look_at_text
    from tfm_core.inspect.attention.trained import model_of
    from tfm_core.inspect.knockouts.engine import knocked_out, twin
    from tfm_core.inspect.progress.pictures import model_at
    from tfm_core.inspect.walk.forward import with_note
    from tfm_core.inspect.walk.subject import subject

    run = Run(Path(folder))
    model = model_of(run)[0] if step == run.checkpoint_step else model_at(run, step)
    given: dict[str, Any] = {}
    if text:
        given = {"items": [look_at_text(run, text).item]}
    else:
        with suppress(ValueError):  # no probe yet
            probe = run.probe()
            given = {"items": probe.items, "images": probe.images}
    parts = [part for part in parts_of(run.experiment) if part.code in out]
    if parts:
        model = twin(model)
    with knocked_out(model, parts):
        made = subject(run.experiment, model, **given)
    note = N_("Weights of step {step:,}.", step=step)
    if run.experiment.training.ema_decay:
        note = N_("Averaged weights of step {step:,}.", step=step)
    return with_note(made, note)
