"""The changes strip: the effect of the last change, undo and reset.

It stays visible below the frame's strip while the settings scroll.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from pages.app import show, state
from pages.app.runs import run_time
from pages.app.settings import controls, drafts
from pages.app.settings.drafts import CheckedDraft, Draft
from pages.app.settings.fields import Setting
from pages.app.typed import escape
from pages.i18n import _, ngettext
from tfm_core.choices.config import FAMILIES, TASK_FACTS, ConfigError, Experiment

if TYPE_CHECKING:
    from tfm_core.facts.memory import Sizes
    from tfm_core.runs.record.expected_time import Forecast

_MANY = 3.0  # from this ratio on, a factor reads better than per cent


@dataclass(frozen=True, slots=True)
class _Quantity:
    """A quantity before and after, and its signed ratio, empty if unchanged.

    values: of both, empty where they are known too roughly to stand beside the ratio.
    """

    name: str
    values: str
    ratio: str


@dataclass(frozen=True, slots=True)
class Effect:
    """Two experiments to compare, and the futures of their sizes."""

    before: Experiment
    after: Experiment
    sizes: tuple[Future[Sizes], Future[Sizes]]

    @property
    def is_known(self) -> bool:
        return all(future.done() for future in self.sizes)

    def words(self, threads: int) -> str:
        """Return what changes, then what stays; empty until known."""
        parts = self._parts(threads)
        changed = [
            f"{part.name} " + (f"{part.values} ({part.ratio})" if part.values else part.ratio)
            for part in parts
            if part.ratio
        ]
        same = ", ".join(part.name for part in parts if not part.ratio)
        if same:
            changed.append(_("{names} unchanged", names=same))
        return " · ".join(changed)

    def ratios(self, threads: int) -> str:
        """Return all ratios in short; empty until known."""
        parts = self._parts(threads)
        return " · ".join(f"{part.name} {part.ratio or _('unchanged')}" for part in parts)

    def _parts(self, threads: int) -> list[_Quantity]:
        try:
            old, new = (run_time.result(future) for future in self.sizes)
        except Exception:  # shown beside Start
            return []
        if old is None or new is None:
            return []
        parts = [
            _quantity(_("parameters"), old.n_parameters, new.n_parameters, show.count),
            _quantity(_("memory per step"), old.step_bytes, new.step_bytes, show.size),
        ]
        then, now = (self._time(experiment, threads) for experiment in (self.before, self.after))
        if then is None or now is None:
            return parts
        if then.slowdown != now.slowdown:  # measured in between: compare at the same load
            then = then.at(now.slowdown)
        by = "" if then == now else _("about {time}", time=ratio(then.seconds, now.seconds))
        return [*parts, _Quantity(_("time"), "", by)]

    def _time(self, experiment: Experiment, threads: int) -> Forecast | None:
        return run_time.forecast(experiment, threads=threads)


_LOOK_AGAIN = 0.3  # seconds
_MAX_NAMED = 3
_SIDE_EFFECT = "training.weight_decay"  # follows the optimiser


@dataclass(frozen=True, slots=True)
class LastChange:
    """The last change: the experiment before it, and the changed paths."""

    before: Experiment
    paths: tuple[str, ...]

    @property
    def path(self) -> str | None:
        """The changed setting; None if there are several."""
        own = [path for path in self.paths if path != _SIDE_EFFECT] or list(self.paths)
        return own[0] if len(own) == 1 else None


def strip(checked: CheckedDraft, *, threads: int, preset: str) -> None:
    """Draw the strip. preset: its label, or empty.

    Its place is there when it is empty, too: else the browser would make the fields below anew with
    the first change, and lose what is being typed there.
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
        on_click=lambda: state.set_draft(state.current_draft().begun),
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
            _row(path, checked)


def _row(path: str, checked: CheckedDraft) -> None:
    begun = checked.draft.begun if path in _NAMES else checked.reference
    words = _difference(path, begun, checked)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(words, width="stretch")
        label = _("Reset {label}", label=escape(_label(path, checked.settings)))
        controls.reset_button(f":orange[{label}]", path, checked, key=f"listed-reset:{path}")


