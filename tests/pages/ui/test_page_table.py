"""The table of pages and the panels of each kind of task are complete."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from pages.i18n import PAGES_DIR, content
from pages.ui.model.task_panels import TASK_PANELS, example_name
from pages.ui.navigation import page_table
from pages.ui.navigation.page_table import PAGES, WAY, PageFacts
from tfm_core.config import CaptionTaskConfig, Experiment
from tfm_core.presets import PRESETS
from tfm_core.variants.tasks import TASK_KINDS


def test_every_script_of_a_page_stands_in_the_table() -> None:
    packages = [path.parent for path in PAGES_DIR.glob("*/__init__.py")]
    listed = {Path(page.path).parent for page in PAGES.values()}
    assert listed == {path for path in packages if path.name not in {"ui", "components", "server"}}
    assert all(Path(page.path).is_file() for page in PAGES.values())


def test_no_two_pages_share_a_script_a_title_or_an_icon() -> None:
    for what in ("file", "title", "icon"):
        said = [getattr(page, what) for page in PAGES.values()]
        assert len(set(said)) == len(said), what


def test_every_page_has_its_words() -> None:
    for page in PAGES.values():
        assert content(page.name.replace("-", "_")).startswith("# ")


def test_home_is_the_page_without_a_path_and_every_other_page_has_its_name() -> None:
    assert page_table.at("") is PAGES["home"]
    assert all(page_table.at(page.url_path) is page for page in PAGES.values())
    assert {page.url_path for page in PAGES.values()} == {"", *PAGES} - {"home"}


def test_a_page_of_no_section_says_which_there_are() -> None:
    with pytest.raises(ValueError, match="stands in cellar, not in home, watch, try, break, play"):
        PageFacts("wine", "cellar", "wine/page.py", "Wine", ":material/wine_bar:")


def test_every_page_that_teaches_is_on_the_path_chapter_by_chapter() -> None:
    assert {page.name for page in PAGES.values()} - {page.name for page in WAY} == {
        "class",
        "home",
        "train",
        "runs",
        "glossary",
        "lessons",
        "induction",
        "chains",
        "grokking",
        "adder",
        "sinks",
        "specialise",
        "superposition",
        "memorising",
    }
    chapters = [chapter for chapter, _pages in itertools.groupby(page.chapter for page in WAY)]
    assert chapters == list(page_table.CHAPTERS)


def test_next_leads_from_the_first_page_of_the_path_to_the_last() -> None:
    page, walked = WAY[0], [WAY[0]]
    while (following := page_table.after(page.name)) is not None:
        page = following
        walked.append(page)
    assert tuple(walked) == WAY
    assert page_table.after("home") is None


def test_a_page_of_the_path_needs_a_goal() -> None:
    with pytest.raises(ValueError, match="needs a goal, minutes and a chapter: one of numbers"):
        PageFacts("wine", "try", "Wine", ":material/wine_bar:", chapter="numbers")
    with pytest.raises(ValueError, match="one of numbers, attention"):
        PageFacts("wine", "try", "Wine", "", chapter="cellar", goal="Taste", minutes=7)


def test_the_bar_shows_few_entries_and_every_section_with_pages_has_a_name() -> None:
    sections = {page.section for page in PAGES.values()}
    in_the_bar = [page for page in PAGES.values() if not page_table.SECTIONS[page.section]]
    assert [page.name for page in in_the_bar] == ["home", "lessons"]
    assert len(sections) <= 8


def test_every_kind_of_task_has_panels() -> None:
    assert list(TASK_PANELS) == list(TASK_KINDS)


def test_every_panel_is_there() -> None:
    for panels in TASK_PANELS.values():
        assert callable(panels.sample())
        assert callable(panels.own())
        assert content(panels.own_words)


def test_an_example_is_named_by_what_its_kind_holds() -> None:
    text = {"src_text": "1+2", "tgt_text": "3"}
    assert example_name(Experiment(), text, 5) == "5: 1+2 → 3"
    assert example_name(Experiment(), text, 5, is_short=True) == "5: 1+2"
    digits = PRESETS["vit-digits"].experiment
    assert example_name(digits, {"label": 7}, 2) == "Picture 2: 7"
    captions = PRESETS["captions"].experiment
    assert isinstance(captions.task, CaptionTaskConfig)
    assert example_name(captions, {"tgt_text": "a two"}, 3, is_short=True) == "Picture 3: a two"


def test_pages_without_a_section_title_stand_in_the_bar_one_by_one() -> None:
    places = {page.name: page_table.place_in_bar(page) for page in PAGES.values()}
    assert (places["home"], places["lessons"]) == (0, 1)
    assert places["train"] == places["attention"] == 2
    assert places["words"] + 1 == places["induction"] == max(places.values())
