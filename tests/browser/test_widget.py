"""Two widgets in one notebook, a run and a look: each draws its heads in a separate frame."""

import pytest
from playwright.sync_api import expect

from pages import widget
from tests.browser.tab import PATIENCE
from tests.looking.loops import HEADS as RUN_HEADS
from tests.looking.loops import LAYERS, trained
from tests.pages.look_inside.attention.test_looks import HEADS, encoder
from tfm_core.runs.notebook import open_run
from tfm_core.runs.store import RunStore

pytestmark = pytest.mark.browser

RENDER = """async ([script, widgets]) => {
  const module = await import(`data:text/javascript,${encodeURIComponent(script)}`);
  for (const values of widgets) {
    const cell = document.createElement("div");
    document.body.append(cell);
    module.default.render({ model: { get: (name) => values[name] }, el: cell });
  }
}"""


def test_a_run_and_a_look_in_one_notebook(chromium, tmp_path) -> None:
    store = RunStore(tmp_path / "runs", recorded=None)
    shown = (open_run(trained(store).id, store=store), encoder())
    values = [
        {"title": title, "page": page, "height": 500}
        for title, page, _picture in map(widget.contents, shown)
    ]
    context = chromium.new_context(offline=True)
    context.set_default_timeout(PATIENCE)
    tab, wrong = context.new_page(), []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.set_content("<!doctype html><body></body>")
    tab.evaluate(RENDER, [widget._SCRIPT.read_text(encoding="utf-8"), values])
    run, look = (tab.frame_locator("iframe").nth(n) for n in (0, 1))
    expect(run.locator(".stage .head")).to_have_count(RUN_HEADS * LAYERS)
    expect(look.locator(".stage .head")).to_have_count(HEADS * 2)
    expect(run.locator(".stage .curves")).to_be_visible()
    expect(look.locator(".stage .curves")).to_be_hidden()
    expect(look.get_by_text("The weights are random")).to_have_count(0)
    for frame in (run, look):
        covered = frame.locator(".stage .axes").evaluate(
            "it => getComputedStyle(it).backgroundColor"
        )
        assert covered == "rgba(0, 0, 0, 0)"
    look.locator(".stage .row").nth(1).click()
    expect(look.locator(".stage .which")).to_contain_text("Example 2:")
    context.close()
    assert wrong == []
