"""A file is read again when it changed, and only then."""

import os
from pathlib import Path

import pytest

from tfm_core.runs.disk.atomic import CachedReader

pytestmark = pytest.mark.quick


class Reader:
    """Reads text and counts how often."""

    def __init__(self, **bounds: int) -> None:
        self.n_read = 0
        self.remembered = CachedReader(self._read, **bounds)

    def of(self, path: Path) -> str:
        return self.remembered.of(path.parent, path.name)

    def _read(self, path: Path) -> str:
        self.n_read += 1
        return path.read_text()


@pytest.fixture
def old(tmp_path, monkeypatch):
    """Make files that changed a while ago, by the clock that is asked."""
    monkeypatch.setattr("tfm_core.runs.disk.atomic._SETTLED_NS", -(10**12))

    def made(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return made


def test_a_file_is_read_once_until_it_changes(old):
    reader, path = Reader(), old("a", "one")
    assert [reader.of(path) for _ in range(3)] == ["one"] * 3
    assert reader.n_read == 1
    beside = old("b", "two")
    os.replace(beside, path)
    assert [reader.of(path) for _ in range(3)] == ["two"] * 3
    assert reader.n_read == 2


def test_a_file_that_changed_just_now_is_read_each_time(tmp_path):
    reader, path = Reader(), tmp_path / "a"
    path.write_text("one")
    assert reader.of(path) == reader.of(path) == "one"
    assert reader.n_read == 2


def test_large_files_and_the_oldest_of_many_are_let_go(old):
    reader = Reader(most=2, largest=7)
    large = old("large", "x" * 11)
    reader.of(large), reader.of(large)
    assert reader.n_read == 2
    paths = [old(name, name) for name in "abc"]
    for path in paths:
        reader.of(path)
    assert reader.n_read == 5
    assert reader.of(paths[2]) == "c"
    assert reader.n_read == 5
    assert reader.of(paths[0]) == "a"
    assert reader.n_read == 6
