"""The benchmarks compare like with like: equal outputs, equal pixels, equal work."""

import dataclasses
import itertools
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from benchmarks import __main__ as command
from benchmarks import (
    beginner,
    engine,
    in_sight,
    peer_learning,
    peer_vits,
    presets,
)
from benchmarks.accuracy import experiment_of, reach
from benchmarks.beginner_vit import cut_into_patches
from benchmarks.goals import GOALS, LEARNING, PEERS
from benchmarks.report import Target
from benchmarks.timing import TimeRange, measure, ratio, training_step
from pages.app.navigation.page_table import PAGES
from tests.nightly import only_nightly
from tfm_core.choices.presets import PRESETS
from tfm_core.layers.patches import patchify

ROOT = Path(__file__).resolve().parents[1]


def test_the_loops_and_cuts_of_a_first_attempt_give_and_learn_ours():
    images, _ = beginner.batch(3)
    looped, ours = beginner.models()
    with torch.no_grad():
        torch.testing.assert_close(ours(images), looped(images), rtol=1e-4, atol=1e-5)
    images, labels = beginner.batch(5)
    looped, ours = beginner.models()
    losses = [
        [step() for _ in range(2)]
        for step in (training_step(model, (images,), labels) for model in (looped, ours))
    ]
    # our attention may also learn between slices, so the second loss is near, not equal
    assert losses[0][0] == pytest.approx(losses[1][0], abs=1e-5)
    assert losses[0][1] == pytest.approx(losses[1][1], abs=0.05)
    images = torch.randn(2, 3, 6, 10, generator=torch.Generator().manual_seed(0))
    assert torch.equal(cut_into_patches(images, 2), patchify(images, 2))


@pytest.mark.parametrize("name", peer_vits.PEERS)
def test_a_peer_that_learns_has_its_own_weights(name: str):
    if not peer_vits.is_installed(name):
        pytest.skip(f"{name} is not installed; requirements-bench.txt names it")
    torch.manual_seed(0)
    one, other = (peer_vits.build(name, 2) for _ in range(2))
    images = torch.randn(2, 1, 28, 28)
    assert one(images).shape == (2, 10)
    assert any(
        not torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True)
    )


def test_peers_presets_and_goals_are_trained_and_scored():
    race = next(race for race in peer_learning.RACES if race.preset == "translate")
    trainer = peer_learning.trainer_for(race, seed=0)
    model = race.learners[0].make(trainer)
    before = [one.detach().clone() for one in model.parameters()]
    ticks = itertools.count()
    steps = peer_learning.learn(model, trainer, 0.001, seconds=5, clock=lambda: float(next(ticks)))
    assert steps == 4  # the clock is read once at the start and once before each step
    changed = [not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True)]
    assert all(changed)
    assert 0 <= peer_learning.measured(model, trainer, "validation") <= 100
    claim = presets.measure("copy", seed=0, steps=2)
    assert claim.seconds > 0
    assert claim.validation.step == claim.test.step == 2
    claims = [dataclasses.replace(claim, seconds=seconds, official=98.96) for seconds in (7.2, 8.4)]
    said = dataclasses.replace(PRESETS["copy"], reaches="97% of it, 3% are lost")
    assert presets.entry(said, claims) == 'N_("98% of it, 3% are lost"),\nseconds=8,'
    finer = dataclasses.replace(said, reaches="about 97.8%")
    assert presets.entry(finer, claims).startswith('N_("about 98.9%")')
    spread = [dataclasses.replace(claim, official=found) for found in (98.45, 98.2, 99.0)]
    ranged = dataclasses.replace(said, reaches="90 to 91% of them")
    assert presets.entry(ranged, spread).startswith('N_("98 to 99% of them")')
    training = GOALS["copy"].training
    assert training is not None
    one = reach(experiment_of(training), score="whole", seed=0, steps=2)
    assert 0 <= one.score <= 100
    assert one.seconds > 0


def test_goals_of_races_learning_and_pages_are_those_there_are():
    for race in peer_learning.RACES:
        assert race.names() <= set(PEERS)
        for seconds, (ours, _beside) in race.goals.items():
            training = GOALS[ours].training
            assert training is not None
            assert (training.preset, training.seconds) == (race.preset, seconds)
    for goal in LEARNING:
        assert goal.training is not None
        experiment = experiment_of(goal.training)
        assert experiment.training.final_test
        for section, settings in goal.training.changes.items():
            config = getattr(experiment, section)
            assert {name: getattr(config, name) for name in settings} == settings, goal.name
    assert in_sight.SUBJECTS.keys() <= PAGES.keys()
    waits = {"cold start", "first visit", "change of page", "point on stage", "restart"}
    assert waits == {name for name, goal in GOALS.items() if goal.module == "page_speed"}


@pytest.mark.wide
@pytest.mark.parametrize("name", engine.PRESET_NAMES)
def test_the_engine_and_the_bare_loop_do_the_same_work(name: str, tmp_path: Path):
    experiment = engine.shortened(PRESETS[name].experiment, 27)
    found = engine.run_pair(experiment, tmp_path, {"CPU": time.process_time})
    turns = found["CPU"]
    assert len(turns.engine) == len(turns.bare) == len(turns.measured) == 2


def test_a_round_divides_by_its_calls_and_a_target_says_whether_it_is_met():
    calls, now = [], [0.0]

    def contender(name: str, seconds: float):
        def call() -> None:
            calls.append(name)
            now[0] += seconds

        return call

    contenders = {"a": contender("a", 1.0), "b": contender("b", 3.0)}
    taken = measure(contenders, rounds=2, warmup=0, repeats={"a": 2, "b": 1}, clock=lambda: now[0])
    assert "".join(calls) == 2 * "aabbaa"
    assert taken == {"a": [1.0, 1.0], "b": [3.0, 3.0]}
    assert ratio(taken["b"], taken["a"]) == TimeRange(3.0, 3.0, 3.0)
    assert Target(10, "x").verdict(10.5) == "met"
    assert Target(10, "x").verdict(9.5) == "missed"
    assert Target(5, " %", at_least=False).verdict(4.9) == "met"


def test_an_unknown_benchmark_is_named_with_those_there_are(capsys):
    with pytest.raises(SystemExit):
        command.main(["speed"])
    assert "there is no benchmark 'speed'; there are accuracy" in capsys.readouterr().err


@pytest.mark.wide
@only_nightly
@pytest.mark.parametrize("name", [*command.BENCHMARKS, *command.ON_REQUEST])
def test_every_benchmark_works_in_its_quick_form(name: str, tmp_path: Path):
    words = [name, "--quick", "--results", str(tmp_path / "RESULTS.md")]
    command_line = [sys.executable, "-m", "benchmarks", *words]
    done = subprocess.run(command_line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
