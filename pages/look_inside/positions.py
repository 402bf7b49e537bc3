"""Positions: how a Transformer learns the order of its tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import streamlit as st

from pages.app import show, state
from pages.app.address import view
from pages.app.navigation import head
from pages.app.runs import shown_run
from pages.app.runs.shown_run import MODELS
from pages.app.typed import escape
from pages.i18n import N_, _, paragraph
from pages.look_inside.positions_at_work import race, shuffled
from tfm_core.choices.config import (
    ConfigError,
    Experiment,
    RotaryConfig,
    built,
)
from tfm_core.choices.config.experiment import sequence_len
from tfm_core.choices.variants.positions import (
    NO_POSITIONS,
    POSITIONS,
    POSITIONS_OF_WORDS,
    ROTARY,
    T5_BIAS,
    Position,
)
from tfm_core.inspect import position_tables
from tfm_core.plots.chart import chart
from tfm_core.plots.model import positions as plots
from tfm_core.probe.labels import STACKS
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run

KINDS = {kind.name: kind for kind in POSITIONS_OF_WORDS.values() if kind.acts_on != "nothing"}
BASES = (2.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0, 1000000.0)
WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)
N_CLOCKS = 6
SCOPE = "positions"


def _base(first: float = 10000.0) -> Any:
    return view.pick(
        N_("Base"), sorted({*BASES, first}), first, help=lambda: paragraph("positions/base")
    )


def _length(first: int) -> Any:
    return view.number(N_("Positions"), 8, 256, first, step=8)


def _index(label: str, count: int, first: int) -> Any:
    """Offer one of so many places, from 0."""
    return view.number(label, 0, count - 1, min(first, count // 2))


def _side(first: int) -> Any:
    help = N_("28 pixels in patches of 7: 4 per side.")
    return view.number(N_("Patches per side"), 2, 16, first, help=help)


def _patch(side: int) -> Any:
    """Offer the patches of a picture, row by row."""
    names = [f"{row + 1},{column + 1}" for row in range(side) for column in range(side)]
    return view.slide(N_("The patch (row, column)"), names, names[len(names) // 2])


@dataclass(frozen=True)
class Positions:
    """The side of positions that is shown."""

    view: str = view.choice(
        N_("Positions"),
        {
            **{kind.name: kind.label for kind in KINDS.values()},
            "patches": N_("Patches, 2-D"),
            "shuffle": N_("Shuffle the words"),
            "race": N_("Which learns best?"),
        },
        look={"label_visibility": "collapsed"},
        is_list=False,
    )


@dataclass(frozen=True)
class Waves:
    """A table of sinusoidal positions."""

    d_model: int = view.pick(N_("d_model"), WIDTHS, 64)
    base: float = _base()
    length: int = _length(96)
    pair: int = view.by(lambda asked: _index(N_("Pair i"), asked.d_model // 2, 4))
    row: int = view.by(lambda asked: _index(N_("One position"), asked.length, 7))


@dataclass(frozen=True)
class Rotary:
    """Queries and keys that rotary positions turn."""

    d_head: int = view.pick(N_("d_head"), WIDTHS, 16)
    base: float = _base()
    length: int = _length(48)
    turned: int = view.by(lambda asked: _index(N_("Position of the token"), asked.length, 5))


@dataclass(frozen=True)
class AddedBias:
    """Heads whose scores get something for the distance."""

    heads: int = view.number(N_("Heads"), 1, 16, 8)
    length: int = _length(32)


@dataclass(frozen=True)
class Patches:
    """Positions of the patches of a square picture."""

    d_model: int = view.pick(N_("d_model"), WIDTHS, 64)
    base: float = _base()
    side: int = _side(4)
    patch: str = view.by(lambda asked: _patch(asked.side))


_WITH_SNAPSHOTS = replace(MODELS, is_ready=lambda run: bool(run.snapshot_steps()))
NEEDS = {
    "learned": replace(
        _WITH_SNAPSHOTS,
        fits=lambda experiment: POSITIONS[_position(experiment)].has_table,
        first="recorded-notebook-vit",
    ),
    T5_BIAS.name: replace(
        _WITH_SNAPSHOTS, fits=lambda experiment: _position(experiment) == T5_BIAS.name
    ),
}
"""What a view needs of the run, where any model will not do."""


def _position(experiment: Experiment) -> str:
    has_model = experiment.task.has_model
    return built(experiment.model).position if has_model else NO_POSITIONS.name


def sinusoidal(run: Run | None, _step: int) -> None:
    """Show waves, the whole matrix, wavelengths, and the product by distance."""
    chosen = view.ask(Waves, SCOPE, columns=5)
    table = position_tables.sinusoidal_table(chosen.length, chosen.d_model, chosen.base)
    caption, border = paragraph("positions/pair"), None
    trained, whose = _trained(run) or (None, "")
    if trained is not None and trained < len(table):
        caption += f" {whose}"
        border = {"x": trained - 0.5, "words": _("trained length, {n}", n=trained)}
    names = {
        "sine": _("dimension {dimension}: sine", dimension=2 * chosen.pair),
        "cosine": _("dimension {dimension}: cosine", dimension=2 * chosen.pair + 1),
    }
    pair = position_tables.waves(table, chosen.pair)
    waves = chart(pair, x="position", y=names, reference=border)
    matrix = plots.matrix(table, _("dimension"), _("position"), limit=1.0)
    fast = _(
        "Fast waves (left) separate neighbours; slow waves separate the beginning from the end."
    )
    show.beside((waves, caption, "positions-waves"), (matrix, fast, "positions-matrix"))
    found = position_tables.products(table)
    starts = {name: _("from position {n}", n=name) for name in found.columns[1:]}
    labels = {"offset": _("offset (tokens)"), "value": _("dot product")}
    products = chart(found, x="offset", y=starts, labels=labels)
    level = _("the {n_positions} positions shown", n_positions=len(table))
    lengths = chart(
        position_tables.wavelengths(chosen.d_model, chosen.base),
        x="pair",
        y="wavelength",
        reference={"y": len(table), "words": level},
    )
    same = _("The dot product depends only on the distance.")
    far = _("Pairs far above the line barely move.")
    show.beside((products, same, "positions-products"), (lengths, far, "positions-wavelengths"))
    angle = rf"\frac{{pos}}{{{chosen.base:.0f}^{{\,2i/{chosen.d_model}}}}}"
    even, odd, words = st.columns([3, 3, 4], vertical_alignment="center")
    with even:
        show.formula(rf"PE_{{(pos,\,2i)}} = \sin{angle}")
    with odd:
        show.formula(rf"PE_{{(pos,\,2i+1)}} = \cos{angle}")
    words.caption(paragraph("positions/formula", last=chosen.d_model // 2 - 1))
    show.figure(
        chart(
            position_tables.row(table, chosen.row),
            x="dimension",
            y="value",
            colour="wave",
            labels={"dimension": _("dimension, at position {position}", position=chosen.row)},
        ),
        _("The vector that this position adds to a token."),
        key="positions-row-figure",
    )
    show.code(position_tables.layer_source("positions:sinusoidal"))


def _trained(run: Run | None) -> tuple[int, str] | None:
    """Return the trained length, the longest sequence, and a sentence on whose it is.

    Without a run it is that of the configuration being edited; None where that is not valid.
    """
    if run is not None:
        name = escape(run.meta.name)
        return sequence_len(run.experiment), _(
            "The dotted line is the longest sequence of “{name}”.", name=name
        )
    try:
        edited = Experiment.parse(state.draft())
    except ConfigError:
        return None
    return sequence_len(edited), _(
        "The dotted line is the longest sequence of the edited configuration."
    )


def rotary(run: Run | None, _step: int) -> None:
    """Show pairs of dimensions that turn with position, and scores that know the offset only."""
    model = None if run is None else run.experiment.model
    base = 10000.0
    if isinstance(model, RotaryConfig) and model.position == ROTARY.name:
        base = model.rope_theta
    chosen = view.ask(Rotary, SCOPE, columns=4, base=_base(base))
    n = chosen.length
    places = list(range(max(0, chosen.turned - 3), chosen.turned + 1))
    turns = position_tables.rotary_angles(places, chosen.d_head, chosen.base)[:, :N_CLOCKS]
    show.figure(plots.hands(turns, places), paragraph("positions/hands"), key="positions-hands")
    scores = {
        _("equal vectors"): position_tables.rotary_scores(n, chosen.d_head, chosen.base),
        **{
            _("random pair {n}", n=seed + 1): position_tables.rotary_scores(
                n, chosen.d_head, chosen.base, seed=seed
            )
            for seed in (0, 1)
        },
    }
    by_offset = {name: position_tables.by_offset(matrix) for name, matrix in scores.items()}
    lines = {name: means for name, (_offsets, means, _spread) in by_offset.items()}
    spread = max(spread for _offsets, _means, spread in by_offset.values())
    first = scores[_("random pair {n}", n=1)]
    axes = _("key position"), _("query position")
    show.beside(
        (
            _by_offset({"offset": np.arange(1 - n, n), **lines}, _("score")),
            paragraph("positions/offsets", spread=f"{spread:.1e}"),
            "positions-rotary-offset",
        ),
        (
            plots.matrix(first, *axes, is_square=True),
            _("Random pair 1: diagonals have one colour."),
            "positions-rotary-matrix",
        ),
    )
    show.code(position_tables.layer_source("relative:Rotation"))


def _by_offset(lines: Mapping[str, npt.ArrayLike], title: str) -> go.Figure:
    """Draw lines over the first of some columns."""
    first, *others = lines
    return chart(position_tables.BY_OFFSET.table(lines), x=first, y=others, labels={"value": title})


def added(kind: Position, _run: Run | None, _step: int) -> None:
    """Show each head's bias by distance, and the weights that it leaves of equal scores."""
    chosen = view.ask(AddedBias, SCOPE, columns=2)
    bias, weights = position_tables.added_by_distance(kind, chosen.heads, chosen.length)
    names = [_("{n}: {slope}", n=head, slope=f"{-row[1]:.3g}") for head, row in enumerate(bias, 1)]
    figures = [
        _by_offset(
            {"distance": range(chosen.length), **dict(zip(names, lines, strict=True))}, title
        )
        for lines, title in ((bias, _("added to the score")), (weights, _("weight")))
    ]
    steep = _(
        "The last query's weights if all scores are equal. Steep heads read the last few tokens."
    )
    show.beside(
        (figures[0], _(kind.by_distance), f"positions-{kind.name}-bias"),
        (figures[1], steep, f"positions-{kind.name}-weights"),
    )
    show.code(kind.functions[-1].source)


