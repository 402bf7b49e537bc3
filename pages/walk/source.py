"""The model of the walk: the user's or the textbook example."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from pages.i18n import N_, _, paragraph
from pages.ui import show, state
from pages.ui.address import view_link
from pages.ui.address.parameters import NEWEST
from pages.ui.settings import model_choice
from pages.ui.settings.model_choice import Chosen
from pages.walk.link import BOOK, DIGIT, DRAWN, MINE, OUT, POSITION, SOURCE, TEXT, WEIGHTS
from tfm_core import byte_cache
from tfm_core.config import Experiment, ImageTaskConfig
from tfm_core.facts.architectures import Architecture
from tfm_core.inspect.attention.own_example import reads_text
from tfm_core.inspect.knockouts.parts import parts_of
from tfm_core.runs.run import Run
from tfm_core.sentences import joined

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from streamlit.delta_generator import DeltaGenerator

    from tfm_core.inspect.walk.forward import Subject

_TICK = 2.0  # seconds between two looks at a run that trains


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
    return model_choice.chosen(recorded="recorded-korean")


@dataclass(frozen=True, slots=True, eq=False)
class Walked:
    """A model after one forward pass.

    name: of what is walked through, the same for all steps of a training and all knock-outs.
    whole: the same model before parts were knocked out, None where none were. steps: those of the
    training whose weights were saved, and step, the one that is shown.
    """

    name: str
    subject: Subject
    whole: Subject | None = None
    steps: tuple[int, ...] = ()
    step: int = 0


def walked(chosen: Chosen | str, field: DeltaGenerator) -> Walked:
    """Return the model after one forward pass.

    field: where the field for a sentence is drawn, of a run that reads one. Raises ValueError, in a
    sentence, where it cannot be walked through.
    """
    if isinstance(chosen, str):
        return Walked(f"{BOOK} {chosen}", _book(chosen))
    if chosen.experiment is None:
        known = chosen.architecture
        key = f"{known.model.model_dump_json()} {known.shape} {known.src_len} {known.tgt_len}"
        return Walked(key, _of_architecture(f"{key} {known.batch}", known))
    if chosen.run is not None and (chosen.run.has_checkpoint or chosen.run.weight_steps()):
        return _of_run(chosen.run, field)
    text = chosen.experiment.model_dump_json()
    return Walked(text, _untrained(text))


def _of_run(run: Run, field: DeltaGenerator) -> Walked:
    from tfm_core.inspect.errors.answers import steps_of, weights_mark

    steps = steps_of(run)
    step = view_link.saved_step(WEIGHTS, steps)
    own = _own(run, field)
    mark, folder, out = weights_mark(run, step), str(run.folder), parts_out(run)

    def made(own: str) -> Walked:
        subject = _trained(folder, step, mark, own, out)
        whole = _trained(folder, step, mark, own, ()) if out else None
        return Walked(f"{run.id} {own}", subject, whole, steps, step)

    try:
        return made(own)
    except ValueError as error:
        if not own:
            raise
        show.problem(error)
    return made("")


def scrub(steps: tuple[int, ...], step: int) -> None:
    """Show the weights of a step; the last one means the newest, whichever that will be."""
    st.session_state[WEIGHTS.key] = NEWEST if step == steps[-1] else step


def follow(run: Run | None) -> None:
    """Redraw the page whenever a run that trains has saved newer weights."""
    if run is None or not run.status.is_active:
        return
    seen = _newest(run)

    def look() -> None:
        if _newest(run) != seen or not run.status.is_active:
            state.draw_anew()

    st.fragment(look, run_every=_TICK)()


def _newest(run: Run) -> tuple[list[int], int | None]:
    return run.weight_steps(), run.checkpoint_step


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


def _own(run: Run, field: DeltaGenerator) -> str:
    """Ask for the reader's own sentence, or take the drawing; return "" where there is none."""
    if not reads_text(run.experiment.task):
        if not takes_drawing(run):
            return ""
        view_link.warn(view_link.receive(DIGIT))
        digit: str = st.session_state[DIGIT.key]
        view_link.say(DIGIT, digit)
        return digit
    view_link.warn(view_link.receive(TEXT))
    typed = field.text_input(
        _("Your sentence"),
        key=TEXT.key,
        persist_state="session",
        placeholder=_("Your sentence, then Enter"),
        label_visibility="collapsed",
        width=222,
    )
    view_link.say(TEXT, typed)
    return typed.strip()


def takes_drawing(run: Run) -> bool:
    from tfm_core.inspect.progress.pictures import reads_drawings

    return run.has_checkpoint and reads_drawings(run.experiment)


def draw(run: Run, drawing: npt.NDArray[np.uint8] | None) -> None:
    """Take a drawing (H, W) in place of the run's own pictures; None goes back to these."""
    from tfm_core.data.own_picture import to_text
    from tfm_core.inspect.attention.own_example import read_picture

    st.session_state[DIGIT.key] = ""
    if drawing is not None:
        with suppress(ValueError):  # it is as good as blank
            st.session_state[DIGIT.key] = DRAWN + to_text(read_picture(run, drawing)[0])


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
def _trained(folder: str, step: int, mark: int, own: str, out: tuple[str, ...]) -> Subject:
    from tfm_core.data.own_picture import from_text
    from tfm_core.inspect.attention.own_example import look_at_text
    from tfm_core.inspect.knockouts.engine import knocked_out
    from tfm_core.inspect.progress.weights import model_of_step
    from tfm_core.inspect.walk.forward import with_note
    from tfm_core.inspect.walk.subject import subject

    run = Run(Path(folder))
    model, _step = model_of_step(run, step)
    given: dict[str, Any] = {}
    is_opened = run.experiment.task.is_opened
    note = N_("Pretrained weights.") if is_opened else N_("Weights of step {step:,}.", step=step)
    if run.experiment.training.ema_decay:
        note = N_("Averaged weights of step {step:,}.", step=step)
    if own and takes_drawing(run):
        facts = run.experiment.task_as(ImageTaskConfig).facts
        given = {"images": from_text(own.removeprefix(DRAWN), facts)[None]}
        note = joined(note, N_("Your digit."))
    elif own:
        given = {"items": [look_at_text(run, own, kinds=()).item]}
    else:
        with suppress(ValueError):  # no probe yet
            probe = run.probe()
            given = {"items": probe.items, "images": probe.images}
    parts = [part for part in parts_of(run.experiment) if part.code in out]
    with knocked_out(model, parts):
        made = subject(run.experiment, model, **given)
    if own:
        made = replace(made, truth=())  # at most the newest weights' answer is known
    return with_note(made, note)
