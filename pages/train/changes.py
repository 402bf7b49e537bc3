"""The changes strip, which stays in view: the effect of the last change, undo and reset."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

import streamlit as st

from pages.app import show, state
from pages.app.runs import run_time
from pages.app.settings import controls, drafts
from pages.app.settings.drafts import CheckedDraft, Draft
from pages.app.typed import escape
from pages.i18n import _, ngettext
from tfm_core.choices.config import FAMILIES, TASK_FACTS, ConfigError, Experiment

if TYPE_CHECKING:
    from tfm_core.facts.memory import Sizes

_MIN_FACTOR = 3.0  # from this ratio on, a factor reads better than per cent
_MAX_NAMED = 3
_SIDE_EFFECT = "training.weight_decay"  # follows the optimiser


def strip(checked: CheckedDraft, *, threads: int, preset: str) -> None:
    """Draw the strip. preset: its label, or empty.

    Its container exists even when empty: otherwise the first change would make the browser build
    the fields below anew and lose what is being typed.
    """
    paths, history = drafts.changed(checked), state.history()
    place = st.container(key="changes")
    if not (paths or history.past or history.future):
        return
    with place:
        with st.container(horizontal=True, vertical_alignment="center", key="changes-buttons"):
            _buttons(checked, paths, preset)
        with st.container(key="changes-words", gap=None):
            _effect(checked, paths, threads)


def _buttons(checked: CheckedDraft, paths: list[str], preset: str) -> None:
    history = state.history()
    st.button(
        _("Undo"),
        icon=":material/undo:",
        key="configure-undo",
        disabled=not history.past,
        on_click=state.move,
        kwargs={"back": True},
    )
    st.button(
        _("Redo"),
        icon=":material/redo:",
        key="configure-redo",
        disabled=not history.future,
        on_click=state.move,
        kwargs={"back": False},
    )
    st.button(  # also resets text that was typed but not sent yet
        _("Reset all"),
        icon=":material/restart_alt:",
        key="configure-reset",
        help=_("Back to “{preset}”.", preset=preset) if preset else _("Back to where you began."),
        on_click=lambda: state.set_draft(state.current_draft().baseline),
    )
    n = len(paths)
    if not n:
        return
    label = ngettext("{n} change", "{n} changes", n, n=n)
    with st.popover(label, icon=":material/edit:", key="configure-changes"):
        st.markdown(
            _("Different from “{preset}”:", preset=escape(preset))
            if preset
            else _("Changed since you began:")
        )
        for path in paths:
            before = checked.draft.baseline if path in _NAMES else checked.reference
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.markdown(_difference(path, before, checked), width="stretch")
                label = _("Reset {label}", label=escape(checked.label(path)))
                controls.reset_button(
                    f":orange[{label}]", path, checked, key=f"listed-reset:{path}"
                )


def _effect(checked: CheckedDraft, paths: list[str], threads: int) -> None:
    """Draw the effect of the last change and of all changes."""
    experiment = checked.experiment
    if experiment is None:
        st.caption(_("The effect appears once all settings are valid."))
        return
    last = _last(checked.draft, state.history().past, experiment)
    if last is None:
        return
    before, changed = last
    compared = {_named(before, changed, checked): before}
    begun = _parsed(checked.draft.baseline)
    if begun is not None and begun != before and len(paths) > 1:
        compared[_("All {n} changes", n=len(paths))] = begun
    now, *then = [run_time.sizes(each) for each in (experiment, *compared.values())]

    def effect() -> None:
        lines = []
        for n, (title, old) in enumerate(compared.items()):
            parts = _parts((old, then[n]), (experiment, now), threads)
            lines.append(f"**{title}**: {_summary(parts, is_short=n > 0) or '…'}")
        st.markdown("  \n".join(lines))

    run_time.until_known([now, *then], effect)


def _parts(
    before: tuple[Experiment, Future[Sizes]], after: tuple[Experiment, Future[Sizes]], threads: int
) -> list[tuple[str, str, str]]:
    """Return name, values and signed ratio of each cost; none until all are known.

    A roughly known cost has no values, an unchanged one no ratio.
    """
    try:
        old, new = (run_time.result(future) for _experiment, future in (before, after))
    except Exception:  # shown beside Start
        return []
    if old is None or new is None:
        return []
    parts = []
    for name, first, second, form in (
        (_("parameters"), old.n_parameters, new.n_parameters, show.count),
        (_("memory per step"), old.step_bytes, new.step_bytes, show.size),
    ):
        by = "" if first == second else ratio(first, second)
        parts.append((name, f"{form(first)} → **{form(second)}**", by))
    then, now = (run_time.forecast(each, threads=threads) for each, _future in (before, after))
    if then is None or now is None:
        return parts
    if then.slowdown != now.slowdown:  # measured in between: compare at the same load
        then = then.at(now.slowdown)
    by = "" if then == now else _("about {time}", time=ratio(then.seconds, now.seconds))
    return [*parts, (_("time"), "", by)]


def _summary(parts: list[tuple[str, str, str]], *, is_short: bool) -> str:
    """Return the changed costs, then the unchanged ones; if short, the ratios alone."""
    if is_short:
        return " · ".join(f"{name} {by or _('unchanged')}" for name, _values, by in parts)
    changed = [
        f"{name} {values} ({by})" if values else f"{name} {by}" for name, values, by in parts if by
    ]
    same = ", ".join(name for name, _values, by in parts if not by)
    if same:
        changed.append(_("{names} unchanged", names=same))
    return " · ".join(changed)


def _last(
    draft: Draft, past: tuple[Draft, ...], experiment: Experiment
) -> tuple[Experiment, list[str]] | None:
    """Return the experiment before the last change since the draft began, and the changed paths.

    Invalid states in between don't count, nor do settings that follow another one.
    """
    for moment in reversed(past):
        if moment.baseline != draft.baseline:
            return None
        before = _parsed(moment.values)
        if before is not None and before != experiment:
            paths = drafts.differences(draft.values, moment.values)
            chosen = [path for path in paths if path != _SIDE_EFFECT]
            return before, chosen if len(chosen) == 1 else paths
    return None


def _parsed(values: drafts.Values) -> Experiment | None:
    try:
        return Experiment.parse(values)
    except ConfigError:
        return None


def _named(before: Experiment, paths: list[str], checked: CheckedDraft) -> str:
    """Return a change as text, such as ``Heads 2 → 4``."""
    old, new = before.model_dump(), checked.draft.values
    for path in _NAMES:
        if drafts.get(old, path) != drafts.get(new, path):
            return _other_name(path, old, new)
    listed = ", ".join(_difference(path, old, checked) for path in paths[:_MAX_NAMED])
    more = len(paths) - _MAX_NAMED
    return _("{changes} and {n} more", changes=listed, n=more) if more > 0 else listed


def _other_name(path: str, old: drafts.Values, new: drafts.Values) -> str:
    first, second = (_NAMES[path][drafts.get(values, path)].label for values in (old, new))
    return f"{escape(_(first))} → {escape(_(second))}"


def _difference(path: str, old: drafts.Values, checked: CheckedDraft) -> str:
    new, setting = checked.draft.values, checked.settings.get(path)
    label = escape(checked.label(path))
    if path in _NAMES:
        return f"{label} {_other_name(path, old, new)}"
    if setting is None:
        return _("{label} changed", label=label)
    first, second = (drafts.format_value(setting, drafts.get(each, path)) for each in (old, new))
    return f"{label} {escape(first)} → {escape(second)}"


_NAMES = {"model.family": FAMILIES, "task.name": TASK_FACTS}


def ratio(old: float, new: float) -> str:
    """Return a signed change: ``+20%``, ``−0.4%``, or ``× 4.2`` if large."""
    if not old:
        return "+"
    if new >= _MIN_FACTOR * old:
        return f"× {new / old:,.3g}"
    per_cent = 100 * (new / old - 1)
    sign = "+" if per_cent > 0 else "−"
    size = abs(per_cent)
    if size >= 9.95:
        return f"{sign}{min(size, 99.9) if new < old and size > 99.5 else round(size)}%"
    return f"{sign}{size:.1f}%" if size >= 0.05 else f"{sign}<0.1%"
