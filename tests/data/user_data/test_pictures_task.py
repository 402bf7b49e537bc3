"""A set of pictures is kept, found again, and learned from like any task."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.data.user_data.files import (
    labels_of,
    packed,
    pictures_report,
    png,
    read_pictures,
    reasons,
    sentences,
    splits_of,
    stripes,
)
from tfm_core.choices.config import OwnPicturesTaskConfig, from_json, to_json
from tfm_core.choices.config.image_tasks import EXAMPLE
from tfm_core.data.build import SHAPES, shapes
from tfm_core.data.tasks import load
from tfm_core.data.user_data import sets
from tfm_core.data.user_data.kinds import proposals, report_of, task_of
from tfm_core.data.user_data.pictures import (
    PictureForm,
    Split,
    arranged,
    as_zip,
    ground_of,
    has_duplicates,
    images_of,
    prepare,
)
from tfm_core.data.user_data.uploads import n_lines
from tfm_core.data.user_picture import picture_to_input

SMALL = PictureForm(size=16)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path))
    return tmp_path


def bars(n=30):
    return read_pictures([("bars.zip", packed(stripes(n)))], SMALL)


def kept(**split):
    return sets.write(prepare(arranged(bars(), Split(**split)), name="Bars"))


@pytest.mark.parametrize("is_grey", [True, False])
def test_a_set_comes_back_as_it_was_kept(runs, is_grey):
    values = np.random.default_rng(0).integers(0, 256, (30, 16, 16, 3)).astype(np.uint8)
    files = {f"{at % 2}/{at:02}.png": png(one) for at, one in enumerate(values)}
    read = read_pictures([("noise.zip", packed(files))], PictureForm(size=16, is_grey=is_grey))
    own = sets.write(prepare(arranged(read, Split()), name="Noise"))
    found = report_of(own)
    np.testing.assert_array_equal(images_of(found), images_of(read))
    assert labels_of(found) == labels_of(read)
    if not is_grey:
        np.testing.assert_array_equal(images_of(found), values.transpose(0, 3, 1, 2))
    assert own.counts == {"train": 26, "validation": 0, "test": 4}
    assert own.details == {
        "size": 16,
        "channels": 1 if is_grey else 3,
        "ground": "any",
        "classes": ["0", "1"],
    }


def test_the_test_is_drawn_from_each_class_alike_and_by_the_seed_alone():
    read = bars()
    one, again, other = (arranged(read, Split(seed=seed)) for seed in (0, 0, 1))
    assert splits_of(one) == splits_of(again)
    assert splits_of(one) != splits_of(other)
    assert list(one.balance.values()) == [[26, 0, 4], [26, 0, 4]]


def test_splits_that_folders_name_are_kept(runs):
    files = {
        path.replace("bars", part): content
        for part, n in (("train", 12), ("val", 5), ("test", 3))
        for path, content in stripes(n, seed=n).items()
    }
    read = read_pictures([("bars.zip", packed(files))], SMALL)
    own = sets.write(prepare(arranged(read, Split(by="file")), name="Bars"))
    assert own.counts == {"train": 24, "validation": 10, "test": 6}
    task = task_of(own)
    one, other = (load(task, seed=seed) for seed in (0, 1))
    assert [len(part) for part in (one.train, one.validation, one.test)] == [24, 10, 6]
    assert torch.equal(one.validation.images, other.validation.images)


def test_a_dropped_duplicate_is_counted():
    read = bars(20)
    items = list(read.items)
    items[7] = items[3]
    read.items = tuple(items)
    assert has_duplicates(read)
    left = arranged(read, Split(), drops_duplicates=True)
    assert not has_duplicates(left)
    assert len(left.items) + n_lines(left.skipped) == len(read.items)
    assert reasons(left) == ("Duplicate pictures dropped: 1.",)


def of(labels, images=None, names=("cat", "dog")):
    """Return pictures with these labels, all different unless they are given."""
    if images is None:
        images = np.random.default_rng(3).integers(0, 256, (len(labels), 1, 16, 16))
    return pictures_report(images, labels, names)


def with_parts(report, parts):
    """Return pictures arranged in these splits, as if their folders named them."""
    items = zip(report.items, parts.tolist(), strict=True)
    report.items = tuple(replace(item, split=part) for item, part in items)
    return arranged(report, Split(by="file"))


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
    parts = np.arange(len(pictures.items)) % 5 // 4 * 2
    if case == "classes that only the test has":
        parts = np.where(UNTRAINED == 2, 2, 0)
    found = with_parts(pictures, parts)
    said = [("problem", found.refusal)] if found.refusal else found.findings
    assert [level for level, _sentence in said] == [level for level, _words in expected]
    for (_level, sentence), (_level, words) in zip(said, expected, strict=True):
        assert words in sentence


def test_duplicates_are_counted_within_across_and_against_the_labels():
    images = np.random.default_rng(0).integers(0, 256, (40, 1, 16, 16))
    images[30] = images[31] = images[0]
    images[5] = images[4]
    labels, parts = np.arange(40) % 2, np.zeros(40, np.int8)
    parts[30:] = 2
    said = sentences(with_parts(of(labels, images), parts))
    assert "also in training: 2." in said[0]
    assert "in several classes: 5;" in said[1]
    assert said[2] == "Duplicate pictures: 3. For example, 30.png equals 0.png."


def test_pictures_of_one_colour_are_counted():
    images = np.random.default_rng(0).integers(0, 256, (40, 1, 16, 16))
    images[30], images[31] = 255, 3
    parts = np.repeat(np.array([0, 2], np.int8), 20)
    assert "Blank pictures: 2 of 40." in sentences(with_parts(of(np.arange(40) % 2, images), parts))


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
    found = arranged(read, Split(), names=["Z cat", "", " Z  cat "])
    assert list(found.balance) == ["Z cat"]
    assert len(found.items) == 20
    assert (n_lines(found.skipped), reasons(found)) == (
        10,
        ("dog: This class has no name.",),
    )
    expected = [item.name for item in read.items if item.label != "dog"]
    assert [item.name for item in found.items] == expected
    refused = arranged(read, Split(), names=["", " ", ""])
    assert refused.refusal == "Name at least two classes."


def test_a_renamed_class_is_kept_under_its_name_in_the_order_of_names(runs):
    read = arranged(three(), Split(), names=["개", "고양이 2", "고양이 10"])
    assert list(read.balance) == ["개", "고양이 2", "고양이 10"]
    read = arranged(three(), Split(), names=["b", "a", "c"])
    own = sets.write(prepare(read, name="Pets"))
    assert own.details["classes"] == ["a", "b", "c"]
    assert labels_of(read) == [[1, 0, 2][label] for label in labels_of(three())]
    assert task_of(own).classes == "a|b|c"


def test_a_name_that_no_class_can_have_is_changed_and_said():
    found = arranged(three(), Split(), names=["**cat**", "x" * 90, "c"])
    assert set(found.balance) == {"cat", "x" * 40, "c"}
    assert [note for note in sentences(found) if "“**cat**”" in note]


def test_a_set_is_loaded_as_any_task_and_the_seed_leaves_the_test_alone(runs):
    task = task_of(kept())
    one, again, other = (load(task, seed=seed) for seed in (0, 0, 1))
    assert [len(part) for part in (one.train, one.validation, one.test)] == [44, 8, 8]
    assert one.train.images.shape == (44, 1, 16, 16)
    assert torch.equal(one.train.images, again.train.images)
    assert torch.equal(one.test.images, other.test.images)
    assert not torch.equal(one.validation.images, other.validation.images)


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
    np.testing.assert_array_equal(images_of(report_of(example)), images_of(shapes()))


def test_the_template_can_be_taken_in_as_it_is():
    found = read_pictures([("shapes.zip", as_zip(shapes()))], PictureForm())
    assert tuple(found.balance) == SHAPES
    sums = [np.sort(images_of(one).sum((1, 2, 3))) for one in (found, shapes())]
    assert (sums[0] == sums[1]).all()


def test_a_name_with_markup_is_a_plain_label():
    task = OwnPicturesTaskConfig(called="**x** [y](http://z)")
    assert task.facts.label == "Pictures, x y(http//z)"


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
