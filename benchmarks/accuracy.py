"""What the presets reach on unseen examples, and the CPU-seconds of their training.

Counted are the CPU-seconds of training itself, with its metrics and validation; left out are
making the data and the last measurement on the test split. Settings are chosen with
``TUNING_SEEDS``; measured here are the seeds that the goal names, the mean of them, or the worst
where it says so. The goals, and what they change of a preset, are in
``benchmarks.goals``; of those that train the same, each seed is trained and tested once.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from benchmarks import peer_learning
from benchmarks.goals import LEARNING, REPORTED_SEEDS, Changes, Goal, Score, Training
from benchmarks.peer_learning import RACES
from benchmarks.report import Figure, Skipped, Table
from benchmarks.scores import SCORES, official_split
from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.data.image_data import DataUnavailable
from tfm_core.training.events import Measured, Step
from tfm_core.training.loop import build, train

QUICK_STEPS = 5


@dataclass(frozen=True, slots=True)
class Reached:
    """What one training reached, and in how many CPU-seconds."""

    score: float
    seconds: float


def experiment_of(training: Training) -> Experiment:
    """Return the experiment of a goal. Raises ValueError, in a sentence."""
    return changed(PRESETS[training.preset].experiment, training.changes)


def changed(experiment: Experiment, changes: Changes) -> Experiment:
    """Return an experiment with other settings in some of its sections."""
    sections = {
        section: getattr(experiment, section).replace(**settings).model_dump()
        for section, settings in changes.items()
    }
    return experiment.replace(**sections)


def reach(experiment: Experiment, *, score: Score, seed: int, steps: int | None = None) -> Reached:
    """Train once, with fewer ``steps`` if given."""
    trainer = build(
        changed(experiment, {"training": {"steps": steps}} if steps else {}).replace(seed=seed)
    )
    seconds, test = 0.0, None
    begin = time.process_time()
    for event in train(trainer):
        if isinstance(event, Step):  # the last one comes right before the test measurement
            seconds = time.process_time() - begin
        elif isinstance(event, Measured) and event.split == "test":
            test = event
    assert test is not None, "a goal is scored on the test split: final_test must be on"
    return Reached(SCORES[score](trainer, test), seconds)


def tables(*, quick: bool, only: Collection[str] = ()) -> Iterator[Table | Skipped]:
    """Train for every goal, or say why one is left out; a table each, as soon as it is known.

    Then peers learn for as long. only: goals by name, and what they are compared with; all if none.
    """
    why = mnist_missing()
    known: dict[tuple[str, Score, tuple[int, ...]], list[Reached]] = {}
    ours: dict[str, Figure] = {}
    races = [race for race in RACES if not only or race.names() & set(only)]
    needed = {*only, *(goal for race in races for goal, _beside in race.goals.values())}
    for goal in LEARNING:
        if only and goal.name not in needed:
            continue
        training = goal.training
        assert training is not None
        experiment = experiment_of(training)
        if why and (training.score == "official" or experiment.task.name == "mnist"):
            yield Skipped(goal.name, why)
            continue
        seeds = training.seeds[:1] if quick else training.seeds
        key = (experiment.model_dump_json(), training.score, seeds)
        if key not in known:
            known[key] = [
                reach(
                    experiment,
                    score=training.score,
                    seed=seed,
                    steps=QUICK_STEPS if quick else None,
                )
                for seed in seeds
            ]
        ours[goal.name] = figure(goal, known[key], seeds)
        yield _table(goal, experiment, known[key], seeds, quick=quick)
    for race in races:
        if all(goal in ours for goal, _beside in race.goals.values()):
            seeds = REPORTED_SEEDS[:1] if quick else REPORTED_SEEDS
            yield from peer_learning.tables(race, ours, seeds=seeds, quick=quick)
        else:
            yield Skipped(f"{race.preset} beside peers", str(why))


def figure(goal: Goal, reached: Sequence[Reached], seeds: Sequence[int]) -> Figure:
    """Return the mean of the seeds, or the worst score and the longest training of them."""
    assert goal.training is not None
    scores, seconds = [one.score for one in reached], [one.seconds for one in reached]
    if not goal.training.by_worst:
        return Figure(statistics.mean(scores), statistics.mean(seconds), seeds_in_words(seeds))
    worst = min(scores) if goal.target.at_least else max(scores)
    return Figure(worst, max(seconds), seeds_in_words(seeds))


def seeds_in_words(seeds: Sequence[int]) -> str:
    """Return consecutive seeds as text."""
    return f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])


def mnist_missing() -> str | None:
    """Return why the official MNIST cannot be had, or None; nothing is downloaded unasked."""
    if not os.environ.get("TFM_DATA_DIR"):
        return "it needs the full MNIST; name the folder it lies in, or shall lie in: TFM_DATA_DIR."
    try:
        official_split()
    except DataUnavailable as error:
        return str(error)
    return None


def _table(
    goal: Goal,
    experiment: Experiment,
    reached: Sequence[Reached],
    seeds: Sequence[int],
    *,
    quick: bool,
) -> Table:
    one = figure(goal, reached, seeds)
    unit = goal.target.unit
    digits = 3 if unit.endswith("nats") else 2
    scores, seconds = [one.score for one in reached], [one.seconds for one in reached]
    met = goal.is_met(one.value, one.seconds)
    steps = QUICK_STEPS if quick else experiment.trained.steps
    verdict = f"{QUICK_STEPS} steps don't tell" if quick else "met" if met else "missed"
    return Table(
        f"{goal.name}: {goal.what}, mean of seed{'s' * (len(reached) > 1)} {one.seeds}",
        ["steps", "parameters", "CPU-seconds", "reached", "wanted"],
        [
            [
                f"{steps:,}",
                f"{_n_parameters(experiment):,}",
                _spread(seconds, "", 1),
                _spread(scores, unit, digits),
                f"{goal}, {verdict}",
            ]
        ],
        reached={goal.name: one},
    )


def _spread(values: Sequence[float], unit: str, digits: int) -> str:
    mean, low, high = (
        f"{value:.{digits}f}" for value in (statistics.mean(values), min(values), max(values))
    )
    return f"{mean}{unit} ({low} to {high})"


def _n_parameters(experiment: Experiment) -> int:
    from tfm_core.training.estimate import estimate

    return estimate(experiment).n_parameters
