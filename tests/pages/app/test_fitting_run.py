"""A page that shows a run because none is chosen says so, and its link shows the same run."""

import shutil
from urllib.parse import parse_qs, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from pages.app import state
from tests.pages.opening import links
from tfm_core.runs.store import RECORDED

SHOWN = {
    "look_inside/attention/page.py": "recorded-korean",
    "try_it/page.py": "recorded-korean",
    "look_inside/mistakes.py": "recorded-digits",
    "look_inside/knockouts/page.py": "recorded-korean",
}


def _linked(app: AppTest) -> list[str]:
    return parse_qs(urlsplit(links(app)[0]).query)["run"]


def _current(app: AppTest) -> str | None:
    if state._RUN not in app.session_state:
        return None
    return str(app.session_state[state._RUN])


@pytest.mark.core(3)
@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("file", SHOWN)
def test_the_link_of_a_page_shows_the_run_that_it_chose(open_page, file):
    app = open_page(file)
    for _time in range(2):  # it is the same run when the page is drawn once more
        assert _linked(app) == [SHOWN[file]]
        assert _current(app) is None
        app.run()


@pytest.mark.usefixtures("recorded")
def test_who_has_trained_something_else_is_not_told_that_it_is_nothing(store, open_page):
    shutil.copytree(RECORDED / "recorded-digits", store.root / "another-of-digits")
    app = open_page("learn/numbers/page.py", figure="embeddings")
    said = " ".join(caption.value for caption in app.caption)
    assert "A recorded run, because none of yours fits this page" in said
    assert "you have no runs yet" not in said


@pytest.mark.usefixtures("recorded")
def test_that_a_linked_run_is_not_here_stays_said(open_page):
    app = open_page("look_inside/mistakes.py", run="abcdefghij1234567")
    for _time in range(3):
        assert "in this link is not here" in app.warning[0].value
        assert _linked(app) == ["recorded-digits"]
        app.run()
    app.switch_page("look_inside/attention/page.py").run()
    assert not app.warning


@pytest.mark.usefixtures("recorded")
def test_a_run_that_is_picked_or_linked_is_the_current_one(store, open_page):
    shutil.copytree(RECORDED / "recorded-captions", store.root / "another-captioner")
    app = open_page("try_it/page.py")
    assert _current(app) is None
    for other in ("recorded-captions", "another-captioner"):
        app = open_page("try_it/page.py", run=other)
        assert _current(app) == other
        assert _linked(app) == [other]
