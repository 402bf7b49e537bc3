"""Fine-tune: train an opened model on the user's data, also beside random weights."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.runs import comparison, run_actions
from pages.app.runs.run_actions import Start
from pages.app.settings import controls
from pages.app.typed import escape
from pages.i18n import _, paragraph
from pages.train import start
from tfm_core.anatomy.trained import trained
from tfm_core.choices.config import Experiment, TunedConfig, built
from tfm_core.choices.config.pretrained_tasks import TRAINS
from tfm_core.data.tasks import data_shape
from tfm_core.data.user_data.sets import UserSet
from tfm_core.runs import fine_tuning
from tfm_core.runs.fine_tuning import Part
from tfm_core.runs.labels import MAX_GROUP, MAX_NAME
from tfm_core.runs.run import Run


def area(run: Run) -> None:
    """Ask for the data and the trained part, show the cost, and start."""
    with st.container(border=True, gap="small", key="fine-tune"):
        st.header(_("Fine-tune"), anchor=False)
        if (reason := fine_tuning.why_not(run)) is not None:
            st.caption(escape(_(reason)))
            return
        kind = fine_tuning.KINDS[run.experiment.model.family]
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            own = _data(kind)
            part = _part(run)
        controls.own_data_link(kind, "" if own is None else own.id)
        experiment: Experiment | None = None
        try:
            part = _schedule(part, fine_tuning.planned(run, own, part))
            experiment = fine_tuning.planned(run, own, part)
        except ValueError as error:
            show.problem(error)
        if experiment is not None:
            st.caption(_trained(experiment))
        _buttons(run, own, part, is_off=experiment is None)
        if experiment is not None:
            start.needs(experiment)


def trained_part(run: Run) -> str:
    """Return which part of its opened model a run trains; empty for other runs."""
    if run.problem is not None or not isinstance(run.experiment.task, TunedConfig):
        return ""
    return _trained(run.experiment)


def _data(kind: str) -> UserSet | None:
    sets = controls.data_sets(kind)
    options = list(sets) if kind == "labels" else ["", *sets]
    chosen = st.selectbox(
        _("Set"),
        options,
        format_func=lambda set_id: (
            controls.data_set_label(sets[set_id])
            if set_id
            else _("Alice in Wonderland, first chapter")
        ),
        key=f"fine-tune-{kind}",
        width=320,
        persist_state="session",
    )
    return sets.get(chosen or "")


def _part(run: Run) -> Part:
    trains = st.segmented_control(
        _("Train"),
        list(TRAINS),
        format_func=lambda name: _(TRAINS[name].label),
        default="all",
        required=True,
        key="fine-tune-trains",
        help=paragraph("train/fine-tune-help"),
        persist_state="session",
    )
    plain, n_layers = Part(), int(getattr(run.experiment.model, "n_layers", 1))
    if trains == "last":
        n_last = st.number_input(
            _("Layers"), 1, n_layers, min(plain.n_last, n_layers), key="fine-tune-layers", width=120
        )
        return Part("last", n_last=int(n_last))
    if trains == "lora":
        most = built(run.experiment.model).d_model
        rank = st.number_input(
            _("Rank"), 1, most, min(plain.rank, most), key="fine-tune-rank", width=120
        )
        return Part("lora", rank=int(rank))
    return plain


def _schedule(part: Part, usual: Experiment) -> Part:
    """Ask for steps and learning rate; of LoRA also for alpha. usual: has those that suit."""
    training, task = usual.trained, usual.task_as(TunedConfig)
    setting = f"{part.trains}-{training.steps}"  # another default is another control
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        steps = st.number_input(
            _("Steps"), 1, 100_000, training.steps, key=f"fine-tune-steps-{setting}", width=120
        )
        rate = st.number_input(
            _("Learning rate"),
            value=training.learning_rate,
            min_value=1e-7,
            max_value=1.0,
            step=training.learning_rate / 2,
            format="%.6g",
            key=f"fine-tune-rate-{part.trains}",
            width=140,
        )
        alpha = part.alpha
        if part.trains == "lora":
            with st.popover(_("Advanced")):
                alpha = st.number_input(
                    _("Alpha"),
                    value=task.alpha,
                    min_value=0.1,
                    max_value=100_000.0,
                    step=1.0,
                    format="%.6g",
                    help=_("LoRA's change is multiplied by alpha / rank."),
                    key=f"fine-tune-alpha-{part.rank}",
                )
    return replace(part, steps=int(steps), rate=float(rate), alpha=alpha)


def _buttons(run: Run, own: UserSet | None, part: Part, *, is_off: bool) -> None:
    with st.container(horizontal=True, gap="small"):
        alone = st.button(
            _("Fine-tune"),
            type="primary",
            icon=":material/model_training:",
            key="fine-tune-start",
            **visitors.allowed(is_off=is_off),
        )
        both = st.button(
            _("Also from scratch"),
            icon=":material/compare_arrows:",
            key="fine-tune-both",
            **visitors.allowed(
                _("Trains random weights on the same data: two curves."), is_off=is_off
            ),
        )
    if not (alone or both):
        return
    name = run.meta.name
    try:
        with st.spinner(_("Reading the weights")):
            experiment = fine_tuning.tuned(run, own, part)
        label = _("{name}: fine-tuned", name=name)
        if part.trains != "all":
            label = _("{name}: {part}", name=name, part=_(TRAINS[part.trains].label))
        named = {label: experiment}
        if both:
            named[_("{name}: from scratch", name=name)] = fine_tuning.from_scratch(experiment)
        starts = [
            Start(one, state.device(), words[:MAX_NAME], None, state.threads())
            for words, one in named.items()
        ]
        group = _("Fine-tune {name}", name=name)[:MAX_GROUP]
        begun = comparison.start_all(starts, group=group)
    except (ValueError, OSError) as error:
        show.problem(error)
        return
    if both:
        comparison.open_comparison([one.id for one in begun])
    run_actions.watch(begun[0])


def _trained(experiment: Experiment) -> str:
    task, shape = experiment.task_as(TunedConfig), data_shape(experiment)
    found = trained(experiment.model, shape, task)
    total = trained(experiment.model, shape, None).n + found.n_added
    counts = {"n": f"{found.n:,}", "total": f"{total:,}", "part": _(TRAINS[task.trains].label)}
    return _("{part}: trains {n} of {total} parameters.", **counts)
