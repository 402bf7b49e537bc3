"""A restless visitor presses and types whatever there is: no page breaks."""

from __future__ import annotations

import subprocess

import pytest

from benchmarks.stress.clicks import Restless
from tests.browser.conftest import OpenTab
from tests.browser.server import ROOT, AppServer
from tests.nightly import IS_NIGHTLY

pytestmark = [pytest.mark.browser, pytest.mark.wide]

N_ACTIONS = 40 if IS_NIGHTLY else 12


def test_random_actions_break_no_page(open_tab: OpenTab, server: AppServer) -> None:
    n_said = len(server.log.read_text(errors="replace"))
    commit = subprocess.check_output(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, text=True)
    print(f"The seed is the commit: {commit}")
    visitor = Restless(open_tab(), int(commit.strip(), 16))
    for _ in range(N_ACTIONS):
        visitor.act()
        said = server.log.read_text(errors="replace")[n_said:]
        went_wrong = [*visitor.tab.went_wrong(), *([said] if "Traceback" in said else [])]
        assert not went_wrong, "\n".join([*went_wrong, *visitor.done])
