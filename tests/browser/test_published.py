"""A published run, watched in a real browser: live from the app, and from any web server."""

import functools
import http.server
import json
import os
import re
import threading
import time

import pytest
from playwright.sync_api import expect

from pages.ui.files.publication import Publication
from tests.browser.conftest import DESKTOP
from tests.browser.tab import PATIENCE, await_js
from tests.pages.learned_runs import learned_run
from tests.pages.made_runs import with_worker
from tfm_core.hosting.published.folder import STATE, Folder
from tfm_core.runs.store import RunStore

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}
STEP = re.compile(r"Step ([\d,]+) of")
NOW = "() => window.dispatchEvent(new Event('online'))"
"""Lets a page ask at once, as it does when the network is back."""


class Watched:
    """A page of a published run, and what it asked for."""

    def __init__(self, page, url):
        self.page, self.wrong, self.answers = page, [], []
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("websocket", lambda socket: self.wrong.append(f"a session: {socket.url}"))
        page.on("response", lambda one: self.answers.append((one.url.split("/")[-1], one.status)))
        page.clock.install()  # time passes as ever, and faster where a test says so
        page.goto(url)
        await_js(page, "() => 'ready' in document.documentElement.dataset")

    def step(self):
        """The step where the play head stands."""
        where = self.page.locator(".stage .where")
        expect(where).to_have_text(STEP)
        return int(STEP.search(where.text_content())[1].replace(",", ""))

    def await_step(self, step):
        await_js(
            self.page,
            "least => Number(/Step ([0-9,]+) of/.exec(document.querySelector('.stage .where')"
            ".textContent)[1].replaceAll(',', '')) >= least",
            step,
        )

    def statuses(self, start):
        return {status for name, status in self.answers if name.startswith(start)}

    @property
    def state(self):
        return self.page.locator("#state")

    @property
    def said(self):
        return self.page.locator("#said")


@pytest.fixture
def watch(chromium):
    """Open the page of a published run as somebody who has never been here."""
    contexts, opened = [], []

    def watch(url, **options):
        context = chromium.new_context(**{"viewport": DESKTOP, **options})
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        opened.append(Watched(context.new_page(), url))
        return opened[-1]

    yield watch
    for context in contexts:
        context.close()
    assert [sentence for one in opened for sentence in one.wrong] == []


@pytest.fixture
def paused(server):
    """A run on the server whose worker, the process of the test, has paused it."""
    run = with_worker(learned_run(server.store, "translate"), "paused")
    yield run
    with_worker(run, "stopped")


def log_step(run, step):
    """Write down a step, as a worker does."""
    with (run.folder / "events.jsonl").open("a") as file:
        record = {"event": "step", "step": step, "loss": 0.5, "accuracy": 0.25}
        file.write(json.dumps(record) + "\n")


def test_a_run_is_published_watched_while_it_goes_on_and_taken_back(
    open_tab, paused, watch
) -> None:
    tab = open_tab(f"train?run={paused.id}")
    tab.from_menu("Publish")
    panel = tab.page.get_by_test_id("stDialog")
    panel.get_by_role("button", name="Publish", exact=True).click()
    url = panel.locator("code").text_content()
    assert paused.id not in url
    expect(panel.get_by_role("button", name="Copy link to the published page")).to_be_visible()

    seen = watch(url)
    expect(seen.state).to_have_text("Paused")
    expect(seen.page.get_by_role("heading", level=1)).to_have_text(paused.meta.name)
    expect(seen.page.locator(".stage .head")).not_to_have_count(0)
    for step in (500, 600):
        log_step(paused, step)
        seen.await_step(step)
    assert seen.statuses("log-") == {206}
    assert seen.statuses("run.json") <= {200, 304}
    assert seen.page.context.cookies() == []
    lasting = [name for name, _status in seen.answers if name.endswith((".bin", ".js", ".css"))]
    assert len(lasting) == len(set(lasting))

    with_worker(paused, "stopped")
    expect(seen.state).to_have_text("Stopped")
    panel.get_by_role("button", name="Unpublish").click()
    expect(panel.get_by_role("button", name="Publish", exact=True)).to_be_visible()
    seen.page.evaluate(NOW)
    expect(seen.said).to_contain_text("No longer published here")
    expect(seen.page.locator(".stage .head").first).to_be_visible()  # what was read stays


