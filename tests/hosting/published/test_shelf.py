"""What is published has an address that nobody guesses, until it is taken away."""

from __future__ import annotations

import errno
import os

import pytest

from tfm_core.hosting.published.shelf import Shelf
from tfm_core.runs.auth import is_token, new_token
from tfm_core.runs.disk import cleanup
from tfm_core.runs.queue.limits import LimitReached
from tfm_core.runs.store import RunStore

RUN = "a-run-of-mine"


def test_a_run_has_one_address_and_keeps_it(tmp_path) -> None:
    shelf = Shelf(tmp_path)
    assert shelf.of(RUN) is None
    first = shelf.publish(RUN, most=2)
    assert is_token(first.token)
    assert RUN not in first.token
    assert shelf.publish(RUN, most=2) == first == Shelf(tmp_path).of(RUN)
    assert shelf.publish("another-run", most=2).token != first.token


def test_what_is_unpublished_is_gone_and_comes_back_elsewhere(tmp_path) -> None:
    shelf = Shelf(tmp_path)
    first = shelf.publish(RUN, most=1)
    (first.folder / "run.json").write_text("{}")
    shelf.unpublish(RUN)
    assert not first.folder.exists()
    assert list(shelf.path.iterdir()) == []
    assert shelf.list() == []
    assert shelf.publish(RUN, most=1).token != first.token


def test_no_more_are_published_than_the_host_lets(tmp_path) -> None:
    shelf = Shelf(tmp_path)
    shelf.publish(RUN, most=1)
    with pytest.raises(LimitReached, match="1 runs are published"):
        shelf.publish("another-run", most=1)
    assert len(shelf.list()) == 1


def test_it_is_no_run_and_disturbs_none(tmp_path) -> None:
    Shelf(tmp_path).publish(RUN, most=1)
    assert RunStore(tmp_path, recorded=None).list() == []


def test_only_a_token_leads_to_a_file(tmp_path) -> None:
    for token in ["", ".", "..", "../x", "a" * 42, "a" * 44, "a/" + "b" * 41]:
        assert Shelf(tmp_path).file(token, "run.json") is None


def test_a_full_disk_leaves_nothing_of_what_was_to_be_published(tmp_path, monkeypatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tfm_core.hosting.published.shelf.write_json", full)
    one = Shelf(tmp_path)
    with pytest.raises(OSError, match="No space"):
        one.publish(RUN, most=1)
    assert list(one.path.iterdir()) == []


def test_folders_that_were_never_whole_are_swept_and_published_ones_stay(
    tmp_path, monkeypatch
) -> None:
    one = Shelf(tmp_path)
    published = one.publish(RUN, most=2)
    (one.path / new_token()).mkdir()
    (one.path / f"{cleanup.DRAFT}1").mkdir()
    assert cleanup.clean_up(tmp_path) == 0
    monkeypatch.setattr(cleanup, "QUIET_SECONDS", -60.0)
    assert cleanup.clean_up(tmp_path) == 2
    assert [path.name for path in one.path.iterdir()] == [published.token]
    assert one.of(RUN) == published
