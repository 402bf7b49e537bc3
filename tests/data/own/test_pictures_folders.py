"""What folders and names in a zip mean, and that every file is a picture or listed as skipped."""

from __future__ import annotations

import io
import zipfile
from collections import Counter

import numpy as np
import pytest

from tests.data.own.files import packed, png
from tfm_core.data.own.pictures import PictureForm, ReadingChoices, part_of
from tfm_core.data.own.pictures_zip import read_pictures

FORM = PictureForm(size=16)
RNG = np.random.default_rng(5)
JPEG = png(RNG.integers(0, 256, (40, 40)).astype(np.uint8), "JPEG")


def pictures(*folders, n=7, ending="png"):
    """Return n different pictures in each folder, by path."""
    return {
        f"{folder}/{at}.{ending}": png(RNG.integers(0, 256, (9, 9)).astype(np.uint8))
        for folder in folders
        for at in range(n)
    }


def read(files, **choices):
    return read_pictures([("set.zip", packed(files))], FORM, ReadingChoices(**choices))


SYSTEM = {
    "__MACOSX/shapes/tri/._0.png": b"x",
    "shapes/.DS_Store": b"x",
    "shapes/tri/Thumbs.db": b"x",
}
TRAIN_TEST = {0: 14, 2: 14}
SHAPES = {
    "text beside the classes": (
        pictures("shapes/round", "shapes/tri") | {"shapes/README.txt": b"hello"},
        {"round", "tri"},
        None,
    ),
    "text beside the wrapper": (
        pictures("shapes/round", "shapes/tri") | {"LICENSE": b"hello", "docs/a/b.md": b"hello"},
        {"round", "tri"},
        None,
    ),
    "files of systems": (pictures("shapes/round", "shapes/tri") | SYSTEM, {"round", "tri"}, None),
    "a picture beside the classes": (
        pictures("shapes/round", "shapes/tri") | {"shapes/all.png": JPEG},
        {"round", "tri"},
        None,
    ),
    "text beside the splits": (
        pictures("archive/TRAIN/a", "archive/TRAIN/b", "archive/TEST/a", "archive/TEST/b")
        | {"archive/README.dataset.txt": b"hello"},
        {"a", "b"},
        TRAIN_TEST,
    ),
    "splits in splits": (
        pictures(*(f"seg_{one}/seg_{one}/{name}" for one in ("train", "test") for name in "ab")),
        {"a", "b"},
        TRAIN_TEST,
    ),
    "one split in itself": (
        pictures("seg_train/seg_train/a", "seg_train/seg_train/b", "seg_test/a", "seg_test/b"),
        {"a", "b"},
        TRAIN_TEST,
    ),
    "images in splits": (
        pictures(*(f"{one}/images/{name}" for one in ("train", "valid") for name in "ab")),
        {"a", "b"},
        {0: 14, 1: 14},
    ),
    "names with other words": (
        pictures("trainSet/a", "trainSet/b", "test images/a", "test images/b"),
        {"a", "b"},
        TRAIN_TEST,
    ),
    "Korean names of splits": (
        pictures("학습데이터/a", "학습데이터/b", "테스트/a", "테스트/b"),
        {"a", "b"},
        TRAIN_TEST,
    ),
    "an unlabelled test": (
        pictures("train/a", "train/b") | pictures("test", n=3),
        {"a", "b"},
        {0: 14},
    ),
    "a folder without labels beside splits": (
        pictures("seg_train/a", "seg_train/b", "seg_test/a", "seg_test/b", "seg_pred"),
        {"a", "b"},
        TRAIN_TEST,
    ),
    "splits in classes": (
        pictures("all/a/train", "all/a/test", "all/b/train", "all/b/test"),
        {"a", "b"},
        TRAIN_TEST,
    ),
    "deeper folders": (pictures("a/2020/x", "a/2021", "b/2020"), {"a", "b"}, None),
    "a class that is called like a split": (pictures("a", "train"), {"a", "train"}, None),
    "a train and a plane": (
        pictures("vehicles/steam train", "vehicles/plane"),
        {"steam train", "plane"},
        None,
    ),
    "one split alone": (pictures("train/a", "train/b"), {"a", "b"}, None),
    "backslashes": (
        {path.replace("/", "\\"): one for path, one in pictures("train\\a", "test\\b").items()},
        {"a", "b"},
        {0: 7, 2: 7},
    ),
    "broken pictures": (
        pictures("a", "b")
        | {"a/cut.jpg": JPEG[:-200], "a/text.jpg": b"hello", "b/fake.png": b"\x89PNG\r\n\x1a\nno"}
        | {"b/empty.png": b"", "b/old.tif": b"II*\0 and more"},
        {"a", "b"},
        None,
    ),
    "one class in two forms of Unicode": (
        pictures("train/caf\u00e9", "train/b", "test/cafe\u0301", "test/b"),
        {"caf\u00e9", "b"},
        TRAIN_TEST,
    ),
}


