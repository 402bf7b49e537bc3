"""The walk: forward and back, predictions, slices, and the textbook example."""

import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.tab import Tab

pytestmark = pytest.mark.browser

MAP = "walk-map"
LOOKS = ".st-key-walk-looks .js-plotly-plot"
LOOKED = f"String(document.querySelector('{LOOKS}')._fullData[1].z.map(row => Array.from(row)))"
LIKELIEST = """node => {
    const { view } = node.getRootNode().querySelector(".picture").picture;
    return view.lanes.at(-1).stages.at(-1).answers[0];
}"""
ANSWERS = "canvas => String(canvas.closest('.picture').picture.view.values.slice(-50))"
VALUES = "String(node._fullData[0].z.map(row => Array.from(row)))"


CAMERA = "node => Object.values(node.closest('.picture').picture.camera)"


def at_step(tab: Tab, words: str) -> None:
    expect(tab.main.get_by_role("heading", name=words, exact=True)).to_be_visible()


def test_steps_heads_and_the_textbook_example(open_tab: OpenTab) -> None:
    tab = open_tab("walk?run=recorded-korean&step=split")
    at_step(tab, "7 · Split into heads")
    tab.main.get_by_role("button", name=re.compile("^.*Next")).click()
    at_step(tab, "8 · Scores, scaled")
    expect(tab.page).to_have_url(re.compile(r"\bstep=scores\b"))
    assert tab.copied_link() == tab.page.url
    tab.main.get_by_role("button", name=re.compile("^.*Back")).click()
    at_step(tab, "7 · Split into heads")
    tab.reload()
    at_step(tab, "7 · Split into heads")

    # the numbers are those of the head that is chosen
    tab.goto("walk?run=recorded-korean&step=10")
    at_step(tab, "10 · Softmax")
    before = tab.plotly(MAP, VALUES)
    tab.pick("Head", "3")
    tab.await_plotly(MAP, f"{VALUES} !== arg", before)
    sums = tab.plotly(
        MAP, "node._fullData[0].z.map(row => Array.from(row).reduce((a, b) => a + b))"
    )
    assert all(total == pytest.approx(1, abs=1e-3) or total == 0 for total in sums)

    # the example of the texts is one press away
    tab.goto("walk?step=3")
    tab.main.get_by_role("button", name="Change").click()
    tab.page.get_by_role("radio", name="Textbook example", exact=True).click()
    tab.page.keyboard.press("Escape")
    expect(tab.main.get_by_text("(128, 28)").first).to_be_visible()
    expect(tab.main.get_by_text("One pair's numbers").first).to_be_visible()
    expect(tab.page).to_have_url(re.compile("walk-source=book"))

    # a shape is hidden until it is predicted
    tab.goto("walk?walk-source=book&step=8")
    expect(tab.main.get_by_text("(128, 8, 28, 64)").first).to_be_visible()
    hidden = tab.main.get_by_text("( ? )")
    expect(hidden).to_be_visible()
    tab.main.get_by_role("radio", name="(128, 28, 28)", exact=True).check(force=True)
    tab.button("Check").click()
    expect(tab.main.get_by_text("Not (128, 28, 28)")).to_be_visible()
    tab.main.get_by_role("radio", name="(128, 8, 28, 28)", exact=True).check(force=True)
    tab.button("Check").click()
    expect(tab.main.get_by_text(re.compile("^Right. It is"))).to_be_visible()
    expect(tab.main.get_by_text("0 of 1 right on the first try.")).to_be_visible()
    expect(hidden).to_have_count(0)


