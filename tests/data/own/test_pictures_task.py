"""A set of pictures is kept, found again, and learned from like any task."""

import numpy as np
import pytest
import torch

from tests.data.own.files import packed, png, stripes
from tfm_core.config import OwnPicturesTaskConfig, from_json, to_json
from tfm_core.config.own_pictures import EXAMPLE
from tfm_core.data.load import load
from tfm_core.data.own import sets
from tfm_core.data.own.build_examples import SHAPES, as_zip, shapes
from tfm_core.data.own.kinds import proposals, task_of
from tfm_core.data.own.pictures import PictureForm, Pictures
from tfm_core.data.own.pictures_set import (
    FILE,
    Split,
    duplicates,
    findings,
    ground_of,
    pictures_of,
    prepare,
    renamed,
    split_parts,
    without_duplicates,
)
from tfm_core.data.own.pictures_zip import read_pictures
from tfm_core.data.own.sets import SetDamaged, SetMissing
from tfm_core.data.own_picture import picture_to_input

SMALL = PictureForm(size=16)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path))
    return tmp_path


def bars(n=30):
    return read_pictures([("bars.zip", packed(stripes(n)))], SMALL)


def kept(**split):
    return sets.write(prepare(bars(), "Bars", Split(**split)))


def test_a_set_comes_back_as_it_was_kept(runs):
    own = kept()
    (found, _parts), read = pictures_of(own), bars()
    np.testing.assert_array_equal(found.images, read.images)
    np.testing.assert_array_equal(found.labels, read.labels)
    assert own.counts == {"train": 52, "validation": 0, "test": 8}
    assert own.details == {
        "size": 16,
        "channels": 1,
        "ground": "dark",
        "classes": ["lying", "standing"],
    }


def test_the_test_is_drawn_from_each_class_alike_and_by_the_seed_alone():
    read = bars()
    one, again, other = (split_parts(read, Split(seed=seed)) for seed in (0, 0, 1))
    assert (one == again).all()
    assert not (one == other).all()
    assert np.bincount(read.labels[one == 2]).tolist() == [4, 4]


def test_splits_that_folders_name_are_kept(runs):
    files = {
        path.replace("bars", part): content
        for part, n in (("train", 12), ("val", 5), ("test", 3))
        for path, content in stripes(n, seed=n).items()
    }
    read = read_pictures([("bars.zip", packed(files))], SMALL)
    own = sets.write(prepare(read, "Bars", Split(by="file")))
    assert own.counts == {"train": 24, "validation": 10, "test": 6}
    task = task_of(own)
    one, other = (load(task, seed=seed) for seed in (0, 1))
    assert [len(part) for part in (one.train, one.validation, one.test)] == [24, 10, 6]
    assert torch.equal(one.validation.images, other.validation.images)


def test_a_dropped_duplicate_is_counted():
    read = bars(20)
    read.images[7] = read.images[3]
    left = without_duplicates(read)
    assert len(left) + left.n_left_out == len(read)
    assert left.left_out == ("Duplicates dropped: 1.",)


def of(labels, images=None, names=("cat", "dog")):
    """Return pictures with these labels, all different unless they are given."""
    labels = np.array(labels, np.int64)
    if images is None:
        images = np.random.default_rng(3).integers(0, 256, (len(labels), 1, 16, 16))
    named = tuple(f"{n}.png" for n in range(len(labels)))
    return Pictures(images.astype(np.uint8), labels, names, named)


UNTRAINED = np.array([0] * 20 + [1] * 20 + [2] * 3)
ALL_SAME = np.zeros((30, 1, 16, 16))
FINDINGS = {
    "a sound set": (of([0, 1] * 20), []),
    "one class alone": (
        of([0] * 30, names=("cat",)),
        [("problem", "All 30 pictures are in one class, “cat”")],
    ),
    "pictures that are all the same": (
        of([0, 1] * 15, ALL_SAME),
        [("problem", "All 30 pictures are the same")],
    ),
    "uneven classes": (
        of([0] * 45 + [1] * 5),
        [("warning", "45 “cat”, 5 “dog”. Always answering “cat” is right 90% of the time")],
    ),
    "classes that only the test has": (
        of(UNTRAINED, names=("a", "b", "c")),
        [
            ("warning", "Only the test has “c”"),
            ("warning", "20 “a”, 3 “c”"),
            ("warning", "The test has no pictures of “a”, “b”"),
        ],
    ),
}


@pytest.mark.parametrize("case", FINDINGS)
def test_what_is_wrong_with_a_set_is_said(case):
    pictures, expected = FINDINGS[case]
    parts = np.arange(len(pictures)) % 5 // 4 * 2
    if case == "classes that only the test has":
        parts = np.where(UNTRAINED == 2, 2, 0)
    found = findings(pictures, parts.astype(np.int8))
    assert [one.level for one in found] == [level for level, _words in expected]
    for one, (_level, words) in zip(found, expected, strict=True):
        assert words in one.sentence


def test_duplicates_are_counted_within_across_and_against_the_labels():
    images = np.random.default_rng(0).integers(0, 256, (40, 1, 16, 16))
    images[30] = images[31] = images[0]
    images[5] = images[4]
    labels, parts = np.arange(40) % 2, np.zeros(40, np.int8)
    parts[30:] = 2
    found = duplicates(of(labels, images), parts)
    assert (found.n_again, found.n_across, found.n_contradicting) == (3, 2, 5)
    assert found.example == ("0.png", "30.png")


def three(n=10):
    """Return pictures of three classes, ``n`` of each."""
    rng = np.random.default_rng(1)
    files = {
        f"{name}/{at}.png": png(rng.integers(0, 256, (16, 16)).astype(np.uint8))
        for name in ("cat", "dog", "kitten")
        for at in range(n)
    }
    return read_pictures([("pets.zip", packed(files))], SMALL)


