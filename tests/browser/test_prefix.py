"""The app below a prefix: what it serves beside its pages is found there too."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.browser import server as servers
from tests.browser.prefix_proxy import behind
from tests.browser.server import AppServer
from tests.browser.tab import Tab
from tests.runs.waiting import wait_until

DRAWN = ".live-figure .main-svg"
UNWRITABLE = "/proc/sys/kernel/random"
"""A folder in which not even root can make a file."""


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Tab]:
    """A tab that is not at any address yet."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(120_000)
    yield Tab(context.new_page(), "")
    context.close()


@pytest.mark.parametrize(
    ("path", "drawn"), [("positions", DRAWN), ("build", ".diagram svg g.node")]
)
def test_a_proxy_that_takes_the_prefix_away(
    server: AppServer, tab: Tab, path: str, drawn: str
) -> None:
    port = urlsplit(server.url).port
    assert port is not None
    with behind("/class/of-30/", port) as address:
        tab.url = address
        tab.goto(path)
        expect(tab.main.locator(drawn).first).to_be_visible()


def test_a_server_with_a_base_path_and_how_it_does(
    chromium: Browser, tab: Tab, tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = "some/base"
    environment = {"STREAMLIT_SERVER_BASE_URL_PATH": base, "TFM_WARM_WORKERS": "0"}
    server = servers.start(tmp_path_factory.mktemp("below"), environment, base=f"/{base}")
    try:
        tab.url = server.url
        tab.goto("positions")
        expect(tab.main.locator(DRAWN).first).to_be_visible()
        tab.goto("build")
        expect(tab.main.locator(".diagram svg g.node").first).to_be_visible()

        status, values = health(server)
        assert (status, values["ok"], values["reason"]) == (200, True, None)
        assert values["queue"] == {"running": 0, "max_running": 1, "waiting": 0, "max_waiting": 20}
        assert values["disk"]["writable"]
        assert values["disk"]["free"] > 0

        server.store.root.mkdir(exist_ok=True)
        server.store.root.rename(server.store.root.with_name("lost"))
        server.store.root.symlink_to(UNWRITABLE)
        wait_until(lambda: health(server)[0] == 503, "the loss is noticed")
        said = health(server)[1]
        assert not said["ok"]
        assert "folder of runs" in said["reason"]
        assert str(server.store.root) not in json.dumps(said)
    finally:
        server.close()


def health(server: AppServer) -> tuple[int, Any]:
    """Return what /health answers: the status and the values."""
    try:
        with urllib.request.urlopen(f"{server.url}/health", timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
