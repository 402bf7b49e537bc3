"""People who log in with a real provider: whose a run is, who may do what, in and out again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.browser import server as servers
from tests.browser.conftest import DESKTOP, PATIENCE
from tests.browser.experiments import LONG
from tests.browser.provider import environment, provider
from tests.browser.server import AppServer
from tests.browser.tab import Tab, link_of
from tfm_core.runs import auth

MISSING = [name for name in ("authlib", "oidc_provider_mock") if find_spec(name) is None]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        bool(MISSING), reason=f"{MISSING} is not installed; see requirements-dev.txt"
    ),
]

BASE = "/some/base"
ANN, BEN = "1", "2"
"""What the provider calls its people: `tests.browser.provider.PEOPLE`."""

NewPerson = Callable[..., Tab]


@pytest.fixture(scope="module")
def login_server(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppServer]:
    """The app below a path, with a provider; people of example.org may start runs."""
    folder = tmp_path_factory.mktemp("login")
    with provider(folder) as address:
        said = {
            "STREAMLIT_SERVER_BASE_URL_PATH": BASE.strip("/"),
            "TFM_MAY_START": "@example.org",
            "TFM_MAX_STEPS": "100000",
            "TFM_WARM_WORKERS": "0",
        }
        server = servers.start(folder, environment(folder, address, base=BASE) | said, base=BASE)
        yield server
        server.close()


@pytest.fixture
def new_person(chromium: Browser, login_server: AppServer) -> Iterator[NewPerson]:
    """Open a browser of somebody at a path, and log them in there unless they are nobody."""
    contexts: list[BrowserContext] = []

    def begin(subject: str | None, path: str) -> Tab:
        contexts.append(chromium.new_context(viewport=DESKTOP))
        contexts[-1].set_default_timeout(PATIENCE)
        tab = Tab(contexts[-1].new_page(), login_server.url)
        tab.goto(path)
        if subject is not None:
            log_in(tab, subject)
        return tab

    yield begin
    for context in contexts:
        context.close()
    login_server.forget_runs()


def log_in(tab: Tab, subject: str) -> None:
    tab.strip.get_by_role("button", name="Log in").click()
    tab.page.get_by_role("button", name=subject, exact=True).click()
    expect(account(tab)).to_be_visible()
    tab.settle()


def account(tab: Tab) -> object:
    return tab.page.locator(".st-key-login-account button").first


def test_a_run_is_its_persons_from_login_to_logout(
    login_server: AppServer, new_person: NewPerson
) -> None:
    nobody = new_person(None, "positions")
    expect(nobody.main.locator(".live-figure .main-svg").first).to_be_visible()
    nobody.goto("build")
    expect(nobody.main.locator(".diagram svg g.node").first).to_be_visible()
    nobody.strip.get_by_role("button", name="Log in").click()
    nobody.page.get_by_role("button", name="Deny").click()
    expect(nobody.page.get_by_text("Login was cancelled")).to_be_visible()
    expect(nobody.page).to_have_url(re.compile(f"{BASE}/build"))  # back to where they were

    ann = new_person(ANN, link_of(LONG))
    expect(ann.page).to_have_url(re.compile(f"{BASE}/train"))
    ann.button("Start").click()
    ann.await_step(1)
    run = login_server.store.get(ann.run_id)
    known = auth.person(
        {"is_logged_in": True, "iss": issuer(login_server), "sub": ANN, "name": "Ann Lee"}
    )
    assert known is not None
    assert (run.meta.owner, run.meta.owner_name) == (known.id, "Ann Lee")

    nobody.goto(f"train?run={run.id}")
    nobody.await_step(1)
    ben = new_person(BEN, f"train?run={run.id}")
    expect(ben.main.get_by_text("This run belongs to Ann Lee")).to_be_visible()
    ann.button("Pause").click()
    for tab in (nobody, ben):
        expect(tab.state("Paused")).to_be_visible()
        for name in ("Resume", "Stop", "Train one step", "Publish"):
            expect(tab.button(name)).to_have_count(0)

    account(ann).click()
    ann.page.get_by_role("button", name="Log out").click()
    ann.page.get_by_role("button", name="End session").click()  # which the provider asks
    expect(ann.strip.get_by_role("button", name="Log in")).to_be_visible()
    ann.goto(f"train?run={run.id}")
    expect(ann.button("Resume")).to_have_count(0)
    cookies = [cookie["name"] for cookie in ann.page.context.cookies()]
    assert not [name for name in cookies if "streamlit_user" in name]


def issuer(server: AppServer) -> str:
    """Return what the provider calls itself."""
    secrets = server.log.with_name("secrets.toml").read_text()
    found = re.search(r'"(http://localhost:\d+)/.well-known', secrets)
    assert found is not None
    return found[1]
