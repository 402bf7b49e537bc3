"""The comparisons by name, what one consists of, and the report of its measurement; torch-free.

pandas is imported where it is needed: the measuring process makes no table.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from tfm_core.choices.config import Experiment
from tfm_core.choices.variants.training import PRECISIONS
from tfm_core.inspect.tables import Column, Columns
from tfm_core.runs.store import RECORDED
from tfm_core.sentences import N_, words

if TYPE_CHECKING:
    import pandas as pd

_BENCH = "tfm_core.inspect.speed.bench"
PRESET = "translate"
"""The model that was measured."""
DEVICE = "cpu"
MEASURED = ("attention", "checkpointing")
"""The recorded comparisons: they count CPU-seconds, which a busy machine hardly changes."""
RECORDED_TIMES = RECORDED.parent / "step-times.json"
LENGTHS = (8, 16, 32, 64, 128)
"""Tokens of the sequences whose training steps are timed, and how many of them at once."""
BATCH = 16
SPREADS = Columns(
    median=Column(form=".4g"),
    low=Column(N_("fastest round"), ".4g"),
    high=Column(N_("slowest round"), ".4g"),
    size=Column(N_("saved for backward (MiB)"), ".3f"),
    bytes=Column(N_("bytes"), ","),
)


@dataclass(frozen=True, slots=True)
class BenchmarkComparison:
    """One way of making training fast; its words are those of ``choices/comparisons.md``.

    sides: name -> label, the reference first. code: label -> ``module:function`` to show. x_title:
    the axis of a curve, empty for a plain pair. seconds: roughly how long it takes.
    """

    label: str
    help: str
    sides: Mapping[str, str]
    code: Mapping[str, str]
    x_title: str = ""
    seconds: int = 15
    needs_blocks: bool = True

    @classmethod
    def of(cls, name: str, *sides: str, code: Mapping[str, str], **facts: Any) -> Self:
        """Return a comparison; a side without words is a precision."""
        texts = words(f"choices/comparisons/{name}")
        labels = {
            side: texts.pop(side) if side in texts else PRECISIONS[side].label for side in sides
        }
        return cls(sides=labels, code=code, **texts, **facts)

    def why_not(self, experiment: Experiment) -> str | None:
        """Return why it makes no sense for an experiment; None where it does."""
        if self.needs_blocks and not experiment.model.has_blocks:
            return N_("This comparison needs a Transformer. Choose one.")
        return None


COMPARISONS = {
    "attention": BenchmarkComparison.of(
        "attention",
        *("explicit", "einsum", "math", "fused"),
        code={
            "Explicit": f"{_BENCH}:explicit_attention",
            N_("Two einsums"): f"{_BENCH}:einsum_attention",
            N_("Fused"): "tfm_core.layers.attention:fused_attention",
        },
    ),
    "batch": BenchmarkComparison.of(
        "batch",
        "batch",
        code={"One by one": f"{_BENCH}:one_by_one", "A batch": f"{_BENCH}:one_batch"},
        seconds=20,
        needs_blocks=False,
    ),
    "checkpointing": BenchmarkComparison.of(
        "checkpointing",
        *("plain", "checkpointed", "bf16", "fp16", "both"),
        code={
            "Everything kept": f"{_BENCH}:plain_pass",
            "Blocks recomputed": f"{_BENCH}:checkpointed",
            "Autocast": f"{_BENCH}:autocast_pass",
        },
    ),
}


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A median with the lowest and the highest of the rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> TimeRange:
        """Summarise at least one value."""
        return cls(statistics.median(values), min(values), max(values))

    def show(self, unit: str = "", digits: int = 2) -> str:
        """Return the median and, in brackets, the range."""
        median, low, high = (f"{value:.{digits}f}" for value in (self.median, self.low, self.high))
        return N_("{median}{unit} ({low} to {high})", median=median, unit=unit, low=low, high=high)


def ratio(above: Sequence[float], below: Sequence[float]) -> TimeRange:
    """Return how many times as long ``above`` takes as ``below``, compared within each round."""
    return TimeRange.of([a / b for a, b in zip(above, below, strict=True)])


Equality = Mapping[str, Any]
"""what: which results of a side; difference: the largest absolute one from the reference's results;
tolerance: the rounding error allowed."""


def is_equal(one: Equality) -> bool:
    """Return whether a difference is within its tolerance; nan is not."""
    return bool(one["difference"] <= one["tolerance"])


@dataclass(slots=True)
class BenchmarkCase:
    """One workload of a comparison, and how long it took.

    part: which work. sides: by name, what does it once; a report knows only the names. x: its place
    on the axis of a curve, or None. n_bytes: saved for the backward pass, by side; facts: other
    numbers and words. seconds: per call of each side, one number a round.
    """

    part: str
    sides: Mapping[str, Callable[[], object] | None]
    equalities: Sequence[Equality] = ()
    x: float | None = None
    n_bytes: Mapping[str, int] = field(default_factory=dict)
    facts: Mapping[str, float | str] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        """The side that others are compared with."""
        return next(iter(self.sides))

    def message(self) -> dict[str, Any]:
        """Return the message to a report before the timing starts."""
        return {
            "part": self.part,
            "sides": list(self.sides),
            "x": self.x,
            "equalities": list(self.equalities),
            "n_bytes": dict(self.n_bytes),
            "facts": dict(self.facts),
        }

    def time(self, side: str) -> TimeRange:
        """Return the seconds per call of a side that was timed."""
        return TimeRange.of(self.seconds[side])

    def gain(self, side: str) -> TimeRange:
        """Return how many times as long the reference takes as this side.

        median: the quotient of both times, as shown. low, high: of the quotients within a round.
        """
        paired = ratio(self.seconds[self.reference], self.seconds[side])
        quotient = self.time(self.reference).median / self.time(side).median
        return TimeRange(quotient, paired.low, paired.high)

    def times(self) -> pd.DataFrame:
        """Return a row a side: side, median, low, high (ms a call), gain, size (MiB), bytes."""
        import pandas as pd

        bytes_saved = [self.n_bytes.get(side, 0) for side in self.sides]
        spreads = [asdict(self.time(side)) for side in self.sides]
        table = 1000 * pd.DataFrame(spreads)
        gains = [self.gain(side).median for side in self.sides]
        sizes = [count / 2**20 for count in bytes_saved]
        return SPREADS.table(
            table.assign(side=[*self.sides], gain=gains, size=sizes, bytes=bytes_saved)
        )


@dataclass(slots=True)
class SpeedReport:
    """A whole measurement; ``done`` and ``total`` count its parts, ``problem`` is an error."""

    name: str
    device: str
    clock: str
    cases: list[BenchmarkCase] = field(default_factory=list)
    done: int = 0
    total: int = 0
    doing: str = ""
    peak_bytes: int = 0
    is_complete: bool = False
    problem: str | None = None

    @property
    def timed(self) -> list[BenchmarkCase]:
        """The cases of which every side has been timed."""
        return [case for case in self.cases if case.seconds.keys() == set(case.sides)]

    def take(self, line: str) -> None:
        """Take in a line of JSON; any other line is output of something else."""
        try:
            message = json.loads(line)
            kind = message.pop("kind")
        except (ValueError, TypeError, KeyError, AttributeError):
            return
        if kind == "case":
            sides = dict.fromkeys(message.pop("sides"))
            self.cases.append(BenchmarkCase(sides=sides, **message))
        elif kind == "round":
            for side, seconds in message["seconds"].items():
                self.cases[-1].seconds.setdefault(side, []).append(seconds)
        elif kind == "progress":
            self.done, self.total, self.doing = message["done"], message["total"], message["words"]
        elif kind == "end":
            self.is_complete, self.peak_bytes = True, message["peak_bytes"]
        elif kind == "failed":
            self.problem = message["sentence"]

    def curve(self) -> pd.DataFrame:
        """Return a row a timed case: x, the spread of its milliseconds, and of examples a second.

        The slowest round is the lowest rate, so low and high change places.
        """
        rows = []
        for case in self.timed:
            x, seconds = case.x or 0.0, case.time(case.reference)
            row = {"x": x} | {end: 1000 * value for end, value in asdict(seconds).items()}
            rows.append(
                row
                | {"rate": x / seconds.median}
                | {"rate_low": x / seconds.high, "rate_high": x / seconds.low}
            )
        return SPREADS.table(rows)


def recorded(name: str) -> tuple[SpeedReport, str, str] | None:
    """Return what was recorded of a comparison, the PyTorch and the day; None where nothing was."""
    path = RECORDED.parent / f"speed-{name}.jsonl"
    if not path.is_file():
        return None
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    message = json.loads(first)
    report = SpeedReport(name, DEVICE, message["clock"])
    for line in lines:
        report.take(line)
    return report, message["torch"], message["day"]


def recorded_times() -> tuple[pd.DataFrame, str, str]:
    """Return the step times that come with the app, the PyTorch, and the day.

    Seconds by length (rows) and model (columns).
    """
    import pandas as pd

    kept = json.loads(RECORDED_TIMES.read_text(encoding="utf-8"))
    return pd.DataFrame(kept["seconds"], index=kept["lengths"]), kept["torch"], kept["day"]
