"""Pictures of every container: each file or line is a picture, or listed with its reason."""

import gzip
import hashlib
import io
import re
import stat
import struct
import zipfile
import zlib
from collections import Counter

import numpy as np
import pytest

from tests.data.user_data.files import (
    as_windows_packs,
    idx,
    labels_of,
    npz,
    packed,
    png,
    read_pictures,
    reasons,
    sentences,
    splits_of,
    stripes,
    table,
    unflagged,
)
from tfm_core.data.download import SOURCES, DownloadSource
from tfm_core.data.user_data import pictures, pictures_zip
from tfm_core.data.user_data.pictures import PictureForm, images_of, part_of
from tfm_core.data.user_data.uploads import LIMITS, ReadAs, n_lines
from tfm_core.doctor import check_mnist

FORM = PictureForm(size=16)
RNG = np.random.default_rng(5)
BARS = stripes(13)
IMAGES = RNG.integers(0, 256, (31, 16, 16)).astype(np.uint8)
LABELS = (np.arange(31) % 5 + 1).astype(np.uint8)
JPEG = png(RNG.integers(0, 256, (40, 40)).astype(np.uint8), "JPEG")
DOT = png(np.zeros((4, 4), np.uint8))
TRAIN_TEST = {0: 14, 2: 14}


def folders(*names, n=7):
    """Return n different pictures in each folder, by path."""
    return {
        f"{name}/{at}.png": png(RNG.integers(0, 256, (9, 9)).astype(np.uint8))
        for name in names
        for at in range(n)
    }


def read(files, form=FORM, name="set.zip", **choices):
    """Read a zip, or files by path as one."""
    content = files if isinstance(files, bytes) else packed(files)
    return read_pictures([(name, content)], form, ReadAs(**choices))


def emnist(prefix="emnist-letters"):
    return [
        (f"{prefix}-train-images-idx3-ubyte.gz", idx(IMAGES.swapaxes(1, 2), zipped=True)),
        (f"{prefix}-train-labels-idx1-ubyte.gz", idx(LABELS, zipped=True)),
        (f"{prefix}-test-images-idx3-ubyte", idx(IMAGES[:7].swapaxes(1, 2))),
        (f"{prefix}-test-labels-idx1-ubyte", idx(LABELS[:7])),
    ]


PIXELS = [f"pixel{n}" for n in range(256)]
HEADER = ["label", *PIXELS]
ROWS = [[label, *image.ravel()] for label, image in zip(LABELS, IMAGES, strict=True)]
KERAS = {"x_train": IMAGES, "y_train": LABELS, "x_test": IMAGES[:7], "y_test": LABELS[:7]}
MEDMNIST = {
    f"{part}_{what}": values[:n]
    for part, n in (("train", 31), ("val", 3), ("test", 7))
    for what, values in (("images", IMAGES), ("labels", LABELS[:, None]))
}
KAGGLE = {
    "train.csv": table(ROWS, HEADER),
    "test.csv": table([row[1:] for row in ROWS], PIXELS),
    "sample_submission.csv": b"ImageId,Label\n1,0\n",
}
ARRAYS = {
    "IDX": ([("images", idx(IMAGES)), ("labels.gz", idx(LABELS, zipped=True))], None),
    "IDX of four names": (emnist(), [31, 0, 7]),
    "IDX in a zip, text beside it": (
        [("a.zip", packed({**dict(emnist()), "x-mapping.txt": b"0 48"}))],
        [31, 0, 7],
    ),
    "Keras": ([("mnist.npz", npz(**KERAS))], [31, 0, 7]),
    "MedMNIST": ([("mnist.npz", npz(**MEDMNIST))], [31, 3, 7]),
    "float32": ([("a.npz", npz(x=IMAGES.astype("f4"), y=LABELS.astype("f4")))], None),
    "float64": ([("a.npz", npz(x=IMAGES.astype("f8"), y=LABELS.astype("f8")))], None),
    "int32": ([("a.npz", npz(x=IMAGES.astype("i4"), y=LABELS.astype("i4")))], None),
    "brightness": ([("a.npz", npz(x=IMAGES / 255.0, y=LABELS))], None),
    "as Kaggle has it": ([("train.csv", table(ROWS, HEADER))], None),
    "Kaggle's zip": ([("digit-recognizer.zip", packed(KAGGLE))], None),
    "packed": ([("train.csv.gz", gzip.compress(table(ROWS, HEADER)))], None),
    "no header": ([("train.csv", table(ROWS))], None),
    "CRLF, a BOM and an empty line": (
        [("a.csv", b"\xef\xbb\xbf" + table(ROWS, HEADER).replace(b"\n", b"\r\n") + b"\r\n")],
        None,
    ),
    "the label last": (
        [("train.csv", table([[*row[1:], row[0]] for row in ROWS], [*PIXELS, "Label"]))],
        None,
    ),
    "a column of numbers": (
        [("train.csv", table([[n, *row] for n, row in enumerate(ROWS)], ["", *HEADER]))],
        None,
    ),
    "fractions": ([("train.csv", table([map(float, row) for row in ROWS], HEADER))], None),
    "quotes": ([("train.csv", re.sub(rb"\w+", rb'"\g<0>"', table(ROWS, HEADER)))], None),
    "two tables": ([("a_train.csv", table(ROWS)), ("a_test.csv", table(ROWS[:7]))], [31, 0, 7]),
}


