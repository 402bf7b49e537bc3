"""What the tests of the Train page share."""

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

TRAIN = "train/page.py"


@pytest.fixture
def watch(open_page) -> Callable[[str], AppTest]:
    """Open a run's link on the Train page."""

    def opened(run_id: str) -> AppTest:
        app = open_page(TRAIN, run=run_id)
        assert not app.exception
        return app

    return opened
