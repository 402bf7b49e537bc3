"""A few of the forged folders, links and uploads of ``benchmarks/attacks``, where many are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.attacks import folders, links, uploads
from benchmarks.attacks._pages import Tally, app_on
from tests.nightly import IS_NIGHTLY
from tfm_core.runs.run import Run

N_FOLDERS, N_LINKS = (14, 25) if IS_NIGHTLY else (5, 8)


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Runs to garble, of words and of pictures."""
    return folders.trained(tmp_path_factory.mktemp("bases"), ("translate", "vit-digits"))


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    with app_on(tmp_path):
        yield tmp_path


def test_garbled_folders_break_no_page_and_no_worker(bases: list[Run], root: Path) -> None:
    tally = Tally()
    folders.attack(tally, Counter(), bases, root, count=N_FOLDERS)
    folders.look_at_lists(tally, root)
    assert tally.broken == []
    assert tally.attacks == N_FOLDERS


def test_forged_links_open_or_say_why_not(root: Path) -> None:
    tally = Tally()
    links.attack(tally, Counter(), count=N_LINKS)
    assert tally.broken == []


def test_forged_configurations_are_taken_or_refused_in_sentences(root: Path) -> None:
    tally, outcomes = Tally(), Counter[str]()
    uploads.configurations(tally, outcomes, count=20)
    assert tally.broken == []
    assert outcomes["refused in sentences"]


def test_forged_pictures_are_looked_at_or_refused_in_a_sentence(root: Path) -> None:
    tally, outcomes = Tally(), Counter[str]()
    uploads.pictures(tally, outcomes, count=20)
    assert tally.broken == []
    assert set(outcomes) == {"looked at", "refused in a sentence"}
