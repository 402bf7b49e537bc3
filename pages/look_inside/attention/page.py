"""Attention: which token looks at which, in every head, at every saved snapshot, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.app import show, state
from pages.app.address import view
from pages.app.model import answer
from pages.app.navigation import head
from pages.app.runs import run_words
from pages.app.runs.shown_run import Needs
from pages.components import live_figure
from pages.components.buttons import svg_as_png
from pages.components.effects import Tree, moving, reveal
from pages.components.heads import pack_grid, pack_lines, standalone
from pages.i18n import N_, _, content, language, paragraph, speaking
from pages.look_inside.attention import arithmetic, deeper, maps, own
from pages.look_inside.attention.maps import ARITHMETIC, MEAN, Film, Shown
from tfm_core.choices.config import Experiment, OpenedConfig, built
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.inspect.attention import alignment, heads
from tfm_core.inspect.attention.example import Example, example_of
from tfm_core.inspect.attention.pictures import EXPLANATIONS, explain_picture, rollout
from tfm_core.inspect.position_tables import geometry, tiles_of
from tfm_core.plots import export
from tfm_core.plots.heads.attention import (
    MANY_KEYS,
    caption_strip,
    head_map,
    patch_overlay,
    patch_weights,
)
from tfm_core.plots.model.positions import position_tiles
from tfm_core.plots.palette import COLOURS
from tfm_core.probe.labels import (
    CLS,
    axes,
    kinds_of,
    modules_by_kind,
    patches_per_side,
    written_tokens,
)
from tfm_core.probe.types import Floats, Probe
from tfm_core.runs.run import Run
from tfm_core.trace.shown import step_of_map

NEEDS = Needs(
    N_("a model with attention maps"),
    lambda experiment: True,
    first="recorded-korean",
    presets=("translate", "vit-digits"),
    is_ready=lambda run: bool(run.snapshot_steps()) or run.has_checkpoint,
)
MANY_HEADS = 4  # more of them side by side need the width
PICTURE_HIGH = 340  # pixels: the picture fits the first screen


def page() -> None:
    """Show the run of the head at its step."""
    show.header("attention")
    run = head.run(NEEDS)
    if run is None:
        return
    try:
        probe = run.probe()
    except ValueError as error:
        show.problem(error)
        return
    items = probe.items[: len(probe.attended)]
    number = head.example(run, items, probe.images, has_own=run.experiment.task.has_model)
    steps, step = run.snapshot_steps(), 0
    if number is not None and not steps:
        show.problem(_("This run has no readable snapshot."))
        return
    if number is not None:
        step = head.step(steps)
    st.fragment(_view)(run, probe, number, step)


def _view(run: Run, probe: Probe, number: int | None, step: int) -> None:
    if number is not None and head.has_moved(step, run.snapshot_steps()):
        st.rerun()
    if view.query().get("view") == ARITHMETIC:  # as older links say it
        view.put_query({"view": None, "deeper": ARITHMETIC})
    with view.drawing():
        try:
            _draw(run, probe, number, step)
        except ValueError as error:
            show.problem(error)


def _draw(run: Run, probe: Probe, number: int | None, step: int) -> None:
    wrong = st.container()
    answered, choices = show.fact_line("attention")
    with view.warnings_in(wrong), choices:
        given = own.ask(run, probe) if number is None else None
        chosen = maps.ask(run)
        top = _looks(run, probe, number, chosen)
    is_own = given is not None and not given.is_mistake
    is_picture = is_own and bool(run.experiment.task.class_names)
    if is_own:
        answered.caption(content(_own_words(run.experiment)))
    beside: DeltaGenerator | None = None
    place: DeltaGenerator | None = None
    if is_picture:
        beside, place = st.columns([3, 8], gap="medium")
    film: Film | None = None
    example: Example | None = None
    if given is not None:
        with beside or nullcontext():
            example = own.example(run, probe, given, chosen.kind)
    elif number is not None:
        film = maps.film_of(run, probe, chosen.kind, number, step)
        try:
            example = example_of(run.experiment, probe, run.snapshot(step), number)
        except ValueError as error:
            show.problem(_("{why} Choose another step.", why=_(error)))
    if example is None:
        return
    with place or nullcontext():
        shown = Shown(run, probe, number, example, chosen, top, film)
        _show(shown, None if is_own and example.probabilities is not None else answered)


def _own_words(experiment: Experiment) -> str:
    """Return the page content that says how to ask with an example of one's own."""
    if experiment.task.picture_shape is not None:
        is_captioned = experiment.task.describes_pictures
        return "attention_own_caption" if is_captioned else "attention_own_image"
    is_opened = isinstance(experiment.task, OpenedConfig) or not experiment.task.has_model
    return "attention_own_pretrained" if is_opened else "attention_own_text"


