"""The gallery of challenges: what each card says, where it leads, and the way back and on."""

from typing import Any

import pytest

from tests.lessons.made import record
from tests.pages.learn.challenges.test_reach import OWNER, PAGE, opened
from tests.pages.looking import pressed
from tests.pages.opening import address_of
from tfm_core.lessons import catalogue
from tfm_core.lessons.task import Verdict
from tfm_core.studies.experiments import BY_THEME, DEMONSTRATIONS

LESSONS = catalogue.catalogue().lessons
FIRST, SECOND, *_OTHERS, LAST = LESSONS


def links(app: Any) -> list[Any]:
    """Return the links to challenges."""
    found = [link.proto for link in app.get("page_link")]
    return [link for link in found if link.page == "challenges" and link.query_string]


def solve(lesson: str, *tasks: str) -> None:
    for task in tasks:
        record(lesson, OWNER, task, answer="", verdict=Verdict(True, ""))


def test_the_gallery_has_a_card_for_every_challenge_that_none_other_looks_like(store):
    cards = links(opened(PAGE))
    queries = [card.query_string for card in cards]
    assert queries == [
        *(f"experiment={name}" for name in DEMONSTRATIONS),
        *("bug=1", "bug=2", "bug=3"),
        *(f"lesson={name}" for name in LESSONS),
    ]
    for start in ("experiment", "bug", "lesson"):
        icons = [one.icon for one in cards if one.query_string.startswith(start)]
        assert len(set(icons)) == len(icons)
    for lesson, card in zip(LESSONS.values(), cards[-len(LESSONS) :], strict=True):
        assert lesson.words().title in card.label
        assert lesson.words().goal in card.label
        assert f" · {lesson.minutes} min" in card.label
    levels = [card.label.partition(":small[")[2].partition(" ·")[0] for card in cards]
    assert set(levels) == {"easy", "medium", "hard"}
    assert levels[queries.index("bug=1") :][:3] == ["easy", "medium", "hard"]


def test_experiments_are_folded_by_theme(store):
    app = opened(PAGE)
    folded = [len(links(one)) for one in app.expander if links(one)]
    assert folded == [len(group) for group in BY_THEME.values()]


def test_a_card_says_how_far_the_visitor_is(store):
    solve("words-to-numbers", *(task.id for task in LESSONS["words-to-numbers"].tasks))
    solve("aligning-head", "width")
    app = pressed(opened(PAGE, experiment="heads"), "Show the answer")
    app = pressed(app, "All challenges")
    far = {card.query_string: card.label.rpartition(" min")[2] for card in links(app)}
    done = {query for query, words in far.items() if "done" in words}
    assert done == {"experiment=heads", "lesson=words-to-numbers"}
    assert far["lesson=aligning-head"] == " · 1 of 3]"
    assert far["bug=2"] == "]"


@pytest.mark.parametrize(
    ("query", "following"),
    [
        ({"experiment": "heads"}, "experiment=no-output-matrix"),
        ({"experiment": [*DEMONSTRATIONS][-1]}, "bug=1"),
        ({"bug": "3"}, f"lesson={FIRST}"),
        ({"lesson": FIRST}, f"lesson={SECOND}"),
        ({"lesson": LAST}, None),
    ],
)
def test_each_challenge_leads_to_the_next_and_back_to_all(store, query, following):
    app = opened(PAGE, **query)
    assert "Predict" not in [one.value for one in app.header]
    found = [link.query_string for link in links(app) if link.label.startswith("Next")]
    assert found == [following] * (following is not None)
    app = pressed(app, "All challenges")
    assert app.title[0].value == "Challenges"
    assert not address_of(app).keys() & {"experiment", "bug", "lesson"}


def test_the_address_alone_says_what_is_open_and_what_it_has_wrong_is_said(store):
    app = opened(PAGE, experiment="no-positions")
    assert app.title[0].value == "No positions"
    del app.query_params["experiment"]  # as the browser's way back does
    assert app.run().title[0].value == "Challenges"
    app = opened(PAGE, experiment="perpetual-motion")
    assert app.title[0].value == "Challenges"
    (warning,) = app.warning
    assert "perpetual-motion" in warning.value


def test_a_lesson_stays_open_beside_a_challenge_that_it_works_on(store):
    app = opened(PAGE, lesson="name-the-bug")
    assert app.title[0].value == "Name the bug"
    app._page_hash = ""  # else each press would begin on this page again
    pressed(app, "Open Challenges")
    assert app.title[0].value == "A plain bug"
    assert address_of(app)["lesson"] == "name-the-bug.1"
    assert "Lesson: **Name the bug**" in str([link.proto.label for link in app.get("page_link")])


def test_a_tour_goes_on_over_the_gallery(store, recorded):
    app = opened(PAGE, lesson="translate.3")
    assert app.title[0].value == "Challenges"
    app = pressed(opened(PAGE, experiment="heads", lesson="translate.3"), "All challenges")
    assert address_of(app)["lesson"] == "translate.3"