def buckets(run: Run | None, step: int) -> None:
    """Show which offsets share a bucket, then the biases that a run learned."""
    n = int(view.one(_length(48), "length", SCOPE))
    offsets = np.arange(1 - n, n)
    both, causal = (
        position_tables.bucket_of(offsets, is_causal=is_causal).astype(np.float32)
        for is_causal in (False, True)
    )
    lines = {
        _("both directions (encoder)"): both,
        _("backwards only (decoder)"): np.where(offsets <= 0, causal, np.nan),
    }
    show.figure(
        _by_offset({"offset": offsets, **lines}, _("bucket")),
        paragraph("positions/buckets"),
        key="positions-buckets",
    )
    if run is None or not run.snapshot_steps():
        _lacking(
            T5_BIAS.name, _("This needs a run with the bias."), _("Train one with the T5 bias")
        )
    else:
        try:
            _learned_buckets(run, step)
        except ValueError as error:
            show.problem(error)
    show.code(position_tables.layer_source("relative:bucket"))


def _learned_buckets(run: Run, step: int) -> None:
    by_stack = position_tables.learned_biases(run.snapshot(step), sequence_len(run.experiment) - 1)
    figures = []
    for stack, (offsets, biases) in by_stack.items():
        heads = {_("head {n}", n=i + 1): row for i, row in enumerate(biases)}
        message = paragraph(
            "positions/biases",
            stack=_(STACKS[stack]),
            name=escape(run.meta.name),
            step=f"{step:,}",
        )
        figure = _by_offset({"offset": offsets, **heads}, _("added to the score"))
        figures.append((figure, message, f"positions-biases-{stack}"))
    show.beside(*figures)


