"""Two visitors of a server that strangers reach, and its host: whose a run is, who may do what."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, WebSocket, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser import server as servers
from tests.browser.conftest import DESKTOP, PATIENCE
from tests.browser.experiments import LONG
from tests.browser.server import AppServer
from tests.browser.tab import Tab, link_of
from tests.runs.waiting import wait_until

pytestmark = pytest.mark.browser

KEY = "only the host knows this"
LINE = "This run belongs to another visitor."
KEEP_SOCKETS = """
    window.sockets = [];
    const Real = window.WebSocket;
    window.WebSocket = class extends Real {
        constructor(...said) { super(...said); window.sockets.push(this); }
    };
"""
"""JavaScript: what a visitor can do in the browser's tools."""

NewVisitor = Callable[[], BrowserContext]


@pytest.fixture(scope="module")
def public_server(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppServer]:
    environment = {
        "TFM_PUBLIC": "1",
        "TFM_HOST_KEY": KEY,
        "TFM_MAX_STEPS": "100000",
        "TFM_WARM_WORKERS": "0",
    }
    server = servers.start(tmp_path_factory.mktemp("public"), environment)
    yield server
    server.close()


@pytest.fixture
def new_visitor(chromium: Browser, public_server: AppServer) -> Iterator[NewVisitor]:
    """Begin a browser of another visitor, who has no cookies yet."""
    contexts: list[BrowserContext] = []

    def begin() -> BrowserContext:
        contexts.append(chromium.new_context(viewport=DESKTOP))
        contexts[-1].set_default_timeout(PATIENCE)
        contexts[-1].add_init_script(KEEP_SOCKETS)
        return contexts[-1]

    yield begin
    for context in contexts:
        context.close()
    public_server.forget_runs()


class Heard:
    """What a tab heard of its buttons, and the page that it shows."""

    def __init__(self, tab: Tab) -> None:
        self.ids: dict[str, str] = {}
        self.page_hash = ""
        tab.page.on("websocket", self._listen)

    def _listen(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._hear)

    def _hear(self, frame: Any) -> None:
        message = ForwardMsg.FromString(frame)
        if message.WhichOneof("type") == "navigation":
            self.page_hash = message.navigation.page_script_hash
        if message.WhichOneof("type") == "delta":
            button = message.delta.new_element.button
            self.ids[button.label] = button.id


def forge(tab: Tab, heard: Heard, button_id: str, run_id: str) -> None:
    """Send what a press of a button sends, though there is no such button on the page."""
    message = BackMsg()
    message.rerun_script.query_string = f"run={run_id}"
    message.rerun_script.page_script_hash = heard.page_hash
    pressed = message.rerun_script.widget_states.widgets.add()
    pressed.id, pressed.trigger_value = button_id, True
    with tab.redrawn():
        tab.page.evaluate(
            "bytes => window.sockets.at(-1).send(new Uint8Array(bytes))",
            list(message.SerializeToString()),
        )
    tab.settle()


def test_a_run_is_its_owners_in_every_tab_and_the_hosts_by_key(
    public_server: AppServer, new_visitor: NewVisitor
) -> None:
    her, him = new_visitor(), new_visitor()
    ann, ben = Tab(her.new_page(), public_server.url), Tab(him.new_page(), public_server.url)
    her_buttons, his_buttons = Heard(ann), Heard(ben)
    ann.goto(link_of(LONG))
    ann.button("Start").click()
    ann.await_step(1)
    run_id = ann.run_id
    (cookie,) = [cookie for cookie in her.cookies() if cookie["name"] == "tfm_visitor"]
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Lax", "/")
    assert cookie["value"] not in ann.page.evaluate("document.cookie")
    assert cookie["value"] not in ann.page.content()

    ben.goto(f"train?run={run_id}")
    ben.await_step(1)
    expect(ben.main.get_by_text(LINE)).to_be_visible()
    for name in ("Pause", "Stop", "Train one step", "Resume"):
        expect(ben.button(name)).to_have_count(0)
    forge(ben, his_buttons, her_buttons.ids["Stop"], run_id)
    forge(ben, his_buttons, her_buttons.ids["Pause"], run_id)
    ann.await_step(ann.step() + 10)

    second = Tab(her.new_page(), public_server.url)
    second.goto(f"train?run={run_id}")
    second.button("Pause").click()
    expect(ann.state("Paused")).to_be_visible()
    forge(ann, her_buttons, her_buttons.ids["Resume"], run_id)  # sent by its owner, it is heard
    expect(ann.state("Training")).to_be_visible()

    # the host stops it by the key, which no link and no log holds
    host = Tab(new_visitor().new_page(), public_server.url)
    host.goto(f"train?run={run_id}&key={KEY}")
    expect(host.page).to_have_url(f"{public_server.url}/train?run={run_id}")
    link = host.copied_link()
    assert run_id in link
    assert "key=" not in link
    host.button("Stop").click()
    expect(ann.state("Stopped")).to_be_visible()
    assert KEY not in public_server.log.read_text()

    # a copy is its maker's
    ben.main.get_by_role("button", name="Train further").click()
    ben.page.get_by_role("button", name="Train a copy").click()
    expect(ben.button("Stop")).to_be_visible()
    expect(ben.page).not_to_have_url(re.compile(run_id))
    ann.goto(f"train?run={ben.run_id}")
    expect(ann.main.get_by_text(LINE)).to_be_visible()
    expect(ann.button("Stop")).to_have_count(0)
    ben.button("Stop").click()
    copy = public_server.store.get(ben.run_id)
    wait_until(lambda: copy.status.state == "stopped", "the copy has stopped")
    for tab in (second, host):  # Streamlit's script may complain of forged messages in the others
        assert tab.went_wrong() == []