def _show(shown: Shown, answered: DeltaGenerator | None) -> None:
    """Show the maps, and what is asked of them. answered: where the answer stands, if anywhere."""
    run, example, chosen = shown.run, shown.example, shown.chosen
    if answered is not None:
        with answered:
            answer.verdict(run.experiment, shown.examples, example.step, name=shown.film_name)
    maps.stretch_picker(shown)
    is_narrow = answered is None or run.experiment.model.n_heads > MANY_HEADS
    columns = st.columns([3, 2] if is_narrow else [5, 4, 4], gap="medium")
    with columns[0]:
        maps.grid(shown, dim=deeper.faded(shown))
        if example.probabilities is not None and answered is not None:
            _answer(shown)
    with columns[1], st.container(key="attention-one", gap="small"):
        _title(shown)
        if chosen.kind == "patches" and example.picture is not None:
            _over_picture(shown)
        else:
            maps.one_map(shown)
    with columns[-1]:
        if chosen.kind == "patches":
            maps.patch_by_patch(shown)
        else:
            maps.as_lines(shown)
        maps.list_in_words(shown)
        if run.experiment.task.has_model:
            show.link(
                "walk",
                _("How this map is computed"),
                {
                    **state.run_query("walk", run.id),
                    "part": step_of_map(run.experiment.model.family, chosen.kind),
                    "block": str(chosen.layer + 1),
                },
            )
    if chosen.kind == "picture":
        _word_by_word(shown)
    with st.container(key="attention-questions"):
        _deeper(shown)
    asked = f"cell {chosen.cell}" if chosen.deeper == ARITHMETIC else chosen.deeper
    seen = f"{chosen.kind} {chosen.layer} {chosen.head}"
    reveal({"attention-questions": asked, "attention-one": seen}, key="attention-reveal")


def _deeper(shown: Shown) -> None:
    """Offer the questions that fit in one row, and answer the chosen one below it."""
    answers: Mapping[str, Callable[[Shown], None]] = {
        ARITHMETIC: arithmetic.arithmetic,
        "answer": _answer,
        "compare": deeper.compared,
        "heads": deeper.heads,
        "alignment": deeper.aligning,
        "rollout": _through_layers,
        "explain": _explanations,
        "positions": _positions,
        "take": _export,
    }
    names = _fitting(shown)
    question = shown.chosen.deeper if shown.chosen.deeper in names else ""
    st.header(_("Look deeper"), anchor=False)
    maps.choose(deeper=question or None)
    st.segmented_control(
        _("Look deeper"),
        names,
        format_func=lambda name: _(maps.QUESTIONS[name]),
        key=f"{maps.SCOPE}-deeper",
        persist_state="session",
        required=True,
        wrap=True,
        label_visibility="collapsed",
    )
    if question:
        answers[question](shown)


def _fitting(shown: Shown) -> list[str]:
    run, example = shown.run, shown.example
    has_steps, has_classes = bool(run.snapshot_steps()), example.probabilities is not None
    fits = {
        ARITHMETIC: maps.can_compute(run),
        "answer": example.answer is not None and not has_classes,
        "compare": True,
        "heads": has_steps,
        "alignment": has_steps and alignment.can_be_scored(run.experiment, shown.probe),
        "rollout": not run.experiment.task.has_model
        and shown.kind.query == shown.kind.key
        and len(shown.modules) > 1,
        "explain": has_classes,
        "positions": has_steps
        and bool(run.experiment.patches_per_side)
        and POSITIONS[built(run.experiment.model).position].has_table,
        "take": True,
    }
    return [name for name in maps.QUESTIONS if fits[name]]


def _answer(shown: Shown) -> None:
    step = shown.example.step
    answer.details(shown.experiment, shown.examples, step, name=shown.film_name)


