"""A server for strangers: whose a run is, and who may do what, by cookie and by login."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.browser import server as servers
from tests.browser.conftest import DESKTOP
from tests.browser.provider import environment, provider
from tests.browser.server import AppServer
from tests.browser.tab import PATIENCE, Tab
from tests.browser.visitor import visitor
from tests.pages.made_runs import made_run, with_worker
from tests.runs.waiting import wait_until
from tfm_core.runs import auth
from tfm_core.runs.process import requests

pytestmark = pytest.mark.browser

COOKIE = "tfm_visitor"
BASE = "/some/base"
ANN = "1"
"""What the provider calls her: `tests.browser.provider.PEOPLE`."""
MISSING = [name for name in ("authlib", "oidc_provider_mock") if find_spec(name) is None]

NewContext = Callable[[], BrowserContext]


@pytest.fixture
def new_context(chromium: Browser) -> Iterator[NewContext]:
    """Begin a browser of somebody who has no cookies yet."""
    contexts: list[BrowserContext] = []

    def begin() -> BrowserContext:
        contexts.append(chromium.new_context(viewport=DESKTOP))
        contexts[-1].set_default_timeout(PATIENCE)
        return contexts[-1]

    yield begin
    for context in contexts:
        context.close()


@contextmanager
def serving(folder: Path, settings: dict[str, str], base: str = "") -> Iterator[AppServer]:
    """Start a server whose runs have the process of the test for their worker, until it ends."""
    server = servers.start(folder, settings | {"TFM_TEST_WARM_WORKERS": "0"}, base)
    try:
        yield server
    finally:
        for run in server.active():
            with_worker(run, "stopped")  # the server's end is that of its workers
        server.close()


@pytest.fixture
def public_server(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppServer]:
    with serving(tmp_path_factory.mktemp("public"), {"TFM_PUBLIC": "1"}) as server:
        yield server


def new_token(server: AppServer) -> str:
    """Return what the server gives a new browser to be known by."""
    with urlopen(server.url) as answer:
        return SimpleCookie(answer.headers["set-cookie"])[COOKIE].value


def test_a_run_is_its_owners_in_every_tab(public_server: AppServer) -> None:
    hers, his = new_token(public_server), new_token(public_server)
    run = made_run(public_server.store, state="paused", owner=auth.hashed(hers))
    resume, stop = f"resume-{run.id}", f"stop-{run.id}"
    with (
        visitor(public_server.url, cookies={COOKIE: hers}) as ann,
        visitor(public_server.url, cookies={COOKIE: hers}) as her_other_tab,
        visitor(public_server.url, cookies={COOKIE: his}) as ben,
    ):
        for one in (ann, ben):
            one.visit("runs", f"run={run.id}")
        assert {resume, stop} <= ann.buttons.keys()
        assert not {resume, stop} & ben.buttons.keys()
        ben.buttons |= ann.buttons
        for button in (resume, stop):  # the page of this browser has no such buttons
            ben.press(button)
        assert requests.take(run.folder) == []
        her_other_tab.visit("runs", f"run={run.id}")
        her_other_tab.press(resume)
        assert requests.take(run.folder) == ["resume"]


@pytest.fixture
def login_server(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppServer]:
    """The app below a path, with a provider."""
    folder = tmp_path_factory.mktemp("login")
    with provider(folder) as address:
        settings = {"STREAMLIT_SERVER_BASE_URL_PATH": BASE.strip("/")}
        settings |= environment(folder, address, base=BASE)
        with serving(folder, settings, BASE) as server:
            yield server


def issuer(server: AppServer) -> str:
    """Return what the provider calls itself."""
    secrets = server.log.with_name("secrets.toml").read_text()
    found = re.search(r'"(http://localhost:\d+)/.well-known', secrets)
    assert found is not None
    return found[1]


@pytest.mark.wide
@pytest.mark.skipif(bool(MISSING), reason=f"{MISSING} is not installed; see requirements-dev.txt")
def test_a_run_is_its_persons_from_login_to_logout(
    login_server: AppServer, new_context: NewContext
) -> None:
    claims = {"is_logged_in": True, "iss": issuer(login_server), "sub": ANN, "name": "Ann Lee"}
    person = auth.person(claims)
    assert person is not None
    run = made_run(login_server.store, state="paused", owner=person.id)
    tab = Tab(new_context().new_page(), login_server.url)
    tab.goto(f"runs?run={run.id}")
    log_in = tab.strip.get_by_role("button", name="Log in")
    account = tab.page.locator(".st-key-login-account button").first
    resume = tab.main.get_by_role("button", name=f"Resume {run.meta.name}")
    expect(tab.main.locator(f".st-key-run-{run.id}")).to_be_visible()
    expect(resume).to_have_count(0)
    log_in.click()
    tab.page.get_by_role("button", name=ANN, exact=True).click()
    expect(account).to_contain_text("Ann Lee")
    tab.goto(f"runs?run={run.id}")
    resume.click()
    wait_until(lambda: requests.take(run.folder) == ["resume"], "she is heard")

    account.click()
    tab.page.get_by_role("button", name="Log out").click()
    tab.page.get_by_role("button", name="End session").click()  # which the provider asks
    expect(log_in).to_be_visible()
    tab.goto(f"runs?run={run.id}")
    expect(tab.main.locator(f".st-key-run-{run.id}")).to_be_visible()
    expect(resume).to_have_count(0)
    cookies = [cookie["name"] for cookie in tab.page.context.cookies()]
    assert not [name for name in cookies if "streamlit_user" in name]
