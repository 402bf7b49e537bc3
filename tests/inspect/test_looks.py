"""A drawing through all weights of a run: its answers, and where every head looked."""

from __future__ import annotations

import numpy as np
import pytest

from tests.training.test_loop import experiment
from tfm_core.inspect.attention.explanations import rollout, to_patches
from tfm_core.inspect.attention.own_example import look_at_picture
from tfm_core.inspect.progress.pictures import looks, readings, reads_drawings
from tfm_core.runs.process.execute import execute
from tfm_core.runs.record.weights import weights_path
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Run:
    store = RunStore(tmp_path_factory.mktemp("runs"), recorded=None)
    training = {"steps": 40, "snapshots": 12, "learning_rate": 0.02, "batch_size": 32}
    run = store.create(experiment("vit", "mnist-5000", training=training))
    assert execute(run).state == "finished"
    return run


def picture(run: Run) -> np.ndarray:
    images = run.probe().images
    assert images is not None
    return np.asarray(images[4])


def test_the_answers_are_those_of_the_kept_weights(digits: Run) -> None:
    found = looks(digits, picture(digits))
    steps, shares = readings(digits, picture(digits))
    assert found.steps == steps
    assert len(steps) > 1
    np.testing.assert_allclose(found.shares, shares, atol=1e-5)


def test_the_maps_are_what_the_classifier_takes_from_each_patch(digits: Run) -> None:
    found, example = looks(digits, picture(digits)), look_at_picture(digits, picture(digits))
    layers = np.stack(list(example.attention.values()))  # (L, H, T, T)
    is_cls = digits.experiment.has_cls
    n_layers, n_heads = layers.shape[:2]
    side = found.heads.shape[-1]
    assert found.heads.shape == (len(found.steps), n_layers, n_heads, side, side)
    for layer in range(n_layers):
        for head in range(n_heads):
            wanted = to_patches(layers[layer, head], has_cls=is_cls)
            np.testing.assert_allclose(found.heads[-1, layer, head], wanted, atol=2e-3)
    rolled = to_patches(rollout(list(layers)), has_cls=is_cls)
    np.testing.assert_allclose(found.rollout[-1], rolled, atol=2e-3)


def test_without_kept_weights_the_checkpoint_alone_answers(digits: Run) -> None:
    run = RunStore(digits.folder.parent, recorded=None).fork(digits.id, steps=50)
    for step in run.weight_steps():
        weights_path(run.folder, step).unlink()
    found = looks(run, picture(digits))
    assert found.steps == (40,)
    now = look_at_picture(digits, picture(digits)).probabilities
    np.testing.assert_allclose(found.shares[0], now, atol=1e-5)


def test_a_run_without_any_weights_and_one_of_words_say_so(digits: Run) -> None:
    empty = RunStore(digits.folder.parent, recorded=None).create(digits.experiment)
    with pytest.raises(ValueError, match="no checkpoint"):
        looks(empty, picture(digits))
    with pytest.raises(ValueError, match="learned sentences"):
        looks(RunStore().get("recorded-korean"), picture(digits))


@pytest.mark.parametrize(
    ("run", "reads"),
    [("digits", True), ("korean", False), ("captions", False), ("sentiment", False)],
)
def test_a_run_that_tells_grey_pictures_apart_reads_drawings(run: str, reads: bool) -> None:
    assert reads_drawings(RunStore().get(f"recorded-{run}").experiment) is reads
