"""What CONTRIBUTING.md and the README name is there, and the recipes lead to what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pages.ui.navigation.page_table import PAGES
from tfm_core.config.text_tasks import TEXT_TASKS
from tfm_core.data.text import TEXT_GENERATORS

ROOT = Path(__file__).resolve().parents[1]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`((?:tfm_core|pages|tests|benchmarks|\.ci)/[\w./-]*|\w+\.(?:txt|toml|md|py))`")
BARE = {"page.py"}
"""Files that the guide names in a folder which it has just named."""


@pytest.mark.parametrize(
    "document", ["CONTRIBUTING.md", "README.md", "docs/architecture.md", "docs/cli.md"]
)
def test_every_file_and_folder_that_is_named_is_there(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    folders = [ROOT, *(ROOT / name for name in NAMED.findall(text) if name.endswith("/"))]
    for name in set(NAMED.findall(text)) - BARE:
        assert any((folder / name).exists() for folder in folders), f"{document}: {name}"


def test_every_word_in_capitals_is_a_name_of_the_file_that_the_recipe_leads_to() -> None:
    for name, file in {
        "POSITIONS": "tfm_core/variants/positions/__init__.py",
        "MISTAKES": "tfm_core/mistakes/__init__.py",
        "OPTIMISERS": "tfm_core/variants/optimisers.py",
        "TEXT_GENERATORS": "tfm_core/data/text/__init__.py",
        "TEXT_TASKS": "tfm_core/config/text_tasks.py",
        "PRESETS": "tfm_core/presets.py",
    }.items():
        assert f"`{name}`" in GUIDE
        assert re.search(rf"^{name}\b.*=", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_a_text_task_has_its_facts_and_its_generator() -> None:
    assert TEXT_TASKS.keys() == TEXT_GENERATORS.keys()


def test_a_page_has_its_script_and_its_words() -> None:
    for page in PAGES.values():
        assert Path(page.path).is_file()
        assert (ROOT / "pages/content/en" / f"{page.name.replace('-', '_')}.md").is_file(), page
