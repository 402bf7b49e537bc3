"""What the page that compares runs shows, in its address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from pages.i18n import _
from pages.ui import comparison, parameters, view_link
from pages.ui.parameters import Choice, Choices, Flag, Number, Option, Parameter, Unfit
from tfm_core.inspect.compare.curves import AXES, METRICS
from tfm_core.probe.labels import KINDS
from tfm_core.runs.run import ID

MAX_RUNS = 60


@dataclass(frozen=True)
class RunIds(Parameter[tuple[str, ...]]):
    """The ids of some runs, parted by commas; whether there are such runs the page says."""

    def parse(self, text: str) -> tuple[str, ...]:
        """Return the ids, each once. Raises Unfit, with those that can be one."""
        asked = list(dict.fromkeys(text.split(",")))
        found = tuple(one for one in asked if ID.fullmatch(one))
        if len(found) < len(asked) or len(found) > MAX_RUNS:
            rule = _("the ids of at most {most} runs, parted by commas", most=MAX_RUNS)
            raise Unfit(rule, found[:MAX_RUNS])
        return found

    def fits(self, state: object) -> bool:
        """Return whether it is a list of ids."""
        return isinstance(state, list) and all(isinstance(one, str) for one in state)

    def text(self, value: tuple[str, ...]) -> str:
        """Return the ids, parted by commas."""
        return ",".join(value)

    def words(self, value: tuple[str, ...]) -> str:
        """Return the ids, or what is shown without any."""
        return self.text(value) or _("what the page begins with")

    def state(self, value: tuple[str, ...]) -> object:
        """Return the ids as a multiselect holds them."""
        return list(value)

    def value(self, state: object) -> tuple[str, ...]:
        """Return the ids of a multiselect."""
        return tuple(cast(list[str], state))


RUNS = RunIds(comparison.RUNS_QUERY, first=(), key="compare-runs")
METRIC = Choices(
    "metrics",
    first=("loss", "validation-accuracy"),
    key="compare-metrics",
    names=tuple(METRICS),
    labels={name: metric.label for name, metric in METRICS.items()},
    maximum=3,
)
AXIS = parameters.named(
    "axis", {str(name): label for name, label in AXES.items()}, key="compare-axis"
)
WINDOW = Option("smooth", first=10, key="compare-smooth", options=(1, 5, 10, 20, 50, 100, 200))
LOG_X = Flag("log-x", first=False, key="compare-log-x")
LOG_Y = Flag("log-y", first=False, key="compare-log-y")
BANDS = Flag("bands", first=True, key="compare-bands")
KIND = Choice("kind", first="", key="compare-kind", names=tuple(KINDS))
EXAMPLE = Number("example", first=0, key="compare-example", low=0, high=99, offset=1)
LAST = -1
AT = Number("at", first=LAST, key="compare-at", low=LAST, high=1_000_000)
"""The step of answers and attention; LAST for the last that the runs have in common."""


@dataclass(frozen=True, slots=True)
class CompareView:
    """What the page shows."""

    runs: tuple[str, ...] = view_link.linked(RUNS)
    metrics: tuple[str, ...] = view_link.linked(METRIC)
    axis: str = view_link.linked(AXIS)
    window: float = view_link.linked(WINDOW)
    log_x: bool = view_link.linked(LOG_X)
    log_y: bool = view_link.linked(LOG_Y)
    bands: bool = view_link.linked(BANDS)
    kind: str = view_link.linked(KIND)
    example: int = view_link.linked(EXAMPLE)
    at: int = view_link.linked(AT)
