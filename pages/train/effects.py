"""What a change does to a training's size: parameters, a step's memory and time, before and after.

Counted on a thread of its own; until it is there, nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pages.i18n import _
from pages.ui import forecast, run_time, show, state
from tfm_core.config import Experiment

if TYPE_CHECKING:
    from tfm_core.facts.sizes import Sizes

_MANY = 3.0  # from so many times on, a factor reads better than per cent


@dataclass(frozen=True, slots=True)
class Effect:
    """Two experiments to compare, and the promises of their sizes."""

    before: Experiment
    after: Experiment
    sizes: tuple[Future[Sizes], Future[Sizes]]

    @property
    def is_known(self) -> bool:
        """Whether it can be said by now."""
        return all(future.done() for future in self.sizes)

    def words(self, threads: int) -> str:
        """Return what differs, with signs, and behind it what stays; "" where it is not known."""
        try:
            old, new = (forecast.answer(future) for future in self.sizes)
        except Exception:  # a count that fails is said beside Start
            return ""
        if old is None or new is None:
            return ""
        then, now = (self._time(experiment, threads) for experiment in (self.before, self.after))
        parts = [
            _part(_("parameters"), old.n_parameters, new.n_parameters, show.count),
            _part(_("memory of a step"), old.step_bytes, new.step_bytes, show.size),
        ]
        if then is not None and now is not None:
            parts.append(_time_part(then, now))
        changed = [words for _name, words in parts if words]
        same = [name for name, words in parts if not words]
        if same:
            changed.append(_("{names} unchanged").format(names=", ".join(same)))
        return " · ".join(changed)

    def _time(self, experiment: Experiment, threads: int) -> tuple[float, float] | None:
        found = run_time.time_range(experiment, device=state.device(), threads=threads)
        return None if found is None else (found.low, found.high)


def of_change(before: Experiment, after: Experiment) -> Effect:
    """Ask for the effect of a change."""
    return Effect(before, after, (forecast.sizes(before), forecast.sizes(after)))


def _part(name: str, old: float, new: float, said: Callable[[float], str]) -> tuple[str, str]:
    """Return a quantity and what became of it; nothing where it stays."""
    if old == new:
        return name, ""
    words = f"{name} {said(old)} → **{said(new)}** ({ratio(old, new)})"
    return name, words


def _time_part(old: tuple[float, float], new: tuple[float, float]) -> tuple[str, str]:
    name = _("time")
    if old == new:
        return name, ""
    a, b = (show.duration_range(*found) for found in (old, new))
    return name, f"{name} {a} → **{b}** ({ratio(sum(old), sum(new))})"


def ratio(old: float, new: float) -> str:
    """Return a change with its sign, such as ``+20 %``, ``−0.4 %`` or, of large ones, ``× 4.2``."""
    if not old:
        return "+"
    if new >= _MANY * old:
        return f"× {new / old:,.3g}"
    per_cent = 100 * (new / old - 1)
    sign = "+" if per_cent > 0 else "−"
    size = abs(per_cent)
    if size >= 9.95:
        return f"{sign}{min(size, 99.9) if new < old and size > 99.5 else round(size)} %"
    return f"{sign}{size:.1f} %" if size >= 0.05 else f"{sign}<0.1 %"
