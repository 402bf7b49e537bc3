"""The walk: its steps and questions, the picture of the model, and where words look."""

import json
import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import OpenTab
from tests.browser.tab import Tab

pytestmark = pytest.mark.browser

KOREAN = "walk?run=recorded-korean"
MAP = "walk-map"
VALUES = "String(node._fullData[0].z.map(row => Array.from(row)))"
LOOKS = ".st-key-walk-looks .js-plotly-plot"
_MAP = f"document.querySelector('{LOOKS}')._fullData.find((trace) => trace.z)"
LOOKED = f"String({_MAP}.z.map((row) => Array.from(row)))"
LIKELIEST = """node => {
    const { view } = node.getRootNode().querySelector(".picture").picture;
    return view.lanes.at(-1).stages.at(-1).answers[0];
}"""
ANSWERS = "canvas => String(canvas.closest('.picture').picture.view.values.slice(-50))"
CAMERA = "node => Object.values(node.closest('.picture').picture.camera)"
PLOTLY = """() => performance.getEntriesByType('resource').map(({ name }) => name.split('/').at(-1))
    .filter((name) => name.startsWith('plotly') && name.endsWith('.js'))"""
"""JavaScript: the bundles of plotly that were loaded, in order."""


def await_likeliest(tab: Tab, toggle: Locator, condition: str) -> None:
    """Wait until the picture has other answers. condition: on ``found``, all of them as JSON."""
    found = f"JSON.stringify(({LIKELIEST})(toggle))"
    tab.await_js(f"(toggle) => ((found) => {condition})({found})", toggle.element_handle())


def as_json(answers: list[str]) -> str:
    """Return answers as JavaScript writes them, as a string of JavaScript."""
    return json.dumps(json.dumps(answers, separators=(",", ":")))


def at_step(tab: Tab, words: str) -> None:
    expect(tab.main.get_by_role("heading", name=words, exact=True)).to_be_visible()


def answer(tab: Tab, option: str) -> None:
    tab.main.get_by_role("radio", name=option, exact=True).check(force=True)
    tab.button("Check").click()


def test_a_shape_is_predicted_and_the_numbers_are_those_of_the_chosen_head(
    open_tab: OpenTab,
) -> None:
    tab = open_tab(f"{KOREAN}&part=split")
    at_step(tab, "7 · Split into heads")
    tab.main.get_by_role("button", name=re.compile("^.*Next")).click()
    at_step(tab, "8 · Scores, scaled")
    expect(tab.page).to_have_url(re.compile(r"\bpart=scores\b"))
    assert tab.copied_link() == tab.page.url

    # a shape is hidden until it is predicted
    hidden = tab.main.get_by_text("( ? )")
    expect(hidden).to_be_visible()
    answer(tab, "(6, 11, 11)")
    expect(tab.main.get_by_text("Not (6, 11, 11)")).to_be_visible()
    answer(tab, "(6, 4, 11, 11)")
    expect(tab.main.get_by_text(re.compile("^Right. It is"))).to_be_visible()
    expect(tab.main.get_by_text("0 of 1 right on the first try.")).to_be_visible()
    expect(hidden).to_have_count(0)

    # two steps on
    for words in ("9 · Mask", "10 · Softmax"):
        tab.main.get_by_role("button", name=re.compile("^.*Next")).click()
        at_step(tab, words)
    before = tab.plotly(MAP, VALUES)
    tab.pick("Head", "3")
    tab.await_plotly(MAP, f"{VALUES} !== arg", before)
    sums = tab.plotly(
        MAP, "node._fullData[0].z.map(row => Array.from(row).reduce((a, b) => a + b))"
    )
    assert all(total == pytest.approx(1, abs=1e-3) or total == 0 for total in sums)


def test_the_words_of_a_captioner_look_over_the_picture(open_tab: OpenTab) -> None:
    tab = open_tab("walk?run=recorded-captions&show=run&part=cross-attention")
    at_step(tab, "19 · Decoder: cross-attention")
    expect(tab.main.get_by_text("Answer first")).to_be_visible()
    tab.button("Show the answer").click()
    expect(tab.main.locator(LOOKS)).to_be_visible()
    tab.await_js(f"() => {LOOKED}.length > 0")
    before = tab.page.evaluate(LOOKED)
    tab.pick("Head", "2")
    expect(tab.main.get_by_text("Head 2 over the picture")).to_be_visible()
    tab.await_js(f"before => {LOOKED} !== before", before)

    # all of plotly comes where its small bundle does not do
    assert tab.page.evaluate(PLOTLY) == ["plotly-cartesian.min.js"]
    tab.go_to("Look inside", "Parameters")
    tab.await_plotly("parameters-treemap", "node._fullData[0].type === 'treemap'")
    assert tab.page.evaluate(PLOTLY) == ["plotly-cartesian.min.js", "plotly.min.js"]