class Plain:
    """``python -m http.server`` in a folder: it knows no ranges and no ETag."""

    def __init__(self, folder, port=0):
        handler = functools.partial(Quiet, directory=folder)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_words):
        pass


@pytest.fixture
def published(tmp_path):
    """A run that trains as its test says, published into a folder, and a plain server there."""
    store = RunStore(tmp_path / "runs", recorded=None)
    run = with_worker(learned_run(store, "translate"), "paused")
    publication = Publication(run, Folder(tmp_path / "public"))
    publication.update(every=0.2)
    server = Plain(tmp_path / "public")
    yield run, publication, server
    server.close()


def train(run, publication, step):
    log_step(run, step)
    publication.update(every=0.2)


def test_any_web_server_will_do_and_may_go_and_come_back(published, watch) -> None:
    run, publication, server = published
    name = '<img src=x onerror=alert(1)> & "quoted"'
    RunStore(run.folder.parent, recorded=None).rename(run.id, name)
    publication.run = RunStore(run.folder.parent, recorded=None).get(run.id)
    publication.update(every=0.2)
    seen = watch(server.url)
    expect(seen.page.get_by_role("heading", level=1)).to_have_text(name)
    assert seen.page.title() == name
    assert seen.page.locator("header img").count() == 0
    for step in (500, 600):
        train(run, publication, step)
        seen.await_step(step)
    assert seen.statuses("log-") == {200}  # all of it each time: and yet nothing stands twice
    points = seen.page.evaluate(
        "() => document.querySelector('.stage').stage.data.lines"
        ".find(line => line.role === 'batch').steps"
    )
    assert points == sorted(set(points))
    assert points[-2:] == [500, 600]
    with seen.page.expect_response(lambda one: one.url.endswith(STATE) and one.status == 304):
        pass  # nothing is new

    # a hidden tab asks for nothing
    seen.page.evaluate(
        "() => { Object.defineProperty(document, 'hidden', { value: true, configurable: true });"
        " document.dispatchEvent(new Event('visibilitychange')); }"
    )
    train(run, publication, 700)
    asked = len(seen.answers)
    seen.page.clock.run_for(60_000)  # three hundred intervals
    assert len(seen.answers) - asked <= 1  # one may have been under way
    seen.page.evaluate(
        "() => { delete document.hidden; document.dispatchEvent(new Event('visibilitychange')); }"
    )
    seen.await_step(700)

    # a publisher that is silent is named, then a server that is away
    long_ago = time.time() - 600
    os.utime(publication.folder.path / STATE, (long_ago, long_ago))
    seen.page.reload()
    expect(seen.said).to_contain_text("Nothing new for 10 minutes")
    server.close()
    expect(seen.said).to_contain_text("No connection")
    again = Plain(publication.folder.path, server.port)
    try:
        train(run, publication, 800)
        seen.page.clock.fast_forward(60_000)
        seen.await_step(800)  # by itself
        expect(seen.said).to_be_empty()
    finally:
        again.close()


def test_it_is_scrubbed_and_another_head_and_example_are_chosen(published, watch) -> None:
    _run, _publication, server = published
    seen = watch(server.url, color_scheme="dark", viewport=PHONE, reduced_motion="reduce")
    page = seen.page
    assert page.evaluate("() => document.documentElement.scrollWidth") <= PHONE["width"]
    dark = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    page.get_by_role("slider", name="Training step").press("Home")
    expect(page.locator(".stage .where")).to_contain_text("Step 1 of")
    page.locator(".stage .row").nth(1).click()
    expect(page.locator(".stage .which")).to_contain_text("Example 2:")
    kinds = page.get_by_label("Attention").locator("option")
    page.get_by_label("Attention").select_option(index=1)
    chosen = kinds.nth(1).text_content()
    expect(page.locator(".stage .heads")).to_have_attribute("aria-busy", "false")
    expect(page.get_by_label("Attention").locator("option:checked")).to_have_text(chosen)
    expect(page.locator(".stage .which")).to_contain_text("Example 2:")
    page.locator(".stage .head").first.click()
    expect(page.get_by_role("button", name="Back to all heads")).to_be_visible()
    page.get_by_role("button", name="Switch theme").click()
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") != dark
