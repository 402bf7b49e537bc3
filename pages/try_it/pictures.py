"""Models that read pictures: a drawn digit, the knowledge of CLS and patches, a composed scene."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from pages.app import article, show, state
from pages.app.address import view
from pages.app.address.parameters import Number
from pages.app.model import your_input
from pages.app.runs import run_actions, runs_access
from pages.app.runs.shown_run import Needs
from pages.app.typed import escape
from pages.components.digits import (
    DrawnDigit,
    LabReading,
    Picture,
    digit_lab,
    digit_pad,
    valid_drawing,
)
from pages.i18n import N_, _, paragraph
from tfm_core.choices.config import IMAGE_TASKS, CaptionTaskConfig, ImageTaskConfig, ViTConfig
from tfm_core.data import user_picture
from tfm_core.data.caption_words import CANVAS, GRID, LARGE, SMALL, PlacedDigit
from tfm_core.data.user_picture import picture_to_input
from tfm_core.facts.batches import Batches
from tfm_core.inspect.attention import pictures
from tfm_core.inspect.attention.example import read_picture
from tfm_core.inspect.attention.maps import head_map
from tfm_core.inspect.attention.pictures import (
    CLS,
    INK,
    MEAN,
    PATCH,
    PictureHistory,
    picture_history,
    reads_drawings,
    right_since,
)
from tfm_core.inspect.questions import Question
from tfm_core.inspect.text import captions
from tfm_core.inspect.text.captions import CaptionReading, Piece, about_patches, about_swap
from tfm_core.plots.heads.attention import caption_strip, numbered
from tfm_core.probe.labels import patches_per_side
from tfm_core.runs.run import Run

DIGITS = Needs(
    N_("a model that reads digits"),
    reads_drawings,
    first="recorded-digits",
    presets=("vit-digits",),
    is_ready=lambda run: run.has_checkpoint or bool(run.weight_steps()),
)
PATCHES = Needs(
    N_("a vision transformer"),
    pictures.reads_patches,
    first="recorded-notebook-vit",
    presets=("vit-digits",),
)
SCENES = Needs(
    N_("a model that describes pictures"),
    lambda experiment: experiment.task.describes_pictures,
    first="recorded-captions",
    presets=("captions", "captions-korean"),
)
StepLabel = Callable[[int], str]
_ON_BOARD = "draw-board"  # the drawing, kept between runs
_IN_ADDRESS = "draw-in-address"  # the drawing in the address
FIRST_DIGIT = "3"
"""The sample shown at the first visit."""
PICTURE = "picture-"
_MAX = 4096  # letters of a drawing
SCOPE = "scene"
FIRST_SCENES = {
    1: (PlacedDigit(3, 14, 14),),
    2: (PlacedDigit(3, 0, 14), PlacedDigit(7, 28, 14)),
    3: (PlacedDigit(3, 0, 0), PlacedDigit(7, 28, 0), PlacedDigit(5, 14, 28)),
}
"""The first picture, which has a plain caption, by number of digits."""
SCENE = Number("", first=0, low=0, high=50_000)
HAND = Number("", first=0, low=0, high=10_000)


@dataclass(frozen=True)
class LinkedDrawing:
    """A sample's index, or ``picture-`` and a drawing as ``user_picture.to_text`` writes it."""

    digit: str = view.written(
        rf"[0-9]|{PICTURE}.{{1,{_MAX}}}",
        N_("0 to 9, or picture- and a drawing"),
        default=FIRST_DIGIT,
    )


def draw(run: Run) -> None:
    """Read a drawn digit with all saved weights."""
    your_input.drawing_board(run, partial(_board, run))


def _board(run: Run, is_ready: bool) -> None:
    key = f"draw-{run.id}"
    pictures = your_input.example_pictures(run)
    shown = _on_board(run, key)
    reading, note = your_input.reading_or_note(
        shown.picture(pictures), partial(look_at, run), is_ready=is_ready
    )
    model = run.experiment.model_as(ViTConfig)
    digit_lab(
        shown,
        reading,
        samples=pictures,
        labels=[int(item["label"]) for item in run.probe().items[: len(pictures)]],
        classes=run.experiment.task.class_names,
        shape=(model.n_layers, model.n_heads, patches_per_side(run.experiment) ** 2),
        note=note,
        key=key,
    )
    drawn = "" if reading is None else PICTURE + user_picture.to_text(reading.seen[None])
    if drawn:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            caption = _("Maps: mean attention of all patches to each.")
            if run.experiment.has_cls:
                caption = _("Maps: attention of the CLS token to each patch.")
            st.caption(caption, width="content")
            show.link(
                "attention", _("Open all maps"), {"run": run.id, "example": "own", "own": drawn}
            )
    is_at_rest = (st.session_state.get(key) or {}).get("kept") == shown.number
    number = shown.sample(len(pictures))
    digit = drawn if number is None else str(number)
    if is_at_rest and digit and st.session_state[_IN_ADDRESS] != digit:
        st.session_state[_IN_ADDRESS] = digit
        view.put("draw", digit=digit)
        state.rerun()  # the strip's links contain it too


