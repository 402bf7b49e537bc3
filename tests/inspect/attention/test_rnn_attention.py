"""The contest of three attentions: what is measured of it."""

import numpy as np
import pytest

from tests.inspect.constructed import constructed_run
from tfm_core.inspect.attention import alignment
from tfm_core.studies.races import of_attention


@pytest.mark.parametrize("name", alignment.rnn_models())
def test_maps_are_cut_to_their_sentences_and_the_best_head_is_scored(store, name):
    run = constructed_run(store, of_attention("numbers").experiments[name])
    found = alignment.cross_attention_at(run)
    assert found.step == 11
    assert not found.is_scored  # the constructed examples have no true sources
    for weights, names, truth in zip(found.weights, found.names, found.truth, strict=True):
        assert weights.shape == (run.experiment.model.n_heads, *names.shape)
        assert truth.shape == names.shape
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-2)
    assert len(alignment.probe_sentences(run)) == len(found.weights) == 3


@pytest.mark.wide
def test_a_trained_contest_is_scored_against_the_truth(store):
    """Trains the small RNN for real: its attention comes to lie on the true words."""
    from tfm_core.probe.snapshot import probe_of, take
    from tfm_core.runs.record.snapshots import write, write_probe
    from tfm_core.training.loop import build, train

    experiment = of_attention("reverse", steps=250).experiments["additive"]
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
    untrained = alignment.cross_attention_at(run)
    for _event in train(trainer):
        pass
    write(run.folder, take(trainer))
    trained = alignment.cross_attention_at(run)
    assert trained.step == 250
    assert untrained.share == pytest.approx(untrained.even, abs=0.05)
    assert trained.share > untrained.share + 0.15
    assert trained.aer < min(0.4, untrained.aer)


def test_the_three_models_are_as_wide_and_the_feed_forward_layers_twice_as_wide():
    one, many = (alignment.rnn_models()[name] for name in ("one-head", "many-heads"))
    assert (one.n_heads, one.d_model, one.d_ff) == (1, 64, 128)
    assert (many.n_heads, many.d_model, many.d_ff) == (4, 64, 128)
    assert alignment.rnn_models()["additive"].d_model == 64