def learned(run: Run | None, step: int) -> None:
    """Show the position table that a run learned, over its training."""
    button = _("Train one with learned positions")
    if run is None or not run.snapshot_steps():
        other = shown_run.current_run() if run is None else None
        why = _("No current run with snapshots.") if other is None else _unlearned(other)
        _lacking("learned", why, button)
        return
    try:
        names = position_tables.learned_names(run.snapshot(step))
        if names:
            _table(run, step, names)
        else:
            _lacking("learned", _unlearned(run), button)
    except ValueError as error:
        show.problem(error)


def _unlearned(run: Run) -> str:
    model = run.experiment.model
    if not model.has_blocks:
        return _("The current run is an RNN and has no positions to learn.")
    kind = POSITIONS[built(model).position]
    if kind.acts_on == "nothing":
        return _("The current run has no positions.")
    label = _(kind.label)
    if kind.is_learned:
        return _("{kind}: the current run learns no vectors; see its own view.", kind=label)
    return _("{kind}: the current run learns nothing about positions.", kind=label)


def _lacking(kind: str, sentence: str, button: str) -> None:
    """Say that the run has not learned what is shown, and offer one that has."""
    show.empty(sentence, button, "train")
    for run in shown_run.fitting(NEEDS[kind])[:1]:
        st.button(
            _("Open “{name}”", name=escape(run.meta.name)),
            icon=":material/visibility:",
            key=f"positions-open-{run.id}",
            on_click=state.set_current_run,
            args=(run.id,),
        )