@pytest.mark.parametrize(("files", "counts"), ARRAYS.values(), ids=ARRAYS)
def test_arrays_of_every_container_are_the_same_set(files, counts):
    found = read_pictures(files, FORM)
    np.testing.assert_array_equal(images_of(found)[:31, 0], IMAGES)
    np.testing.assert_array_equal(labels_of(found)[:31], LABELS - 1)
    assert list(found.balance) == ["1", "2", "3", "4", "5"]
    assert [sum(part) for part in zip(*found.balance.values(), strict=True)] == (
        counts or [31, 0, 0]
    )
    assert (found.split["by"] == "file") == (counts is not None)


SHAPES = {
    "text beside the classes": (["set/a", "set/b"], {"set/README.txt": b"hello"}, None),
    "text beside the wrapper": (["set/a", "set/b"], {"LICENSE": b"x", "docs/a/b.md": b"x"}, None),
    "files of systems": (
        ["set/a", "set/b"],
        {"__MACOSX/set/a/._0.png": b"x", "set/.DS_Store": b"x", "set/a/Thumbs.db": b"x"},
        None,
    ),
    "a picture beside the classes": (["set/a", "set/b"], {"set/all.png": JPEG}, None),
    "text beside the splits": (
        ["all/TRAIN/a", "all/TRAIN/b", "all/TEST/a", "all/TEST/b"],
        {"all/README.dataset.txt": b"hello"},
        TRAIN_TEST,
    ),
    "splits in splits": (
        [f"seg_{one}/seg_{one}/{name}" for one in ("train", "test") for name in "ab"],
        {},
        TRAIN_TEST,
    ),
    "one split in itself": (
        ["seg_train/seg_train/a", "seg_train/seg_train/b", "seg_test/a", "seg_test/b"],
        {},
        TRAIN_TEST,
    ),
    "images in splits": (
        [f"{one}/images/{name}" for one in ("train", "valid") for name in "ab"],
        {},
        {0: 14, 1: 14},
    ),
    "names with other words": (
        ["trainSet/a", "trainSet/b", "test images/a", "test images/b"],
        {},
        TRAIN_TEST,
    ),
    "Korean names of splits": (
        ["학습데이터/a", "학습데이터/b", "테스트/a", "테스트/b"],
        {},
        TRAIN_TEST,
    ),
    "an unlabelled test": (["train/a", "train/b"], folders("test", n=3), {0: 14}),
    "a folder without labels beside splits": (
        ["seg_train/a", "seg_train/b", "seg_test/a", "seg_test/b"],
        folders("seg_pred"),
        TRAIN_TEST,
    ),
    "splits in classes": (
        ["all/a/train", "all/a/test", "all/b/train", "all/b/test"],
        {},
        TRAIN_TEST,
    ),
    "deeper folders": (["a/2020/x", "a/2021", "b/2020"], {}, None),
    "a class that is called like a split": (["a", "train"], {}, None),
    "a train and a plane": (["vehicles/steam train", "vehicles/plane"], {}, None),
    "one split alone": (["train/a", "train/b"], {}, None),
    "backslashes": (["train\\a", "test\\b"], {}, {0: 7, 2: 7}),
    "one class in two forms of Unicode": (
        ["train/caf\u00e9", "train/b", "test/cafe\u0301", "test/b"],
        {},
        TRAIN_TEST,
    ),
}
CLASSES = {
    "a class that is called like a split": {"a", "train"},
    "a train and a plane": {"steam train", "plane"},
    "one class in two forms of Unicode": {"caf\u00e9", "b"},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_folders_are_wrappers_splits_or_classes_and_no_file_is_lost(shape):
    names, others, parts = SHAPES[shape]
    files = folders(*names) | others
    found = read(files)
    assert set(found.balance) == CLASSES.get(shape, {"a", "b"})
    assert Counter(splits_of(found)) == (parts or {None: len(found.items)})
    account = found.accounting
    assert account.total == len(files)
    assert account.total == account.kept + account.left_out + account.system
    assert (account.kept, account.left_out) == (len(found.items), n_lines(found.skipped))
    is_much = account.left_out > 0.05 * (account.kept + account.left_out)
    assert any("was skipped" in one for one in sentences(found, "warning")) == is_much


def link():
    """Return a zip with a link in it."""
    file = io.BytesIO(packed(BARS))
    entry = zipfile.ZipInfo("bars/lying/link.png")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(entry, "/etc/passwd")
    return file.getvalue()


def damaged():
    """Return a zip with a damaged file in it."""
    content = bytearray(packed(BARS))
    at = content.index(b"bars/lying/0.png") + 60
    content[at : at + 8] = b"\0" * 8
    return bytes(content)


def bomb(side):
    """Return a PNG that says it has side x side pixels, and the pixels to it, all black."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0))
    rows = chunk(b"IDAT", zlib.compress(bytes((side // 8 + 1) * side), 9))
    return b"\x89PNG\r\n\x1a\n" + head + rows + chunk(b"IEND", b"")


LEFT_OUT = {
    "a cut picture": (BARS | {"a/cut.jpg": JPEG[:-200]}, "JPEG file is cut off"),
    "text": (BARS | {"a/text.jpg": b"hello"}, "text file"),
    "a fake picture": (BARS | {"a/fake.png": b"\x89PNG\r\n\x1a\nno"}, "PNG file is damaged"),
    "nothing": (BARS | {"a/empty.png": b""}, "empty"),
    "a TIFF": (BARS | {"a/old.tif": b"II*\0 and more"}, "TIFF"),
    "a link": (link(), "bars/lying/link.png: This is a link to another file."),
    "a damaged file": (damaged(), "bars/lying/0.png: "),
    "a picture bomb": (
        BARS | {"bars/lying/bomb.png": bomb(8000)},
        "bomb.png: The picture has 8000 x 8000 pixels; the limit is 12",
    ),
    "a file bomb": (
        BARS | {"bars/lying/zeros.png": bytes(11_000_000)},
        "zeros.png: This file unpacks to more than 10 MB",
    ),
    "a file without a name": (unflagged({b"": DOT, b"a/1.png": DOT}), "not in a class folder"),
}


@pytest.mark.parametrize(("files", "words"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_a_file_that_cannot_be_read_is_left_out_with_its_reason(files, words):
    found = read(files)
    assert n_lines(found.skipped) == 1
    assert words in reasons(found)[0]


def encrypted():
    content = bytearray(packed({"a/1.png": b"x"}))
    for begin, flag in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        content[content.index(begin) + flag] |= 1
    return bytes(content)


def zip_with(path):
    plain = path.replace("\\", "/")
    return packed(BARS | {plain: b"x"}).replace(plain.encode(), path.encode())


def pair(images, labels):
    return [("images", images), ("labels", labels)]


BAD_NPY = [b"x", b"\x93NUMPY\x01\0\x02\0(\n", b"\x93NUMPY\x01\0", b"\x93NUMPY\x09\0v\0{}"]
OUTSIDE = ["../../evil.png", "/etc/passwd", "a/../../b.png", "..\\x.png", "C:\\x"]
REFUSED = [
    *(([("evil.zip", zip_with(path))], "evil.zip has a file outside the zip") for path in OUTSIDE),
    ([("a.zip", unflagged({"犬/../../猫.png".encode("cp932"): b"x"}))], "outside the zip"),
    ([("a.zip", encrypted())], r"is encrypted \(a/1.png\)"),
    ([("bars.zip", packed(BARS)[:-200])], "bars.zip is damaged"),
    (
        [("a.zip", packed({f"{n}/a.png": b"x" for n in range(10_000)}))],
        "There are 10,000 classes; the limit is 256",
    ),
    ([("a.zip", packed({}))], "has no readable picture"),
    ([("a.zip", packed({"a/readme.txt": b"hello"}))], "has no readable picture"),
    ([("a.zip", packed(BARS)), ("b", b"")], "a.zip is a zip, so it holds a whole set"),
    ([("cat.png", DOT)], "cat.png is not a zip"),
    (
        [("a.zip", packed(folders("train_images", "test_images") | {"train.csv": b"id\n1\n"}))],
        "“test_images”, “train_images” look like splits",
    ),
    *(
        ([("a.zip", packed(folders("data/images") | others))], "in the folder “images”")
        for others in (
            {f"data/annotations/{n}.xml": b"<annotation>" for n in range(7)},
            {"data/annotations.json": b"{}"},
            {f"data/labels/{n}.txt": b"0 0.5 0.5 1 1" for n in range(7)},
        )
    ),
    (pair(idx(IMAGES)[:-5], idx(LABELS)), "images should have 7,952 bytes for 31 x 16 x 16"),
    (pair(idx(IMAGES, zipped=True)[:-50], idx(LABELS)), "images is damaged"),
    (pair(idx(IMAGES), idx(LABELS[:7])), "images has 31 pictures, but labels has 7 labels"),
    (pair(idx(IMAGES), idx(IMAGES)), "images, labels: upload one file of pictures"),
    (pair(idx(IMAGES)[:3], idx(LABELS)), "images: This is not an IDX file"),
    (pair(b"\0\0\x0d\x01" + bytes(8), idx(LABELS)), "unsigned bytes"),
    (pair(idx(IMAGES[:0]), idx(LABELS[:0])), "images is empty"),
    (pair(idx(IMAGES[0]), idx(LABELS[:16])), "images has the shape 16 x 16"),
    (emnist() + emnist("emnist-digits"), "upload one file of pictures and one of labels"),
    *(
        ([("a.npz", npz(**arrays))], match)
        for arrays, match in (
            ({"x_train": IMAGES}, "x_train: upload one file"),
            ({"x": IMAGES, "y": LABELS[:9]}, "x has 31 pictures, but y has 9 labels"),
            ({"x": IMAGES, "y": np.eye(31)}, "y has the shape 31 x 31"),
            ({"x": IMAGES - 300.5, "y": LABELS}, "x has values from -300.5 to -45.5"),
            ({"x": IMAGES * np.nan, "y": LABELS}, "x has values from nan to nan"),
            ({"x": np.zeros((70_001, 1, 1)), "y": LABELS}, "limit is 70,000 pictures"),
            ({"a": np.float64(3)}, "needs arrays such as"),
        )
    ),
    *(([("a.npz", packed({"x.npy": content}))], "x is damaged") for content in BAD_NPY),
    *(
        ([("train.csv", content)], match)
        for content, match in (
            (KAGGLE["test.csv"], "train.csv: No column “label”.*31 pictures"),
            (table([row[:-1] for row in ROWS], HEADER[:-1]), "has 255 pixel columns"),
            (table([], HEADER), "train.csv has no lines"),
            (table([[1, *["x"] * 256]], HEADER), "no readable picture. line 2 of"),
            (b"a,b\n1,2\n", "train.csv is not a zip"),
        )
    ),
]


def test_what_is_no_set_is_refused_in_a_sentence_that_names_the_file():
    for files, match in REFUSED:
        with pytest.raises(ValueError, match=match):
            read_pictures(files, FORM)


@pytest.mark.parametrize(
    ("limit", "most", "files", "match"),
    [
        ("unpacked", 3_000, BARS, "set.zip unpacks to more than"),
        ("pictures", 25, BARS, "There are 26 pictures; the limit is 25"),
        ("npz", 0, npz(x=IMAGES), "unpack to more than"),
        ("lines", 30, {"a.csv": KAGGLE["train.csv"]}, "is 30 pictures"),
    ],
)
def test_each_limit_holds(monkeypatch, limit, most, files, match):
    monkeypatch.setitem(LIMITS, limit, LIMITS[limit]._replace(most=most))
    with pytest.raises(ValueError, match=match):
        read(files)


def test_too_many_pixels_and_files_are_refused(monkeypatch):
    monkeypatch.setattr(pictures, "MAX_DECODED", 5_000)
    with pytest.raises(ValueError, match=r"set\.zip has more than 0 million"):
        read(BARS)
    monkeypatch.setattr(pictures_zip, "MAX_FILES", 20)
    with pytest.raises(ValueError, match="it has more than 20 files"):
        read(BARS)


def test_as_many_as_the_limit_says_are_read(monkeypatch):
    for limit, most in (("lines", 31), ("pictures", 31)):
        monkeypatch.setitem(LIMITS, limit, LIMITS[limit]._replace(most=most))
    assert len(read_pictures([("train.csv", KAGGLE["train.csv"])], FORM).items) == 31


def test_pixels_of_all_channels_count_together(monkeypatch):
    monkeypatch.setattr(pictures, "MAX_PIXELS", 25 * 3 * 16 * 16)
    with pytest.raises(ValueError, match="There are 26 pictures; the limit is 25 at 16 x 16"):
        read(BARS, PictureForm(size=16, is_grey=False))
    assert len(read(BARS).items) == 26
    with pytest.raises(ValueError, match="17 pixels is not a valid size; choose one of 16, 20"):
        PictureForm(size=17)


def test_python_objects_are_never_loaded_nor_sizes_believed(monkeypatch):
    monkeypatch.setattr("pickle.load", lambda *_a, **_k: pytest.fail("it was unpickled"))
    with pytest.raises(ValueError, match="y holds Python objects, which are never loaded"):
        read(npz(x=IMAGES, y=np.array([object] * 31)))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive, archive.open("x.npy", "w") as entry:
        header = {"descr": "|u1", "fortran_order": False, "shape": (60_000, 5_000, 5_000)}
        np.lib.format.write_array_header_1_0(entry, header)
    monkeypatch.setattr(np.lib.format, "read_array", lambda *_a, **_k: pytest.fail("unpacked"))
    with pytest.raises(ValueError, match="arrays unpack to more than 400 MB"):
        read(file.getvalue())


def test_folders_are_classes_and_pictures_keep_what_they_show():
    values = np.zeros((16, 16), np.uint8)
    values[3:5, 7:11] = 200
    found = read(BARS | {"bars/lying/exact.png": png(values)})
    assert list(found.balance) == ["lying", "standing"]
    assert (images_of(found).shape, images_of(found).dtype) == ((27, 1, 16, 16), np.uint8)
    assert labels_of(found) == [0, 1] * 13 + [0]
    assert set(splits_of(found)) == {None}
    assert sentences(found) == ("26 of 27 pictures were resized to 16 x 16 pixels.",)
    np.testing.assert_array_equal(images_of(found)[26, 0], values)
    numbered = {f"{n}/{path}": one for n in (10, 2, 1) for path, one in BARS.items()}
    assert list(read(numbered).balance) == ["1", "2", "10"]


@pytest.mark.parametrize(("fit", "expected"), [("middle", 200), ("whole", 0)])
def test_what_is_no_square_is_cut_or_kept_whole_and_said(fit, expected):
    values = np.zeros((20, 60), np.uint8)
    values[:, 15:45] = 200
    found = read({"a/1.png": png(values)}, PictureForm(size=20, fit=fit))
    assert images_of(found)[0, 0, 1, 10] == expected
    assert images_of(found)[0, 0, 10, 10] == 200
    assert "square" in sentences(found)[1]


def test_colours_bits_and_kinds_of_files_are_taken_as_they_are_meant():
    values = np.zeros((16, 16, 3), np.uint8)
    values[..., 0] = 255
    grey = read({"a/1.png": png(values)})
    assert images_of(grey).shape == (1, 1, 16, 16)
    assert sentences(grey) == ("Pictures converted to greyscale: 1.",)
    coloured = read({"a/1.png": png(values)}, PictureForm(size=16, is_grey=False))
    assert images_of(coloured)[0, :, 0, 0].tolist() == [255, 0, 0]
    deep = np.linspace(0, 65535, 256).astype(np.uint16).reshape(16, 16)
    assert images_of(read({"a/1.png": png(deep)}))[0, 0, 8, 0] == 128
    for form in ["JPEG", "WEBP", "BMP", "GIF"]:
        content = png(np.full((16, 16), 120, np.uint8), form)
        assert abs(int(images_of(read({"a/1": content})).mean()) - 120) < 3


def test_emnist_is_turned_under_its_own_names_or_where_it_is_asked_for():
    as_they_lie = IMAGES.swapaxes(1, 2)
    for prefix, is_turned, expected in [
        ("emnist-letters", None, IMAGES),
        ("emnist-letters", False, as_they_lie),
        ("my-letters", None, as_they_lie),
        ("my-letters", True, IMAGES),
    ]:
        found = read_pictures(emnist(prefix), FORM, ReadAs(is_turned=is_turned))
        np.testing.assert_array_equal(images_of(found)[:31, 0], expected)
        assert found.read_as.is_turned is (expected is IMAGES)


def test_idx_files_in_a_zip_may_be_large():
    big = np.zeros((13_000, 28, 28), np.uint8)  # more than any one picture may have
    files = {"gzip/train-images-idx3-ubyte": idx(big), "gzip/x-mapping.txt": b"0 48"}
    found = read(files | {"gzip/train-labels-idx1-ubyte": idx(np.arange(13_000) % 2)})
    assert len(found.items) == 13_000
    assert reasons(found) == ("gzip/x-mapping.txt: It has no pictures or labels.",)


def test_files_named_like_those_of_mnist_are_compared_with_them(monkeypatch):
    name = "train-images-idx3-ubyte"
    files = [(name, idx(IMAGES)), ("labels", idx(LABELS))]
    assert sentences(read_pictures(files, FORM))[0].startswith(
        f"{name} is named like an MNIST file, but"
    )
    md5 = hashlib.md5(idx(IMAGES), usedforsecurity=False).hexdigest()
    monkeypatch.setitem(SOURCES, "mnist", DownloadSource("MNIST", unpacked={name: md5}))
    assert sentences(read_pictures(files, FORM)) == (f"MNIST’s own files: {name}.",)


def test_brightness_from_0_to_1_is_scaled_and_said():
    arrays = {"x": IMAGES / 255.0, "y": np.array(["cat", "dog*"])[LABELS % 2]}
    found = read(npz(**arrays))
    assert list(found.balance) == ["cat", "dog"]
    assert "scaled to 255" in sentences(found)[0]


def test_a_table_may_be_packed_with_what_comes_beside_it():
    found = read(KAGGLE)
    assert (len(found.items), n_lines(found.skipped)) == (31, 31 + 1)
    listed = " ".join(reasons(found))
    assert "test.csv: No column “label”" in listed
    assert "sample_submission.csv: It has no pictures or labels." in listed


def test_every_line_is_a_picture_or_left_out_with_its_number():
    rows = [list(row) for row in ROWS]
    rows[2] = rows[2][:-3]
    for at, bad in ((5, 256), (7, -1), (9, "x"), (11, 0.5)):
        rows[at][9] = bad
    rows[13][0] = ""
    found = read_pictures([("train.csv", table(rows, HEADER))], FORM)
    assert len(found.items) + n_lines(found.skipped) == 31
    lines = [one.split(":")[0] for one in reasons(found)]
    assert lines == [f"line {n} of train.csv" for n in (4, 7, 9, 11, 13, 15)]
    assert "254 cells instead of 257" in reasons(found)[0]
    assert "whole number from 0 to 255" in reasons(found)[1]
    assert "no label" in reasons(found)[5]
    assert "19% of the file was skipped (6 of 31)." in sentences(found, "warning")[0]
    np.testing.assert_array_equal(images_of(found)[2, 0], IMAGES[3])
    assert str(found.items[2].place) == "line 5 of train.csv"


def test_folders_that_may_be_splits_or_classes_are_asked_about():
    files = folders("seg_train/a", "seg_train/b", "seg_test/a", "seg_test/b", "seg_pred/all")
    found = read(files)
    assert found.read_as.folders == "splits"
    assert found.names == ("seg_pred", "seg_test", "seg_train")
    assert n_lines(found.skipped) == 7
    other = read(files, folders="classes")
    assert list(other.balance) == ["seg pred", "seg test", "seg train"]
    assert (other.read_as.folders, n_lines(other.skipped)) == ("classes", 0)
    found = read(folders("car/red", "car/blue", "train/red", "train/blue"))
    assert (found.read_as.folders, list(found.balance)) == ("classes", ["car", "train"])
    for clear in (["car", "train"], ["train/a", "train/b", "test/a", "test/b"]):
        assert read(folders(*clear)).read_as.folders is None


def test_a_folder_without_pictures_is_said():
    files = folders("set/a", "set/b") | {"set/c/": b"", "set/d/notes.txt": b"hello"}
    assert "not classes: “c”, “d”" in " ".join(sentences(read(files), "warning"))
    files = folders("set/a", "set/b") | {"set/": b"", "set/a/": b""}
    assert not sentences(read(files), "warning")


PART_NAMES = {
    "train": "seg_train TRAIN train2017 trainImages Training",
    "validation": "my-valid.set val dev 验证集",
    "test": "t10k-images-idx3-ubyte emnist-letters-test-labels-idx1-ubyte.gz",
    None: "strain contest evaluate train_test",
}


@pytest.mark.parametrize("part", PART_NAMES)
def test_a_split_is_a_word_of_a_name(part):
    for name in PART_NAMES[part].split():
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


@pytest.mark.parametrize("encoding", NAMES)
def test_the_encoding_is_guessed_from_all_names(encoding):
    for names in NAMES[encoding]:
        found = read(as_windows_packs(names, encoding))
        assert set(found.balance) == set(names)
        assert found.read_as.encoding == encoding
        assert len(found.items) == 3 * len(names)


def test_another_encoding_can_be_chosen_where_the_zip_does_not_say_it():
    found = read(as_windows_packs(["고양이"], "cp949"), encoding="gbk")
    assert list(found.balance) == ["고양이".encode("cp949").decode("gbk")]
    assert found.read_as.encoding == "gbk"
    found = read(folders("set/고양이", "set/개"))
    assert (list(found.balance), found.read_as.encoding) == (["개", "고양이"], None)


def test_a_smaller_set_in_the_place_of_mnist_is_the_users_own(tmp_path, monkeypatch):
    monkeypatch.setenv("TFM_DATA_DIR", str(tmp_path))
    folder = tmp_path / "MNIST" / "raw"
    folder.mkdir(parents=True)
    for part, n in (("train", 60), ("t10k", 10)):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(idx(np.zeros((n, 28, 28))))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx(np.zeros(n)))
    found = check_mnist()
    assert "used as it is: t10k-images-idx3-ubyte (10)" in found.words
    assert "elete" not in f"{found.words} {found.do}"