def _on_board(run: Run, key: str) -> DrawnDigit:
    """Return the drawing for this run: the newest one, or the link's."""
    drawn = valid_drawing((st.session_state.get(key) or {}).get("drawn"))
    current: DrawnDigit = st.session_state.get(_ON_BOARD, DrawnDigit(0, FIRST_DIGIT))
    if drawn is not None and drawn.number > current.number:
        current = drawn
    linked = view.ask(LinkedDrawing, "draw").digit
    if linked != st.session_state.get(_IN_ADDRESS, FIRST_DIGIT):
        digit = linked
        if linked.startswith(PICTURE):
            facts = run.experiment.task_as(ImageTaskConfig).facts
            try:
                picture = user_picture.from_text(linked.removeprefix(PICTURE), facts)
                digit = base64.b64encode(picture.tobytes()).decode()
            except ValueError as error:
                view.warn(_(error))
                view.put("draw", digit=FIRST_DIGIT)
                digit = linked = view.ask(LinkedDrawing, "draw").digit
        current = DrawnDigit(current.number + 1, digit)
    st.session_state[_IN_ADDRESS] = linked
    st.session_state[_ON_BOARD] = current
    return current


def look_at(run: Run, picture: Picture) -> LabReading:
    """Return the reading of a picture (H, W) by a run. Raises ValueError."""
    given, notes = read_picture(run, picture)
    steps, shares, heads, rollout = readings = picture_history(run, given)
    classes = run.experiment.task.class_names
    step_label: StepLabel = "{:,}".format
    if per_epoch := runs_access.curves(run).started.get("steps_per_epoch"):
        batches = Batches.of_experiment(run.experiment)

        def step_label(step: int) -> str:
            epoch = f"{batches.whole(step) / per_epoch:.1f}"
            return _("{step} (epoch {epoch})", step=f"{step:,}", epoch=epoch)

    verdicts = [verdict(readings, index, classes, step_label) for index in range(len(classes))]
    best = int(shares[-1].argmax())
    since = verdicts[best][0]
    assert since is not None
    answer = your_input.describe_answer((steps, shares), classes, step_label)
    return LabReading(
        steps=steps,
        shares=shares,
        since=since,
        said=answer,
        seen=given[0],
        how=" ".join(_(note) for note in notes),
        heads=heads,
        rollout=rollout,
        sinces=tuple(at for at, _sentence in verdicts),
        sentences=tuple(sentence for _at, sentence in verdicts),
    )


def verdict(
    readings: PictureHistory, index: int, classes: tuple[str, ...], step_label: StepLabel
) -> tuple[int | None, str]:
    """Return the index from which a class is read (or None), and a sentence on it."""
    steps, shares, *_maps = readings
    since = right_since((steps, shares), index)
    digit = classes[index]
    if since is None:
        best, at = int(shares[-1].argmax()), int(shares[:, index].argmax())
        values = {
            "best": classes[best],
            "digit": digit,
            "share": show.percent(float(shares[at, index])),
            "step": step_label(steps[at]),
        }
        if (shares.argmax(-1) == index).any():
            return None, _(
                "Reads a {best}, not a {digit}; at step {step} it read a {digit} ({share}).",
                **values,
            )
        return None, _(
            "Reads a {best}, never a {digit}: at most {share}, at step {step}.", **values
        )
    at = steps.index(since)
    if len(steps) == 1:
        return at, _("Right: a {digit}; no earlier weights were saved.", digit=digit)
    if at == 0:
        return at, _("Right: a {digit}. But random weights read it, too.", digit=digit)
    return at, _("Right from step {step} on: a {digit}.", digit=digit, step=step_label(since))


