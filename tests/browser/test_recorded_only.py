"""The recorded runs alone, in a server that has no PyTorch, as a visitor sees them."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser import server as servers
from tests.browser.conftest import DESKTOP
from tests.browser.tab import PATIENCE, await_js
from tests.lacking import without

pytestmark = pytest.mark.browser

STEP, ENDED = re.compile(r"Step [\d,]+ of"), re.compile(r"Step ([\d,]+) of \1$")
LAPTOP, PHONE = {"width": 1280, "height": 720}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def recorded(chromium, tmp_path_factory):
    """A server that finds no PyTorch."""
    folder = tmp_path_factory.mktemp("recorded")
    environment = without({"torch", "torchvision"}, folder) | {"TFM_RECORDED_ONLY": "1"}
    server = servers.start(folder, environment)
    yield server
    server.close()
    assert "Traceback" not in server.log.read_text()


@pytest.fixture
def visit(chromium, recorded):
    """Open an address of it as somebody who has never been here; nothing may go wrong there."""
    contexts, wrong = [], []

    def visit(path="", **options):
        context = chromium.new_context(**{"viewport": DESKTOP, **options})
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("websocket", lambda socket: wrong.append(f"a session: {socket.url}"))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.goto(f"{recorded.url}/{path}")
        return page

    visit.wrong = wrong
    yield visit
    for context in contexts:
        context.close()
    assert wrong == []


def plays(stage):
    """Wait until a stage has its film, then see that it moves: from its first step to another."""
    expect(stage.locator(".head")).not_to_have_count(0)
    page = stage.page
    page.get_by_role("slider", name="Training step").first.press("Home")
    expect(stage.locator(".where")).to_have_text(STEP)
    start = stage.locator(".where").text_content()
    head = "stage => stage.querySelector('.head canvas').toDataURL()"
    drawn = stage.evaluate(head)
    page.get_by_role("button", name="Play the training").first.click()
    expect(stage.locator(".where")).not_to_have_text(start)
    await_js(
        page,
        "([stage, drawn]) => stage.querySelector('.head canvas').toDataURL() !== drawn",
        [stage.element_handle(), drawn],
    )


def moves_by_itself(stage):
    """Wait until the step that a stage shows is another one, without a touch."""
    expect(stage.locator(".where")).to_have_text(STEP)
    seen = stage.locator(".where").text_content()
    expect(stage.locator(".where")).not_to_have_text(seen)


def fits(page):
    return page.evaluate(
        "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )


def test_the_first_screen_moves_and_runs_play_on_pages_of_their_own(visit) -> None:
    page = visit(viewport=LAPTOP)
    hero = page.locator("#hero")
    assert hero.bounding_box()["y"] + hero.bounding_box()["height"] <= LAPTOP["height"]
    moves_by_itself(hero)  # it begins again and again
    expect(page.locator(".card")).to_have_count(14)
    name = "English to Korean, recorded"
    page.get_by_role("link", name=name, exact=True).last.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    plays(page.locator("#stage"))
    expect(page.locator(".tables table")).to_have_count(4)
    page.get_by_role("slider", name="Training step").press("End")
    expect(page.locator(".stage .where")).to_have_text(ENDED)

    # without motion the first screen is at rest
    page.emulate_media(reduced_motion="reduce")
    page.get_by_role("link", name="All recorded runs").click()
    expect(page.locator(".card")).to_have_count(14)
    expect(page.locator("#hero .where")).to_have_text("Step 1,000 of 1,000")
    await_js(page, "() => 'ready' in document.documentElement.dataset")
    expect(page.get_by_role("button", name="Play the training")).to_have_count(1)

    # a link to a run leads there, or says that it is not here
    page.goto(page.url.split("?")[0] + "?run=recorded-digits")
    expect(page.get_by_role("heading", level=1)).to_have_text("Digits, recorded")
    plays(page.locator("#stage"))
    page.goto(page.url.split("recorded-digits")[0] + "?run=somebodys")
    expect(page.locator("#unknown")).to_contain_text("is not here")
    expect(page.locator(".card")).to_have_count(14)


def test_a_card_plays_when_it_comes_into_sight_and_its_heads_are_no_buttons(visit) -> None:
    page = visit(viewport=PHONE, color_scheme="dark")
    film = page.locator(".card .film").last
    expect(film.locator(".head")).to_have_count(0)
    expect(page.locator(".card .film").first.locator(".head")).not_to_have_count(0)
    page.evaluate("() => document.fonts.ready")
    whole = page.evaluate("document.documentElement.scrollHeight")
    film.scroll_into_view_if_needed()
    expect(film.locator(".head")).not_to_have_count(0)
    assert page.evaluate("document.documentElement.scrollHeight") == whole  # nothing has moved
    expect(film.locator(".where")).to_have_text(ENDED)  # of its own accord
    page.evaluate(
        """film => { window.steps = []; new MutationObserver(() => window.steps.push(
            film.querySelector('.where').textContent)).observe(film.querySelector('.where'),
            { childList: true, characterData: true, subtree: true }); }""",
        arg=film.element_handle(),
    )
    film.locator("..").hover()  # once more for who points at it
    await_js(page, "() => new Set(window.steps).size > 2")
    assert fits(page)
    box = film.bounding_box()
    page.mouse.click(box["x"] + 30, box["y"] + 30)
    expect(page.locator(".tables table")).to_have_count(4)
    assert fits(page)