def _looks(run: Run, probe: Probe, number: int | None, chosen: maps.Chosen) -> float | None:
    """Say what is shown and ask what the darkest colour means; return its weight.

    None is the largest weight of each map.
    """
    kind = kinds_of(run.experiment)[chosen.kind]
    st.markdown(f"**{_(kind.label)}.** {_(kind.help)}")
    module = modules_by_kind(run.experiment)[chosen.kind][0]
    _n_queries, n_keys = axes(run.experiment, probe.items[number or 0], module).shape
    if chosen.tokens is not None:
        n_keys = min(n_keys, chosen.tokens[1] - chosen.tokens[0])
    is_long = n_keys >= MANY_KEYS
    is_small = is_long or chosen.kind in maps.OF_PICTURES  # weights
    names = {
        True: _("0 to 1"),
        False: _("this map’s top 1%") if is_long else _("this map’s maximum"),
    }
    picked = st.segmented_control(
        _("Colours"),
        list(names),
        format_func=names.__getitem__,
        default=not is_small,
        required=True,
        key=f"attention-scale-{'patches' if is_small else 'text'}",
        persist_state="session",
        help=_(
            "“0 to 1” is the same for all heads and steps. The other scale shows small weights."
        ),
    )
    run_words.attended_caption(run, probe)
    answer.gloss_switch(run.experiment, key="attention-glosses")
    return 1.0 if picked else None


def _title(shown: Shown) -> None:
    """Show the chosen head and its role, following the film."""
    place = {"layer": shown.chosen.layer + 1, "head": shown.chosen.head + 1}
    title: Tree = ["strong", "", _("Layer {layer}, head {head}", **place)]
    number = shown.chosen.layer * shown.experiment.model.n_heads + shown.chosen.head
    labels = {shown.example.step: shown.labels()}
    if shown.film is not None:
        labels = dict(zip(shown.film.animation.steps, shown.film.labels, strict=True))
    trees: dict[int, Tree] = {}
    for step, rows in labels.items():
        role = f": {_(heads.full_label(rows[number]))}" if rows else ""
        trees[step] = ["h2", "", title, ["span", "what", role]]
    moving(trees, shown.example.step, animation=shown.film_name, key="attention-title")


def _over_picture(shown: Shown) -> None:
    """Show what a patch attends to, over the picture; a click on a patch chooses it."""
    experiment, chosen = shown.experiment, shown.chosen.patch
    picture, names = shown.example.picture, shown.names.query
    assert picture is not None
    labels = {MEAN: _("Mean of all patches"), CLS: _("The CLS token")}
    st.selectbox(
        _("Attention of which patch"),
        maps.patches_of(shown.run),
        format_func=lambda name: labels.get(name) or _("Patch {place}", place=name),
        key="attention-patch",
        persist_state="session",
        help=_("Or click a patch; click it again for the mean. 1,1 is top left."),
        label_visibility="collapsed",
    )
    query = None if chosen == MEAN else names.index(chosen)
    weights = shown.example.attention[shown.module][shown.chosen.head]
    side_weights = patch_weights(weights, query, has_cls=experiment.has_cls)
    first, side = int(experiment.has_cls), len(side_weights)
    patch = None if query is None or query < first else divmod(query - first, side)
    figure = patch_overlay(side_weights, picture, chosen=patch)

    def picked(row: int, column: int) -> None:
        name = names[row * side + column + first]
        maps.choose(patch=MEAN if name == chosen else name)

    live_figure.live_figure(
        figure.update_layout(height=PICTURE_HIGH),
        key="attention-patches",
        on_pick=picked,
        name=_("Attention over the picture: arrow keys move, Enter picks the query"),
    )
    st.caption(_patch_caption(experiment, weights, chosen, query))


def _patch_caption(experiment: Experiment, weights: Floats, patch: str, query: int | None) -> str:
    if query is None:
        message = _("Mean attention per patch. Look for strokes that many patches read.")
    elif patch == CLS:
        message = _("Where CLS looks. The classifier reads CLS.")
    else:
        message = _("Does the outlined patch look at its own stroke, or at its neighbours?")
    if not experiment.has_cls:
        return message
    row = weights.mean(0) if query is None else weights[query]
    share = show.percent(float(row[0]))
    return message + " " + _("CLS, outside the picture, gets {share}.", share=share)


