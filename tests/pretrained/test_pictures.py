"""Pictures of an opened model: as its preprocessor says, and its classes by their names."""

from __future__ import annotations

import json
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from tfm_core.choices.config.image_tasks import ImageTaskFacts
from tfm_core.data.moving import normalised
from tfm_core.data.opened_folder import Unopenable
from tfm_core.pretrained.pictures import PREPROCESSOR, class_names, photographs, pixels_of

pytestmark = pytest.mark.quick


@pytest.fixture
def says(tmp_path):
    def write(**values):
        (tmp_path / PREPROCESSOR).write_text(json.dumps(values))
        return tmp_path

    return write


PREPROCESSORS = {
    "usual": {},
    "of ImageNet": {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]},
    "scaled to 2": {"rescale_factor": 1 / 127.5, "do_normalize": False},
    "not scaled": {"do_rescale": False, "image_mean": [120.0] * 3, "image_std": [60.0] * 3},
}


@pytest.mark.skipif(find_spec("transformers") is None, reason="Transformers is not installed")
@pytest.mark.parametrize("name", PREPROCESSORS)
def test_pixels_are_scaled_as_by_transformers(name, says):
    import transformers

    from tfm_core.data.torchvision_import import torchvision  # noqa: F401  it imports that: mended

    image = np.random.default_rng(3).integers(0, 256, (3, 14, 14), dtype=np.uint8)
    values = PREPROCESSORS[name] | {"do_resize": False}
    found = pixels_of(says(**values), image_size=14, channels=3)
    theirs = transformers.ViTImageProcessor(**values)(image, return_tensors="pt").pixel_values
    ours = normalised(torch.tensor(image)[None], *map(torch.tensor, (found.mean, found.std)))
    torch.testing.assert_close(ours, theirs.float(), atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize(
    ("values", "mean", "std"),
    [
        ({}, 0.5, 0.5),
        ({"image_mean": [0.25], "image_std": [0.125]}, 0.25, 0.125),
        ({"rescale_factor": 2 / 255, "do_normalize": False}, 0.0, 0.5),
    ],
)
def test_mean_and_deviation_are_of_pixels_from_0_to_1(values, mean, std, says):
    found = pixels_of(says(**values), image_size=14, channels=1)
    assert (found.mean, found.std) == (pytest.approx((mean,)), pytest.approx((std,)))
    assert found.note is None


def test_what_is_assumed_without_a_preprocessor_is_said(tmp_path):
    found = pixels_of(tmp_path, image_size=14, channels=3)
    assert found.mean == found.std == (0.5, 0.5, 0.5)
    assert PREPROCESSOR in str(found.note)


@pytest.mark.parametrize("size", [14, {"height": 14, "width": 14}, {"shortest_edge": 20}])
def test_a_size_that_fits_is_read(size, says):
    assert pixels_of(says(size=size), image_size=14, channels=3)


def test_the_size_is_that_of_the_crop(says):
    folder = says(size=20, do_center_crop=True, crop_size={"height": 14, "width": 14})
    assert pixels_of(folder, image_size=14, channels=3)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"size": 15}, "15 pixels, but the model reads 14"),
        ({"size": {"height": 14, "width": 15}}, "no valid size"),
        ({"size": "14"}, "no valid size"),
        ({"image_mean": [0.5]}, "no valid image_mean"),
        ({"image_mean": ["a", "b", "c"]}, "no valid image_mean"),
        ({"image_std": [0.5, 0.5, 0.0]}, "no valid image_std"),
        ({"rescale_factor": 0}, "no valid rescale_factor"),
        ({"do_normalize": "yes"}, "no valid do_normalize"),
    ],
)
def test_a_wrong_preprocessor_is_refused_in_a_sentence(values, words, says):
    with pytest.raises(Unopenable, match=words):
        pixels_of(says(**values), image_size=14, channels=3)


def test_a_preprocessor_that_is_no_json_is_refused(tmp_path):
    (tmp_path / PREPROCESSOR).write_text("{")
    with pytest.raises(Unopenable, match="cannot be opened"):
        pixels_of(tmp_path, image_size=14, channels=3)


def test_each_class_has_a_name_of_its_own_without_markup():
    labels = ["crane", "crane", "LABEL_2", "**", "a" * 60, "a" * 61]
    names = class_names({"id2label": dict(enumerate_as_text(labels))}, len(labels))
    assert names[:4] == ("crane", "crane 1", "LABEL 2", "3")
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 40


def enumerate_as_text(labels):
    return ((str(number), label) for number, label in enumerate(labels))


def test_classes_without_names_have_numbers():
    assert class_names({}, 3) == ("0", "1", "2")


@pytest.mark.parametrize("given", [{"0": "cat"}, {"0": "cat", "1": 3}, ["cat", "dog"], "cat"])
def test_a_class_without_a_name_among_others_is_refused(given):
    with pytest.raises(Unopenable, match="has no name for class"):
        class_names({"id2label": given}, 2)


@pytest.mark.parametrize("channels", [1, 3])
def test_the_photographs_have_the_size_that_is_read(channels):
    facts = ImageTaskFacts("", "", 24, channels, ("0",), 0, 0, ground="any")
    images = photographs(facts)
    assert images.shape == (4, channels, 24, 24)
    assert len({image.tobytes() for image in images}) == 4
