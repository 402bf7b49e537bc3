"""The app behind a proxy that takes a prefix away: what it serves beside its pages is found."""

from __future__ import annotations

import json
import urllib.request
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from tests.browser.prefix_proxy import behind
from tests.browser.server import AppServer

pytestmark = pytest.mark.browser


def test_figures_and_diagrams_are_drawn_and_health_is_answered_behind_a_proxy(
    open_tab: OpenTab, server: AppServer
) -> None:
    port = urlsplit(server.url).port
    assert port is not None
    tab = open_tab(locale="en-US")  # which makes it a page of its own
    with behind("/class/of-30/", port) as tab.url:
        tab.goto("positions")
        expect(tab.main.locator(".live-figure .main-svg").first).to_be_visible()
        tab.go_to("Understand", "Build")
        expect(tab.main.locator(".diagram svg g.node").first).to_be_visible()
        with urllib.request.urlopen(f"{tab.url}/health", timeout=30) as answer:
            assert answer.status == 200
            assert json.load(answer)["ok"]
    tab.page.goto("about:blank")  # the proxy is gone
