"""Sessions that came and went leave nothing in the server."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pages.app.navigation import page_table
from tests.browser import server as servers
from tests.browser.server import AppServer
from tests.browser.visitor import visitor
from tests.runs.waiting import wait_until
from tfm_core.runs.queue import waiting_line

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
            "TFM_TEST_WARM_WORKERS": "0",
            "TMPDIR": str(tmp_path / "tmp"),
        },
    )
    yield server
    server.close()


@pytest.mark.parametrize(
    "apart",
    [pytest.param(5, id="some pages"), pytest.param(1, id="every page", marks=pytest.mark.wide)],
)
def test_a_visit_leaves_no_thread_file_or_waiting_run(forgetful: AppServer, apart: int) -> None:
    everywhere = [page.url_path for page in page_table.PAGES.values()][::apart]
    process = psutil.Process(forgetful.process.pid)
    temporary = Path(os.path.dirname(forgetful.log)) / "tmp"

    def visit(paths: list[str]) -> None:
        for path in paths:
            with visitor(forgetful.url) as session:
                session.visit(path)

    def held() -> Counter[str]:
        visit(everywhere[:1])  # who goes lets those be forgotten who went before
        return Counter(
            threads=process.num_threads(),
            files=process.num_fds(),
            zombies=sum(is_zombie(child) for child in process.children(recursive=True)),
            waiting=len(waiting_line.ids(forgetful.store.root)),
            temporary=len(os.listdir(temporary)),
        )

    visit(everywhere)
    before = held()
    visit(everywhere)
    wait_until(lambda: not held() - before, "nothing is left of the visits")
    assert "Traceback" not in forgetful.log.read_text(errors="replace")


def is_zombie(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
