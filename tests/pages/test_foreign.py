"""Every page draws the run of somebody else's training loop, or says why it has nothing of it."""

from __future__ import annotations

import pytest

from pages.ui.navigation import page_table
from tests.looking.loops import trained
from tests.pages.looking import said

PAGES = [page.file for page in page_table.PAGES.values()]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_draws_it(path, store, open_page):
    run = trained(store, answers=lambda model: ["a b", "c d"], truth=["a b", "c e"])
    app = open_page(path, run=run.id)
    assert not app.exception
