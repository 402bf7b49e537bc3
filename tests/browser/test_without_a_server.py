"""Files that need no server: a run as one page that plays and answers, a figure, a picture."""

import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from pages.app.runs.film import film
from tests.browser.tab import PATIENCE, await_js
from tfm_core.inspect.attention.example import look_at_text
from tfm_core.inspect.attention.maps import MapView
from tfm_core.plots.export import map_svg, page
from tfm_core.plots.heads.attention import head_map
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}


@pytest.fixture
def open_file(chromium, tmp_path):
    """Open a file from the disk; it asks for nothing, and no script of it fails."""
    wrong, asked, contexts = [], [], []

    def opened(content, name="run.html", **options):
        context = chromium.new_context(offline=True, **options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        tab = context.new_page()
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        tab.on("request", lambda request: asked.append(request.url))
        file = tmp_path / name
        file.write_bytes(content)
        tab.goto(file.as_uri())
        return tab

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)


@pytest.fixture(scope="module")
def korean():
    return Run(RECORDED / "recorded-korean", recorded=True)


@pytest.fixture(scope="module")
def korean_film(korean):
    return film(korean, with_model=True)


def await_ready(tab):
    await_js(tab, "() => 'ready' in document.documentElement.dataset")


def background(tab):
    return tab.evaluate("() => getComputedStyle(document.body).backgroundColor")


def test_the_training_is_scrubbed_in_either_theme_and_on_paper(open_file, korean_film) -> None:
    tab = open_file(korean_film, color_scheme="dark", viewport=PHONE, reduced_motion="reduce")
    await_ready(tab)
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


def expect_answers(tab, run, n_asked):
    """Ask about examples of the probe; the page answers as the run did."""
    examples = tab.locator("#asking .chip")
    expect(examples).to_have_count(len(run.probe().items))
    for number in range(n_asked):
        examples.nth(number).click()
        assert answer(tab) == said(run, number)


def test_a_model_of_texts_answers_in_the_page_as_the_run_does(
    open_file, korean, korean_film
) -> None:
    tab = open_file(korean_film)
    await_ready(tab)
    expect_answers(tab, korean, 3)
    field = tab.get_by_label("Type words that the model knows")
    field.fill("the CAT slept")
    field.press("Enter")
    assert answer(tab) == list(look_at_text(korean, "the cat slept").answer)
    field.fill("the zebra slept")
    tab.get_by_role("button", name="Answer", exact=True).click()
    expect(tab.locator("#asking .answer")).to_contain_text("The model doesn't know “zebra”")


@pytest.mark.wide
def test_a_model_of_pictures_reads_in_the_page_what_is_drawn(open_file) -> None:
    digits = Run(RECORDED / "recorded-digits", recorded=True)
    tab = open_file(film(digits, with_model=True))
    await_ready(tab)
    expect_answers(tab, digits, 3)
    tab.get_by_role("button", name="Clear", exact=True).click()
    board = tab.get_by_role("img", name="Drawing pad").bounding_box()
    x, top, high = board["x"] + board["width"] / 2, board["y"], board["height"]
    tab.mouse.move(x, top + 0.2 * high)
    tab.mouse.down()
    tab.mouse.move(x + 2, top + 0.5 * high)
    tab.mouse.move(x, top + 0.8 * high)
    tab.mouse.up()
    assert answer(tab) == ["1"]


TOKENS = ("<bos>", "학교", "에")
WEIGHTS = np.array([[0.25, 0.5, 0.25], [0.125, 0.75, 0.125], [0.0, 0.0, 1.0]])


def test_an_exported_figure_answers_the_pointer_and_a_picture_is_drawn(open_file) -> None:
    maps = MapView(WEIGHTS, TOKENS, TOKENS)
    figure = head_map(maps)
    tab = open_file(page(figure, title="Layer 1, head 1", words="Look for rows.", theme="dark"))
    expect(tab.get_by_role("heading", name="Layer 1, head 1")).to_be_visible()
    expect(tab.locator(".ytick text").first).to_have_text("<bos>")
    tab.locator(".nsewdrag").first.hover()
    hover = tab.locator(".hoverlayer .hovertext")
    expect(hover).to_have_count(1)
    assert re.search(r"query 2: 학교key 2: 학교weight 0\.7500", hover.text_content())
    picture = open_file(map_svg(maps, title="Layer 1, head 1"), "head.svg")
    expect(picture.locator("rect")).to_have_count(10)  # the paper and nine cells
    expect(picture.locator("text", has_text="학교")).to_have_count(2)
