"""What ``tfm_core/choices/presets.py`` claims, measured.

``python -m benchmarks.presets [NAME …] [--seeds 1]``, or all with five seeds: ``python -m
benchmarks presets``. Each preset is trained as it is; its CPU-seconds and what it reaches on
validation and test are printed as soon as they are known, with the two lines that belong into its
entry. The per cent in ``reaches`` become those of the mean, rounded down, or a range those of
the lowest and the highest seed; other words stay, for a person to look at.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.accuracy import QUICK_STEPS, changed, mnist_missing
from benchmarks.goals import REPORTED_SEEDS
from benchmarks.report import Skipped, Table
from benchmarks.scores import official_test
from tfm_core.choices.presets import PRESETS, Preset
from tfm_core.training.events import Measured, Step
from tfm_core.training.loop import build, train

OFFICIAL = ("vit-digits",)
"""Presets that claim the official test set though they learn from a part of MNIST."""
_PER_CENT = re.compile(r"(?P<low>\d+(?:\.\d+)? to )?\d+(?:\.(?P<digits>\d+))?%")


@dataclass(frozen=True, slots=True)
class Claim:
    """What one training of a preset came to. official: per cent of the official test set."""

    seconds: float
    validation: Measured
    test: Measured
    official: float | None = None

    def per_cent(self) -> float:
        """Return the per cent that ``reaches`` speaks of."""
        return _right(self.test) if self.official is None else self.official


def _right(measured: Measured) -> float:
    whole = measured.sequence_accuracy
    return 100 * (measured.accuracy if whole is None else whole)


def measure(name: str, *, seed: int, steps: int | None = None) -> Claim:
    """Train a preset once, with fewer ``steps`` if given."""
    experiment = PRESETS[name].experiment.replace(seed=seed)
    trainer = build(changed(experiment, {"training": {"steps": steps}} if steps else {}))
    seconds, found = 0.0, {}
    begin = time.process_time()
    for event in train(trainer):
        if isinstance(event, Step):  # the last one comes right before the test measurement
            seconds = time.process_time() - begin
        elif isinstance(event, Measured):
            found[event.split] = event
    official = official_test(trainer) if name in OFFICIAL and not mnist_missing() else None
    return Claim(seconds, found["validation"], found["test"], official)


def entry(preset: Preset, claims: Sequence[Claim]) -> str:
    """Return the lines of the preset's entry that say what was measured."""
    reached = [claim.per_cent() for claim in claims]

    def measured(found: re.Match[str]) -> str:
        digits = len(found["digits"] or "")
        if not found["low"]:
            return f"{_rounded(statistics.mean(reached), digits, math.floor)}%"
        low, high = min(reached), max(reached)
        return f"{_rounded(low, digits, math.floor)} to {_rounded(high, digits, math.ceil)}%"

    reaches = _PER_CENT.sub(measured, preset.reaches, count=1)
    seconds = round(statistics.mean(claim.seconds for claim in claims))
    return f'N_("{reaches}"),\nseconds={seconds},'


def _rounded(value: float, digits: int, whole: Callable[[float], int]) -> str:
    return f"{whole(round(value * 10**digits, 6)) / 10**digits:.{digits}f}"


def tables(
    *, quick: bool, names: Sequence[str] = tuple(PRESETS), seeds: Sequence[int] = REPORTED_SEEDS
) -> Iterator[Table | Skipped]:
    """Train presets, or say why one is left out; a table each."""
    why = mnist_missing()
    for name in names:
        preset = PRESETS[name]
        if why and preset.experiment.task.name == "mnist":
            yield Skipped(name, why)
            continue
        seeds = seeds[:1] if quick else seeds
        steps = QUICK_STEPS if quick else None
        claims = [measure(name, seed=seed, steps=steps) for seed in seeds]
        rows = [["CPU-seconds", _spread([claim.seconds for claim in claims], 1)]]
        for words, events in (
            ("validation", [claim.validation for claim in claims]),
            ("test", [claim.test for claim in claims]),
        ):
            rows.append([f"{words}, %", _spread([_right(one) for one in events], 2)])
            rows.append([f"{words}, loss", _spread([one.loss for one in events], 4)])
        official = [claim.official for claim in claims if claim.official is not None]
        if official:
            rows.append(["official test set, %", _spread(official, 2)])
        yield Table(
            f"{name}: said are {preset.seconds} s and “{preset.reaches}”",
            ["", f"mean of {len(claims)} (lowest to highest)"],
            rows,
            [f"```python\n{entry(preset, claims)}\n```"],
        )


def _spread(values: Sequence[float], digits: int) -> str:
    mean, low, high = statistics.mean(values), min(values), max(values)
    return f"{mean:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables of the requested presets; all by default."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.presets", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(PRESETS)}")
    parser.add_argument(
        "--seeds", type=int, choices=range(1, 6), default=5, help="how many (default: 5)"
    )
    parser.add_argument("--quick", action="store_true", help="a few steps of each: does it work")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in PRESETS:
            parser.error(f"there is no preset {name!r}; there are {', '.join(PRESETS)}")
    from benchmarks.timing import describe, prepare

    prepare()
    print(describe(), flush=True)
    names = options.names or tuple(PRESETS)
    for table in tables(quick=options.quick, names=names, seeds=REPORTED_SEEDS[: options.seeds]):
        print(f"\n{table}", flush=True)


if __name__ == "__main__":
    main()