def _effect(checked: CheckedDraft, paths: list[str], threads: int) -> None:
    experiment = checked.experiment
    if experiment is None:
        st.caption(_("The effect appears once all settings are valid."))
        return
    change = _last(checked.draft, state.history().past, experiment)
    if change is None:
        return
    begun = _parsed(checked.draft.begun)
    changes = [of_change(change.before, experiment)]
    if begun is not None and begun != change.before and len(paths) > 1:
        changes.append(of_change(begun, experiment))
    was_known = all(one.is_known for one in changes)
    named = _named(change, checked)
    in_all = _("All {n} changes", n=len(paths))

    def effect() -> None:
        if not was_known and all(one.is_known for one in changes):
            state.draw_anew()
        first, *rest = changes
        lines = [f"**{named}**: {first.words(threads) or '…'}"]
        lines += [f"**{in_all}**: {other.ratios(threads) or '…'}" for other in rest]
        st.markdown("  \n".join(lines))

    st.fragment(effect, run_every=None if was_known else _LOOK_AGAIN)()


def _last(draft: Draft, past: tuple[Draft, ...], experiment: Experiment) -> LastChange | None:
    """Return the last change since the draft began, ignoring invalid states in between."""
    for moment in reversed(past):
        if moment.begun != draft.begun:
            return None
        before = _parsed(moment.values)
        if before is not None and before != experiment:
            paths = drafts.differences(draft.values, moment.values)
            return LastChange(before, tuple(paths))
    return None


def _parsed(values: drafts.Values) -> Experiment | None:
    try:
        return Experiment.parse(values)
    except ConfigError:
        return None


def _named(change: LastChange, checked: CheckedDraft) -> str:
    old, new = change.before.model_dump(), checked.draft.values
    for path, names in _NAMES.items():
        if drafts.get(old, path) != drafts.get(new, path):
            first, second = (names[drafts.get(values, path)].label for values in (old, new))
            return f"{escape(_(first))} → {escape(_(second))}"
    paths = [change.path] if change.path else list(change.paths)
    listed = ", ".join(_difference(path, old, checked) for path in paths[:_MAX_NAMED])
    more = len(paths) - _MAX_NAMED
    return _("{changes} and {n} more", changes=listed, n=more) if more > 0 else listed


def _difference(path: str, old: drafts.Values, checked: CheckedDraft) -> str:
    new, settings = checked.draft.values, checked.settings
    label = escape(_label(path, settings))
    if path in _NAMES:
        first, second = (_NAMES[path][drafts.get(values, path)].label for values in (old, new))
        return f"{label} {escape(_(first))} → {escape(_(second))}"
    if path not in settings:
        return _("{label} changed", label=label)
    first, second = (
        drafts.format_value(settings[path], drafts.get(one, path)) for one in (old, new)
    )
    return f"{label} {escape(first)} → {escape(second)}"


def _label(path: str, settings: Mapping[str, Setting]) -> str:
    if path in settings:
        return _(settings[path].label)
    labels = {"model.family": _("Model family"), "task.name": _("Task"), "task.text": _("Text")}
    return labels.get(path, path)


_NAMES = {"model.family": FAMILIES, "task.name": TASK_FACTS}


def of_change(before: Experiment, after: Experiment) -> Effect:
    return Effect(before, after, (run_time.sizes(before), run_time.sizes(after)))


def _quantity(name: str, old: float, new: float, format_value: Callable[[float], str]) -> _Quantity:
    values = f"{format_value(old)} → **{format_value(new)}**"
    return _Quantity(name, values, "" if old == new else ratio(old, new))


def ratio(old: float, new: float) -> str:
    """Return a signed change: ``+20%``, ``−0.4%``, or ``× 4.2`` if large."""
    if not old:
        return "+"
    if new >= _MANY * old:
        return f"× {new / old:,.3g}"
    per_cent = 100 * (new / old - 1)
    sign = "+" if per_cent > 0 else "−"
    size = abs(per_cent)
    if size >= 9.95:
        return f"{sign}{min(size, 99.9) if new < old and size > 99.5 else round(size)}%"
    return f"{sign}{size:.1f}%" if size >= 0.05 else f"{sign}<0.1%"
