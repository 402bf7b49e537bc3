import gzip
import hashlib

import pytest

from tfm_core.data.download import DataUnavailable, fetch, matches, unpack_gzip

CONTENT = b"0123456789" * 20011
MD5 = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()


@pytest.fixture
def mirrors(tmp_path):
    """Return the addresses of a missing file, of a damaged one and of the right one."""
    (tmp_path / "damaged").write_bytes(CONTENT[:-1])
    (tmp_path / "right").write_bytes(CONTENT)
    return [(tmp_path / name).as_uri() for name in ("missing", "damaged", "right")]


def get(addresses, path, progress=lambda done, total, words: None):
    fetch(addresses, path, md5=MD5, label="Digits", progress=progress)


def test_mirrors_are_tried_until_one_has_the_file_whole(mirrors, tmp_path):
    target = tmp_path / "new" / "file.gz"
    get(mirrors, target)
    assert target.read_bytes() == CONTENT
    assert matches(target, MD5)
    assert [path.name for path in target.parent.iterdir()] == ["file.gz"]


def test_progress_counts_to_the_end(mirrors, tmp_path):
    told = []
    get(mirrors[2:], tmp_path / "file.gz", lambda *news: told.append(news))
    done, total, words = zip(*told, strict=True)
    assert list(done) == sorted(done)
    assert done[-1] == len(CONTENT)
    assert set(total) == {len(CONTENT)}
    assert set(words) == {"Downloading file.gz"}


def test_when_no_mirror_has_it_the_sentence_names_each_and_nothing_stays(mirrors, tmp_path):
    target = tmp_path / "new" / "file.gz"
    with pytest.raises(DataUnavailable, match="Digits could not be downloaded") as caught:
        get(mirrors[:2], target)
    assert all(mirror in str(caught.value) for mirror in mirrors[:2])
    assert "the checksum is not" in str(caught.value)
    assert f"Put file.gz into {target.parent}" in str(caught.value)
    assert list(target.parent.iterdir()) == []


def test_a_mirror_that_cannot_be_reached_is_told_in_words(tmp_path):
    with pytest.raises(DataUnavailable, match="Connection refused") as caught:
        get(["http://127.0.0.1:9/file.gz"], tmp_path / "file.gz")
    assert "Errno" not in str(caught.value)


@pytest.mark.parametrize("content", [b"not packed", gzip.compress(CONTENT)[:-20]])
def test_a_damaged_archive_is_named(content, tmp_path):
    packed, target = tmp_path / "file.gz", tmp_path / "file"
    packed.write_bytes(content)
    with pytest.raises(DataUnavailable, match=r"file\.gz is damaged"):
        unpack_gzip(packed, target)
    assert not target.exists()
