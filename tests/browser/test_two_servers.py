"""Two app servers on one bucket: what one trains is seen, and steered, on the other's page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser import server as servers
from tests.browser.conftest import DESKTOP
from tests.browser.experiments import LONG
from tests.browser.server import AppServer
from tests.browser.tab import PATIENCE, Tab
from tests.hosting.store import s3
from tests.runs.waiting import wait_until
from tfm_core.runs.queue import tickets

pytestmark = [pytest.mark.browser, pytest.mark.wide]


@pytest.fixture
def pair(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[s3.Door, AppServer, AppServer]]:
    """A bucket, and two servers that share it."""
    with s3.serving() as door, pytest.MonkeyPatch.context() as patch:
        import fsspec

        said = s3.KEYS | {"AWS_ENDPOINT_URL": door.url, "AWS_DEFAULT_REGION": "us-east-1"}
        for name, value in said.items():
            patch.setenv(name, value)
        fsspec.filesystem("s3", skip_instance_cache=True).mkdir(s3.BUCKET)
        near = "localhost,127.0.0.1"
        environment = {
            "TFM_RUNS_URL": f"s3://{s3.BUCKET}/runs",
            "TFM_WARM_WORKERS": "0",
            "no_proxy": near,
        }
        one = servers.start(tmp_path_factory.mktemp("one"), environment)
        try:
            two = servers.start(tmp_path_factory.mktemp("two"), environment)
            try:
                yield door, one, two
            finally:
                two.close()
        finally:
            one.close()


def test_a_run_of_one_server_is_watched_and_paused_on_the_other(
    pair: tuple[s3.Door, AppServer, AppServer], chromium: Browser
) -> None:
    door, one, two = pair
    run = one.store.create(LONG, name="Shared")
    tickets.add(one.store.root, run.id)
    wait_until(lambda: (two.store.root / run.id).is_dir(), "the other server has the run")
    context = chromium.new_context(viewport=DESKTOP)
    context.set_default_timeout(PATIENCE)
    tab = Tab(context.new_page(), two.url)
    tab.goto("runs")
    row = tab.main.locator(f".st-key-run-{run.id}")
    expect(row).to_contain_text("On another server")
    wait_until(lambda: two.store.get(run.id).status.step > 7, "its steps arrive")
    row.get_by_role("button", name="Pause").click()
    wait_until(lambda: run.status.state == "paused", "its worker heard of it")
    expect(row).to_contain_text("Paused")
    door.mode = "shut"
    expect(tab.main.get_by_text("does not respond")).to_be_visible()
    expect(row).to_contain_text("Paused")
    door.mode = "open"
    expect(tab.main.get_by_text("does not respond")).to_have_count(0)
    context.close()
