"""A bad line: a proxy takes a prefix away, answers are late, and what a browser held is gone."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, WebSocketRoute, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser.conftest import DESKTOP
from tests.browser.prefix_proxy import behind
from tests.browser.server import AppServer
from tests.browser.tab import PATIENCE, Tab
from tests.runs.waiting import wait_until

pytestmark = pytest.mark.browser


class Line:
    """What lies between a page and its server: it may be long, and the page may be mistaken."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._late: list[ForwardMsg] | None = None
        self.heard: set[str] = set()
        self.claimed: set[str] = set()
        """The large messages that the page says it holds, beside those that it does."""
        self.named = 0
        page.route_web_socket("**/_stcore/stream", self._connect)

    def _connect(self, route: WebSocketRoute) -> None:
        server = route.connect_to_server()
        self._route = route
        route.on_message(lambda said: server.send(self._with_claims(said)))
        server.on_message(self._answer)

    def _with_claims(self, said: Any) -> Any:
        message = BackMsg.FromString(said)
        if message.WhichOneof("type") != "rerun_script":
            return said
        message.rerun_script.cached_message_hashes.extend(self.claimed)
        return message.SerializeToString()

    def _answer(self, said: Any) -> None:
        message = ForwardMsg.FromString(said)
        self.named += message.WhichOneof("type") == "ref_hash"
        if message.metadata.cacheable:
            self.heard.add(message.hash)
        if self._late is None:
            self._route.send(said)
        else:
            self._late.append(message)

    def hold_answers(self) -> None:
        """Let what the server says from now on be under way until it is let through."""
        self._late = []

    def await_end(self) -> None:
        """Wait until the end of a run is under way."""
        wait_until(self._has_end, "the server has answered")

    def _has_end(self) -> bool:
        self._page.evaluate("0")  # what has come meanwhile is heard
        return any(late.WhichOneof("type") == "script_finished" for late in self._late or [])

    def let_through(self) -> None:
        """Let all that is under way arrive, and what comes then at once."""
        late, self._late = self._late or [], None
        for message in late:
            self._route.send(message.SerializeToString())


@pytest.fixture
def far(chromium: Browser, server: AppServer) -> Iterator[tuple[Tab, Line]]:
    """A tab that is far from its server, behind a proxy, and the line between them."""
    port = urlsplit(server.url).port
    assert port is not None
    context = chromium.new_context(viewport=DESKTOP, reduced_motion="reduce", locale="en-US")
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    line = Line(page)
    with behind("/class/of-30/", port) as address:
        tab = Tab(page, address)
        tab.goto("attention?run=recorded-korean")
        yield tab, line
        went_wrong = tab.went_wrong()
        context.close()
    assert went_wrong == []


def press(tab: Tab, head: int) -> None:
    tab.main.get_by_role("gridcell", name=f"Layer 1, Head {head}:").click()


def await_head(tab: Tab, head: int) -> None:
    expect(tab.main.get_by_text(f"Layer 1, head {head}", exact=True)).to_be_visible()
    tab.settle()


def test_who_is_quicker_than_the_answer_stays_connected_and_what_is_gone_is_sent_again(
    far: tuple[Tab, Line],
) -> None:
    tab, line = far
    press(tab, 2)
    await_head(tab, 2)
    line.hold_answers()
    press(tab, 3)
    line.await_end()
    press(tab, 1)  # asked for while the page still holds the map of this head
    line.let_through()  # and forgets it
    await_head(tab, 1)

    # what a browser no longer holds is sent again
    assert line.heard
    line.claimed = set(line.heard)
    tab.reload()  # it holds nothing any more
    press(tab, 4)
    await_head(tab, 4)
    assert line.named  # what it does hold is only named

    # what the app serves beside its pages is found behind the proxy
    expect(tab.main.locator(".live-figure .main-svg").first).to_be_visible()
    tab.go_to("Look inside", "Build")
    expect(tab.main.locator(".picture canvas.model").first).to_be_visible()
    with urllib.request.urlopen(f"{tab.url}/health", timeout=PATIENCE / 1000) as answer:
        assert answer.status == 200
        assert json.load(answer)["ok"]