def test_the_picture_is_entered_by_keys_down_to_a_number_and_a_head_is_knocked_out(
    open_tab: OpenTab,
) -> None:
    tab = open_tab(KOREAN)
    model, spoken = tab.main.locator("canvas.model"), tab.main.locator(".picture .spoken")
    expect(model).to_be_visible()
    model.focus()
    for said in ("Tokens", "Embedding", "+ positions", "Attention"):
        model.press("ArrowRight")
        expect(spoken).to_contain_text(said)
    for said in ("4 heads", "reads", "softmax of its scores"):
        model.press("Enter")
        expect(spoken).to_contain_text(said)
    tab.main.locator(".picture").get_by_role("button", name="Data as a table").click()
    weights = tab.page.get_by_role("dialog").get_by_role("row", name=re.compile("^bought"))
    read = [float(cell) for cell in weights.get_by_role("cell").all_inner_texts()]
    assert len(read) == 9  # tokens of the source, in the head that has the focus
    assert sum(read) == pytest.approx(1, abs=0.01)
    tab.page.keyboard.press("Escape")
    tab.main.get_by_role("button", name="Explain this step").click()
    expect(tab.main.get_by_role("heading", name=re.compile("Softmax"))).to_be_visible()

    before = model.evaluate(ANSWERS)
    model.press("Escape")
    model.press("Escape")
    tab.main.get_by_role("button", name="Knock out").click()
    expect(tab.page).to_have_url(re.compile(r"\bout=encoder\.1\.self\.1\b"))
    expect(tab.main.get_by_role("button", name="Put back")).to_be_visible()
    expect(tab.main.get_by_text("of 10 answers change")).to_be_visible()
    assert model.evaluate(ANSWERS) != before


def test_a_digit_is_drawn_in_the_picture_and_the_example_comes_back(open_tab: OpenTab) -> None:
    tab = open_tab("walk?run=recorded-digits")
    toggle = tab.main.get_by_role("button", name="Draw a digit")
    expect(toggle).to_be_visible()
    example = toggle.evaluate(LIKELIEST)
    assert example[0] == "0"
    toggle.click()
    board = tab.main.get_by_role("img", name="Drawing pad for one digit")
    box = board.bounding_box()
    assert box is not None
    points = [(0.25, 0.2), (0.75, 0.2), (0.45, 0.85)]  # a seven
    (x, y), *later = [
        (box["x"] + a * box["width"], box["y"] + b * box["height"]) for a, b in points
    ]
    tab.page.mouse.move(x, y)
    tab.page.mouse.down()
    for x, y in later:
        tab.page.mouse.move(x, y, steps=5)
    tab.page.mouse.up()
    expect(tab.page).to_have_url(re.compile(r"\bwalk-digit=picture-"))
    expect(tab.main.get_by_text("Your digit.")).to_be_visible()
    await_likeliest(tab, toggle, "JSON.parse(found)[0] === '7'")
    tab.main.get_by_role("button", name="Back to the example").click()
    expect(tab.main.get_by_text("Your digit.")).to_have_count(0)
    expect(tab.page).not_to_have_url(re.compile("walk-digit"))
    await_likeliest(tab, toggle, f"found === {as_json(example)}")

    tab.main.locator(".st-key-head").get_by_role("slider").press("Home")
    expect(tab.page).to_have_url(re.compile(r"\bstep=0\b"))
    await_likeliest(tab, toggle, f"found !== {as_json(example)}")


def test_fingers_move_and_zoom_the_picture_and_scroll_the_page(open_tab: OpenTab) -> None:
    phone = {"width": 390, "height": 844}
    tab = open_tab(KOREAN, viewport=phone, has_touch=True, is_mobile=True)
    model = tab.main.locator("canvas.model")
    expect(model).to_be_visible()
    model.scroll_into_view_if_needed()
    tab.settle()
    touch = Fingers(tab, model)
    begin = model.evaluate(CAMERA)
    moved = touch(*[[(-10 * n, 0)] for n in range(11)])
    assert moved[1] > begin[1]
    before = tab.page.get_by_test_id("stMain").evaluate("node => node.scrollTop")
    touch(*[[(0, -10 * n)] for n in range(11)])  # not yet zoomed in: the page scrolls
    tab.await_js(
        "before => document.querySelector('[data-testid=stMain]').scrollTop > before", before
    )
    near = touch(*pinch(30, 120))
    assert near[0] > 1.5 * moved[0]
    down = touch(*[[(0, 10 * n)] for n in range(11)])  # zoomed in: the picture moves
    assert down[2] < near[2]
    assert tab.page.evaluate("window.visualViewport.scale") == 1
    assert touch(*pinch(150, 20))[0] < near[0]
    expect(model).to_have_css("touch-action", "pan-y")


Places = list[tuple[float, float]]
"""Where fingers are at one moment, from the middle of what they touch."""


class Fingers:
    """Fingers on the canvas of a model; calling them returns its camera: scale, left, top."""

    def __init__(self, tab: Tab, model: Locator) -> None:
        box = model.bounding_box()
        assert box is not None
        self._x, self._y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self._model = model
        self._session = tab.page.context.new_cdp_session(tab.page)

    def __call__(self, *moments: Places) -> tuple[float, float, float]:
        """Put fingers at places, one moment after the other, and lift them."""
        for n, fingers in enumerate([*moments, []]):
            kind = "touchEnd" if not fingers else "touchMove" if n else "touchStart"
            points = [
                {"x": self._x + x, "y": self._y + y, "id": id} for id, (x, y) in enumerate(fingers)
            ]
            self._session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        scale, left, top = self._model.evaluate(CAMERA)
        return scale, left, top


def pinch(start: int, end: int) -> list[Places]:
    way = range(start, end, 10 if end > start else -10)
    return [[(-apart, 0), (apart, 0)] for apart in way]
