"""Positions at work: words shuffled, and every kind trained on one task."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import streamlit as st

from pages.app import show, state, typed
from pages.app.address import view
from pages.app.navigation.head import Moment
from pages.app.runs import comparison, shown_run
from pages.app.typed import escape
from pages.i18n import N_, _, paragraph
from tfm_core.choices.config import ConfigError, Experiment, built
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.inspect import mask_lab, positions_at_work
from tfm_core.inspect import positions_at_work as core
from tfm_core.inspect.conclusions import best_beyond_training, most_accurate
from tfm_core.inspect.positions_at_work import Extrapolation
from tfm_core.plots.model import positions as plots
from tfm_core.runs.run import Run
from tfm_core.studies.experiments import COPY_RACE, race_of_positions
from tfm_core.studies.study import Study, StudyRuns

SCOPE = "positions"
EXAMPLE = "dog bites man and man runs"
MAX_TEXT = 300


def race(run: Run | None, _step: int) -> None:
    """Train every kind of positions on one task and compare the curves."""
    left, right = st.columns([3, 2], vertical_alignment="bottom", gap="medium")
    with left:
        own = _own(run)
    chosen = own or COPY_RACE
    trained = comparison.study_runs(chosen, with_lessons=True)
    if own is not None:
        with right, st.container(horizontal=True):
            comparison.study_buttons(own, trained, own=True, key="positions")
        if len(trained.shown) < 2:
            chosen, trained = COPY_RACE, comparison.study_runs(COPY_RACE, with_lessons=True)
    if not trained.runs:
        comparison.arm_lines(chosen, trained)  # says that nothing is trained yet
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{_(chosen.title)}**", width="content")
        shown_run.recorded_comparison_note(trained.runs)
    comparison.follow(trained.runs, partial(_race, chosen, trained))


def _own(run: Run | None) -> Study | None:
    """Return the race on the task and sizes of a run; show why there is none."""
    try:
        experiment = Experiment.parse(state.draft()) if run is None else run.experiment
        steps_of_it = experiment.trained.steps
    except ConfigError as error:
        show.problem(_("The configuration on the Train page is not valid: {why}", why=_(error)))
        return None
    except ValueError as error:  # it was opened, not trained
        st.info(_(error), icon=":material/info:")
        return None
    task = _(experiment.task.facts.label)
    if run is None:
        st.markdown(_("The task and sizes are from the Train page: **{task}**.", task=task))
    else:
        st.markdown(_("The task and sizes are those of **{name}**.", name=escape(run.meta.name)))
    usual = min(600, max(100, steps_of_it // 100 * 100))
    offered = view.number(
        N_("Steps of each run"),
        100,
        3000,
        usual,
        step=100,
        help=N_("All runs use one seed and the same batches."),
        of=experiment.task.name,
    )
    try:
        return race_of_positions(experiment, steps=int(view.one(offered, "steps", "positions")))
    except ValueError as error:
        show.problem(error)
        return None


def _race(chosen: Study, trained: StudyRuns, _is_live: bool) -> None:
    comparison.progress(trained.runs)
    left, right = st.columns(2)
    with left:
        _curves(chosen, trained)
    with right:
        _beyond(trained.shown)
    with st.container(horizontal=True, gap="medium"):
        comparison.arm_lines(chosen, trained)


def _curves(chosen: Study, trained: StudyRuns) -> None:
    column, title = _measure(chosen.base)
    caption = _("Which kind learns the task, and how fast?")
    last = comparison.learning_curves(
        chosen, trained, column, title, caption, key="positions-race-curves"
    )
    message = most_accurate(last, getattr(chosen.base.task, "n_validation", 0))
    if message is not None:
        st.markdown(_(message))


def _measure(experiment: Experiment) -> tuple[str, str]:
    """Return the column of the score for a task, and its axis title."""
    answer = experiment.task.facts.answer
    if answer in ("sequence", "blanks"):
        return "sequence_accuracy", _("whole sequences right")
    if answer == "text":
        return "accuracy", _("next tokens right")
    is_pictured = experiment.task.picture_shape is not None
    return "accuracy", _("pictures right") if is_pictured else _("labels right")


def _beyond(shown: Mapping[str, Run]) -> None:
    why = positions_at_work.can_extrapolate(next(iter(shown.values())).experiment)
    if why is not None:
        st.info(_(why), icon=":material/info:")
        return
    measured: dict[str, Extrapolation] = {}
    for name, run in shown.items():
        if run.has_checkpoint and not run.status.is_active:
            try:
                with st.spinner(_("Measuring longer sequences …")):
                    measured[name] = _extrapolated(run.id, run.checkpoint_step or 0, run)
            except ValueError as error:
                show.problem(error)
    if not measured:
        message = _("Longer sequences are measured once a run finishes.")
        st.info(message, icon=":material/hourglass_empty:")
        return
    series = {
        name: (_(POSITIONS[name].label), table["length"].to_numpy(), table["tokens"].to_numpy())
        for name, (table, _trained, _why) in measured.items()
    }
    table, trained, _why = next(iter(measured.values()))
    show.figure(
        plots.race(series, "length", _("tokens right"), trained=trained),
        paragraph("positions/beyond", n=positions_at_work.PER_LENGTH),
        key="positions-race-beyond",
    )
    at = {label: float(tokens[-1]) for label, _x, tokens in series.values() if tokens[-1] >= 0}
    conclusion = best_beyond_training(
        at, positions_at_work.PER_LENGTH, int(table["length"].iloc[-1]), trained
    )
    if conclusion is not None:
        st.markdown(_(conclusion))


@st.cache_data(show_spinner=False, max_entries=64)
def _extrapolated(run_id: str, step: int, _run: Run) -> Extrapolation:
    return positions_at_work.extrapolate(_run)


def shuffled(moment: Moment | None) -> None:
    """Shuffle the words of a sentence, or the patches of a picture; see which model notices."""
    if moment is not None and moment.run.experiment.task.class_names:
        _shuffled_picture(moment)
        moment = None
    run = None if moment is None else moment.run
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    with left:
        sentence = view.text(
            N_("A sentence"),
            EXAMPLE if moment is None else str(moment.item.get("src_text") or EXAMPLE),
            MAX_TEXT,
            help=N_("Use words of the current run's task, and its model answers, too."),
            of="own" if moment is None else f"{moment.run.id}-{moment.example}",
        )
        text = str(view.one(sentence, "text", SCOPE))
    with right:
        seed = _shuffle_again("shuffle")
    try:
        text = typed.check_length(text, MAX_TEXT)
        tokens = mask_lab.parse_tokens(text)
    except ValueError as error:
        show.problem(error)
        return
    try:
        answered = (
            None if moment is None else core.shuffle_words(moment.run, text, seed, step=moment.step)
        )
    except ValueError as error:
        answered = None
        st.warning(_("The current run is left out. {why}", why=_(error)), icon=":material/info:")
    order = core.shuffled_order(len(tokens), seed)
    moved = [tokens[index] for index in order] if answered is None else answered[2]
    st.markdown(_("Shuffled: **{words}**", words=escape(" ".join(moved))))
    bars = _untrained(tokens, order)
    if run is not None and answered is not None:
        position = built(run.experiment.model).position
        kind = _(POSITIONS[position].label)
        if not run.experiment.model.has_blocks:
            kind = _("reads in order")
        bars[_("Current run: {kind}", kind=kind)] = (position, float(answered[0].mean()))
    show.figure(plots.noticed(bars), paragraph("positions/moved"), key="positions-noticed")
    if answered is not None:
        before, after = (escape(answer) or "∅" for answer in answered[1])
        with st.container(border=True):
            st.markdown(
                _(
                    "The current run answers “{before}”, shuffled “{after}”",
                    before=before,
                    after=after,
                )
            )
    show.code(core.untrained_changes)


def _shuffle_again(key: str) -> int:
    """Offer another order; return the seed of the order."""
    seed = "positions-shuffle"

    def again() -> None:
        st.session_state[seed] = st.session_state.get(seed, 0) + 1

    st.button(_("Shuffle again"), icon=":material/shuffle:", key=key, on_click=again)
    return int(st.session_state.get(seed, 0))


def _untrained(tokens: tuple[str, ...], order: list[int]) -> dict[str, tuple[str | None, float]]:
    """Return kind and change of an untrained model of each kind, by label."""
    bars: dict[str, tuple[str | None, float]] = {}
    for name, change in core.untrained_changes(tokens, order).items():
        if name == core.CAUSAL:
            bars[_("None, with a causal mask")] = None, change
        else:
            bars[_(POSITIONS[name].label)] = name, change
    return bars


def _shuffled_picture(moment: Moment) -> None:
    """Shuffle the patches of one of the run's pictures, and let its model look at both."""
    run = moment.run
    try:
        images = run.probe().images
        if images is None:
            return
        seed = _shuffle_again("shuffle-patches")
        picture = images[moment.example or 0]
        moved, before, after = core.shuffle_patches(run, picture, seed, step=moment.step)
    except ValueError as error:
        show.problem(error)
        return
    names = run.experiment.task.class_names
    with st.container(horizontal=True):
        for drawn, probabilities in ((picture, before), (moved, after)):
            best = int(probabilities.argmax())
            pixels = drawn[0] if len(drawn) == 1 else drawn.transpose(1, 2, 0)
            answer = f"{names[best]}, {show.percent(float(probabilities[best]))}"
            st.image(pixels, caption=answer, width=168, alt=answer)
    st.caption(paragraph("positions/patches-shuffled"))
