"""Pictures in arrays as they are published: EMNIST's files, Keras' npz, Kaggle's table."""

import gzip
import io
import zipfile

import numpy as np
import pytest

from tests.data.own.files import idx, packed
from tfm_core.data.own import pictures_arrays
from tfm_core.data.own.pictures import PictureForm, ReadingChoices
from tfm_core.data.own.pictures_zip import read_pictures

FORM = PictureForm(size=16)
RNG = np.random.default_rng(2)
IMAGES = RNG.integers(0, 256, (31, 16, 16)).astype(np.uint8)
LABELS = (np.arange(31) % 5 + 1).astype(np.uint8)


def emnist(prefix="emnist-letters"):
    return [
        (f"{prefix}-train-images-idx3-ubyte.gz", idx(IMAGES.swapaxes(1, 2), zipped=True)),
        (f"{prefix}-train-labels-idx1-ubyte.gz", idx(LABELS, zipped=True)),
        (f"{prefix}-test-images-idx3-ubyte", idx(IMAGES[:7].swapaxes(1, 2))),
        (f"{prefix}-test-labels-idx1-ubyte", idx(LABELS[:7])),
    ]


def test_emnist_is_taken_under_its_own_names_turned_and_counted_from_one():
    found = read_pictures(emnist(), FORM)
    np.testing.assert_array_equal(found.images[:31, 0], IMAGES)
    assert found.class_names == ("1", "2", "3", "4", "5")
    np.testing.assert_array_equal(found.labels[:31], LABELS - 1)
    assert np.bincount(found.parts, minlength=3).tolist() == [31, 0, 7]
    assert found.understood.is_turned is True
    as_they_lie = read_pictures(emnist(), FORM, ReadingChoices(is_turned=False))
    np.testing.assert_array_equal(as_they_lie.images[:31, 0], IMAGES.swapaxes(1, 2))


def test_other_names_are_not_turned_unless_it_is_asked_for():
    files = emnist(prefix="my-letters")
    found = read_pictures(files, FORM)
    assert found.understood.is_turned is False
    np.testing.assert_array_equal(found.images[:31, 0], IMAGES.swapaxes(1, 2))
    turned = read_pictures(files, FORM, ReadingChoices(is_turned=True))
    np.testing.assert_array_equal(turned.images[:31, 0], IMAGES)


def test_idx_files_in_a_zip_may_have_text_beside_them_and_be_large():
    big = np.zeros((13_000, 28, 28), np.uint8)  # more than any one picture may have
    big[:, 3, 5] = 1
    files = {"gzip/emnist-x-train-images-idx3-ubyte": idx(big)}
    files |= {"gzip/emnist-x-train-labels-idx1-ubyte": idx(np.arange(13_000) % 2)}
    found = read_pictures([("x.zip", packed(files | {"gzip/emnist-x-mapping.txt": b"0 48"}))], FORM)
    assert len(found) == 13_000
    assert found.left_out == ("gzip/emnist-x-mapping.txt: It has no pictures or labels.",)


def test_two_sets_at_once_are_refused():
    with pytest.raises(ValueError, match="upload one file of pictures and one of labels"):
        read_pictures(emnist() + emnist(prefix="emnist-digits"), FORM)


def npz(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


KERAS = {
    "x_train": IMAGES,
    "y_train": LABELS,
    "x_test": IMAGES[:7],
    "y_test": LABELS[:7],
}
MEDMNIST = {
    "train_images": IMAGES,
    "train_labels": LABELS[:, None],
    "val_images": IMAGES[:3],
    "val_labels": LABELS[:3, None],
    "test_images": IMAGES[:7],
    "test_labels": LABELS[:7, None],
}


@pytest.mark.parametrize(("arrays", "counts"), [(KERAS, [31, 0, 7]), (MEDMNIST, [31, 3, 7])])
def test_an_npz_is_a_set(arrays, counts):
    found = read_pictures([("mnist.npz", npz(**arrays))], FORM)
    np.testing.assert_array_equal(found.images[:31, 0], IMAGES)
    np.testing.assert_array_equal(found.labels[:31], LABELS - 1)
    assert np.bincount(found.parts, minlength=3).tolist() == counts


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32])
def test_numbers_of_other_kinds_are_pixels_too(kind):
    found = read_pictures([("a.npz", npz(x=IMAGES.astype(kind), y=LABELS.astype(kind)))], FORM)
    np.testing.assert_array_equal(found.images[:, 0], IMAGES)
    assert found.class_names == ("1", "2", "3", "4", "5")


