"""Walk through: one forward pass, step by step, with its shapes, its code and its numbers."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from pages.app import article, show, state
from pages.app.address import view
from pages.app.model import answer
from pages.app.navigation import head
from pages.app.navigation.head import Moment
from pages.app.runs import shown_run
from pages.app.runs.shown_run import MODELS
from pages.app.settings import model_choice
from pages.app.settings.model_choice import Chosen
from pages.app.typed import escape
from pages.components import picture as model_picture
from pages.i18n import N_, _, paragraph
from pages.look_inside import walk_step
from tfm_core import byte_cache
from tfm_core.choices.config import Experiment, ImageTaskConfig
from tfm_core.inspect.attention.example import reads_text
from tfm_core.inspect.attention.trained import weights_mark
from tfm_core.inspect.knockouts.parts import name_of, parts_of
from tfm_core.plots.heads.attention import caption_strip, numbered
from tfm_core.runs.run import Run
from tfm_core.sentences import joined

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tfm_core.anatomy.names import Scheme
    from tfm_core.trace.steps import Step
    from tfm_core.trace.subject import Subject

SCOPE = "walk"
MINE, BOOK = "mine", "book"
MAX_TEXT = 400
MAX_OUT = 40
MAX_BLOCKS = 99


@dataclass(frozen=True)
class WalkSource:
    """What is walked through: a model, or the textbook example."""

    source: str = view.choice(
        N_("Walk through"),
        {MINE: N_("My model"), BOOK: N_("Textbook example")},
        query="walk-source",
        help=lambda: paragraph("walk/textbook"),
    )
    positions: str = view.choice(
        N_("Its positions"),
        {"learned": N_("Learned"), "sinusoidal": N_("Sinusoidal")},
        query="walk-positions",
        when=lambda asked: asked.source == BOOK,
    )


def _block(count: int, *, of: str = "") -> int:
    """Offer the block that the steps open, from 0."""
    look = {"width": 110}
    made: int = view.number(N_("Block"), 0, count - 1, 0, offset=1, look=look, of=of)
    return made


def _out(codes: frozenset[str] = frozenset()) -> Any:
    """Keep the codes of the parts that are knocked out, of those that the model has."""

    def read(text: str) -> tuple[str, ...] | None:
        found = tuple(dict.fromkeys(text.split(",")))
        known = tuple(code for code in found if not codes or code in codes)
        return known if len(found) <= MAX_OUT else None

    rule = N_("at most {n} parts", n=MAX_OUT)
    return view.written(".*", rule, read, ",".join, default=())


DRAWN = "picture-"


@dataclass(frozen=True)
class Walk:
    """What is walked through: the reader's own text or drawing, what is knocked out, the block.

    own_digit: ``DRAWN`` and a drawing as ``user_picture.to_text`` writes it, or "" for none. block:
    the one that the steps open.
    """

    text: str = view.text(
        N_("Your sentence"),
        "",
        MAX_TEXT,
        query="walk-text",
        look={
            "placeholder": N_("Your sentence, then Enter"),
            "label_visibility": "collapsed",
            "width": 222,
        },
    )
    own_digit: str = view.written(
        f"|{DRAWN}[A-Za-z0-9_-]{{1,4096}}",
        N_("picture- and a drawing"),
        default="",
        query="walk-digit",
    )
    out: tuple[str, ...] = _out()
    block: int = _block(MAX_BLOCKS)


def page() -> None:
    """Choose a model in the head, and walk through it."""
    show.header("walk")
    run, moment = head.run(MODELS, is_needed=False), None
    try:
        with (
            head.beside(),
            st.popover(_("Change"), icon=":material/tune:", type="tertiary", key="walk-change"),
        ):
            source = view.ask(WalkSource, SCOPE)
            chosen = None if source.source == BOOK else model_choice.chosen(run)
            scheme = model_choice.scheme()
    except ValueError as error:
        show.problem(error)
        return
    if chosen is not None and chosen.run is not None:
        moment = head.moment(chosen.run)
        if moment is None:
            shown_run.no_weights(chosen.run)
            return
    state.body(partial(_walk, source, chosen, moment, scheme))


def _walk(source: WalkSource, chosen: Chosen | None, moment: Moment | None, scheme: Scheme) -> None:
    from tfm_core.trace.subject import BOOK_BLOCKS
    from tfm_core.trace.trace import n_blocks, trace

    if moment is not None and head.has_moved(moment.step, moment.steps):
        st.rerun()
    above = st.container()  # of warnings, too
    with st.container(horizontal=True, vertical_alignment="center", key="walk-facts"):
        note, field = st.container(width="stretch"), st.container(width="content")
    with st.container(horizontal=True, vertical_alignment="top", gap="small"):
        list_of_steps, block = st.container(), st.container(width="content")
    run = None if moment is None else moment.run
    count = BOOK_BLOCKS if chosen is None else n_blocks(chosen.model)
    parts = [] if run is None else parts_of(run.experiment)
    are_offered = {
        "text": run is not None and reads_text(run.experiment.task),
        "own_digit": run is not None and takes_drawing(run),
        "out": run is not None,
    }
    with view.warnings_in(above):
        asked = view.ask(
            Walk,
            SCOPE,
            places={"text": field, "block": block},
            hidden=[name for name, is_offered in are_offered.items() if not is_offered],
            out=_out(frozenset(part.code for part in parts)),
            block=_block(count, of=str(count)),
        )
    try:
        with st.spinner(_("One forward pass …"), show_time=False):
            walked = _walked(source, chosen, moment, asked)
        (name, subject, _whole), example = walked, 0
        if moment is not None:
            example = min(moment.example or 0, subject.n_examples - 1)
        steps = trace(subject, layer=asked.block, example=example)
    except ValueError as error:
        show.problem(error)
        return
    words = _(subject.note) if subject.note else ""
    if moment is None:  # else the head names it
        words = f"{words} {walk_step.example_name(subject, example)}".strip()
    note.caption(words)
    with above:
        _whole_model(walked, moment, example, asked.out)
    names = [step.name for step in steps]
    number, problem = walk_step.current(names)
    view.warn(problem)
    step = steps[number - 1]
    with list_of_steps:
        walk_step.navigation(steps, number)
    st.header(f"{number} · {_(step.title)}", anchor=False)
    if step.block:
        st.caption(_("Inside `{block}`", block=step.block))
    of = f"{name} {example}"
    left, right = st.columns(2, gap="medium")
    with left:
        explained = st.container()
        article.ask(step.question, step.name, of=of)
        is_revealed = article.is_revealed(step.name, of=of)
        with explained:  # drawn last: a correct answer reveals the result above
            walk_step.shapes(step, subject, example, is_revealed=is_revealed)
            walk_step.explanation(step, subject, names, is_revealed=is_revealed)
            walk_step.named(step, subject, scheme, asked.block)
    with right:
        if is_revealed and step.name == "patches":
            _cut(subject, example)
        if is_revealed and step.name == "whole":
            _written(subject, example)
        over = st.container()
        walk_step.tensor(step, subject, example, is_revealed=is_revealed)
        if is_revealed and step.name == "softmax":
            walk_step.mistake(subject, step, example)
        if is_revealed and step.name == "cross-attention":
            with over:  # drawn last: it shows the head that is chosen for the map
                _looks(subject, step, example)
        walk_step.used(step)


Walked = tuple[str, "Subject", "Subject | None"]
"""The name of what is walked through, the same for all steps of a training and all knock-outs; a
model after one forward pass; the same before parts were knocked out, None where none were."""


def _walked(
    source: WalkSource, chosen: Chosen | None, moment: Moment | None, asked: Walk
) -> Walked:
    """Return the model after one forward pass.

    Raises ValueError, in a sentence, where it cannot be walked through.
    """
    if chosen is None:
        return f"{BOOK} {source.positions}", _book(source.positions), None
    if chosen.experiment is None:
        from tfm_core.trace.subject import of_architecture, with_note

        known = chosen.architecture
        key = f"{known.model.model_dump_json()} {known.shape} {known.src_len} {known.tgt_len}"
        to_scale = byte_cache.SHARED.get(
            ("walk of", f"{key} {known.batch}"),
            lambda: with_note(of_architecture(known), known.note),
        )
        return key, to_scale, None
    if moment is None:
        settings = chosen.experiment.model_dump_json()
        return settings, _untrained(settings), None
    run, step = moment.run, moment.step
    own = asked.own_digit or asked.text.strip()
    mark, folder, out = weights_mark(run, step), str(run.folder), asked.out

    def made(own: str) -> Walked:
        subject = _trained(folder, step, mark, own, out)
        whole = _trained(folder, step, mark, own, ()) if out else None
        return f"{run.id} {own}", subject, whole

    try:
        return made(own)
    except ValueError as error:
        if not own:
            raise
        show.problem(error)
    return made("")


def takes_drawing(run: Run) -> bool:
    from tfm_core.inspect.attention.pictures import reads_drawings

    return run.has_checkpoint and reads_drawings(run.experiment)


def draw(run: Run, drawing: npt.NDArray[np.uint8] | None) -> None:
    """Take a drawing (H, W) in place of the run's own pictures; None goes back to these."""
    from tfm_core.data.user_picture import to_text
    from tfm_core.inspect.attention.example import read_picture

    view.put(SCOPE, own_digit="")
    if drawing is not None:
        with suppress(ValueError):  # it is as good as blank
            view.put(SCOPE, own_digit=DRAWN + to_text(read_picture(run, drawing)[0]))


