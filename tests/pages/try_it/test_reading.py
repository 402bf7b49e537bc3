"""Models that label a sentence, fill its gaps or read patches, through the frame."""

from tests.inspect.readers import reading_run
from tests.pages.looking import n_drawn, revealed, said, viewed

PAGE = "try_it/page.py"
TASKS = {"sentiment": "sentiment", "blanks": "masked-words"}


def test_without_a_run_the_page_offers_to_train_one(open_page):
    for view, preset in TASKS.items():
        app = open_page(PAGE, view=view)
        assert "there is none yet" in said(app)
        assert app.button(key=f"head-train-{preset}")


def test_the_button_trains_the_preset_and_the_page_waits_for_it(open_page, store, busy_queue):
    app = open_page(PAGE, view="sentiment")
    app.button(key="head-train-sentiment").click().run()
    (run,) = [run for run in store.list() if run.meta.preset == "sentiment"]
    app = open_page(PAGE, run=run.id)
    assert "has not saved weights yet" in said(app)


def test_a_sentence_is_read_and_held_against_the_rule(open_page, store):
    reading_run(store, "sentiment", "mean")
    app = open_page(PAGE, view="sentiment")
    assert not app.error
    assert n_drawn(app) == 3  # what the answer depends on is asked first
    assert n_drawn(revealed(app)) == 4
    assert "The rule says **negative**" in said(app)
    assert "but · slow" in said(app)
    assert "Attention of the mean of all words" in said(app)
    app.button(key="sentiment-example-1").click().run()
    assert app.text_input(key="sentiment-text").value == "The film was very good."
    assert "The rule says **positive**" in said(app)


def test_the_nearest_sentence_is_offered_where_a_word_is_not_known(open_page, store):
    reading_run(store, "sentiment")
    app = open_page(PAGE, view="sentiment")
    app.text_input(key="sentiment-text").set_value("The food was hate.").run()
    assert "is not a word of this task" in app.error[0].value
    assert app.text_input(key="sentiment-text").value == "The food was hate."
    app.button(key="sentiment-nearest").click().run()
    assert not app.error
    assert app.text_input(key="sentiment-text").value == "The food was great."
    app.text_input(key="sentiment-text").set_value("slow food").run()
    assert "no answer for this sentence" in said(app)


def test_gaps_are_filled_beside_the_truth(open_page, store):
    reading_run(store, "masked-words")
    app = open_page(PAGE, view="blanks")
    assert not app.error
    assert n_drawn(app) == 2  # where the gap looks; what is in it is asked first
    assert n_drawn(revealed(app)) == 3
    assert [metric.label for metric in app.metric] == ["Model's entropy", "True entropy", "Lost"]
    app.text_input(key="blanks-text").set_value("the ___ eats ___ apple").run()
    assert n_drawn(app) == 3
    assert n_drawn(revealed(app)) == 4
    assert [metric.label for metric in app.metric].count("True entropy") == 2


def test_a_word_is_hidden_by_a_press_and_what_fits_nothing_is_said(open_page, store):
    reading_run(store, "masked-words")
    app = open_page(PAGE, view="blanks")
    app.text_input(key="blanks-text").set_value("the dog sleeps").run()
    assert "No word is hidden" in app.error[0].value
    app.button_group(key="blanks-hide-the dog sleeps").set_value([1]).run()
    assert not app.error
    assert n_drawn(revealed(app)) == 3
    app.text_input(key="blanks-text").set_value("dog the ___").run()
    assert "The grammar has no such sentence" in said(app)


def test_the_current_run_is_the_one_that_reads_where_its_task_fits(open_page, store):
    first = reading_run(store, "sentiment", "cls")
    reading_run(store, "sentiment", "mean")
    app = open_page(PAGE, run=first.id)
    assert "Attention of the CLS token" in said(app)


def test_what_the_tokens_of_pictures_know_is_shown_with_the_recorded_run(
    open_page, store, busy_queue, recorded
):
    app = viewed(open_page(PAGE, run="recorded-digits"), "patches")
    assert not app.error
    assert "the digit can be read from the mean of the patches in" in said(app)
    assert list(app.table[0].value.columns) == ["mean of patches", "one patch"]
    assert "No CLS token here" in said(app)
    app.button(key="patches-twin").click().run()
    (twin,) = [run for run in store.list() if run.meta.name == "Digits, recorded, with CLS"]
    assert twin.experiment.model.pooling == "cls"