def test_brightness_from_0_to_1_is_scaled_and_said():
    arrays = {"x": IMAGES / 255.0, "y": np.array(["cat", "dog*"])[LABELS % 2]}
    found = read_pictures([("a.npz", npz(**arrays))], FORM)
    np.testing.assert_array_equal(found.images[:, 0], IMAGES)
    assert found.class_names == ("cat", "dog")
    assert "scaled to 255" in found.notes[0]


def test_an_npz_that_is_no_set_is_one_sentence():
    for arrays, match in [
        ({"x_train": IMAGES}, "x_train: upload one file"),
        ({"x": IMAGES, "y": LABELS[:9]}, "x has 31 pictures, but y has 9 labels"),
        ({"x": IMAGES, "y": np.eye(31)}, "y has the shape 31 x 31"),
        ({"x": IMAGES - 300.5, "y": LABELS}, "x has values from -300.5 to -45.5"),
        ({"x": IMAGES * np.nan, "y": LABELS}, "x has values from nan to nan"),
        ({"x": np.zeros((70_001, 1, 1)), "y": LABELS}, "limit is 70,000 pictures"),
        ({"a": np.float64(3)}, "needs arrays such as"),
    ]:
        with pytest.raises(ValueError, match=match):
            read_pictures([("a.npz", npz(**arrays))], FORM)


def test_python_objects_are_never_loaded(monkeypatch):
    content = npz(x=IMAGES, y=np.array([object] * 31))
    monkeypatch.setattr("pickle.load", lambda *_a, **_k: pytest.fail("it was unpickled"))
    with pytest.raises(ValueError, match="y holds Python objects, which are never loaded"):
        read_pictures([("a.npz", content)], FORM)


def test_sizes_are_checked_before_anything_is_unpacked(monkeypatch):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive, archive.open("x.npy", "w") as entry:
        header = {"descr": "|u1", "fortran_order": False, "shape": (60_000, 5_000, 5_000)}
        np.lib.format.write_array_header_1_0(entry, header)
    monkeypatch.setattr(np.lib.format, "read_array", lambda *_a, **_k: pytest.fail("unpacked"))
    with pytest.raises(ValueError, match="arrays unpack to more than 400 MB"):
        read_pictures([("a.npz", file.getvalue())], FORM)
    monkeypatch.setattr(pictures_arrays, "MAX_UNPACKED", 0)
    with pytest.raises(ValueError, match="unpack to more than"):
        read_pictures([("a.npz", npz(x=IMAGES))], FORM)


def test_a_damaged_array_is_one_sentence():
    for content in [b"x", b"\x93NUMPY\x01\0\x02\0(\n", b"\x93NUMPY\x01\0", b"\x93NUMPY\x09\0v\0{}"]:
        with pytest.raises(ValueError, match="x is damaged"):
            read_pictures([("a.npz", packed({"x.npy": content}))], FORM)


PIXELS = [f"pixel{n}" for n in range(256)]


def csv(rows, header=("label", *PIXELS)):
    lines = ([",".join(header)] if header else []) + [",".join(map(str, row)) for row in rows]
    return ("\n".join(lines) + "\n").encode()


