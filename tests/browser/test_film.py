"""A run as one file, opened from the disk without a network: it plays, and its model answers."""

import json
import re

import pytest
from playwright.sync_api import expect

from pages.ui.files.film import film
from tests.browser.conftest import PATIENCE
from tfm_core.inspect.attention.own_example import look_at_text
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}


@pytest.fixture
def open_file(chromium, tmp_path):
    """Open a page from the disk; it asks for nothing, and no script of it fails."""
    wrong, asked, contexts = [], [], []

    def opened(content, **options):
        context = chromium.new_context(offline=True, **options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        tab = context.new_page()
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        tab.on("request", lambda request: asked.append(request.url))
        file = tmp_path / "run.html"
        file.write_bytes(content)
        tab.goto(file.as_uri())
        tab.wait_for_function("() => 'ready' in document.documentElement.dataset")
        return tab

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)


def recorded(name):
    return Run(RECORDED / name, recorded=True)


@pytest.fixture(scope="module")
def korean():
    return film(recorded("recorded-korean"), with_model=False)


def background(tab):
    return tab.evaluate("() => getComputedStyle(document.body).backgroundColor")


def test_the_training_is_scrubbed_in_either_theme_and_on_paper(open_file, korean) -> None:
    tab = open_file(korean, color_scheme="dark", viewport=PHONE, reduced_motion="reduce")
    assert tab.evaluate("() => document.documentElement.scrollWidth") <= PHONE["width"]
    dark = background(tab)
    for is_dark in (False, True):
        tab.get_by_role("button", name="Switch theme").click()
        assert (background(tab) == dark) == is_dark
    expect(tab.get_by_role("heading", level=1)).to_have_text("English to Korean, recorded")
    where = tab.locator(".stage .where")
    expect(where).to_have_text("Step 1,000 of 1,000")
    tab.get_by_role("slider", name="Training step").press("Home")
    expect(where).to_have_text("Step 0 of 1,000")
    expect(tab.locator(".stage .row").first).to_have_attribute("data-verdict", "wrong")
    tab.locator(".stage .row").nth(1).click()
    expect(tab.locator(".stage .which")).to_contain_text("Example 2:")
    tab.get_by_label("Attention").select_option(label="Encoder self-attention")
    expect(tab.locator(".stage .head")).to_have_count(4)  # one layer
    expect(where).to_have_text("Step 0 of 1,000")
    tab.get_by_role("button", name="Step 1,000", exact=True).click()
    expect(where).to_have_text("Step 1,000 of 1,000")
    expect(tab.locator(".stage .row").first).to_have_attribute("data-verdict", "right")
    expect(tab.get_by_role("heading", name="Ask the model")).to_be_hidden()

    # on paper it stands at its end in light colours
    tab.get_by_role("slider", name="Training step").press("Home")
    pages = tab.pdf(prefer_css_page_size=True)
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", pages)) <= 4
    expect(where).to_have_text("Step 1,000 of 1,000")


def said(run, number):
    """What the run answered to an example at its last snapshot, as the page writes it down."""
    snapshot = run.snapshot(run.snapshot_steps()[-1])
    if snapshot.tokens is not None:
        return list(snapshot.tokens[number])
    return [run.experiment.task.facts.class_names[snapshot.probabilities[number].argmax()]]


def answer(tab):
    found = tab.locator("#asking .answer")
    expect(found).to_have_attribute("aria-busy", "false")
    return json.loads(found.get_attribute("data-tokens"))


@pytest.mark.parametrize("name", ["recorded-korean", "recorded-digits"])
def test_the_model_in_the_page_answers_as_the_run_does(open_file, name) -> None:
    run = recorded(name)
    tab = open_file(film(run, with_model=True))
    examples = tab.locator("#asking .chip")
    expect(examples).to_have_count(len(run.probe().items))
    for number in range(3):
        examples.nth(number).click()
        assert answer(tab) == said(run, number)
    if name == "recorded-korean":
        typed_words(tab, run)
    else:
        drawn_digit(tab)


def typed_words(tab, run):
    field = tab.get_by_label("Type words that it knows")
    field.fill("the CAT slept")
    field.press("Enter")
    assert answer(tab) == list(look_at_text(run, "the cat slept").answer)
    field.fill("the zebra slept")
    field.press("Enter")
    expect(tab.locator("#asking .answer")).to_contain_text("The model does not know “zebra”")


def drawn_digit(tab):
    tab.get_by_role("button", name="Clear", exact=True).click()
    board = tab.get_by_role("img", name="Drawing pad").bounding_box()
    x, top, high = board["x"] + board["width"] / 2, board["y"], board["height"]
    tab.mouse.move(x, top + 0.2 * high)
    tab.mouse.down()
    tab.mouse.move(x + 2, top + 0.5 * high)
    tab.mouse.move(x, top + 0.8 * high)
    tab.mouse.up()
    assert answer(tab) == ["1"]
