"""The table of pages and the panels of each kind of task are complete."""

from pathlib import Path

import pytest

from pages.i18n import PAGES_DIR, content
from pages.ui.model.task_panels import example_name
from pages.ui.navigation import page_table
from pages.ui.navigation.page_table import PAGES, WAY, PageFacts
from tfm_core.config import CaptionTaskConfig, Experiment
from tfm_core.presets import PRESETS


def test_scripts_titles_and_words_of_pages_stand_in_the_table_once():
    packages = [path.parent for path in PAGES_DIR.glob("*/__init__.py")]
    listed = {Path(page.path).parent for page in PAGES.values()}
    assert listed == {path for path in packages if path.name not in {"ui", "components", "server"}}
    assert all(Path(page.path).is_file() for page in PAGES.values())
    for what in ("file", "title", "icon"):
        said = [getattr(page, what) for page in PAGES.values()]
        assert len(set(said)) == len(said), what
    for page in PAGES.values():
        assert content(page.name.replace("-", "_")).startswith("# ")
    assert page_table.at("") is PAGES["home"]
    assert all(page_table.at(page.url_path) is page for page in PAGES.values())
    assert {page.url_path for page in PAGES.values()} == {"", *PAGES} - {"home"}


def test_next_leads_along_the_path_of_pages_with_section_and_goal():
    with pytest.raises(ValueError, match="stands in cellar, not in home, watch, try, break, play"):
        PageFacts("wine", "cellar", "wine/page.py", "Wine", ":material/wine_bar:")
    with pytest.raises(ValueError, match="needs a goal, minutes and a chapter: one of numbers"):
        PageFacts("wine", "try", "Wine", ":material/wine_bar:", chapter="numbers")
    with pytest.raises(ValueError, match="one of numbers, attention"):
        PageFacts("wine", "try", "Wine", "", chapter="cellar", goal="Taste", minutes=7)
    page, walked = WAY[0], [WAY[0]]
    while (following := page_table.after(page.name)) is not None:
        page = following
        walked.append(page)
    assert tuple(walked) == WAY
    assert page_table.after("home") is None


def test_an_example_is_named_by_what_its_kind_holds():
    text = {"src_text": "1+2", "tgt_text": "3"}
    assert example_name(Experiment(), text, 5) == "5: 1+2 → 3"
    assert example_name(Experiment(), text, 5, is_short=True) == "5: 1+2"
    digits = PRESETS["vit-digits"].experiment
    assert example_name(digits, {"label": 7}, 2) == "Picture 2: 7"
    captions = PRESETS["captions"].experiment
    assert isinstance(captions.task, CaptionTaskConfig)
    assert example_name(captions, {"tgt_text": "a two"}, 3, is_short=True) == "Picture 3: a two"
