"""Five features in two dimensions: the loss against formulas and samples, and what seeds learn."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tfm_core.inspect.discover import superposition as toy
from tfm_core.inspect.discover.shapes import GAPS, ideal, is_kept

S, N = toy.N_SPARSITIES, toy.N_FEATURES


def made(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of a shape at every sparsity; features that are not kept are answered by the mean."""
    vectors = np.repeat(ideal(name, N)[None], S, 0)
    return vectors, np.where(is_kept(vectors), 0.0, toy.DENSITIES[:, None] / 2)


@pytest.mark.parametrize(("name", "n"), [("nothing", 0), ("one", 1), ("right-angle", 2)])
def test_the_loss_of_features_kept_alone_is_the_variance_of_the_others(name, n):
    found = toy.losses(*made(name))
    np.testing.assert_allclose(found, toy.loss_of_keeping(n), rtol=1e-5)
    density = toy.DENSITIES[3]
    rest = sum(0.9**k for k in range(n, N))
    assert found[3] == pytest.approx(rest * (density / 3 - (density / 2) ** 2), rel=1e-5)


def test_outputs_and_the_loss_of_a_pentagon_are_those_of_two_tied_layers():
    vectors, biases = made("pentagon")
    biases = biases - 0.1
    found = toy.losses(vectors, biases)
    rng = np.random.default_rng(1)
    for k in (0, 5, 9):
        there = rng.random((400_000, N)) < toy.DENSITIES[k]
        x = rng.random((400_000, N)) * there
        answered = np.maximum(x @ vectors[k] @ vectors[k].T + biases[k], 0)
        sampled = ((answered - x) ** 2 * toy.IMPORTANCE).sum(-1)
        error = sampled.std() / np.sqrt(len(x))
        assert abs(found[k] - sampled.mean()) < 5 * error + 0.005 * found[k]
    vectors, biases, x = torch.randn(N, 2), torch.randn(N), torch.rand(7, N)
    layer = nn.Linear(N, 2, bias=False)
    with torch.no_grad():
        layer.weight.copy_(vectors.T)
        expected = F.relu(F.linear(layer(x), layer.weight.T, biases))
    found = toy.responses(vectors.numpy(), biases.numpy(), x.numpy())
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-6)


@pytest.fixture(scope="module")
def trained():
    return toy.trained(0)


@pytest.fixture(scope="module")
def best():
    return toy.best()


def test_a_seed_is_one_training_to_a_shape_that_sparseness_decides(trained):
    again = toy.train(0)
    for step, vectors, biases in zip(
        trained.steps[:9], trained.vectors, trained.biases, strict=False
    ):
        same_step, same_vectors, same_biases = next(again)
        assert same_step == step
        np.testing.assert_array_equal(same_vectors, vectors)
        np.testing.assert_array_equal(same_biases, biases)
    _step, other, _biases = next(toy.train(1))
    assert not np.allclose(trained.vectors[0], other)
    assert trained.formed(0)[0] == "right-angle"
    assert is_kept(trained.vectors[-1, 0]).tolist() == [True, True, False, False, False]
    name, step = trained.formed(S - 1)
    assert name == "pentagon"
    assert step is not None
    assert 0 < step < toy.STEPS
    assert trained.shares[0] == pytest.approx(toy.share_of_keeping(2)[0], rel=5e-3)
    assert trained.shares[-1] < 0.25 * trained.shares[0]


def test_no_shape_beats_the_best_which_keep_more_features_the_sparser_they_are(trained, best):
    shares, shapes = best
    assert (trained.shares >= 0.99 * shares).all()
    for name in GAPS:
        assert (toy.losses(*made(name)) / toy.loss_of_keeping(0) >= 0.99 * shares).all()
    n = [len(GAPS[name]) for name in shapes]
    assert n == sorted(n)
    assert (n[0], n[-1]) == (2, 5)
    assert (np.diff(shares) < 0).all()


def held(*names: str) -> toy.ToyTraining:
    """A training with given shapes at its snapshots, at every sparsity."""
    vectors = np.array([made(name)[0] for name in names])
    return toy.so_far(
        0,
        [(10 * k, one, np.zeros((S, N))) for k, one in enumerate(vectors)],
        1.0,
    )


def test_a_shape_formed_when_it_came_to_stay_and_seeds_are_counted_by_it():
    assert held("nothing", "pentagon", "square", "pentagon", "pentagon").formed(3) == (
        "pentagon",
        30,
    )
    assert held("nothing", "square").formed(0) == ("square", 10)
    known = (np.full(S, 0.1), ("pentagon",) * S)
    one, two, other = (
        held("nothing", "pentagon"),
        held("nothing", "nothing", "pentagon"),
        held("square"),
    )
    row = toy.found((one, other, two), known).iloc[9]
    assert row["shapes"] == {"pentagon": 2, "square": 1}
    assert row["steps"] == [10, 20]
    shares = [one.shares[9], other.shares[9], two.shares[9]]
    assert row["mean"] == pytest.approx(np.mean(shares))
    assert row["sd"] == pytest.approx(np.std(shares, ddof=1))
    assert (row["best"], row["best_share"]) == ("pentagon", 0.1)
    assert toy.found((one,), known)["sd"][0] == 0


def test_features_reach_only_those_that_share_their_direction_and_erase_each_other():
    vectors, biases = ideal("square", N), np.zeros(N)
    alone = toy.responses(vectors, biases, np.eye(N))
    np.testing.assert_allclose(alone[:4, :4], np.eye(4), atol=1e-6)  # the opposite one is cut
    vectors = ideal("pentagon", N)
    alone = toy.responses(vectors, biases, np.eye(N))
    assert alone[0] == pytest.approx([1, np.cos(np.radians(72)), 0, 0, np.cos(np.radians(72))],
                                     abs=1e-6)  # fmt: skip
    vectors, biases = ideal("pentagon", N), np.full(N, -0.1)

    def error(*there):
        given = toy.features(there, 1.0)
        return toy.squared_error(given, toy.responses(vectors, biases, given))

    assert error(0, 2) > 5 * (error(0) + error(2))
    assert error(0, 2) > 5 * error(0, 1)
    assert error() == 0
