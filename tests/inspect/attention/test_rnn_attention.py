"""The contest of three attentions: what belongs together, and what is measured of it."""

import numpy as np
import pytest

from tests.inspect.constructed import constructed_run, small
from tfm_core.inspect.attention import rnn_attention
from tfm_core.inspect.speed.step_times import step_time
from tfm_core.runs.store import RunStore


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path, recorded=None)


def test_the_racers_differ_in_their_model_alone():
    racers = rnn_attention.racers("english-korean", steps=700, seed=3)
    assert tuple(racers) == rnn_attention.RACERS
    rest = [racer.model_dump(exclude={"model"}) for racer in racers.values()]
    assert rest[0] == rest[1] == rest[2]
    assert [racer.model.d_model for racer in racers.values()] == [rnn_attention.WIDTH] * 3
    assert [racer.model.n_heads for racer in racers.values()] == [1, 1, rnn_attention.HEADS]


@pytest.mark.parametrize("task", rnn_attention.tasks())
def test_every_offered_task_suits_all_three(task):
    assert len(rnn_attention.racers(task, steps=100)) == 3


def test_runs_of_one_task_training_and_seed_make_a_contest(store):
    for seed in (0, 1):
        for racer in rnn_attention.racers("copy", steps=100, seed=seed).values():
            store.create(racer, name="One of three")
    alone = rnn_attention.racers("sort", steps=100)["additive"]
    store.create(alone, name="Alone")
    wider = alone.replace(model={**alone.model.model_dump(), "d_model": 66})
    store.create(wider, name="Another width")
    found = rnn_attention.contests(store.list())
    assert {contest.experiment.seed for contest in found} == {0, 1}
    assert [tuple(contest.runs) for contest in found] == [rnn_attention.RACERS] * 2


def test_the_newest_run_of_a_model_counts(store):
    racers = rnn_attention.racers("copy", steps=100)
    for racer in (*racers.values(), racers["one-head"]):
        last = store.create(racer, name="One of three")
    (contest,) = rnn_attention.contests(store.list())
    assert contest.runs["one-head"].id == last.id


@pytest.mark.parametrize("name", rnn_attention.RACERS)
def test_maps_are_cut_to_their_sentences_and_the_best_head_is_scored(store, name):
    run = constructed_run(store, rnn_attention.racers("numbers", steps=100)[name])
    found = rnn_attention.cross_attention_at(run)
    assert found.step == 11
    assert not found.is_scored  # the constructed examples have no true sources
    for weights, names, truth in zip(found.weights, found.names, found.truth, strict=True):
        assert weights.shape == (run.experiment.model.n_heads, *names.shape)
        assert truth.shape == names.shape
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-2)
    assert len(rnn_attention.sentences(run)) == len(found.weights) == 3


def test_a_run_without_snapshots_has_nothing_to_look_at(store):
    run = store.create(rnn_attention.racers("copy", steps=100)["additive"], name="Waiting")
    assert rnn_attention.cross_attention_at(run) is None
    assert rnn_attention.sentences(run) == []


@pytest.mark.wide
def test_a_trained_contest_is_scored_against_the_truth(store):
    """Trains the small RNN for real: its attention comes to lie on the true words."""
    from tfm_core.probe.snapshot import probe_of, take
    from tfm_core.runs.record.snapshots import write, write_probe
    from tfm_core.training.loop import build, train

    experiment = rnn_attention.racers("reverse", steps=250)["additive"]
    experiment = experiment.replace(
        task={**experiment.task.model_dump(), "size": 5, "n_train": 2000, "n_validation": 20,
              "n_test": 20},
    )  # fmt: skip
    trainer = build(experiment)
    run = store.create(experiment, name="Trained")
    write_probe(run.folder, probe_of(trainer))
    write(run.folder, take(trainer))
    untrained = rnn_attention.cross_attention_at(run)
    for _event in train(trainer):
        pass
    write(run.folder, take(trainer))
    trained = rnn_attention.cross_attention_at(run)
    assert trained.step == 250
    assert untrained.share == pytest.approx(untrained.even, abs=0.05)
    assert trained.share > untrained.share + 0.15
    assert trained.aer < min(0.4, untrained.aer)


def test_a_step_of_the_rnn_grows_with_the_length():
    """Sixteen times as many steps in a row take at least four times as long."""
    additive = rnn_attention.models()["additive"]
    short, long = (step_time(additive, length, batch=2) for length in (4, 64))
    assert long > 4 * short > 0


def test_an_rnn_has_no_positions_to_race():
    from tfm_core.inspect.positions.race import racers

    with pytest.raises(ValueError, match="has no positions"):
        racers(small(rnn_attention.racers("copy", steps=100)["additive"]), steps=100)
