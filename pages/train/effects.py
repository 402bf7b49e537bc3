"""The effect of a change on parameters, memory per step and time, before and after.

Computed on another thread; empty until then.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pages.i18n import _
from pages.ui import show
from pages.ui.runs import run_time
from tfm_core.config import Experiment

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