@pytest.mark.parametrize(("files", "classes", "parts"), SHAPES.values(), ids=SHAPES)
def test_folders_are_wrappers_splits_or_classes_and_no_file_is_lost(files, classes, parts):
    found = read(files)
    assert set(found.class_names) == classes
    numbers = None if found.parts is None else Counter(found.parts.tolist())
    assert numbers == parts
    assert len(found) + found.n_left_out + found.n_system == len(files)
    assert len(found.left_out) == found.n_left_out
    n = len(found) + found.n_left_out
    assert any("Skipped" in one for one in found.warnings) == (found.n_left_out > 0.05 * n)


def test_each_reason_says_what_a_file_is():
    files, _classes, _parts = SHAPES["broken pictures"]
    reasons = dict(one.split(": ", 1) for one in read(files).left_out)
    assert "JPEG file is cut off" in reasons["a/cut.jpg"]
    assert "text file" in reasons["a/text.jpg"]
    assert "PNG file is damaged" in reasons["b/fake.png"]
    assert "empty" in reasons["b/empty.png"]
    assert "TIFF" in reasons["b/old.tif"]


def test_reasons_beyond_the_first_ones_are_counted():
    files = pictures("a", "b") | {f"a/{n}.txt": b"hello" for n in range(97)}
    found = read(files)
    assert len(found) + found.n_left_out == len(files)
    assert 8 < len(found.left_out) < found.n_left_out


def test_folders_that_may_be_splits_or_classes_are_asked_about():
    files = pictures("seg_train/a", "seg_train/b", "seg_test/a", "seg_test/b", "seg_pred/all")
    found = read(files)
    assert found.understood.folders == "splits"
    assert found.folder_names == ("seg_pred", "seg_test", "seg_train")
    assert found.n_left_out == 7
    other = read(files, folders="classes")
    assert other.class_names == ("seg pred", "seg test", "seg train")
    assert (other.understood.folders, other.parts, other.n_left_out) == ("classes", None, 0)


def test_one_folder_that_is_called_like_a_split_is_asked_about_only_where_it_could_be_one():
    found = read(pictures("car/red", "car/blue", "train/red", "train/blue"))
    assert (found.understood.folders, found.class_names) == ("classes", ("car", "train"))
    assert read(pictures("car", "train")).understood.folders is None
    assert read(pictures("train/a", "train/b", "test/a", "test/b")).understood.folders is None


def test_splits_without_classes_are_refused():
    with pytest.raises(ValueError, match="“test_images”, “train_images” are named like splits"):
        read(pictures("train_images", "test_images") | {"train.csv": b"id,label\n1,2\n"})


def test_labels_in_other_files_are_said_not_to_be_read():
    for others in [
        {f"annotations/{n}.xml": b"<annotation>" for n in range(7)},
        {"annotations.json": b"{}"},
        {f"labels/{n}.txt": b"0 0.5 0.5 1 1" for n in range(7)},
    ]:
        with pytest.raises(ValueError, match="in the folder “images”"):
            read(pictures("data/images") | {f"data/{name}": one for name, one in others.items()})