def test_a_block_of_a_captioner_leads_to_where_its_words_look(open_tab: OpenTab) -> None:
    query = {"model.family": "captioner", "task.name": "captions", "show": "draft"}
    tab = open_tab(f"build?{urlencode(query)}")
    name = "Decoder block 1: cross-attention"
    tab.main.get_by_role("button", name=name).click()
    tab.main.get_by_role("link", name="Step 19: Decoder: cross-attention").click()
    at_step(tab, "19 · Decoder: cross-attention")
    expect(tab.main.get_by_text("Answer first")).to_be_visible()
    tab.button("Show the answer").click()
    expect(tab.main.locator(LOOKS)).to_be_visible()
    tab.page.wait_for_function(f"() => {LOOKED}.length > 0")
    before = tab.page.evaluate(LOOKED)
    tab.pick("Head", "3")
    expect(tab.main.get_by_text("Head 3 over the picture")).to_be_visible()
    tab.page.wait_for_function(f"before => {LOOKED} !== before", arg=before)


def test_the_picture_is_entered_by_keys_down_to_a_number_and_a_head_is_knocked_out(
    open_tab: OpenTab,
) -> None:
    tab = open_tab("walk?run=recorded-korean")
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
    after = model.evaluate(ANSWERS)
    assert after != before


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
    assert toggle.evaluate(LIKELIEST)[0] == "7"
    tab.main.get_by_role("button", name="Back to the example").click()
    expect(tab.main.get_by_text("Picture 1: 0")).to_be_visible()
    expect(tab.page).not_to_have_url(re.compile("walk-digit"))
    assert toggle.evaluate(LIKELIEST) == example

    slider = tab.main.get_by_role("slider", name="Weights of step")
    slider.press("Home")
    expect(tab.main.get_by_text("Weights of step 0.")).to_be_visible()
    expect(tab.page).to_have_url(re.compile(r"\bweights=0\b"))
    assert toggle.evaluate(LIKELIEST) != example
    slider.press("End")
    expect(tab.page).not_to_have_url(re.compile("weights="))
    assert toggle.evaluate(LIKELIEST) == example


def test_fingers_move_and_zoom_the_picture_and_scroll_the_page(open_tab: OpenTab) -> None:
    tab = open_tab(
        "walk?run=recorded-korean",
        viewport={"width": 390, "height": 844},
        has_touch=True,
        is_mobile=True,
    )
    model = tab.main.locator("canvas.model")
    expect(model).to_be_visible()
    model.scroll_into_view_if_needed()
    tab.settle()
    box = model.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    session = tab.page.context.new_cdp_session(tab.page)

    def touch(*moments: list[tuple[float, float]]) -> tuple[float, float, float]:
        """Put fingers at places, one moment after the other; return the camera afterwards."""
        for n, fingers in enumerate([*moments, []]):
            kind = "touchEnd" if not fingers else "touchMove" if n else "touchStart"
            points = [{"x": x + dx, "y": y + dy, "id": id} for id, (dx, dy) in enumerate(fingers)]
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        k, left, top = model.evaluate(CAMERA)
        return k, left, top

    def pinch(start: int, end: int) -> list[list[tuple[float, float]]]:
        way = range(start, end, 10 if end > start else -10)
        return [[(-apart, 0), (apart, 0)] for apart in way]

    begin = model.evaluate(CAMERA)
    moved = touch(*[[(-10 * n, 0)] for n in range(11)])
    assert moved[1] > begin[1]
    main = tab.page.get_by_test_id("stMain")
    before = main.evaluate("node => node.scrollTop")
    touch(*[[(0, -10 * n)] for n in range(11)])  # not yet zoomed in: the page scrolls
    tab.page.wait_for_function(
        "before => document.querySelector('[data-testid=stMain]').scrollTop > before", arg=before
    )
    near = touch(*pinch(30, 120))
    assert near[0] > 1.5 * moved[0]
    down = touch(*[[(0, 10 * n)] for n in range(11)])  # zoomed in: the picture moves
    assert down[2] < near[2]
    assert tab.page.evaluate("window.visualViewport.scale") == 1
    assert touch(*pinch(150, 20))[0] < near[0]
    expect(model).to_have_css("touch-action", "pan-y")