def _word_by_word(shown: Shown) -> None:
    """Show the picture once for each word, with where the head looks while it is written."""
    assert shown.example.picture is not None
    weights = shown.example.attention[shown.module][shown.chosen.head]  # (Q, patches)
    side = patches_per_side(shown.experiment)
    place = {"layer": shown.chosen.layer + 1, "head": shown.chosen.head + 1}
    st.markdown(_("**Layer {layer}, head {head}, over the picture**", **place))
    figure = caption_strip(
        weights.reshape(len(weights), side, side),
        shown.example.picture,
        [*shown.example.item["tgt"], "<eos>"],
        [*shown.example.item["boxes"], None],
    )
    show.figure(figure, paragraph("attention/words"), key="attention-words")
    show.link("try", _("Compose a picture"), {"view": "scene"}, icon=":material/image_search:")


def _explanations(shown: Shown) -> None:
    """Show three explanations of the answer to a picture."""
    run, picture = shown.run, shown.example.picture
    assert picture is not None
    names = run.experiment.task.class_names
    target = st.selectbox(
        _("The class to explain"),
        [None, *range(len(names))],
        format_func=lambda index: _("The predicted class") if index is None else names[index],
        key="attention-explained-class",
        persist_state="session",
        help=_("Only relevance depends on the class."),
    )
    try:
        step, label, probabilities, values = explain_picture(run, picture, target)
    except ValueError as error:
        show.problem(error)
        return
    name = names[label]
    share = show.percent(float(probabilities[label]))
    message = _(
        "What supports **{name}** ({share} at step {step})?",
        name=name,
        step=f"{step:,}",
        share=share,
    )
    if run.experiment.training is None:
        message = _("What supports **{name}** ({share})?", name=name, share=share)
    st.markdown(message)
    for column, (kind, weights) in zip(st.columns(3), values.items(), strict=True):
        with column:
            st.markdown(f"**{_(EXPLANATIONS[kind].label)}**")
            figure = patch_overlay(weights, picture)
            figure.update_layout(height=300, margin={"l": 4, "r": 4, "t": 44, "b": 4})
            show.figure(figure, _(EXPLANATIONS[kind].help), key=f"attention-explain-{kind}")
    show.prose(content("attention_explanation"))


def _through_layers(shown: Shown) -> None:
    """Show what of each input token reaches each position through all layers."""
    matrix = shown.head()
    layers = list(shown.example.maps(shown.modules))
    reached = rollout(layers).astype(np.float32)
    figure = head_map(replace(matrix, weights=matrix.cut(reached)), top=None)
    figure.update_layout(height=min(figure.layout.height, maps.HIGHEST))
    live_figure.live_figure(figure, key="attention-rollout", name=_("Rollout over all layers"))
    st.caption(paragraph("attention/rollout"))


def _positions(shown: Shown) -> None:
    """Show how alike the position of each patch is to those of all others, at a step."""
    run, step, first_step = shown.run, shown.step, shown.run.snapshot_steps()[0]
    try:
        tiles = tiles_of(run.experiment, run.snapshot(step))
        first = tiles_of(run.experiment, run.snapshot(first_step))
    except ValueError as error:
        show.problem(error)
        return
    caption = paragraph("attention/tiles")
    figure = position_tiles(tiles)
    figure.update_layout(margin={"b": 48}).update_xaxes(title={"standoff": 24})
    show.figure(figure, caption, key="attention-positions")
    show.prose(
        paragraph(
            "attention/share-a-line",
            now=f"{geometry(tiles):+.3f}",
            step=f"{step:,}",
            first_step=f"{first_step:,}",
            then=f"{geometry(first):+.3f}",
        )
    )


