import hashlib
import io
import stat
import struct
import zipfile
import zlib

import numpy as np
import pytest

from tests.data.own.files import idx, packed, png, stripes
from tfm_core.data.download import SOURCES, DownloadSource
from tfm_core.data.own import pictures, pictures_zip
from tfm_core.data.own.pictures import PictureForm, Pictures
from tfm_core.data.own.pictures_set import duplicates, findings
from tfm_core.data.own.pictures_zip import read_pictures
from tfm_core.doctor.checks import check_mnist

SMALL = PictureForm(size=16)
BARS = stripes(13)


def read(files, form=SMALL, name="bars.zip"):
    return read_pictures([(name, packed(files))], form)


def test_folders_are_classes_and_folders_around_them_are_not():
    found = read(BARS)
    assert found.class_names == ("lying", "standing")
    assert found.images.shape == (26, 1, 16, 16)
    assert found.images.dtype == np.uint8
    assert found.labels.tolist() == [0, 1] * 13
    assert found.parts is None
    assert found.notes == ("26 of 26 pictures were resized to 16 x 16 pixels.",)


def test_a_picture_keeps_what_it_shows():
    values = np.zeros((16, 16), np.uint8)
    values[3:5, 7:11] = 200
    found = read(BARS | {"bars/lying/exact.png": png(values)})
    np.testing.assert_array_equal(
        found.images[found.names.index("bars/lying/exact.png"), 0], values
    )


def test_classes_are_numbered_as_a_person_counts():
    found = read({f"{n}/{path}": content for n in (10, 2, 1) for path, content in BARS.items()})
    assert found.class_names == ("1", "2", "10")


@pytest.mark.parametrize(("fit", "expected"), [("middle", 200), ("whole", 0)])
def test_what_is_no_square_is_cut_or_kept_whole_and_said(fit, expected):
    values = np.zeros((20, 60), np.uint8)
    values[:, 15:45] = 200
    found = read({"a/1.png": png(values)}, PictureForm(size=20, fit=fit))
    assert found.images[0, 0, 1, 10] == expected
    assert found.images[0, 0, 10, 10] == 200
    assert "square" in found.notes[1]


def test_coloured_pictures_are_made_grey_or_kept():
    values = np.zeros((16, 16, 3), np.uint8)
    values[..., 0] = 255
    grey = read({"a/1.png": png(values)})
    assert grey.images.shape == (1, 1, 16, 16)
    assert grey.notes == ("Converted to greyscale: 1.",)
    coloured = read({"a/1.png": png(values)}, PictureForm(size=16, is_grey=False))
    assert coloured.images[0, :, 0, 0].tolist() == [255, 0, 0]


def test_sixteen_bits_are_scaled_not_cut():
    values = np.linspace(0, 65535, 256).astype(np.uint16).reshape(16, 16)
    found = read({"a/1.png": png(values)})
    assert found.images[0, 0, 8, 0] == 128


def test_other_kinds_of_pictures_are_read():
    for form in ["JPEG", "WEBP", "BMP", "GIF"]:
        values = np.full((16, 16), 120, np.uint8)
        assert abs(int(read({"a/1": png(values, form)}).images.mean()) - 120) < 3


def test_paths_that_leave_the_zip_are_refused_by_name():
    for path in ["../../evil.png", "/etc/passwd", "a/../../b.png", "..\\x.png", "C:\\x"]:
        content = packed(BARS | {path.replace("\\", "/"): b"x"}).replace(
            path.replace("\\", "/").encode(), path.encode()
        )
        with pytest.raises(ValueError, match="outside the zip") as caught:
            read_pictures([("evil.zip", content)], SMALL)
        assert "evil.zip" in str(caught.value)


def test_a_link_is_left_out():
    file = io.BytesIO(packed(BARS))
    entry = zipfile.ZipInfo("bars/lying/link.png")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(entry, "/etc/passwd")
    found = read_pictures([("a.zip", file.getvalue())], SMALL)
    assert found.left_out == ("bars/lying/link.png: This is a link to another file.",)


def test_an_encrypted_zip_is_refused():
    content = bytearray(packed({"a/1.png": b"x"}))
    for begin, flag in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        content[content.index(begin) + flag] |= 1
    with pytest.raises(ValueError, match=r"is encrypted \(a/1.png\)"):
        read_pictures([("a.zip", bytes(content))], SMALL)


