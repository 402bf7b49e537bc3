"""Another language is files alone, and leaves nothing in English on any page, and nothing cut."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from pages.ui.navigation import page_table
from tests.browser import server as servers
from tests.browser.conftest import Tabs
from tests.browser.server import ROOT, AppServer
from tests.browser.tab import Tab
from tests.pages import pseudo
from tfm_core.data.text import text_task
from tfm_core.presets import PRESETS

pytestmark = pytest.mark.browser

PROJECTOR = {"width": 1280, "height": 720}
HERE = Path(__file__).parent
UNTRANSLATED = (HERE / "untranslated.js").read_text(encoding="utf-8")
CUT = (HERE / "cut.js").read_text(encoding="utf-8")
LISTEN = """window.drawnTexts = new Set();
const fillText = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
    window.drawnTexts.add(String(text));
    return fillText.call(this, text, ...rest);
};"""
SECTIONS = {
    title or "Home": [page for page in page_table.PAGES.values() if page.section == name]
    for name, title in page_table.SECTIONS.items()
}
STAYS = (
    r"English",  # the name of a language is in that language
    r"https?://.*|data:.*",
    r"[•\W\d]*[A-Z]{2,}[\w., •]*",  # PNG, CPU, TOML
    r"\W*<\w+>.*",  # tokens such as <eos>
    r"[\W\d]*[\w–]*[._][\w.–=/ ]*",  # names of settings, modules and files
    r".*\b(19|20)\d\d\b.*",  # papers
    r"[\d.,]+ ?(KiB|MiB|GiB|MAC)\b.*",
    r"(weight|bias|table) [\dx ]+(, bias \d+)?",  # parameters
    r"[xyb](\[\d\])* = .*",
    r".*\b(sqrt|softmax|log|exp|view|einsum)\b.*",
)
"""What is alike in every language: code, papers, units, names of formats."""
OF_PAGES = {
    "parameters": [r"[a-z_]+"],  # modules in the drawing
    "tensors": [r"[a-z_]+"],  # functions
    "words": [r"[a-z]{1,8}( \+ [a-z]{1,8})?"],  # pieces of words
}


@cache
def words_of_data() -> frozenset[str]:
    """Return all words that a recorded model reads or writes."""
    found = {"circle", "cross", "square", "triangle", "four", "shapes"}  # of the example set
    found |= {"positive", "negative", "neutral"}
    for preset in PRESETS.values():
        task = preset.experiment.task
        if task.kind == "text":
            known = text_task(task)
            for vocabulary in (known.src_vocabulary, known.tgt_vocabulary):
                found |= {token.casefold() for token in vocabulary.tokens}
    captions = "zero one two three four five six seven eight nine a left right of above below"
    typed = "i love ai the cat sees the small smallest dog dogs very not qk kᵀ bos eos pad unk cls"
    return frozenset(found | set(captions.split()) | set(typed.split()))


@pytest.fixture(scope="module")
def translated(chromium: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """A copy of the app with one more language, as a translator adds it."""
    root = tmp_path_factory.mktemp("translated")
    for part in ("pages", "tfm_core", ".streamlit", "docs"):
        shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "app.py", root)
    pseudo.write(root)
    server = servers.start(tmp_path_factory.mktemp("app"), {}, root=root)
    yield server
    server.close()


@pytest.fixture
def tab(browser_tabs: Tabs, translated: AppServer) -> Iterator[Tab]:
    page: Page = browser_tabs.take({"viewport": PROJECTOR, "locale": "en-US"})
    page.add_init_script(LISTEN)
    tab = Tab(page, translated.url)
    yield tab
    assert tab.went_wrong() == []
    tab.leave()
    browser_tabs.give_back(is_sound=True)


def untranslated(tab: Tab, page: str) -> list[tuple[str, str]]:
    """Return where and what a page says in English."""
    stays = re.compile("|".join((*STAYS, *OF_PAGES.get(page, []))), re.DOTALL)
    data = words_of_data()
    return [
        (where, text)
        for where, text in tab.page.evaluate(UNTRANSLATED)
        if not stays.fullmatch(text)
        and not {word.casefold() for word in re.findall(r"[A-Za-z]{2,}", text)} <= data
    ]


@pytest.mark.parametrize("pages", SECTIONS.values(), ids=SECTIONS)
def test_nothing_is_in_english_and_nothing_is_cut_in_another_language(
    tab: Tab, pages: list[page_table.PageFacts]
) -> None:
    english: dict[str, list[tuple[str, str]]] = {}
    cut: dict[str, list[str]] = {}
    for page in pages:
        runs = ["recorded-korean", "recorded-digits"] if page.shows_run else [""]
        run = runs[page.name in ("draw", "practice")]
        tab.goto(f"{page.url_path}?lang={pseudo.LANGUAGE}" + (f"&run={run}" if run else ""))
        expect(tab.page.locator("html")).to_have_attribute("lang", pseudo.LANGUAGE)
        for figure in tab.main.locator(".live-figure").all():
            expect(figure.locator(".main-svg, canvas").first).to_be_attached()
        english[page.name] = untranslated(tab, page.name)
        cut[page.name] = tab.page.evaluate(CUT)
    assert {name: texts for name, texts in english.items() if texts} == {}
    assert {name: texts for name, texts in cut.items() if texts} == {}


def test_a_language_is_switched_at_once_and_goes_along_to_pages_links_and_visits(tab: Tab) -> None:
    tab.goto("masks?mask=causal")
    expect(tab.title).to_have_text("Masks")
    choice = tab.strip.get_by_role("combobox", name="Language")
    choice.select_option(pseudo.LANGUAGE)
    expect(tab.title).to_contain_text("⟦")
    expect(tab.page.locator("html")).to_have_attribute("lang", pseudo.LANGUAGE)
    chosen = tab.main.get_by_role("radio", checked=True).first
    expect(chosen).to_contain_text("⟦Causal")
    tab.page.wait_for_url(f"**lang={pseudo.LANGUAGE}*")
    tab.main.locator(".st-key-page-title a").last.click()
    expect(tab.title).not_to_contain_text("⟦Masks")
    expect(tab.title).to_contain_text("⟦")
    tab.page.wait_for_url(f"**lang={pseudo.LANGUAGE}*")
    tab.settle()
    tab.page.go_back()  # the language has made no entry
    expect(tab.title).to_contain_text("⟦Masks")
    tab.goto("")  # another visit: the browser remembers
    expect(tab.title).to_contain_text("⟦")
    tab.strip.get_by_role("combobox", name="Language").select_option("en")
    expect(tab.title).not_to_contain_text("⟦")
    tab.reload()
    expect(tab.title).not_to_contain_text("⟦")


def test_what_stands_on_a_page_changes_with_the_language(tab: Tab) -> None:
    tab.goto("train?run=recorded-korean")
    expect(tab.main.locator(".stage .head").first).to_be_visible()
    tab.strip.get_by_role("combobox", name="Language").select_option(pseudo.LANGUAGE)
    expect(tab.main.locator(".stage .head .title").first).to_contain_text("⟦")
    tab.settle()
    tab.page.evaluate("window.drawnTexts.clear()")
    tab.page.set_viewport_size({"width": 1200, "height": 720})  # draws all canvases again
    tab.page.wait_for_function("[...window.drawnTexts].some((text) => text.includes('⟦'))")
    tab.settle()
    assert untranslated(tab, "train") == []
