"""A restless visitor presses and types whatever there is: no page breaks."""

from __future__ import annotations

from benchmarks.stress.clicks import Restless
from tests.browser.conftest import OpenTab
from tests.browser.server import AppServer
from tests.nightly import IS_NIGHTLY

N_ACTIONS = 40 if IS_NIGHTLY else 12
SEED = 3


def test_random_actions_break_no_page(open_tab: OpenTab, server: AppServer) -> None:
    n_said = len(server.log.read_text(errors="replace"))
    visitor = Restless(open_tab(), SEED)
    for _ in range(N_ACTIONS):
        visitor.act()
        said = server.log.read_text(errors="replace")[n_said:]
        went_wrong = [*visitor.tab.went_wrong(), *([said] if "Traceback" in said else [])]
        assert not went_wrong, "\n".join([*went_wrong, *visitor.done])
