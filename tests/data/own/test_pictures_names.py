"""Names of files in zips that do not say their encoding."""

import io
import zipfile

import numpy as np
import pytest

from tests.data.own.files import packed, png
from tfm_core.data.own.pictures import Choices, Form, read_pictures
from tfm_core.data.own.pictures_names import likely_encoding

NAMES = {
    "cp949": (["고양이", "개", "새"], ["사과", "바나나", "포도"], ["뱀", "쥐"]),
    "cp932": (["犬", "猫", "鳥"], ["りんご", "バナナ"], ["表", "能"], ["Tシャツ", "ズボン"]),
    "gbk": (["猫", "狗", "鸟"], ["苹果", "香蕉"], ["汽车", "火车", "飞机"], ["正常", "异常"]),
    "big5": (["貓", "狗", "鳥"], ["蘋果", "香蕉", "橘子"]),
    "cp866": (["кошка", "собака"], ["Яблоки", "Груши"]),
    "cp437": (["Köln", "München"], ["café", "thé"], ["niño", "año"]),
    "utf-8": (["고양이", "개"], ["猫"], ["Köln"]),
}
CASES = [(encoding, names) for encoding, found in NAMES.items() for names in found]


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


@pytest.mark.parametrize(("encoding", "names"), CASES)
def test_the_encoding_is_guessed_from_all_names(encoding, names):
    assert likely_encoding([name.encode(encoding) for name in names]) == encoding


@pytest.mark.parametrize(("encoding", "names"), CASES)
def test_classes_are_called_as_their_folders_were(encoding, names):
    content = as_windows_packs(names, encoding)
    found = read_pictures([("set.zip", content)], Form(size=16))
    assert set(found.class_names) == set(names)
    assert found.understood.encoding == encoding
    assert len(found) == 3 * len(names)


def test_another_encoding_can_be_chosen():
    content = as_windows_packs(["고양이"], "cp949")
    found = read_pictures([("set.zip", content)], Form(size=16), Choices(encoding="gbk"))
    assert found.class_names == (("고양이").encode("cp949").decode("gbk"),)
    assert found.understood.encoding == "gbk"


def test_no_encoding_is_asked_for_where_the_zip_says_it():
    files = {f"set/{name}/1.png": png(np.zeros((9, 9), np.uint8)) for name in ("고양이", "개")}
    found = read_pictures([("set.zip", packed(files))], Form(size=16))
    assert found.class_names == ("개", "고양이")
    assert found.understood.encoding is None


def test_a_path_that_leaves_the_zip_in_its_true_encoding_is_refused():
    content = unflagged({"犬/../../猫.png".encode("cp932"): b"x"})
    with pytest.raises(ValueError, match="points outside of the zip"):
        read_pictures([("set.zip", content)], Form(size=16))


def test_a_file_without_a_name_is_left_out():
    picture = png(np.zeros((9, 9), np.uint8))
    found = read_pictures([("set.zip", unflagged({b"": picture, b"a/1.png": picture}))], Form(16))
    assert (len(found), found.n_left_out) == (1, 1)