def patches(run: Run) -> None:
    """Show what can be read from each token, layer by layer."""
    try:
        with st.spinner(_("Reading the tokens …")):
            shares, looks, facts = pictures.token_roles(run)
    except ValueError as error:
        show.problem(error)
        return
    st.markdown(_(pictures.token_conclusion(shares, facts["n_tried"], facts["chance"])))
    _table(shares, looks)
    st.caption(paragraph("try/probes", **facts))
    if facts["note"]:
        st.caption(_(facts["note"]))
    if run.experiment.has_cls:
        return
    st.info(_("No CLS token here: the head reads the patch mean."), icon=":material/info:")
    if st.button(_("Train it with a CLS token"), icon=":material/play_arrow:", key="patches-twin"):
        model = run.experiment.model.model_dump() | {"pooling": "cls"}
        name = _("{name}, with CLS", name=run.meta.name)
        twin = run_actions.start(run.experiment.replace(model=model), name=name)
        if twin is not None:
            state.set_current_run(twin.id)
            st.rerun()


def _table(table: pd.DataFrame, looks: tuple[float, ...]) -> None:
    names = {CLS: _("CLS token"), MEAN: _("mean of patches"), PATCH: _("one patch")}
    shown = [name for name in names if name in table]
    stands = {
        CLS: _("one learned vector, no part of the picture"),
        MEAN: _("the whole picture, all patches equally"),
        PATCH: _("its own pixels and position"),
    }
    rows = [(_("stands for"), *(stands[name] for name in shown))]
    for depth, shares in table[shown].clip(lower=0.0).iterrows():
        where = _("digit, after layer {n}", n=depth) if depth else _("digit, before layer 1")
        if depth == INK:
            where = _("ink of a patch, after the last layer")
        rows.append((where, *map(show.percent, shares)))
    if looks:
        own, to_cls = map(show.percent, looks)
        rows.append(
            (
                _("attention in the last layer"),
                _("{share} to itself", share=own),
                "–",
                _("{share} to CLS", share=to_cls),
            )
        )
    show.facts(rows, ["", *(names[name] for name in shown)])


@dataclass(frozen=True)
class Scene:
    """The picture, and whether its digits may stand at positions that training never used.

    scene: 0 is the first one, then those of the test set.
    """

    scene: int = view.held(SCENE)
    free: bool = view.flag(
        N_("Anywhere"),
        help=lambda: _("Training used every {n}th pixel; try positions in between.", n=GRID),
    )


def composed(run: Run, step: int) -> tuple[list[Piece], CaptionReading | None]:
    """Ask for a picture of digits; return them, and its reading by the weights of a step."""
    area = st.container()
    pieces = _pieces(run)
    missing = [n for n, piece in enumerate(pieces, 1) if not piece.pixels.any()]
    reading = None
    with area:
        picture, overlapping = captions.preview(pieces)
        squares = [(p.placed.left, p.placed.top, p.placed.right, p.placed.bottom) for p in pieces]
        show.figure(
            numbered(picture, squares, first=1, bad=overlapping),
            _("{side} × {side} pixels; the model sees no outlines.", side=picture.shape[-1]),
            key=f"{SCOPE}-figure",
        )
        for n in missing:
            st.caption(_("Draw digit {n} on its pad.", n=n))
        try:
            reading = None if missing else captions.look_at_scene(run, pieces, step)
        except ValueError as error:
            show.problem(error)
    return pieces, reading


def _pieces(run: Run) -> list[Piece]:
    """Draw the controls; return the digits. A digit without a drawing has no ink."""
    task = run.experiment.task_as(CaptionTaskConfig)
    n = task.n_digits
    row = st.container(horizontal=True, vertical_alignment="bottom")
    buttons = row.container(horizontal=True, width="content")
    chosen = view.ask(Scene, SCOPE, scene=view.held(SCENE, holds_for=run.id), places={"free": row})
    with buttons:
        st.button(
            _("Next picture"),
            icon=":material/casino:",
            key=f"{SCOPE}-another",
            on_click=st.session_state.update,
            args=({f"{SCOPE}-scene": chosen.scene + 1},),
            help=_("Unseen digits from the test set."),
        )
        if n > 1:
            st.button(
                _("Swap places"),
                icon=":material/swap_horiz:",
                key=f"{SCOPE}-swap",
                on_click=_swap,
                args=(n,),
            )
    laid_out = [(placed, 0) for placed in FIRST_SCENES.get(n, ())]
    if chosen.scene or not laid_out:
        laid_out = captions.unseen_scene(run, max(0, chosen.scene - 1))
    tabs = st.tabs([_("Digit {n}", n=i) for i in range(1, n + 1)])
    composed = []
    for i, (tab, (placed, hand)) in enumerate(zip(tabs, laid_out, strict=True), 1):
        with tab:
            step = 1 if chosen.free else GRID
            composed.append(_piece(run, i, placed, hand, step, of=f"{run.id} {chosen.scene}"))
    return composed


