"""The table of pages and the panels of each kind of task are complete."""

from pathlib import Path

import pytest

from pages.app.model.answer import example_name
from pages.app.navigation import page_table
from pages.app.navigation.page_table import PAGES, PLACES, WAY, PageFacts
from pages.i18n import PAGES_DIR, content
from tfm_core.choices.config import CaptionTaskConfig, Experiment
from tfm_core.choices.presets import PRESETS


def test_scripts_titles_and_words_of_pages_stand_in_the_table_once():
    places = {path.parent.name for path in PAGES_DIR.glob("*/__init__.py")}
    places -= {"app", "components", "server"}
    assert places == {name.replace("-", "_") for name in PLACES}
    assert all(page.file.startswith(page.place.replace("-", "_")) for page in PAGES.values())
    assert all(Path(page.path).is_file() for page in PAGES.values())
    for what in ("file", "title", "icon"):
        said = [getattr(page, what) for page in PAGES.values()]
        assert len(set(said)) == len(said), what
    for page in PAGES.values():
        assert content(page.name.replace("-", "_")).startswith("# ")
    placed = [name for _title, names in PLACES.values() for name in names]
    assert sorted(placed) == sorted(PAGES)
    assert page_table.at("") is PAGES["home"]
    assert all(page_table.at(page.url_path) is page for page in PAGES.values())
    assert {page.url_path for page in PAGES.values()} == {"", *PAGES} - {"home"}


def test_next_leads_along_the_path_of_pages_with_goal():
    with pytest.raises(ValueError, match="needs a goal, minutes and a chapter: one of numbers"):
        PageFacts("wine", "Wine", ":material/wine_bar:", chapter="numbers")
    with pytest.raises(ValueError, match="one of numbers, attention"):
        PageFacts("wine", "Wine", "", chapter="cellar", goal="Taste", minutes=7)
    page, walked = WAY[0], [WAY[0]]
    while (following := page_table.after(page.name)) is not None:
        page = following
        walked.append(page)
    assert tuple(walked) == WAY
    assert page_table.after("home") is None


def test_an_example_is_named_by_what_its_kind_holds():
    text = {"src_text": "1+2", "tgt_text": "3"}
    assert example_name(Experiment(), text, 5) == "5: 1+2 → 3"
    digits = PRESETS["vit-digits"].experiment
    assert example_name(digits, {"label": 7}, 2) == "Picture 2: 7"
    captions = PRESETS["captions"].experiment
    assert isinstance(captions.task, CaptionTaskConfig)
    assert example_name(captions, {"tgt_text": "a two"}, 3) == "Picture 3: a two"
