"""What a shape is called: on vectors made by hand, and where there is none."""

import numpy as np
import pytest

from tfm_core.inspect.discover.shapes import GAPS, IRREGULAR, ideal, is_kept, shape_of


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
