"""A few of the forged folders, links and uploads that ``benchmarks fuzz`` tries by the thousand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.stress import fuzz
from benchmarks.stress.fuzz import Tally, app_on
from tests.nightly import IS_NIGHTLY
from tfm_core.runs.run import Run

pytestmark = pytest.mark.wide
N_FOLDERS, N_LINKS = (14, 25) if IS_NIGHTLY else (5, 8)


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Runs to forge, of words and of pictures."""
    return fuzz.trained(tmp_path_factory.mktemp("bases"), ("translate", "vit-digits"))


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    with app_on(tmp_path):
        yield tmp_path


def test_garbled_folders_break_no_page_and_no_worker(bases: list[Run], root: Path) -> None:
    tally = Tally()
    fuzz.folders(tally, bases, root, count=N_FOLDERS)
    fuzz.look_at_lists(tally, root)
    assert tally.broken == []
    assert tally.tried == N_FOLDERS


def test_forged_links_open_or_say_why_not(root: Path) -> None:
    tally = Tally()
    fuzz.links(tally, count=N_LINKS)
    assert tally.broken == []


def test_forged_configurations_are_accepted_or_refused_in_sentences(root: Path) -> None:
    tally = Tally()
    fuzz.configurations(tally, count=20)
    assert tally.broken == []
    assert tally.outcomes["refused in sentences"]


def test_forged_pictures_are_accepted_or_refused_in_a_sentence(root: Path) -> None:
    tally = Tally()
    fuzz.pictures(tally, count=20)
    assert tally.broken == []
    assert set(tally.outcomes) == {"accepted", "refused in a sentence"}
