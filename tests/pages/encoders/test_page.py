"""The page on reading, through the frame."""

import re

import pytest

from tests.inspect.readers import reading_run
from tests.pages.looking import n_drawn, revealed, said
from tfm_core.runs.store import RECORDED

PAGE = "encoders/page.py"
TASKS = {"sentiment": "sentiment", "blanks": "masked-words"}


def viewed(app, view):
    app.button_group(key="encoders-view").set_value(view).run()
    assert not app.exception
    return app


def figures(app):
    return n_drawn(app)


def test_without_a_run_the_page_offers_to_train_one(open_page):
    for view, preset in TASKS.items():
        app = viewed(open_page(PAGE), view)
        assert "No model here has learned this yet" in said(app)
        assert app.button(key=f"encoders-train-{preset}").label.startswith("Train it and watch")


def test_the_button_trains_the_preset_and_the_page_waits_for_it(open_page, store, busy_queue):
    app = viewed(open_page(PAGE), "sentiment")
    app.button(key="encoders-train-sentiment").click().run()
    assert not app.exception
    (run,) = [run for run in store.list() if run.meta.preset == "sentiment"]
    assert app.query_params["run"] == run.id
    assert "has not saved weights yet" in said(app)


def test_a_sentence_is_read_and_held_against_the_rule(open_page, store):
    reading_run(store, "sentiment", "mean")
    app = viewed(open_page(PAGE), "sentiment")
    assert not app.error
    assert figures(app) == 2  # what the answer depends on is asked first
    assert figures(revealed(app)) == 3
    assert "The rule says **negative**" in said(app)
    assert "but · slow" in said(app)
    assert "Attention of the mean of all words" in said(app)
    app.button(key="encoders-example-1").click().run()
    assert app.text_input(key="encoders-text").value == "The film was very good."
    assert "The rule says **positive**" in said(app)


def test_the_minimal_pairs_stand_beside_the_rule(open_page, store):
    reading_run(store, "sentiment")
    app = viewed(open_page(PAGE), "sentiment")
    (table,) = app.table
    assert table.value["Rule"].tolist() == [
        "negative",
        "positive",
        "negative",
        "neutral",
        "positive",
    ]
    assert table.value.index.tolist()[3] == "“and” for “but”"
    assert all(re.fullmatch(r"\w+ [✓✗] \d+ %", said) for said in table.value["Model, how sure"])


def test_a_word_it_knows_is_put_where_one_is_that_it_does_not(open_page, store):
    reading_run(store, "sentiment")
    app = viewed(open_page(PAGE), "sentiment")
    app.text_input(key="encoders-text").set_value("The food was hate.").run()
    assert "is not a word of this task" in app.error[0].value
    app.button_group(key="encoders-example-words").set_value("awful").run()
    assert app.text_input(key="encoders-text").value == "The food was awful."
    assert not app.error
    app.button_group(key="encoders-example-words").set_value("and").run()
    assert app.text_input(key="encoders-text").value == "The food was awful and"


def test_a_word_is_put_into_a_sentence_with_gaps(open_page, store):
    reading_run(store, "masked-words")
    app = viewed(open_page(PAGE), "blanks")
    app.text_input(key="encoders-gaps").set_value("the ___ hates an apple").run()
    assert app.error
    app.button_group(key="encoders-gaps-words").set_value("eats").run()
    assert app.text_input(key="encoders-gaps").value == "the ___ eats an apple"
    assert not app.error


def test_unknown_words_get_their_sentence_and_stay_where_they_are(open_page, store):
    reading_run(store, "sentiment")
    app = viewed(open_page(PAGE), "sentiment")
    app.text_input(key="encoders-text").set_value("the fod was good").run()
    assert not app.exception
    assert "is not a word of this task" in app.error[0].value
    assert app.text_input(key="encoders-text").value == "the fod was good"
    app.text_input(key="encoders-text").set_value("slow food").run()
    assert "no answer for this sentence" in said(app)


@pytest.mark.parametrize(
    ("view", "key", "most"), [("sentiment", "encoders-text", 300), ("blanks", "encoders-gaps", 200)]
)
def test_a_text_may_be_as_long_as_the_limit(open_page, store, view, key, most):
    reading_run(store, TASKS[view])
    app = viewed(open_page(PAGE), view)
    app.text_input(key=key).set_value("a" * most).run()
    assert "characters" not in app.error[0].value
    app.text_input(key=key).set_value("a" * (most + 1)).run()
    assert f"has {most + 1} characters; the limit is {most}" in app.error[0].value


def test_gaps_are_filled_beside_the_truth(open_page, store):
    reading_run(store, "masked-words")
    app = viewed(open_page(PAGE), "blanks")
    assert not app.error
    assert figures(app) == 1  # where the gap looks; what is in it is asked first
    assert figures(revealed(app)) == 2
    assert [metric.label for metric in app.metric] == ["Model's entropy", "True entropy", "Lost"]
    app.text_input(key="encoders-gaps").set_value("the ___ eats ___ apple").run()
    assert figures(app) == 2
    assert figures(revealed(app)) == 3
    assert [metric.label for metric in app.metric].count("True entropy") == 2


def test_a_word_is_hidden_by_a_press(open_page, store):
    reading_run(store, "masked-words")
    app = viewed(open_page(PAGE), "blanks")
    app.text_input(key="encoders-gaps").set_value("the dog sleeps").run()
    assert "No word is hidden" in app.error[0].value
    app.button_group(key="encoders-hide-the dog sleeps").set_value([1]).run()
    assert not app.error
    assert figures(revealed(app)) == 2


def test_what_fits_nothing_and_what_is_too_much_are_said(open_page, store):
    reading_run(store, "masked-words")
    app = viewed(open_page(PAGE), "blanks")
    app.text_input(key="encoders-gaps").set_value("dog the ___").run()
    assert "The grammar has no such sentence" in said(app)
    app.text_input(key="encoders-gaps").set_value(" ".join(["___"] * 6)).run()
    assert "6 are hidden" in app.error[0].value


def test_the_current_run_is_the_one_that_reads_where_its_task_fits(open_page, store):
    first = reading_run(store, "sentiment", "cls")
    reading_run(store, "sentiment", "mean")
    app = open_page(PAGE, run=first.id)
    assert "Attention of the CLS token" in said(app)


def test_what_the_tokens_of_pictures_know_is_shown_with_the_recorded_run(
    open_page, store, busy_queue, monkeypatch
):
    monkeypatch.setattr(store, "recorded", RECORDED)
    app = viewed(open_page(PAGE, run="recorded-digits"), "patches")
    assert not app.error
    assert "the mean of the patches identifies the digit in" in said(app)
    assert list(app.table[0].value.columns) == ["mean of patches", "one patch"]
    assert "No CLS token here" in said(app)
    app.button(key="encoders-twin").click().run()
    assert not app.exception
    (twin,) = [run for run in store.list() if run.meta.name == "Digits, recorded, with CLS"]
    assert twin.experiment.model.pooling == "cls"
