"""The walk, through the frame: every step of every family, the link, the questions."""

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui.question import paragraphs
from tests.inspect.constructed import small
from tests.inspect.walk.test_build import FAMILIES, VARIANTS, experiment, name_of
from tests.pages.counted import SLOW, calls_of
from tests.pages.looking import FRAME, said
from tfm_core.inspect.walk.build import walk
from tfm_core.inspect.walk.subject import subject
from tfm_core.training.checkpoints import save
from tfm_core.training.loop import build


def opened(family="encoder-decoder", **query):
    at = AppTest.from_file(FRAME, default_timeout=30)
    at.session_state["draft"] = experiment(family).model_dump()
    at.run().switch_page("walk/page.py")
    for name, value in query.items():
        at.query_params[name] = value
    return at.run()


def title(at):
    return at.header[0].value


@pytest.mark.parametrize("family", FAMILIES)
def test_every_step_of_every_family_opens_by_next(store, family):
    at = opened(family)
    steps = walk(subject(experiment(family)))
    for step in steps:
        assert not at.exception
        assert not at.error
        assert title(at) == f"{step.number} · {step.title}"
        assert "untrained" in said(at)
        if step is not steps[-1]:
            at.button(key="walk-right").click().run()
    assert at.query_params["step"] == str(steps[-1].number)
    assert at.button(key="walk-right").disabled


def test_the_link_opens_a_step_and_back_goes_to_the_one_before(store):
    at = opened(step="8")
    assert title(at) == "8 · Scores"
    at.button(key="walk-left").click().run()
    assert title(at) == "7 · Split into heads"


@pytest.mark.parametrize("text", ["99", "soon", "-3", "9" * 500])
def test_a_step_that_does_not_exist_is_said(store, text):
    at = opened(step=text)
    assert not at.exception
    assert "There is no step" in at.warning[0].value


def test_the_step_list_goes_anywhere(store):
    at = opened()
    at.selectbox(key="walk-list").set_value(17).run()
    assert title(at) == "17 · Decoder: cross-attention"
    assert at.query_params["step"] == "17"


def test_the_example_of_the_texts_is_one_press_away(store):
    at = opened(step="8")
    at.button_group(key="walk-source").set_value("book").run()
    assert not at.exception
    assert "(128, 8, 28, 64)" in said(at)
    assert "(128, 8, 28, 28)" not in said(at)
    at.button[-1].click().run()  # Show the answer
    assert "(128, 8, 28, 28)" in said(at)
    assert "Shapes only" in said(at)


def test_a_question_counts_its_first_answer(store):
    at = opened(step="8")
    right = next(s for s in walk(subject(experiment("encoder-decoder"))) if s.number == 8).question
    wrong = next(option for option in right.options if option != right.answer)
    at.radio[0].set_value(wrong)
    at.button[-2].click().run()
    assert f"Not {wrong}" in said(at)
    at.radio[0].set_value(right.answer)
    at.button[-2].click().run()
    assert "Right." in at.success[0].value
    assert "Score: 0 of 1" in said(at)


@pytest.mark.parametrize("variant", VARIANTS, ids=name_of)
def test_every_step_has_its_words(variant):
    family, settings = variant
    known = paragraphs()
    for step in walk(subject(experiment(family, **settings))):
        assert step.topics
        assert not [topic for topic in step.topics if topic not in known]


def test_a_trained_model_is_said_to_be_one(store):
    chosen = small(experiment("encoder-decoder"))
    run = store.create(chosen)
    save(build(chosen), run.folder / "checkpoints" / "last")
    at = opened(step="19", run=run.id)
    assert not at.exception
    assert "The last checkpoint of the run" in said(at)


def test_a_model_is_built_and_walked_through_once_for_all_steps(store):
    at = opened(step="10")
    with calls_of(*SLOW) as calls:
        for number in (11, 8, 10):
            at.selectbox(key="walk-list").set_value(number).run()
    assert not at.exception
    assert not calls


def test_a_link_to_a_model_of_no_run_says_what_is_shown_instead():
    for link in ({"show": "run"}, {"show": "run", "run": "no-such-run"}):
        at = opened(**link)
        assert not at.exception
        sentences = [warning.value for warning in at.warning]
        assert sentences[-1].endswith("The configuration being edited is shown instead.")
        assert not any("must be one of" in sentence for sentence in sentences)