@byte_cache.cached
def _book(position: str) -> Subject:
    from tfm_core.trace.subject import BOOK_SEED, book_example, with_note

    note = N_(
        "6 + 6 blocks. One pair's numbers, with random ids and weights (seed {seed}).",
        seed=BOOK_SEED,
    )
    return with_note(book_example(position, with_numbers=True), note)


@byte_cache.cached
def _untrained(text: str) -> Subject:
    from tfm_core.trace.subject import subject, with_note

    walked = subject(Experiment.model_validate_json(text))
    if walked.is_real:
        return with_note(walked, N_("This model is untrained, so its numbers are random."))
    return with_note(walked, N_("This model is large, so you see only shapes."))


@byte_cache.cached
def _trained(folder: str, step: int, mark: int, own: str, out: tuple[str, ...]) -> Subject:
    from tfm_core.data.user_picture import from_text
    from tfm_core.inspect.attention.example import look_at_text
    from tfm_core.inspect.attention.trained import model_of_step
    from tfm_core.inspect.knockouts.engine import knocked_out
    from tfm_core.trace.subject import subject, with_note

    run = Run(Path(folder))
    model, _step = model_of_step(run, step)
    given: dict[str, Any] = {}
    training = run.experiment.training
    notes: list[str] = []  # the head names the step
    if training is None:
        notes.append(N_("Pretrained weights."))
    elif training.ema_decay:
        notes.append(N_("Averaged weights of step {step:,}.", step=step))
    if own and takes_drawing(run):
        facts = run.experiment.task_as(ImageTaskConfig).facts
        given = {"images": from_text(own.removeprefix(DRAWN), facts)[None]}
        notes.append(N_("Your digit."))
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
    return with_note(made, joined(*notes))


