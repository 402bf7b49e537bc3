"""What a change does to a training's size: parameters, a step's memory and time, before and after.

Counted on a thread of its own; until it is there, nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pages.i18n import _
from pages.ui import forecast, run_time, show
from tfm_core.config import Experiment

if TYPE_CHECKING:
    from tfm_core.facts.memory import Sizes
    from tfm_core.runs.expected_time import Forecast

_MANY = 3.0  # from so many times on, a factor reads better than per cent


@dataclass(frozen=True, slots=True)
class _Part:
    """A quantity before and after, and its ratio with a sign; none where it stays."""

    name: str
    old: str
    new: str
    ratio: str


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
        """Return what differs, before and after, and behind it what stays; "" until it is known."""
        parts = self._parts(threads)
        changed = [
            f"{part.name} {part.old} → **{part.new}** ({part.ratio})"
            for part in parts
            if part.ratio
        ]
        same = ", ".join(part.name for part in parts if not part.ratio)
        if same:
            changed.append(_("{names} unchanged", names=same))
        return " · ".join(changed)

    def ratios(self, threads: int) -> str:
        """Return how much everything differs, in short; "" until it is known."""
        parts = self._parts(threads)
        return " · ".join(f"{part.name} {part.ratio or _('unchanged')}" for part in parts)

    def _parts(self, threads: int) -> list[_Part]:
        try:
            old, new = (forecast.answer(future) for future in self.sizes)
        except Exception:  # a count that fails is said beside Start
            return []
        if old is None or new is None:
            return []
        parts = [
            _part(_("parameters"), old.n_parameters, new.n_parameters, show.count),
            _part(_("memory of a step"), old.step_bytes, new.step_bytes, show.size),
        ]
        then, now = (self._time(experiment, threads) for experiment in (self.before, self.after))
        if then is None or now is None:
            return parts
        if then.slowdown != now.slowdown:  # measured anew in between: compare at one load
            then = then.at(now.slowdown)
        a, b = (show.rounded(found.seconds) for found in (then, now))
        by = "" if then == now else ratio(then.seconds, now.seconds)
        return [*parts, _Part(_("time"), a, b, by)]

    def _time(self, experiment: Experiment, threads: int) -> Forecast | None:
        return run_time.forecast(experiment, threads=threads)


def of_change(before: Experiment, after: Experiment) -> Effect:
    """Ask for the effect of a change."""
    return Effect(before, after, (forecast.sizes(before), forecast.sizes(after)))


def _part(name: str, old: float, new: float, said: Callable[[float], str]) -> _Part:
    return _Part(name, said(old), said(new), "" if old == new else ratio(old, new))


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