def test_classes_of_one_name_are_merged_and_one_without_is_left_out_and_said():
    read = three()
    found = renamed(read, ["Z cat", "", " Z  cat "])
    assert found.class_names == ("Z cat",)
    assert len(found) == 20
    assert (found.n_left_out, found.left_out) == (
        10,
        ("dog: This class has no name.",),
    )
    expected = [name for name in read.names if not name.startswith("dog")]
    assert [*found.names] == expected
    with pytest.raises(ValueError, match="Name at least two"):
        renamed(read, ["", " ", ""])


def test_a_renamed_class_is_kept_under_its_name_in_the_order_of_names(runs):
    read = renamed(three(), ["개", "고양이 2", "고양이 10"])
    assert read.class_names == ("개", "고양이 2", "고양이 10")
    read = renamed(three(), ["b", "a", "c"])
    own = sets.write(prepare(read, "Pets", Split()))
    assert own.details["classes"] == ["a", "b", "c"]
    np.testing.assert_array_equal(read.labels, np.array([1, 0, 2])[three().labels])
    assert task_of(own).classes == "a|b|c"


def test_a_name_that_no_class_can_have_is_changed_and_said():
    found = renamed(three(), ["**cat**", "x" * 90, "c"])
    assert set(found.class_names) == {"cat", "x" * 40, "c"}
    assert [note for note in found.notes if "“**cat**”" in note]


def test_a_set_is_loaded_as_any_task_and_the_seed_leaves_the_test_alone(runs):
    task = task_of(kept())
    one, again, other = (load(task, seed=seed) for seed in (0, 0, 1))
    assert [len(part) for part in (one.train, one.validation, one.test)] == [44, 8, 8]
    assert one.train.images.shape == (44, 1, 16, 16)
    assert torch.equal(one.train.images, again.train.images)
    assert torch.equal(one.test.images, other.test.images)
    assert not torch.equal(one.validation.images, other.validation.images)


def test_a_set_that_is_not_here_is_one_sentence(runs):
    task = OwnPicturesTaskConfig(data="0" * 20)
    with pytest.raises(SetMissing, match="is not here"):
        load(task, seed=0)


def test_a_damaged_set_is_one_sentence(runs):
    own = kept()
    (own.folder / FILE).write_bytes(b"no tensors")
    with pytest.raises(SetDamaged, match="“Bars” is damaged"):
        load(task_of(own), seed=0)


def test_a_configuration_that_says_something_else_than_its_set_is_refused(runs):
    task = task_of(kept()).replace(classes="lying|standing|leaning")
    with pytest.raises(ValueError, match=r"has classes lying\|standing, not"):
        load(task, seed=0)


def test_classes_that_cannot_be_are_refused():
    for classes in ["one", "", "a|a", "a|", "a|**b**", "|".join(map(str, range(300)))]:
        with pytest.raises(ValueError, match="needs 2 to 256 classes"):
            OwnPicturesTaskConfig(classes=classes)


def test_the_example_is_what_the_settings_begin_with():
    (example,) = [own for own in sets.examples() if own.kind == "pictures"]
    assert example.id == EXAMPLE
    assert task_of(example) == OwnPicturesTaskConfig()
    np.testing.assert_array_equal(pictures_of(example)[0].images, shapes().images)


def test_the_template_can_be_taken_in_as_it_is():
    found = read_pictures([("shapes.zip", as_zip(shapes()))], PictureForm())
    assert found.class_names == SHAPES
    assert (np.sort(found.images.sum((1, 2, 3))) == np.sort(shapes().images.sum((1, 2, 3)))).all()


def test_a_name_with_markup_is_a_plain_label():
    task = OwnPicturesTaskConfig(called="**x** [y](http://z)")
    assert task.facts.label == "Pictures, x y(http//z)"


def test_coloured_pictures_come_back_in_their_colours(runs):
    values = np.random.default_rng(0).integers(0, 256, (30, 16, 16, 3)).astype(np.uint8)
    files = {f"{at % 2}/{at:02}.png": png(one) for at, one in enumerate(values)}
    read = read_pictures([("noise.zip", packed(files))], PictureForm(size=16, is_grey=False))
    found, _parts = pictures_of(sets.write(prepare(read, "Noise", Split())))
    np.testing.assert_array_equal(found.images, values.transpose(0, 3, 1, 2))


@pytest.mark.parametrize(
    ("ground", "said"),
    [("dark", "light on dark"), ("bright", "dark on light"), ("any", None)],
)
def test_a_picture_of_ones_own_is_inverted_only_to_suit_the_set(ground, said):
    border = {"dark": 0, "bright": 255, "any": 127}[ground]
    assert ground_of(np.full((20, 1, 16, 16), border, np.uint8)) == ground
    facts = OwnPicturesTaskConfig(ground=ground).facts
    for brightness in (0, 255):
        picture = np.full((28, 28), brightness, np.uint8)
        picture[9:15, 9:15] = 255 - brightness
        read, notes = picture_to_input(picture, facts)
        suits = ground == "any" or (brightness > 127) == (ground == "bright")
        np.testing.assert_array_equal(read[0], picture if suits else 255 - picture)
        assert [said in note for note in notes] == ([] if suits else [True])


def test_proposals_are_experiments_that_differ_and_survive_a_file(runs):
    found = proposals(kept())
    steps = [each.experiment.training.steps for each in found]
    assert steps == sorted(steps)
    assert len({to_json(each.experiment) for each in found}) == len(found) == 3
    for each in found:
        assert from_json(to_json(each.experiment)) == each.experiment