def test_half_a_zip_is_refused():
    with pytest.raises(ValueError, match=r"bars.zip is damaged"):
        read_pictures([("bars.zip", packed(BARS)[:-200])], SMALL)


def test_a_damaged_file_in_a_zip_is_left_out():
    content = bytearray(packed(BARS))
    at = content.index(b"bars/lying/0.png") + 60
    content[at : at + 8] = b"\0" * 8
    found = read_pictures([("bars.zip", bytes(content))], SMALL)
    assert found.n_left_out == 1
    assert found.left_out[0].startswith("bars/lying/0.png: ")


def bomb(side):
    """Return a PNG that says it has side x side pixels, and the pixels to it, all black."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0))
    rows = chunk(b"IDAT", zlib.compress(bytes((side // 8 + 1) * side), 9))
    return b"\x89PNG\r\n\x1a\n" + head + rows + chunk(b"IEND", b"")


def test_a_picture_bomb_is_left_out_unread():
    found = read(BARS | {"bars/lying/bomb.png": bomb(8000)})
    assert "bomb.png: The picture has 8000 x 8000 pixels; the limit is 12" in found.left_out[0]


def test_many_large_pictures_are_too_much_together(monkeypatch):
    monkeypatch.setattr(pictures, "MAX_DECODED", 5_000)
    with pytest.raises(ValueError, match=r"pictures in bars.zip have more than 0 million pixels"):
        read(BARS)


def test_a_zip_bomb_is_stopped_where_it_grows_too_large(monkeypatch):
    zeros = bytes(11_000_000)
    found = read(BARS | {"bars/lying/zeros.png": zeros})
    assert "zeros.png: This file unpacks to more than 10 MB" in found.left_out[0]
    monkeypatch.setattr(pictures, "MAX_UNPACKED", 3_000)
    with pytest.raises(ValueError, match=r"bars.zip unpacks to more than"):
        read(BARS)


def test_ten_thousand_classes_are_refused():
    with pytest.raises(ValueError, match="There are 10,000 classes; the limit is 256"):
        read({f"{n}/a.png": b"x" for n in range(10_000)})


def test_huge_numbers_of_files_are_refused(monkeypatch):
    monkeypatch.setattr(pictures_zip, "MAX_FILES", 20)
    with pytest.raises(ValueError, match="it has more than 20 files"):
        read(BARS)
    monkeypatch.undo()
    monkeypatch.setattr(pictures, "MAX_PICTURES", 25)
    with pytest.raises(ValueError, match="There are 26 pictures; the limit is 25"):
        read(BARS)
    monkeypatch.setattr(pictures, "MAX_PICTURES", 26)
    assert read(BARS)


def test_pixels_of_all_channels_count_together(monkeypatch):
    monkeypatch.setattr(pictures, "MAX_PIXELS", 7 * 3 * 16 * 16)
    form = pictures.PictureForm(size=16, is_grey=False)
    pictures.check_n_pictures(7, form)
    with pytest.raises(ValueError, match="There are 8 pictures; the limit is 7 at 16 x 16"):
        pictures.check_n_pictures(8, form)


def test_a_zip_without_pictures_says_what_would_be_right():
    for files in ({}, {"a/readme.txt": b"hello"}):
        with pytest.raises(ValueError, match="has no readable picture"):
            read(files)


def test_what_is_neither_zip_nor_idx_is_named():
    with pytest.raises(ValueError, match=r"cat.png is not a zip"):
        read_pictures([("cat.png", png(np.zeros((4, 4), np.uint8)))], SMALL)


def test_a_size_that_no_set_has_is_refused():
    with pytest.raises(ValueError, match="17 pixels is not a valid size; choose one of 16, 20"):
        PictureForm(size=17)


RNG = np.random.default_rng(0)
IMAGES, LABELS = RNG.integers(0, 256, (30, 16, 16)), np.arange(30) % 3


def test_idx_of_any_size_is_read_packed_or_not():
    files = [
        ("train-images-idx3-ubyte.gz", idx(IMAGES, zipped=True)),
        ("train-labels-idx1-ubyte", idx(LABELS)),
        ("t10k-images-idx3-ubyte", idx(IMAGES[:6])),
        ("t10k-labels-idx1-ubyte", idx(LABELS[:6] + 4)),
    ]
    found = read_pictures(files, SMALL)
    np.testing.assert_array_equal(found.images[:30, 0], IMAGES)
    assert found.class_names == ("0", "1", "2", "4", "5", "6")
    assert np.bincount(found.parts, minlength=3).tolist() == [30, 0, 6]
    assert found.notes[0].startswith(
        "train-images-idx3-ubyte.gz is named like an MNIST file, but differs"
    )
    again = read_pictures([("four.zip", packed(dict(files)))], SMALL)
    np.testing.assert_array_equal(again.images, found.images)


def test_the_official_files_are_known(monkeypatch):
    content = idx(IMAGES)
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    official = DownloadSource("MNIST", unpacked={"train-images-idx3-ubyte": md5})
    monkeypatch.setitem(SOURCES, "mnist", official)
    found = read_pictures([("train-images-idx3-ubyte", content), ("labels", idx(LABELS))], SMALL)
    assert found.notes == ("MNIST’s own files: train-images-idx3-ubyte.",)


def test_bad_idx_is_one_sentence_that_names_the_file():
    for images, labels, match in [
        (idx(IMAGES)[:-5], idx(LABELS), r"images should have 7,696 bytes for 30 x 16 x 16"),
        (idx(IMAGES, zipped=True)[:-50], idx(LABELS), "images is damaged"),
        (idx(IMAGES), idx(LABELS[:7]), "images has 30 pictures, but labels has 7 labels"),
        (idx(IMAGES), idx(IMAGES), "images, labels: upload one file of pictures"),
        (idx(IMAGES)[:3], idx(LABELS), "images: This is not an IDX file"),
        (b"\0\0\x0d\x01" + bytes(8), idx(LABELS), "no unsigned bytes"),
        (idx(IMAGES[:0]), idx(LABELS[:0]), "images is empty"),
        (idx(IMAGES[0]), idx(LABELS[:16]), "images has the shape 16 x 16"),
    ]:
        with pytest.raises(ValueError, match=match):
            read_pictures([("images", images), ("labels", labels)], SMALL)


def of(labels, images=None, names=("cat", "dog")):
    """Return pictures with these labels, all different unless they are given."""
    labels = np.array(labels, np.int64)
    if images is None:
        images = np.random.default_rng(3).integers(0, 256, (len(labels), 1, 16, 16))
    named = tuple(f"{n}.png" for n in range(len(labels)))
    return Pictures(images.astype(np.uint8), labels, names, named)


def said(pictures, parts=None):
    parts = np.arange(len(pictures)) % 5 // 4 * 2 if parts is None else parts
    return [
        (one.level, str(one.sentence)) for one in findings(pictures, np.asarray(parts, np.int8))
    ]


def test_a_sound_set_has_no_findings():
    assert said(of([0, 1] * 20)) == []


def test_one_class_alone_is_a_problem():
    ((level, words),) = said(of([0] * 30, names=("cat",)))
    assert level == "problem"
    assert words.startswith("All 30 pictures are in one class, “cat”")


def test_pictures_that_are_all_the_same_are_a_problem():
    ((level, words),) = said(of([0, 1] * 15, np.zeros((30, 1, 16, 16))))
    assert level == "problem"
    assert words.startswith("All 30 pictures are the same")


def test_uneven_classes_and_what_the_larger_one_is_worth_are_said():
    ((level, words),) = said(of([0] * 45 + [1] * 5))
    assert level == "warning"
    assert "45 “cat”, 5 “dog”. Always answering “cat” is right 90% of the time" in words


def test_classes_that_only_the_test_has_and_that_it_lacks_are_said():
    labels = np.array([0] * 20 + [1] * 20 + [2] * 3)
    parts = np.where(labels == 2, 2, 0)
    words = " ".join(
        sentence for _level, sentence in said(of(labels, names=("a", "b", "c")), parts)
    )
    assert "Only the test has “c”" in words
    assert "The test has no pictures of “a”, “b”" in words


def test_duplicates_are_counted_within_across_and_against_the_labels():
    images = np.random.default_rng(0).integers(0, 256, (40, 1, 16, 16))
    images[30] = images[31] = images[0]
    images[5] = images[4]
    labels, parts = np.arange(40) % 2, np.zeros(40, np.int8)
    parts[30:] = 2
    found = duplicates(of(labels, images), parts)
    assert (found.n_again, found.n_across, found.n_contradicting) == (3, 2, 5)
    assert found.example == ("0.png", "30.png")


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
