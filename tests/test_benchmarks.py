"""The benchmarks compare like with like: equal outputs, equal pixels, equal work."""

from __future__ import annotations

import dataclasses
import itertools
import re
import time
from pathlib import Path

import pytest
import torch

from benchmarks import __main__ as command
from benchmarks import (
    anatomy,
    batching,
    beginner,
    engine,
    in_sight,
    page_speed,
    peer_learning,
    peer_translator,
    peer_vits,
    peers,
    presets,
)
from benchmarks.accuracy import experiment_of, reach
from benchmarks.goals import GOALS, LEARNING, PEERS
from benchmarks.report import Table, Target
from benchmarks.timing import TimeRange, measure, ratio, training_step
from tfm_core.config import ImageTaskConfig
from tfm_core.data.image_data import load_images
from tfm_core.inspect.speed.loops import cut_into_patches
from tfm_core.layers.patches import patchify
from tfm_core.presets import PRESETS


def test_the_loops_of_a_first_attempt_give_our_outputs():
    images, _ = beginner.batch(3)
    looped, ours = beginner.models()
    with torch.no_grad():
        torch.testing.assert_close(ours(images), looped(images), rtol=1e-4, atol=1e-5)


def test_the_loops_of_a_first_attempt_learn_what_ours_does_in_a_step():
    images, labels = beginner.batch(5)
    looped, ours = beginner.models()
    losses = [
        [step() for _ in range(2)]
        for step in (training_step(model, (images,), labels) for model in (looped, ours))
    ]
    # our attention may also learn between slices, so the second loss is near, not equal
    assert losses[0][0] == pytest.approx(losses[1][0], abs=1e-5)
    assert losses[0][1] == pytest.approx(losses[1][1], abs=0.05)


def test_both_ways_of_cutting_give_the_same_patches():
    images = torch.randn(2, 3, 6, 10, generator=torch.Generator().manual_seed(0))
    assert torch.equal(cut_into_patches(images, 2), patchify(images, 2))


@pytest.mark.parametrize("name", peer_vits.PEERS)
def test_a_peer_is_the_same_function_of_as_many_parameters(name: str):
    if not peer_vits.is_installed(name):
        pytest.skip(f"{name} is not installed; requirements-bench.txt names it")
    torch.manual_seed(0)
    ours = peer_vits.ours(3)
    for parameter in ours.parameters():  # no zeros or ones that would hide a missing copy
        torch.nn.init.normal_(parameter, std=0.2)
    peer = peer_vits.PEERS[name].equal(ours, 3)
    images = torch.randn(2, 1, 28, 28)
    assert peers.n_parameters(peer) == peers.n_parameters(ours)
    with torch.no_grad():
        torch.testing.assert_close(
            peer.eval()(images), ours.eval()(images), rtol=1e-4, atol=peers.MARGIN
        )


@pytest.mark.parametrize("name", peer_vits.PEERS)
def test_a_peer_that_learns_has_its_own_weights(name: str):
    if not peer_vits.is_installed(name):
        pytest.skip(f"{name} is not installed; requirements-bench.txt names it")
    torch.manual_seed(0)
    one, other = (peer_vits.PEERS[name].build(2) for _ in range(2))
    images = torch.randn(2, 1, 28, 28)
    assert one(images).shape == (2, 10)
    assert any(
        not torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True)
    )


def test_a_peer_learns_for_as_long_as_the_clock_says():
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


def test_a_preset_is_measured_and_its_entry_written():
    claim = presets.measure("copy", seed=0, steps=2)
    assert claim.seconds > 0
    assert claim.validation.step == claim.test.step == 2
    claims = [dataclasses.replace(claim, seconds=seconds, official=98.96) for seconds in (7.2, 8.4)]
    said = dataclasses.replace(PRESETS["copy"], reaches="97 % of it, 3 % are lost")
    assert presets.entry(said, claims) == 'N_("98 % of it, 3 % are lost"),\nseconds=8,'
    finer = dataclasses.replace(said, reaches="about 97.8 %")
    assert presets.entry(finer, claims).startswith('N_("about 98.9 %")')
    spread = [dataclasses.replace(claim, official=found) for found in (98.45, 98.2, 99.0)]
    ranged = dataclasses.replace(said, reaches="90 to 91 % of them")
    assert presets.entry(ranged, spread).startswith('N_("98 to 99 % of them")')


