"""Trying a model: what it is asked follows the run, others are offered, and old links lead here."""

from urllib.parse import parse_qsl

import pytest

from pages.app.navigation.page_table import OLD_ADDRESSES, current_address
from pages.try_it.page import KINDS
from tests.pages.looking import said
from tests.pages.opening import opened_at

PAGE = "try_it/page.py"
pytestmark = pytest.mark.usefixtures("recorded", "digits_are_read")
OF_OLD_PAGES = [  # old page and query -> the run and the kind that it leads to
    ("translate", "", "recorded-korean", "write"),
    ("translate", "run=recorded-grammar&text=the+dog", "recorded-grammar", "write"),
    ("translate", "run=recorded-masked-words", "recorded-masked-words", "write"),
    ("translate", "method=beam&width=2", "recorded-korean", "write"),
    ("draw", "", "recorded-digits", "draw"),
    ("draw", "digit=7", "recorded-digits", "draw"),
    ("gpt", "", "recorded-grammar", "read"),
    ("gpt", "part=write&prompt=the+dog", "recorded-grammar", "continue"),
    ("gpt", "part=lens&lens=the+dog", "recorded-grammar", "lens"),
    ("gpt", "part=add&sum=12%2B34", "recorded-addition", "add"),
    ("gpt", "part=train", "recorded-grammar", "train"),
    ("encoders", "", "recorded-sentiment", "sentiment"),
    ("encoders", "view=blanks", "recorded-masked-words", "blanks"),
    ("encoders", "view=patches", "recorded-notebook-vit", "patches"),
    ("captions", "scene=2", "recorded-captions", "scene"),
    ("translate", "run=recorded-captions&picture=2", "recorded-captions", "write"),
]


@pytest.mark.parametrize(("page", "query", "run", "kind"), OF_OLD_PAGES)
def test_a_link_to_a_page_that_is_part_of_this_one_shows_what_it_showed(page, query, run, kind):
    name, asked = current_address(page, dict(parse_qsl(query)))
    assert name == "try"
    app = opened_at(PAGE, **asked)
    assert not app.warning
    assert app.query_params["view"] == kind
    assert app.query_params.get("run", "") == run
    for typed in ("text", "width", "digit", "scene"):
        assert app.query_params.get(typed) == asked.get(typed)


def test_every_old_page_with_all_its_parts_is_led_here():
    assert {name for name, old in OLD_ADDRESSES.items() if old.page == "try"} == {
        page for page, *_others in OF_OLD_PAGES
    }
    assert {kind for *_others, kind in OF_OLD_PAGES} == set(KINDS)


@pytest.mark.parametrize(
    ("run", "kinds"),
    [
        ("korean", ["write"]),
        ("digits", ["draw", "patches"]),
        ("captions", ["scene"]),
        ("sentiment", ["sentiment"]),
        ("masked-words", ["blanks", "write"]),
        ("grammar", ["continue", "read", "lens", "train"]),
        ("addition", ["write", "add"]),
    ],
)
def test_what_a_model_is_asked_follows_it_and_the_rest_is_offered(run, kinds):
    app = opened_at(PAGE, run=f"recorded-{run}")
    assert not app.error
    assert app.query_params["view"] == kinds[0]
    shown = [group.options for group in app.button_group if group.key == "try-view"]
    labels = [KINDS[kind].label for kind in kinds]
    assert shown == ([labels] if len(kinds) > 1 else [])
    (others,) = [menu.proto for menu in app.get("menu_button") if "something" in menu.proto.label]
    assert {*others.options} & {*labels} <= {"Write"}
    assert len(others.options) == len(KINDS) - len(kinds)


def test_another_run_is_tried_in_its_own_way_and_one_that_does_not_fit_is_named():
    app = opened_at(PAGE, run="recorded-grammar", view="lens")
    app.query_params["run"] = "recorded-digits"
    app.run()
    app.query_params["view"] = "patches"
    app.run()
    assert app.query_params["view"] == "patches"
    app = opened_at(PAGE, run="recorded-korean", view="patches")
    assert "This page needs a vision transformer" in said(app)
    assert app.query_params["view"] == "patches"
    app = opened_at(PAGE, view="no-such-view")
    assert "view is “no-such-view” in the link" in app.warning[0].value
    assert app.query_params["view"] == "write"


def test_another_kind_of_the_run_in_sight_stays_with_that_run():
    for run, first, other in (
        ("recorded-masked-words", "blanks", "write"),
        ("recorded-notebook-vit", "patches", "draw"),
    ):
        for chosen in ({}, {"run": "recorded-korean"}):
            app = opened_at(PAGE, view=first, **chosen)
            app.button_group(key="try-view").set_value(other).run()
            assert not app.error
            assert app.query_params["view"] == other
            assert app.query_params["run"] == run