def _table(run: Run, step: int, names: list[str]) -> None:
    offered = view.choice(N_("Table"), dict(zip(names, names, strict=True)), is_list=True)
    name = str(view.one(offered, "table", SCOPE))
    table = position_tables.learned_table(run.snapshot(step), name)
    is_of_patches = _reads_pixels(run) and name.partition(".")[0] == "positions"
    first_step = run.snapshot_steps()[0]
    first = position_tables.learned_table(run.snapshot(first_step), name)
    sizes = {
        _("step {n}", n=f"{at:,}"): np.linalg.norm(rows, axis=1)
        for at, rows in ((first_step, first), (step, table))
    }
    untrained = paragraph("positions/untrained-rows")
    if is_of_patches:
        untrained = _("Every picture has all patches: all rows are trained.")
    axes = _("position"), _("position")
    show.beside(
        (
            plots.matrix(position_tables.cosines(table), *axes, is_square=True, limit=1.0),
            _alike(run, table, step, is_of_patches=is_of_patches),
            "positions-learned-cosines",
        ),
        (
            _by_offset({"position": range(len(table)), **sizes}, _("length of the vector")),
            untrained,
            "positions-learned-norms",
        ),
    )
    show.figure(
        plots.matrix(table, _("dimension"), _("position")),
        _("The table at step {n}.", n=f"{step:,}"),
        key="positions-learned-table",
    )
    show.code(position_tables.layer_source("positions:LearnedPositions"))


def _alike(run: Run, table: Floats, step: int, *, is_of_patches: bool) -> str:
    rows = table[1:] if is_of_patches and run.experiment.has_cls else table
    side = round(len(rows) ** 0.5) if is_of_patches else None
    if side is None:
        rows = rows[: sequence_len(run.experiment)]  # training never reaches the others
    near = beside, below, differences = position_tables.nearness(
        position_tables.cosines(rows), side
    )
    return paragraph(
        f"positions/{'cosines' if side is None else 'cosines-of-patches'}",
        step=f"{step:,}",
        beside=beside,
        below=below,
        others=differences,
        verdict=_(position_tables.nearness_text(*near)),
    )


def _reads_pixels(run: Run) -> bool:
    return run.experiment.task.picture_shape is not None


def patches(run: Run | None, step: int) -> None:
    """Show how alike each patch of a picture is to the others, by its position."""
    learned_rows, usual = _patch_table(run, step) or (None, 4)
    chosen = view.ask(Patches, SCOPE, columns=4, side=_side(usual))
    side = chosen.side
    row, column = map(int, chosen.patch.split(","))
    index = (row - 1) * side + column - 1
    made = {
        words: position_tables.patch_table(side, chosen.d_model, chosen.base, is_2d=is_2d)
        for words, is_2d in (
            (_("With 2-D waves, a step down is as far as a step right."), True),
            (_("With waves row after row, the patch below is far."), False),
        )
    }
    if learned_rows is not None and usual == side:
        made[paragraph("positions/learned-patches", n=f"{step:,}")] = learned_rows
    maps = [position_tables.cosines(rows)[index].reshape(side, side) for rows in made.values()]
    span = min(0.0, *(float(like.min()) for like in maps)), 1.0
    names, axes = [str(i + 1) for i in range(side)], (_("column"), _("row"))
    drawn = [plots.matrix(like, *axes, is_square=True, span=span, names=names) for like in maps]
    show.beside(
        *(
            (figure, words, f"positions-patches-{n}")
            for n, (figure, words) in enumerate(zip(drawn, made, strict=True))
        )
    )
    st.caption(_("Cosines with the chosen patch, from {least:.2f} to 1.", least=span[0]))
    show.code(position_tables.layer_source("positions:sinusoidal_2d"))


def _patch_table(run: Run | None, step: int) -> tuple[Floats, int] | None:
    """Return the learned patch table of a run without CLS, and the patches to a side."""
    if run is None or not _reads_pixels(run):
        return None
    try:
        snapshot = run.snapshot(step)
        table = position_tables.learned_table(snapshot, position_tables.learned_names(snapshot)[0])
    except (ValueError, IndexError):
        return None
    rows = table[1:] if run.experiment.has_cls else table
    side = round(len(rows) ** 0.5)
    return (rows, side) if side**2 == len(rows) else None


VIEWS: dict[str, Callable[[Run | None, int], None]] = {
    **{kind.name: partial(added, kind) for kind in KINDS.values() if kind.by_distance is not None},
    "sinusoidal": sinusoidal,
    "learned": learned,
    "rotary": rotary,
    "t5-bias": buckets,
    "patches": patches,
    "race": race,
}


def page() -> None:
    """Show one side of positions at a time; the address holds which."""
    show.header("positions")
    shown = view.ask(Positions, SCOPE).view
    run = head.run(NEEDS.get(shown, MODELS), is_needed=False)
    if shown == "shuffle":
        state.body(partial(shuffled, None if run is None else head.moment(run)))
        return
    steps = []
    if run is not None and (shown in NEEDS or (shown == "patches" and _reads_pixels(run))):
        steps = run.snapshot_steps()
    state.body(partial(VIEWS[shown], run, head.step(steps) if steps else 0))


if __name__ == "__main__":
    page()
