"""The contest of three attentions: what belongs together, and what is measured of it."""

import numpy as np
import pytest

from tests.inspect.constructed import constructed_run, small
from tfm_core.inspect.attention import rnn_attention


def test_the_racers_of_every_task_differ_in_their_model_alone_and_have_no_positions():
    racers = rnn_attention.racers("english-korean", steps=700, seed=3)
    assert tuple(racers) == rnn_attention.RACERS
    rest = [racer.model_dump(exclude={"model"}) for racer in racers.values()]
    assert rest[0] == rest[1] == rest[2]
    assert [racer.model.d_model for racer in racers.values()] == [rnn_attention.WIDTH] * 3
    assert [racer.model.n_heads for racer in racers.values()] == [1, 1, rnn_attention.HEADS]
    from tfm_core.inspect.positions.race import racers

    with pytest.raises(ValueError, match="has no positions"):
        racers(small(rnn_attention.racers("copy", steps=100)["additive"]), steps=100)


@pytest.mark.parametrize("task", rnn_attention.tasks())
def test_every_offered_task_suits_all_three(task):
    assert len(rnn_attention.racers(task, steps=100)) == 3


def test_the_newest_runs_of_one_task_training_and_seed_make_a_contest(store):
    for seed in (0, 1):
        for racer in rnn_attention.racers("copy", steps=100, seed=seed).values():
            store.create(racer, name="One of three")
    alone = rnn_attention.racers("sort", steps=100)["additive"]
    store.create(alone, name="Alone")
    wider = alone.replace(model={**alone.model.model_dump(), "d_model": 66})
    store.create(wider, name="Another width")
    found = rnn_attention.contests(store.list())
    seeds = [{run.experiment.seed for run in contest.values()} for contest in found]
    assert sorted(map(list, seeds)) == [[0], [1]]
    assert [tuple(contest) for contest in found] == [rnn_attention.RACERS] * 2
    last = store.create(rnn_attention.racers("copy", steps=100, seed=1)["one-head"])
    newest = [contest["one-head"].id for contest in rnn_attention.contests(store.list())]
    assert last.id in newest
    assert len(newest) == 2


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


@pytest.mark.wide
def test_a_trained_contest_is_scored_against_the_truth(store):
    """Trains the small RNN for real: its attention comes to lie on the true words."""
    from tfm_core.probe.snapshot import probe_of, take
    from tfm_core.runs.record.snapshots import write, write_probe
    from tfm_core.training.loop import build, train

    experiment = rnn_attention.racers("reverse", steps=250)["additive"]
    experiment = experiment.replace(
        task={
            **experiment.task.model_dump(),
            "size": 5,
            "n_train": 2000,
            "n_validation": 20,
            "n_test": 20,
        }
    )
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


def test_the_three_models_are_as_wide_and_the_feed_forward_layers_twice_as_wide():
    one, many = (rnn_attention.models()[name] for name in ("one-head", "many-heads"))
    assert (one.n_heads, one.d_model, one.d_ff) == (1, 64, 128)
    assert (many.n_heads, many.d_model, many.d_ff) == (4, 64, 128)
    assert rnn_attention.models()["additive"].d_model == 64