ROWS = [[label, *image.ravel()] for label, image in zip(LABELS, IMAGES, strict=True)]
FORMS = {
    "as Kaggle has it": csv(ROWS),
    "no header": csv(ROWS, ()),
    "CRLF, a BOM and an empty line": b"\xef\xbb\xbf" + csv(ROWS).replace(b"\n", b"\r\n") + b"\r\n",
    "the label last": csv([[*row[1:], row[0]] for row in ROWS], (*PIXELS, "Label")),
    "a column of numbers": csv([[n, *row] for n, row in enumerate(ROWS)], ("", "label", *PIXELS)),
    "fractions": csv([[f"{float(one)}" for one in row] for row in ROWS]),
    "quotes": csv([[f'"{one}"' for one in row] for row in ROWS], ('"label"', *PIXELS)),
}


def test_a_table_of_pixels_is_a_set():
    for content in FORMS.values():
        found = read_pictures([("train.csv", content)], FORM)
        np.testing.assert_array_equal(found.images[:, 0], IMAGES)
        np.testing.assert_array_equal(found.labels, LABELS - 1)
        assert (found.parts, found.n_left_out) == (None, 0)


def test_a_table_may_be_packed_with_what_comes_beside_it():
    files = {
        "train.csv": csv(ROWS),
        "test.csv": csv([row[1:] for row in ROWS], PIXELS),
        "sample_submission.csv": b"ImageId,Label\n1,0\n",
    }
    found = read_pictures([("digit-recognizer.zip", packed(files))], FORM)
    assert len(found) == 31
    assert found.n_left_out == 31 + 1
    said = " ".join(found.left_out)
    assert "test.csv: No column “label”" in said
    assert "sample_submission.csv: It has no pictures or labels." in said
    again = read_pictures([("train.csv.gz", gzip.compress(csv(ROWS)))], FORM)
    np.testing.assert_array_equal(again.images, found.images)


def test_a_train_and_a_test_table_are_splits():
    found = read_pictures([("a_train.csv", csv(ROWS)), ("a_test.csv", csv(ROWS[:7]))], FORM)
    assert np.bincount(found.parts, minlength=3).tolist() == [31, 0, 7]


def test_every_line_is_a_picture_or_left_out_with_its_number():
    rows = [list(row) for row in ROWS]
    rows[2] = rows[2][:-3]
    rows[5][9] = 256
    rows[7][9] = -1
    rows[9][9] = "x"
    rows[11][9] = 0.5
    rows[13][0] = ""
    found = read_pictures([("train.csv", csv(rows))], FORM)
    assert len(found) + found.n_left_out == 31
    lines = [one.split(":")[0] for one in found.left_out]
    assert lines == [f"line {n} of train.csv" for n in (4, 7, 9, 11, 13, 15)]
    assert "254 cells instead of 257" in found.left_out[0]
    assert "whole number from 0 to 255" in found.left_out[1]
    assert "no label" in found.left_out[5]
    assert "6 of 31 files or lines (19%)" in found.warnings[0]
    np.testing.assert_array_equal(found.images[2, 0], IMAGES[3])
    assert str(found.names[2]) == "line 5 of train.csv"


def test_a_table_that_is_no_set_is_one_sentence():
    for content, match in [
        (csv([row[1:] for row in ROWS], PIXELS), "train.csv: No column “label”.*31 pictures"),
        (csv([row[:-1] for row in ROWS], ("label", *PIXELS[:-1])), "has 255 pixel columns"),
        (csv([]), "train.csv has no lines"),
        (csv([[1, *["x"] * 256]]), "no readable picture. line 2 of"),
        (b"a,b\n1,2\n", "train.csv is not a zip"),
    ]:
        with pytest.raises(ValueError, match=match):
            read_pictures([("train.csv", content)], FORM)


def test_a_table_may_have_as_many_lines_as_a_set_pictures(monkeypatch):
    monkeypatch.setattr(pictures_arrays, "MAX_PICTURES", len(ROWS))
    assert len(read_pictures([("train.csv", csv(ROWS))], FORM).images) == len(ROWS)
    monkeypatch.setattr(pictures_arrays, "MAX_PICTURES", len(ROWS) - 1)
    with pytest.raises(ValueError, match=f"the limit is {len(ROWS) - 1} pictures"):
        read_pictures([("train.csv", csv(ROWS))], FORM)
