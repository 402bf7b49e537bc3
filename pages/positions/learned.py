"""Learned position tables of the current run, over its training, and positions of patches."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.i18n import _, paragraph
from pages.positions.waves import base, width
from pages.ui import show, state
from pages.ui.accounts import visitors
from pages.ui.runs import shown_run
from pages.ui.typed import escape
from tfm_core.config import Experiment, ModelConfig, built
from tfm_core.config.experiment import sequence_len
from tfm_core.inspect.positions import tables as positions
from tfm_core.plots.model import positions as plots
from tfm_core.probe.types import Snapshot
from tfm_core.runs.run import Run
from tfm_core.variants.positions import POSITIONS

STEP = "positions-step"
WITH_TABLE = "recorded-notebook-vit"


def learned() -> None:
    run = shown_run.current_run() or shown_run.fitting_run(_has_table, WITH_TABLE)
    steps = [] if run is None else run.snapshot_steps()
    if run is None or not steps:
        _none(_("No current run with snapshots."))
        return
    try:
        names = positions.learned_names(run.snapshot(steps[-1]))
        if not names:
            _none(_unlearned(run.experiment.model))
            return
        st.markdown(_("The positions of **{name}**", name=escape(run.meta.name)))
        shown_run.recorded_note(run, key="positions-learned")
        _table(run, steps, names)
    except ValueError as error:
        show.problem(error)


def _has_table(experiment: Experiment) -> bool:
    return POSITIONS[built(experiment.model).position].has_table


def _unlearned(model: ModelConfig) -> str:
    if not model.has_blocks:
        return _("The current run is an RNN: it has no positions to learn.")
    kind = POSITIONS[built(model).position]
    if kind.acts_on == "nothing":
        return _("The current run has no positions.")
    label = _(kind.label)
    if kind.is_learned:
        return _("{kind}: the current run learns no vectors; see its own view.", kind=label)
    return _("{kind}: the current run learns nothing about positions.", kind=label)


def _table(run: Run, steps: list[int], names: list[str]) -> None:
    left, right = st.columns([1, 2])
    with left:
        name = st.selectbox(_("Table"), names, key="positions-table") or names[0]
    with right:
        step = shown_run.snapshot_step(steps, key=STEP)
    table = positions.learned_table(run.snapshot(step), name)
    is_of_patches = _reads_pixels(run) and name.partition(".")[0] == "positions"
    left, right = st.columns(2)
    with left:
        show.figure(
            plots.matrix(
                positions.cosines(table),
                _("position"),
                _("position"),
                state.theme(),
                is_square=True,
                limit=1.0,
            ),
            _alike(run, table, step, is_of_patches=is_of_patches),
            key="positions-learned-cosines",
        )
    with right:
        first = positions.learned_table(run.snapshot(steps[0]), name)
        sizes = {
            _("step {n}", n=f"{at:,}"): np.linalg.norm(rows, axis=1)
            for at, rows in ((steps[0], first), (step, table))
        }
        show.figure(
            plots.lines_by_offset(
                np.arange(len(table)), sizes, _("length of the vector"), _("position")
            ),
            _("Every picture has all patches: all rows are trained.")
            if is_of_patches
            else paragraph("positions/untrained-rows"),
            key="positions-learned-norms",
        )
    show.figure(
        plots.matrix(table, _("dimension"), _("position"), state.theme()),
        _("The table at step {n}.", n=f"{step:,}"),
        key="positions-learned-table",
    )
    show.code(positions.source_of("positions:LearnedPositions"))


def _alike(run: Run, table: positions.Array, step: int, *, is_of_patches: bool) -> str:
    rows = table[1:] if is_of_patches and run.experiment.has_cls else table
    side = round(len(rows) ** 0.5) if is_of_patches else None
    if side is None:
        rows = rows[: sequence_len(run.experiment)]  # training never reaches the others
    near = beside, below, apart = positions.nearness(positions.cosines(rows), side)
    return paragraph(
        f"positions/{'cosines' if side is None else 'cosines-of-patches'}",
        step=f"{step:,}",
        beside=beside,
        below=below,
        others=apart,
        verdict=_(positions.verdict(*near)),
    )


def patches() -> None:
    """Show how alike each patch of a picture is to the others, by its position."""
    first, second, third = st.columns(3)
    with first:
        d_model = width(_("d_model"), 64, "patches")
    with second:
        chosen_base = base("patches")
    run = shown_run.current_run()
    own = _patch_run(run)
    with third:
        side = st.slider(
            _("Patches per side"),
            2,
            16,
            4 if own is None else own[1],
            key="positions-side",
            help=_("28 pixels in patches of 7: 4 per side."),
        )
    names = [f"{row + 1},{column + 1}" for row in range(side) for column in range(side)]
    chosen = st.select_slider(
        _("The patch (row, column)"), names, names[len(names) // 2], key=f"positions-patch-{side}"
    )
    index = names.index(chosen)
    flat = positions.patch_table(side, d_model, chosen_base, is_2d=False)
    tables = {
        _("2-D waves: down is as far as right."): positions.patch_table(side, d_model, chosen_base),
        _("Waves row after row: the patch below is far."): flat,
    }
    if own is not None and own[1] == side:
        words = paragraph("positions/learned-patches", n=f"{own[2]:,}")
        tables[words] = own[0]
    maps = [positions.cosines(table)[index].reshape(side, side) for table in tables.values()]
    span = min(0.0, *(float(like.min()) for like in maps)), 1.0
    columns = st.columns(len(tables))
    for n, (column, words, like) in enumerate(zip(columns, tables, maps, strict=True)):
        with column:
            figure = plots.matrix(
                like,
                _("column"),
                _("row"),
                state.theme(),
                is_square=True,
                span=span,
                names=[str(i + 1) for i in range(side)],
            )
            show.figure(figure, words, key=f"positions-patches-{n}")
    st.caption(_("Cosines with the chosen patch, from {least:.2f} to 1.", least=span[0]))
    show.code(positions.source_of("positions:sinusoidal_2d"))


def _reads_pixels(run: Run) -> bool:
    return run.experiment.task.picture_shape is not None


def _patch_run(run: Run | None) -> tuple[positions.Array, int, int] | None:
    """Return the learned patch table of a run without CLS, patches to a side, and its step."""
    if run is None or not _reads_pixels(run):
        return None
    try:
        steps = run.snapshot_steps()
        snapshot: Snapshot = run.snapshot(steps[-1])
        table = positions.learned_table(snapshot, positions.learned_names(snapshot)[0])
    except (ValueError, IndexError):
        return None
    rows = table[1:] if run.experiment.has_cls else table
    side = round(len(rows) ** 0.5)
    return (rows, side, steps[-1]) if side**2 == len(rows) else None


def _none(sentence: str) -> None:
    show.empty(sentence, _("Train one with learned positions"), "train")
    for run in visitors.at_hand():
        if run.problem is None and _has_table(run.experiment) and run.snapshot_steps():
            st.button(
                _("Open “{name}”", name=escape(run.meta.name)),
                icon=":material/visibility:",
                key=f"positions-open-{run.id}",
                on_click=state.set_current_run,
                args=(run.id,),
            )
            return