def _piece(run: Run, i: int, laid_out: PlacedDigit, hand: int, step: int, *, of: str) -> Piece:
    """Ask for a digit, by default as it is laid out. of: the key of its picture."""

    def ask(name: str, field: object) -> int:
        return int(view.one(field, f"{name}-{i}", SCOPE))

    def place(name: str, label: str, first: int) -> int:
        key = f"{SCOPE}-{name}-{i}"
        if key in st.session_state:
            st.session_state[key] = min(most, int(st.session_state[key]) // step * step)
        first = min(first, most)
        return ask(name, view.number(label, 0, most, first, step=step, holds_for=of))

    numbers = {str(digit): str(digit) for digit in range(10)}
    named = view.choice(N_("Number"), numbers, str(laid_out.number), is_list=True, holds_for=of)
    left, right = st.columns(2)
    with left:
        number = ask("number", named)
    with right:
        is_drawn = ask("drawn", view.flag(N_("Draw it"), holds_for=of))
        if not is_drawn:
            hand = ask("hand", view.held(dataclasses.replace(HAND, first=hand), holds_for=of))
            st.button(
                _("Change handwriting"),
                key=f"{SCOPE}-another-{i}",
                icon=":material/draw:",
                on_click=st.session_state.update,
                args=({f"{SCOPE}-hand-{i}": hand + 1},),
            )
    side = LARGE
    if run.experiment.task_as(CaptionTaskConfig).sizes:
        is_large = view.flag(N_("Large"), default=laid_out.side >= LARGE, holds_for=of)
        side = LARGE if ask("large", is_large) else SMALL
    most = (CANVAS - side) // step * step
    across, down = st.columns(2)
    with across:
        at_left = place("left", N_("Left (pixels)"), laid_out.left)
    with down:
        at_top = place("top", N_("Top (pixels)"), laid_out.top)
    if is_drawn:
        pixels = _drawing(f"{SCOPE}-pad-{i}")
    else:
        hands = captions.unseen_digits(run, number)
        pixels = hands[hand % len(hands)]
    return Piece(PlacedDigit(number, at_left, at_top, side), pixels)


def _drawing(key: str) -> npt.NDArray[np.uint8]:
    """Ask for a drawing; return it in the form of the model's digits, at first without ink."""
    facts = IMAGE_TASKS["mnist-5000"]
    strokes = digit_pad(key=key)
    if strokes is None:
        return np.zeros((facts.image_size, facts.image_size), np.uint8)
    picture, _notes = picture_to_input(strokes, facts)
    digit: npt.NDArray[np.uint8] = picture[0]
    return digit


def _swap(n: int) -> None:
    """Let each digit take the place and the size of the next one."""
    for name in ("left", "top", "large"):
        keys = [f"{SCOPE}-{name}-{i}" for i in range(1, n + 1)]
        values = [st.session_state[key] for key in keys if key in st.session_state]
        st.session_state.update(zip(keys, [*values[1:], *values[:1]], strict=False))


def strip(reading: CaptionReading, layer: int, number: int) -> None:
    """Show the attention of each word over the picture."""
    assert reading.example.picture is not None
    figure = caption_strip(
        head_map(reading.maps, layer, number),
        reading.example.picture,
        [word["text"] for word in reading.words],
        [word["box"] for word in reading.words],
        notes=[show.percent(word["likely"][0][1]) for word in reading.words],
    )
    show.figure(
        figure,
        _("Orange: attention. Outlined: the digit named. Below: probability."),
        key=f"{SCOPE}-strip",
    )


def inside(reading: CaptionReading, layer: int, number: int) -> None:
    """Show how much attention of each word is in the box of the digit that it names."""
    rows = captions.digit_scores(reading, layer, number)
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


def check(run: Run, pieces: list[Piece], reading: CaptionReading, *, of: str) -> None:
    """Ask what the model writes once two digits change places, and how many keys a word has."""
    step = reading.example.step
    about: dict[str, Question | None] = {"patches": about_patches(reading)}
    if len(pieces) > 1:
        with suppress(ValueError):  # digits of two sizes may overlap after the swap
            swapped = captions.look_at_scene(run, captions.swap_places(pieces), step)
            about = {"swap": about_swap(reading, swapped), **about}
    article.check(about, of=f"{run.id} {step} {of}")
