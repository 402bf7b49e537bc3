"""Files as Windows treats them: not replaced while somebody has them open."""

import os

import pytest

from tfm_core import disk


class Windows:
    """``os.replace`` of a file that others hold for so many tries."""

    def __init__(self, held: int, winerror: int | None = 32) -> None:
        self.held, self.winerror, self.slept = held, winerror, list[float]()
        self._replace = os.replace

    def replace(self, source: str, target: str) -> None:
        if self.held > 0:
            self.held -= 1
            error = PermissionError(13, "The process cannot access the file")
            error.winerror = self.winerror  # type: ignore[attr-defined]
            raise error
        self._replace(source, target)


@pytest.fixture
def beside(tmp_path):
    (tmp_path / "new").write_text("new")
    (tmp_path / "old").write_text("old")
    return tmp_path / "new", tmp_path / "old"


def on(windows: Windows, monkeypatch) -> Windows:
    monkeypatch.setattr(disk.os, "replace", windows.replace)
    monkeypatch.setattr(disk.time, "sleep", windows.slept.append)
    return windows


def test_a_file_that_is_looked_at_is_replaced_once_it_is_let_go(beside, monkeypatch) -> None:
    windows = on(Windows(held=3), monkeypatch)
    disk.replace(*beside)
    assert beside[1].read_text() == "new"
    assert len(windows.slept) == 3


def test_one_that_is_never_let_go_is_told_after_two_seconds(beside, monkeypatch) -> None:
    windows = on(Windows(held=10**6), monkeypatch)
    with pytest.raises(PermissionError):
        disk.replace(*beside)
    assert beside[1].read_text() == "old"
    assert 1 < sum(windows.slept) < 3


def test_what_may_not_be_written_is_said_at_once(beside, monkeypatch) -> None:
    windows = on(Windows(held=1, winerror=None), monkeypatch)
    with pytest.raises(PermissionError):
        disk.replace(*beside)
    assert windows.slept == []