def _whole_model(walked: Walked, moment: Moment | None, example: int, out: tuple[str, ...]) -> None:
    """Draw the whole model at work; a click explains a step or knocks a part out."""
    from tfm_core.trace.picture import picture
    from tfm_core.trace.trace import n_blocks

    walk_name, subject, whole = walked
    count = n_blocks(subject.config)  # a session keeps what its callbacks hold
    run = None if moment is None else moment.run

    def explain(name: str, block: int) -> None:
        walk_step.go(name)
        if block:
            st.session_state[f"walk-{count}-block"] = min(block, count) - 1

    board = None
    if run is not None and takes_drawing(run):
        board = model_picture.Board(not subject.truth, partial(draw, run))
    training = None
    if moment is not None:
        training = model_picture.Training(
            moment.steps,
            moment.step,
            f"{walk_name} {example} {out} {state.theme()}",
            moment.run.status.is_active,
            partial(head.go_to, steps=moment.steps),
        )
    model_picture.draw(
        picture(subject, example, whole=whole),
        theme=state.theme(),
        glosses={} if run is None else answer.glosses_of_run(run.experiment),
        on_step=explain,
        knocks=_knocks(run, out) if subject.is_real else None,
        training=training,
        board=board,
        key="walk-model",
    )


def _knocks(run: Run | None, out: tuple[str, ...]) -> model_picture.Knocks | None:
    if run is None:
        return None
    parts = parts_of(run.experiment)
    codes = {
        (part.module, -1 if part.head is None else part.head): part.code
        for part in parts
        if part.kind in ("head", "sublayer", "layer")
    }

    def knock(code: str) -> None:
        """Knock out a part, or put it back."""
        left = tuple(one for one in out if one != code)
        view.put(SCOPE, out=left if code in out else (*out, code))

    names = {part.code: _(name_of(part)) for part in parts if part.code in out}
    return model_picture.Knocks(codes, names, knock)


def _cut(subject: Subject, example: int) -> None:
    if subject.pictures is None:
        return
    picture, size = subject.pictures[example], getattr(subject.config, "patch_size", 1)
    starts = range(0, picture.shape[-1], size)
    patches = [(left, top, left + size, top + size) for top in starts for left in starts]
    figure = numbered(picture, patches)
    show.figure(figure, _("The patches, row by row from the top left."), key="walk-picture")


def _looks(subject: Subject, step: Step, example: int) -> None:
    """Show where each word looks, over the picture, in the head that the map is shown of."""
    if subject.described is None or subject.pictures is None:
        return
    from tfm_core.trace.shown import word_maps

    number = walk_step.chosen_head(subject)
    maps, words, boxes = word_maps(subject, step, example, number)
    figure = caption_strip(
        maps,
        subject.pictures[example],
        words,
        boxes,
        notes=[f"→ {word}" for word in subject.truth[example]],
    )
    show.figure(figure, paragraph("walk/looks", n=number + 1), key="walk-looks")


def _written(subject: Subject, example: int) -> None:
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


if __name__ == "__main__":
    page()
