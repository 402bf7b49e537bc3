"""Play: the most important settings of the draft or a run as sliders.

A change of a run's learning rate, batch size or regularisation applies while it trains
(``config.experiment``); any other change starts a new run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from pages.app import state
from pages.app.accounts import visitors
from pages.app.address import view
from pages.app.lessons import open_lesson
from pages.app.runs import comparison, run_actions, runs_access
from pages.app.runs.run_actions import Start
from pages.app.settings import controls, drafts
from pages.app.settings.drafts import CheckedDraft
from pages.app.settings.fields import Setting, settings_by_path
from pages.i18n import _
from tfm_core.choices.config import Experiment, TunedConfig
from tfm_core.choices.config.experiment import TURNABLE, Turn, checked, possible, turned
from tfm_core.runs.process.requests import turning
from tfm_core.runs.run import Run

PLAYED = (
    "model.n_encoder_layers",
    "model.n_decoder_layers",
    "model.n_layers",
    "model.d_model",
    "model.n_heads",
    "model.d_ff",
    "model.position",
    "training.learning_rate",
    "training.batch_size",
    "model.norm_first",
)
"""The settings with a slider, in their order; each family has most of them."""

_REGULARISING = ("model.dropout", "training.weight_decay", "training.label_smoothing")
_LAYERS = (1, 2, 3, 4, 5, 6)
_WIDTHS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_VALUES: Mapping[str, tuple[float, ...]] = {
    "n_encoder_layers": _LAYERS,
    "n_decoder_layers": _LAYERS,
    "n_layers": _LAYERS,
    "d_model": _WIDTHS,
    "n_heads": (1, 2, 3, 4, 6, 8, 12, 16),
    "d_ff": (16, 32, 64, 128, 256, 512, 1024),
    "learning_rate": tuple(
        float(f"{digit}e{power}") for power in range(-5, 0) for digit in (1, 2, 5)
    ),
    "batch_size": (2, 4, 8, 16, 32, 64, 128, 256, 512),
    "dropout": (0.0, 0.05, 0.1, 0.2, 0.3, 0.5),
    "weight_decay": (0.0, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 1.0),
    "label_smoothing": (0.0, 0.05, 0.1, 0.2, 0.3),
}
_RUNNING = frozenset({"starting", "running", "paused"})
_STOP_SECONDS = 1.0
"""How long a restart waits for the old run to stop; later the new one waits in the queue."""

_PENDING = "play-pending"  # (run, {path: value}): chosen, but not yet in the run's events
_RESTART = "play-restart"  # (run, path, value): start a new run with this change
_REPLACED = "play-replaced"  # the run that was on the page before the new one
_PROBLEM = "play-problem"

Change = Callable[[str, Any], None]
Values = tuple[drafts.Values, drafts.Values]
"""The current values of all settings, and the initial ones."""


def of_draft(checked_draft: CheckedDraft, *, shows_problems: bool) -> None:
    """Draw the sliders of the draft, and if asked their problems."""
    draft = checked_draft.draft
    edition = "-".join(map(str, draft.edition))
    settings = checked_draft.settings
    shown = [settings[path] for path in PLAYED if path in settings]
    values = draft.values, draft.baseline
    _grid(shown, values, f"play@{edition}", partial(_choose, draft.edition))
    for path in PLAYED if shows_problems else ():
        for sentence in checked_draft.problems_of(path):
            controls.error_text(sentence)


def _choose(edition: tuple[int, int, int], path: str, value: object) -> None:
    """Put a value into the draft, unless the slider belongs to an older one."""
    if state.current_draft().edition == edition:
        controls.choose(path, value)


def is_playable(run: Run) -> bool:
    """Return whether this visitor may change the settings of a run.

    The opened model fixes the sizes of a fine-tuned run.
    """
    is_tuned = isinstance(run.experiment.task, TunedConfig)
    is_theirs = run.experiment.training is None or run.meta.recorded or visitors.watches(run)
    return not (is_theirs or is_tuned or runs_access.is_hidden(run))


def arrive(run: Run) -> None:
    """Accept changes of a run again after another run was shown."""
    if st.session_state.get(_REPLACED) != run.id:
        st.session_state[_REPLACED] = None


def of_run(run: Run) -> None:
    """Draw the sliders of a run."""
    if (restart := st.session_state.pop(_RESTART, None)) is not None and restart[0] == run.id:
        _restart(run, *restart[1:])
    experiment = _current(run)
    settings = settings_by_path(experiment.model.family, experiment.task.name)
    now = experiment.model_dump()
    for path, value in _pending(run).items():
        now = drafts.put(now, path, value)
    values = now, run.experiment.model_dump()
    key, change = f"play-{run.id}", partial(_change, run.id)
    open_lesson.draw_locks()
    if run.status.is_active:
        st.caption(_("Learning rate and batch size change at once; the others start a new run."))
    else:
        st.caption(_("A change starts a new run."))
    _grid([settings[path] for path in PLAYED if path in settings], values, key, change)
    with st.popover(_("Regularisation"), icon=":material/tune:", width="stretch"):
        for path in _REGULARISING:
            if path in settings:
                _control(settings[path], values, key, change)
    problem = st.session_state.get(_PROBLEM)
    if problem is not None and problem[0] == run.id:
        controls.error_text(problem[1])


def last_turn(run: Run) -> None:
    """Show the last change while a run trained, and offer to train on without it."""
    turns = possible(run.experiment, runs_access.curves(run).turns)
    if not turns or run.step_of_checkpoint("turn") != turns[-1].step - 1:
        return
    newest = turns[-1]
    before = turned(run.experiment, [turn for turn in turns if turn.step < newest.step])
    after = turned(before, [newest])
    setting = settings_by_path(before.model.family, before.task.name)[newest.setting]
    old, new = (
        drafts.format_value(setting, drafts.get(experiment.model_dump(), newest.setting))
        for experiment in (before, after)
    )
    with st.container(gap="xsmall"):
        label, step = _(setting.label), f"{newest.step:,}"
        st.caption(
            _("Step {step}: {label} {old} → {new}", step=step, label=label, old=old, new=new)
        )
        st.button(
            _("Branch here with {old}", old=old),
            icon=":material/alt_route:",
            key=f"play-branch-{run.id}",
            width="stretch",
            on_click=_branch,
            args=(run.id, f"{label} {old}"),
            **visitors.allowed(_("Trains the twin, and compares both.")),
        )
    if (pair := st.session_state.pop("play-branched", None)) is not None:
        comparison.open_comparison(pair)


def _current(run: Run) -> Experiment:
    return turned(run.experiment, possible(run.experiment, runs_access.curves(run).turns))


def _pending(run: Run) -> dict[str, Any]:
    """Return values that were chosen for a run and are not in its events yet."""
    run_id, chosen = st.session_state.get(_PENDING, ("", {}))
    if run_id != run.id or not run.status.is_active:
        return {}
    values = _current(run).model_dump()
    return {path: value for path, value in chosen.items() if drafts.get(values, path) != value}


def _grid(settings: list[Setting], values: Values, key: str, change: Change) -> None:
    with st.container(key="play-sliders"):  # two in a row on a phone, too
        controls.grid(settings, lambda setting: _control(setting, values, key, change))


def _control(setting: Setting, values: Values, key: str, change: Change) -> None:
    now, begun = values
    value, key = drafts.get(now, setting.path), f"{key}:{setting.path}"
    field = replace(setting.field, help="")
    if setting.kind in ("int", "float"):
        options = _options(setting, now, begun)
        key = f"{key}:{'-'.join(f'{option:g}' for option in options)}"
        settings = {"options": options, "format_func": "{:g}".format}
        field = replace(field, draw=st.select_slider, settings=settings)
    st.session_state[key] = value
    view.widget(
        field,
        value,
        key=key,
        lock=open_lesson.lock(setting.path),
        on_change=_take,
        args=(key, setting.path, change),
    )


def _options(setting: Setting, values: drafts.Values, begun: drafts.Values) -> list[float]:
    """Return the values of a slider: the possible, the initial and the current ones."""
    model, name = values["model"], setting.name
    used = {each[setting.section].get(name) for each in (values, begun)}
    options = {
        value
        for value in _VALUES[name]
        if (setting.lowest is None or value >= setting.lowest)
        and (setting.highest is None or value <= setting.highest)
    }
    n_heads, d_model = model.get("n_heads"), model.get("d_model")
    if isinstance(n_heads, int) and isinstance(d_model, int) and n_heads > 0:
        if name == "d_model":
            options = {value for value in options if value % n_heads == 0}
        elif name == "n_heads":
            options = {value for value in options if d_model % value == 0}
    return sorted(options | {value for value in used if isinstance(value, int | float)})


def _take(key: str, path: str, change: Change) -> None:
    if key in st.session_state:
        change(path, st.session_state[key])


def _change(run_id: str, path: str, value: Any) -> None:
    """Change a value while a run trains, or ask for a new run with it."""
    if st.session_state.get(_REPLACED) == run_id:
        return  # the browser still sends the old page's sliders
    st.session_state[_PROBLEM] = None
    run = runs_access.store().get(run_id)
    if path not in TURNABLE or run.status.state not in _RUNNING:
        st.session_state[_RESTART] = run_id, path, value
        return
    pending = _pending(run)
    try:
        turn = checked(run.experiment, Turn(1, path, value))
        if pending.get(path) != turn.value and run_actions.ask(run, turning(path, turn.value)):
            st.session_state[_PENDING] = run.id, {**pending, path: turn.value}
    except (ValueError, OSError) as error:
        st.session_state[_PROBLEM] = run_id, _(error)


def _restart(run: Run, path: str, value: object) -> None:
    """Stop a run, and start and show one with another value, or note why that is refused."""
    try:
        experiment = Experiment.parse(drafts.put(_current(run).model_dump(), path, value))
        if run.status.is_active:
            run_actions.ask(run, "stop")
            end = time.monotonic() + _STOP_SECONDS
            while run.status.is_active and time.monotonic() < end:
                time.sleep(0.01)
        meta, group = run.meta, run.labels.group or _("Playground")
        start = Start(experiment, meta.device, meta.name, None, meta.threads)
        new = run_actions.enqueue(start, group=group)
    except (ValueError, OSError) as error:
        st.session_state[_PROBLEM] = run.id, _(error)
        return
    run_actions.join_group([run.id], group)
    st.session_state[_REPLACED] = run.id
    state.set_draft(experiment.model_dump())
    state.set_current_run(new.id)
    st.rerun()


def _branch(run_id: str, change: str) -> None:
    run = runs_access.store().get(run_id)
    name = _("{name}, {change}", name=run.meta.name, change=change)
    branch = run_actions.branch(run, name)
    if branch is not None:
        st.session_state["play-branched"] = [run_id, branch.id]
