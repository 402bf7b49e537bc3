"""The state of Compare in its address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from pages.i18n import _
from pages.ui.address import parameters
from pages.ui.address.parameters import Choice, Choices, Flag, Number, Option, Parameter, Unfit
from pages.ui.runs import comparison
from tfm_core.inspect.compare.curves import AXES, METRICS
from tfm_core.probe.labels import KINDS
from tfm_core.runs.run import ID

MAX_RUNS = 60


@dataclass(frozen=True)
class RunIds(Parameter[tuple[str, ...]]):
    """Run ids, separated by commas; the page checks that they exist."""

    def parse(self, text: str) -> tuple[str, ...]:
        """Parse ids, each once. Raises Unfit."""
        ids = list(dict.fromkeys(text.split(",")))
        valid = tuple(one for one in ids if ID.fullmatch(one))
        if len(valid) < len(ids) or len(valid) > MAX_RUNS:
            rule = _("up to {most} run ids, separated by commas", most=MAX_RUNS)
            raise Unfit(rule, valid[:MAX_RUNS])
        return valid

    def fits(self, state: object) -> bool:
        return isinstance(state, list) and all(isinstance(one, str) for one in state)

    def text(self, value: tuple[str, ...]) -> str:
        return ",".join(value)

    def words(self, value: tuple[str, ...]) -> str:
        return self.text(value) or _("the default")

    def state(self, value: tuple[str, ...]) -> object:
        return list(value)

    def value(self, state: object) -> tuple[str, ...]:
        return tuple(cast(list[str], state))


RUNS = RunIds(comparison.RUNS_QUERY, first=(), key="compare-runs")
METRIC = Choices(
    "metrics",
    first=("loss", "validation-accuracy"),
    key="compare-metrics",
    names=tuple(METRICS),
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
"""The step of answers and attention; LAST is the last common one."""
