"""What a page asked for before it was left draws nothing over the page after it."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser.conftest import OpenTab
from tests.browser.experiments import LONG
from tests.browser.tab import link_of

pytestmark = pytest.mark.browser


class LongLine:
    """What lies between a page and its server: what a page's timers ask for comes late."""

    def __init__(self, page: Page) -> None:
        self._asked: dict[str, Any] = {}
        self._opened = ""
        self.came_late = 0
        page.route_web_socket("**/_stcore/stream", self._connect)

    def _connect(self, route: WebSocketRoute) -> None:
        server = route.connect_to_server()

        def ask(said: Any) -> None:
            message = BackMsg.FromString(said).rerun_script
            if message.is_auto_rerun:
                self._asked[message.fragment_id] = said
            server.send(said)

        def answer(said: Any) -> None:
            route.send(said)
            message = ForwardMsg.FromString(said)
            if message.WhichOneof("type") != "new_session":
                return
            opened = message.new_session.page_script_hash
            if opened != self._opened:  # its script has just begun
                self._opened = opened
                for late in self._asked.values():
                    server.send(late)
                    self.came_late += 1
                self._asked.clear()

        route.on_message(ask)
        server.on_message(answer)


def test_what_a_page_asked_for_late_leaves_the_next_page_as_it_is(open_tab: OpenTab) -> None:
    tab = open_tab(locale="en-US")  # which makes it a page of its own
    line = LongLine(tab.page)
    tab.goto(link_of(LONG))
    tab.button("Start").click()
    tab.await_step(1)
    tab.await_draws(4)  # its timers ask
    before = line.came_late
    tab.strip.get_by_role("combobox").fill("Positions")
    tab.strip.get_by_role("option", name="Positions").first.click()  # which the server opens
    expect(tab.title).to_have_text("Positions")
    tab.settle()
    assert line.came_late > before
    tab.await_draws(2)  # of what is in every page's frame: all that came late is over
    expect(tab.title).to_have_text("Positions")
