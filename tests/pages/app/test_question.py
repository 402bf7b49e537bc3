"""Questions of the pages: each wrong answer gets its reason, and answers make a page done."""

from collections.abc import Mapping

import pytest
from streamlit.testing.v1 import AppTest

from pages.app.navigation import page_table
from pages.app.navigation.page_table import PAGES
from tests.pages.looking import answered, asked, said

TOPICS: dict[str, list[Mapping[str, str]]] = {  # the views that ask, which follow the answers
    "numbers": [{}],
    "by-hand": [{"stage": stage} for stage in ("one-hot", "projections", "heads", "forms")],
    "before": [{}],
    "try": [{"view": view} for view in ("sentiment", "blanks", "read", "continue", "scene")],
    "training-step": [{"stage": "loss"}, {"stage": "after"}],
    "practice": [{}],
}


def test_every_topic_asks_two_questions_and_unanswered_ones_are_not_done(open_page):
    topics = {page.name: page.questions for page in PAGES.values() if page.questions}
    assert set(TOPICS) <= set(topics)
    assert all(topics[name] >= 2 for name in TOPICS)
    app = open_page(PAGES["numbers"].file)
    assert "check_circle: done" not in said(app)
    answered(app, asked(app)[0].options[0])
    assert "check_circle: done" not in said(app)
    assert page_table.PAGES["numbers"].questions == 4


def solved(app: AppTest) -> None:
    """Solve every open question of the page by trying; each wrong answer gets a reason."""
    seen: set[str] = set()
    for _round in range(9):
        fields = [field for field in asked(app) if field.key not in seen]
        if not fields:
            return
        field = fields[0]
        seen.add(field.key)
        for option in getattr(field, "options", ["-7"]):
            if not any(one.key == field.key for one in asked(app)):
                break  # a guess is over with one answer
            given = -7 if not hasattr(field, "options") else option
            before = {one.value for one in app.warning}
            answered(app, given)
            told = [one.value for one in app.warning if one.value not in before]
            if told:
                assert "Try again" in told[-1]
                assert len(told[-1]) > len(f"Not {given}.  Try again.") + 9, told
            else:
                break
        if not hasattr(field, "options"):
            form = field.proto.form_id
            _check, show = [button for button in app.button if button.proto.form_id == form]
            show.click().run()


@pytest.mark.core(3)
@pytest.mark.parametrize("name", TOPICS)
def test_a_topic_is_done_once_its_questions_are_answered(name, store, open_page, recorded):
    page = PAGES[name]
    first, *others = TOPICS[name]
    app = open_page(page.file, **first)
    assert asked(app)
    solved(app)
    for view in others:
        for key, value in view.items():
            app.query_params[key] = value
        app.run()
        solved(app)
    app.run()
    assert any(":material/check_circle:" in one.value for one in app.caption), (
        app.session_state["ticks"],
        said(app),
    )