def _export(shown: Shown) -> None:
    """Offer the view as a picture, as a page that works offline, as numbers, as a link."""
    name = f"attention-{shown.chosen.kind}-step-{shown.example.step}"
    head_name = f"{name}-layer-{shown.chosen.layer + 1}-head-{shown.chosen.head + 1}"
    makers = {what: partial(make, shown) for what, make in FILES.items()}
    left, middle, right = st.columns(3, gap="medium")
    with left:
        st.markdown(_("**All heads**"))
        _download(_("Animation (HTML, offline)"), makers["page"], f"{name}.html")
        help = _("One line per weight, for every head.")
        _download(_("Numbers (CSV)"), makers["numbers"], f"{name}.csv", help)
    with middle:
        st.markdown(_("**This head**"))
        help = _("The map with zoom and hover, offline, 4.5 MB.")
        _download(_("Interactive page"), makers["map-page"], f"{head_name}.html", help)
        _download("SVG", makers["map"], f"{head_name}.svg")
        svg_as_png(
            FILES["map"](shown).decode(),
            name=head_name,
            label="PNG",
            help_text=_("Twice the size, with a title."),
            key="attention-take-png",
        )
        help = _("One line per cell: tokens and weight.")
        _download(_("Numbers (CSV)"), makers["map-numbers"], f"{head_name}.csv", help)
    with right:
        st.markdown(_("**What heads do**"))
        _download(_("Figures (CSV)"), makers["heads"], f"heads-step-{shown.step}.csv")
        st.markdown(_("**Link to this view**"))
        st.code(state.run_link(shown.run.id), language=None, wrap_lines=True)


_TYPES = {"html": "text/html", "csv": "text/csv", "svg": "image/svg+xml"}


def _download(label: str, make: Callable[[], bytes], name: str, help: str = "") -> None:
    spoken = language()

    def made() -> bytes:
        with speaking(spoken):  # it is made when it is asked for, outside of the session
            return make()

    ending = name.rpartition(".")[2]
    st.download_button(
        label,
        made,
        file_name=name,
        mime=_TYPES[ending],
        help=help or None,
        key=f"attention-take-{ending}-{label}-{'layer' in name}",
        icon=":material/download:",
        on_click="ignore",
        width="stretch",
    )


def _page(shown: Shown) -> bytes:
    """Return all heads, and the chosen one as lines, as a page that plays."""
    style = replace(maps.grid_style(shown, is_whole=True), theme="light", says=True)
    place = {"layer": shown.chosen.layer + 1, "head": shown.chosen.head + 1}
    return standalone(
        pack_grid(shown.all_heads(is_whole=True), style),
        pack_lines(shown.head(is_whole=True), ink=COLOURS["cross"], pin=shown.chosen.pin),
        title=f"{_(shown.kind.label)}: {run_words.name(shown.run)}",
        words=f"{_(shown.kind.help)} {_(shown.kind.look_for)}",
        which=_("Layer {layer}, head {head}", **place),
        theme="light",
    )


def _map_page(shown: Shown) -> bytes:
    figure, description = head_map(shown.head(is_whole=True), top=shown.top), _(shown.kind.look_for)
    return export.page(figure, title=_name_of(shown), words=description, language=language(), say=_)


def _numbers(shown: Shown) -> bytes:
    n_heads = shown.experiment.model.n_heads
    return export.csv(_cells(shown, list(np.ndindex(len(shown.modules), n_heads))))


def _cells(shown: Shown, places: Sequence[tuple[int, ...]]) -> pd.DataFrame:
    """Return one row a cell of some heads, after its layer and its head, from 1."""
    all_heads = shown.all_heads(by="read", is_whole=True)
    written = written_tokens(shown.experiment, shown.example.item, shown.module)
    tables = []
    for layer, number in places:
        table = export.map_table(all_heads.head(layer, number), written)
        table.insert(0, "head", number + 1)
        table.insert(0, "layer", layer + 1)
        tables.append(table)
    return pd.concat(tables)


FILES: Mapping[str, Callable[[Shown], bytes]] = {
    "page": _page,
    "numbers": _numbers,
    "map-page": _map_page,
    "map": lambda shown: export.map_svg(
        shown.head(is_whole=True), title=_name_of(shown), top=shown.top, say=_
    ),
    "map-numbers": lambda shown: export.csv(
        _cells(shown, [(shown.chosen.layer, shown.chosen.head)]).iloc[:, 2:]
    ),
    "heads": lambda shown: export.csv(heads.displayed(heads.table_of_step(shown.run, shown.step))),
}


def _name_of(shown: Shown) -> str:
    return _(
        "{run}: {kind}, layer {layer}, head {head}, step {step:,}",
        run=shown.run.meta.name,
        kind=_(shown.kind.label),
        layer=shown.chosen.layer + 1,
        head=shown.chosen.head + 1,
        step=shown.example.step,
    )


if __name__ == "__main__":
    page()
