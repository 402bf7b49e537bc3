"""What a run made of a picture with the weights of each step, and where it looked."""

import numpy as np
import pytest

from tests.training.test_loop import experiment
from tfm_core.inspect.attention.example import look_at_picture
from tfm_core.inspect.attention.pictures import (
    answers_by_step,
    picture_history,
    reads_drawings,
    right_since,
    rollout,
    to_patches,
)
from tfm_core.runs import snapshots
from tfm_core.runs.process.execute import execute
from tfm_core.runs.store import RunStore


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    store = RunStore(tmp_path_factory.mktemp("runs"), recorded=None)
    training = {"steps": 90, "snapshots": 24, "learning_rate": 0.005, "batch_size": 32}
    run = store.create(experiment("vit", "mnist-5000", training=training))
    assert execute(run).state == "finished"
    return run


def picture(run, number=0):
    return run.probe().images[number]


def test_answers_and_maps_are_those_of_the_kept_weights(digits):
    for number in range(3):
        steps, answers = answers_by_step(digits, picture(digits, number))
        assert steps == tuple(digits.weight_steps())
        assert answers.shape == (len(steps), 10)
        np.testing.assert_allclose(answers.sum(-1), 1.0, atol=1e-5)
        now = look_at_picture(digits, picture(digits, number)).probabilities
        np.testing.assert_allclose(answers[-1], now, atol=0.01)
    steps, shares, heads, through_all = picture_history(digits, picture(digits))
    wanted_steps, wanted = answers_by_step(digits, picture(digits))
    assert steps == wanted_steps
    assert len(steps) > 1
    np.testing.assert_allclose(shares, wanted, atol=1e-5)
    example = look_at_picture(digits, picture(digits))
    layers = np.stack(list(example.attention.values()))  # (L, H, T, T)
    is_cls = digits.experiment.has_cls
    n_layers, n_heads = layers.shape[:2]
    side = heads.shape[-1]
    assert heads.shape == (len(steps), n_layers, n_heads, side, side)
    for layer in range(n_layers):
        for head in range(n_heads):
            wanted = to_patches(layers[layer, head], has_cls=is_cls)
            np.testing.assert_allclose(heads[-1, layer, head], wanted, atol=2e-3)
    rolled = to_patches(rollout(list(layers)), has_cls=is_cls)
    np.testing.assert_allclose(through_all[-1], rolled, atol=2e-3)
    run = RunStore(digits.folder.parent, recorded=None).fork(digits.id, steps=100)
    for step in run.weight_steps():
        snapshots.weights_path(run.folder, step).unlink()
    steps, shares, *_maps = picture_history(run, picture(digits))
    assert steps == (90,)
    now = look_at_picture(digits, picture(digits)).probabilities
    np.testing.assert_allclose(shares[0], now, atol=1e-5)


def test_damaged_weights_are_left_out(digits, tmp_path):
    run = RunStore(digits.folder.parent, recorded=None).fork(digits.id, steps=100)
    step, *others = run.weight_steps()
    snapshots.weights_path(run.folder, step).write_bytes(b"nothing")
    snapshots.write_weights(run.folder, others[0], {"head.weight": np.zeros((3, 2), np.float32)})
    assert answers_by_step(run, picture(run))[0] == tuple(others[1:])


def test_a_run_reads_drawings_of_its_shape_if_it_tells_grey_pictures_apart(digits):
    with pytest.raises(ValueError, match="picture"):
        answers_by_step(digits, np.zeros((3, 5, 7), np.uint8))
    with pytest.raises(ValueError, match="trained on sentences"):
        answers_by_step(RunStore().get("recorded-korean"), picture(digits))
    for run, reads in [
        ("digits", True),
        ("korean", False),
        ("captions", False),
        ("sentiment", False),
    ]:
        assert reads_drawings(RunStore().get(f"recorded-{run}").experiment) is reads


def test_a_picture_is_read_from_the_first_step_that_is_right_to_the_end():
    answers = np.eye(10, dtype=np.float32)[[1, 7, 1, 7, 7]]
    assert right_since(((0, 3, 9, 20, 40), answers), 7) == 20
    assert right_since(((0, 3, 9, 20, 40), answers), 1) is None