def test_a_folder_without_pictures_is_said():
    files = pictures("set/a", "set/b") | {"set/c/": b"", "set/d/notes.txt": b"hello"}
    assert "not classes: “c”, “d”" in " ".join(read(files).warnings)
    assert not read(pictures("set/a", "set/b") | {"set/": b"", "set/a/": b""}).warnings


def test_a_split_is_a_word_of_a_name():
    for name, part in [
        ("seg_train", "train"),
        ("TRAIN", "train"),
        ("train2017", "train"),
        ("trainImages", "train"),
        ("Training", "train"),
        ("my-valid.set", "validation"),
        ("val", "validation"),
        ("dev", "validation"),
        ("t10k-images-idx3-ubyte", "test"),
        ("emnist-letters-test-labels-idx1-ubyte.gz", "test"),
        ("验证集", "validation"),
        ("strain", None),
        ("contest", None),
        ("evaluate", None),
        ("train_test", None),
    ]:
        assert part_of(name) == part


NAMES = {
    "cp949": (["고양이", "개", "새"], ["사과", "바나나", "포도"], ["뱀", "쥐"]),
    "cp932": (["犬", "猫", "鳥"], ["りんご", "バナナ"], ["表", "能"], ["Tシャツ", "ズボン"]),
    "gbk": (["猫", "狗", "鸟"], ["苹果", "香蕉"], ["汽车", "火车", "飞机"], ["正常", "异常"]),
    "big5": (["貓", "狗", "鳥"], ["蘋果", "香蕉", "橘子"]),
    "cp866": (["кошка", "собака"], ["Яблоки", "Груши"]),
    "cp437": (["Köln", "München"], ["café", "thé"], ["niño", "año"]),
    "utf-8": (["고양이", "개"], ["猫"], ["Köln"]),
}


class Unflagged(zipfile.ZipInfo):
    """An entry whose name is written as bytes, without the flag for UTF-8."""

    raw = b""

    def _encodeFilenameFlags(self):
        return self.raw, 0


def unflagged(files):
    """Return a zip of files by the bytes of their names."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for raw, content in files.items():
            entry = Unflagged(raw.hex())
            entry.raw = raw
            archive.writestr(entry, content)
    return file.getvalue()


def as_windows_packs(folders, encoding):
    return unflagged(
        {
            f"set/{folder}/{at}.png".encode(encoding): png(np.full((9, 9), 50 * at, np.uint8))
            for folder in folders
            for at in range(3)
        }
    )


@pytest.mark.parametrize("encoding", NAMES)
def test_the_encoding_is_guessed_from_all_names(encoding):
    for names in NAMES[encoding]:
        found = read_pictures(
            [("set.zip", as_windows_packs(names, encoding))], PictureForm(size=16)
        )
        assert set(found.class_names) == set(names)
        assert found.understood.encoding == encoding
        assert len(found) == 3 * len(names)


def test_another_encoding_can_be_chosen():
    content = as_windows_packs(["고양이"], "cp949")
    found = read_pictures(
        [("set.zip", content)], PictureForm(size=16), ReadingChoices(encoding="gbk")
    )
    assert found.class_names == (("고양이").encode("cp949").decode("gbk"),)
    assert found.understood.encoding == "gbk"


def test_no_encoding_is_asked_for_where_the_zip_says_it():
    files = {f"set/{name}/1.png": png(np.zeros((9, 9), np.uint8)) for name in ("고양이", "개")}
    found = read_pictures([("set.zip", packed(files))], PictureForm(size=16))
    assert found.class_names == ("개", "고양이")
    assert found.understood.encoding is None


def test_a_path_that_leaves_the_zip_in_its_true_encoding_is_refused():
    content = unflagged({"犬/../../猫.png".encode("cp932"): b"x"})
    with pytest.raises(ValueError, match="outside the zip"):
        read_pictures([("set.zip", content)], PictureForm(size=16))


def test_a_file_without_a_name_is_left_out():
    picture = png(np.zeros((9, 9), np.uint8))
    found = read_pictures(
        [("set.zip", unflagged({b"": picture, b"a/1.png": picture}))], PictureForm(16)
    )
    assert (len(found), found.n_left_out) == (1, 1)