def test_a_race_names_goals():
    for race in peer_learning.RACES:
        assert race.names() <= set(PEERS)
        for seconds, (ours, _beside) in race.goals.items():
            training = GOALS[ours].training
            assert training is not None
            assert (training.preset, training.seconds) == (race.preset, seconds)


def test_torchs_transformer_is_the_same_function_of_as_many_parameters():
    torch.manual_seed(0)
    ours = peer_translator.ours()
    for parameter in ours.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    peer = peer_translator.TorchTranslator(ours)
    src, tgt_in, _ = peer_translator.batch(5, 7, 11)
    assert (src == peer_translator.PAD).any()
    assert (tgt_in == peer_translator.PAD).any()
    assert peers.n_parameters(peer) == peers.n_parameters(ours)
    torch.testing.assert_close(peer(src, tgt_in), ours(src, tgt_in), rtol=1e-4, atol=peers.MARGIN)


def test_the_data_loader_and_the_device_give_the_same_pixels():
    split = load_images(ImageTaskConfig(), seed=0).train
    order = torch.randperm(len(split), generator=torch.Generator().manual_seed(0))[:200]
    pairs = zip(batching.loader(split, order), batching.taken(split, order), strict=True)
    for (images, labels), (bytes_, ours) in pairs:
        assert torch.equal(images, batching.as_floats(bytes_))
        assert torch.equal(labels, ours)


@pytest.mark.wide
@pytest.mark.parametrize("name", engine.PRESET_NAMES)
def test_the_engine_and_the_bare_loop_do_the_same_work(name: str, tmp_path: Path):
    experiment = engine.shortened(PRESETS[name].experiment, 27)
    found = engine.run_pair(experiment, tmp_path, {"CPU": time.process_time})
    turns = found["CPU"]
    assert len(turns.engine) == len(turns.bare) == len(turns.measured) == 2


def test_a_goal_is_trained_and_scored():
    training = GOALS["copy"].training
    assert training is not None
    one = reach(experiment_of(training), score="whole", seed=0, steps=2)
    assert 0 <= one.score <= 100
    assert one.seconds > 0


def test_every_goal_of_learning_names_an_experiment_that_is_tested():
    for goal in LEARNING:
        assert goal.training is not None
        experiment = experiment_of(goal.training)
        assert experiment.training.final_test
        for section, settings in goal.training.changes.items():
            config = getattr(experiment, section)
            assert {name: getattr(config, name) for name in settings} == settings, goal.name


def test_a_round_runs_there_and_back_and_divides_by_the_calls():
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


def test_a_target_says_whether_it_is_met():
    assert Target(10, "x").verdict(10.5) == "met"
    assert Target(10, "x").verdict(9.5) == "missed"
    assert Target(5, " %", at_least=False).verdict(4.9) == "met"


def test_a_table_is_markdown():
    table = Table("Title", ["a", "b"], [["1", "2"]], ["Note."])
    assert str(table) == "### Title\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nNote."


def test_an_unknown_benchmark_is_named_with_those_there_are(capsys):
    with pytest.raises(SystemExit):
        command.main(["speed"])
    assert "there is no benchmark 'speed'; there are accuracy" in capsys.readouterr().err


def test_every_wait_for_a_page_is_a_goal():
    waits = {f"to {place.title}" for place in page_speed.PLACES}
    waits |= {"cold start", "point on stage", "restart"}
    assert waits == {name for name, goal in GOALS.items() if goal.module == "page_speed"}
    changes = {case.name for case in anatomy.CASES}
    changes |= {f"{what} of {name}" for what in ("table", "memory") for name in anatomy.SIZES}
    assert changes == {name for name, goal in GOALS.items() if goal.module == "anatomy"}


def test_the_parts_that_are_looked_for_on_first_screens_are_drawn_by_the_pages():
    """A part that was renamed would be absent for ever, and nothing would say so."""
    folder = Path(__file__).resolve().parents[1] / "pages"
    written = "".join(
        file.read_text(encoding="utf-8") for kind in ("*.py", "*.js") for file in folder.rglob(kind)
    )
    for parts in in_sight.PARTS.values():
        for selector in parts.values():
            for name in re.findall(r"(?:st-key-|\.(?!st-))([a-z][a-z-]+)", selector):
                assert f'"{name}' in written, selector
