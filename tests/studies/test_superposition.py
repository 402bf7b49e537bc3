"""Superposition: the loss against samples, what seeds learn, its shape, and when it comes."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tfm_core.studies import superposition as toy
from tfm_core.studies.phenomenon import first, landings, over_runs, since
from tfm_core.studies.superposition import GAPS, IRREGULAR, ideal, is_kept, shape_of

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
    training = toy.ToyTraining(0)
    training()
    return training


@pytest.fixture(scope="module")
def best():
    return toy.best()


def test_a_seed_is_one_training_to_a_shape_that_sparseness_decides(trained):
    again = toy.train(0)
    for step, vectors, biases in trained.snapshots[:9]:
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
    two, none = toy.loss_of_keeping(2), toy.loss_of_keeping(0)
    assert trained.shares[0] == pytest.approx((two / none)[0], rel=5e-3)
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
    training = toy.ToyTraining(0)
    training.snapshots = [(10 * k, one, np.zeros((S, N))) for k, one in enumerate(vectors)]
    training.finish(1.0)
    return training


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


def at(*degrees: float, length: float = 1.0) -> np.ndarray:
    angles = np.radians(degrees)
    return length * np.column_stack([np.cos(angles), np.sin(angles)])


def turned(vectors: np.ndarray, degrees: float) -> np.ndarray:
    (c, s), _sine = at(degrees, 0)
    return vectors @ np.array([[c, s], [-s, c]])


@pytest.mark.parametrize("name", GAPS)
@pytest.mark.parametrize("degrees", [0, 17, 123, 200, 359])
def test_an_ideal_shape_is_found_turned_mirrored_and_in_any_order(name, degrees):
    vectors = turned(ideal(name, 5), degrees)
    rng = np.random.default_rng(degrees)
    assert shape_of(vectors) == name
    assert shape_of(vectors * [1, -1]) == name
    assert shape_of(rng.permutation(vectors)) == name
    assert shape_of(vectors * np.array([1.1, 0.9, 1, 1.2, 0.8])[:, None]) == name


def test_each_angle_has_its_tolerance_and_a_short_vector_does_not_count():
    assert shape_of(at(0, 90 + 15 - 0.1)) == "right-angle"
    assert shape_of(at(0, 90 + 15 + 0.1)) == IRREGULAR
    assert shape_of(at(0, 72, 144, 216, 288 + 15 - 0.1)) == "pentagon"
    assert shape_of(at(0, 72, 144, 216, 288 + 15 + 0.1)) == IRREGULAR
    short = at(45, length=0.69)  # the page says 0.7
    assert is_kept(at(45, length=0.71)).all()
    assert is_kept(np.concatenate([at(0, 90), short])).tolist() == [True, True, False]
    assert shape_of(np.concatenate([at(0, 90), short])) == "right-angle"
    assert shape_of(short) == "nothing"


@pytest.mark.parametrize(
    "degrees", [(0, 40), (0, 72, 144, 216), (0, 90, 180, 270, 315), (0, 1, 2, 3, 4), (0, 120, 200)]
)
def test_vectors_of_no_regular_shape_are_called_so(degrees):
    assert shape_of(at(*degrees)) == IRREGULAR


STEPS = np.array([0, 10, 20, 30, 50], float)
FLOORS = (1.1, 1.0, 0.8)


def test_what_ends_does_not_hold_and_a_staircase_lands_on_its_floors() -> None:
    is_there = np.array([False, True, False, True, True])
    assert first(STEPS, is_there) == 10
    assert since(STEPS, is_there) == 30
    never = np.zeros(5, bool)
    assert first(STEPS, never) is None
    assert since(STEPS, never) is None
    assert since(STEPS, np.array([True, True, True, True, False])) is None
    assert since(STEPS, np.array([False, False, False, False, True])) is None
    assert first(np.empty(0), np.empty(0, bool)) is None
    assert landings(STEPS, np.array([1.2, 1.01, 1.0, 0.85, 0.81]), FLOORS) == (10, 30)
    assert over_runs([40, None, 60]) == "50 ± 14 (2 / 3)"
    assert over_runs([1040]) == "1,040"
    assert over_runs([None]) == "–"
