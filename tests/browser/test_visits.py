"""Sessions that came and went leave nothing in the server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from benchmarks.stress.visits import Held, addresses, visit_all
from pages.ui.navigation import page_table
from tests.browser import server as servers
from tests.browser.server import AppServer
from tests.runs.waiting import wait_until

pytestmark = pytest.mark.skipif(
    not hasattr(psutil.Process, "num_fds"), reason="this system does not count open files"
)


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[AppServer]:
    """A server that forgets sessions at once; what it writes for a while lies in ``tmp``."""
    (tmp_path / "tmp").mkdir()
    server = servers.start(
        tmp_path,
        {
            "STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL": "0",
            "TFM_WARM_WORKERS": "0",
            "TMPDIR": str(tmp_path / "tmp"),
        },
    )
    yield server
    server.close()


@pytest.mark.parametrize(
    "apart",
    [pytest.param(5, id="some pages"), pytest.param(1, id="every page", marks=pytest.mark.wide)],
)
def test_a_visit_leaves_no_thread_file_or_ticket(forgetful: AppServer, apart: int) -> None:
    everywhere = addresses()[: len(page_table.PAGES) : apart]
    process = psutil.Process(forgetful.process.pid)
    temporary = Path(os.path.dirname(forgetful.log)) / "tmp"

    def held() -> Held:
        visit_all(forgetful.url, everywhere[:1])  # who goes lets those be forgotten who went before
        return Held.of(process, forgetful.store.root, temporary)

    visit_all(forgetful.url, everywhere)
    before = held()
    visit_all(forgetful.url, everywhere)
    wait_until(lambda: not held().left_since(before), "nothing is left of the visits")
    assert "Traceback" not in forgetful.log.read_text(errors="replace")
