"""The figures of words, through the frame."""

from tests.pages.looking import said
from tests.pages.made_runs import made_run
from tfm_core.choices.presets import PRESETS

PAGE = "learn/numbers/page.py"


def slid(app, label, value):
    """Move the slider of a label."""
    next(slider for slider in app.slider if slider.label == label).set_value(value).run()


def html(app):
    return " ".join(part.proto.body for part in app.get("html"))


def test_texts_are_merged_cut_and_unknown_and_never_markup(open_page):
    app = open_page(PAGE)
    app.text_area(key="words-text").set_value("low low low lowest").run()
    slid(app, "Merges", 0)
    assert "**19** tokens" in said(app)
    assert "First merge:" in said(app)
    slid(app, "Merges", 2)
    assert "**11** tokens" in said(app)
    assert "Merge 2:" in said(app)
    app = open_page(PAGE)
    app.text_area(key="words-sentences").set_value("a b c d e\nb").run()
    assert "Shape **(2, 7)**: 28.6%" in said(app)
    slid(app, "Maximum length (tokens)", 5)
    assert "2 words were cut" in app.warning[0].value
    assert "Sentence 1 lost “d e”" in app.warning[0].value
    app = open_page(PAGE)
    app.text_area(key="words-text").set_value("the xylophone").run()
    app.selectbox(key="words-corpus").set_value("english").run()
    app.button_group(key="words-cut").set_value("word").run()
    assert "**1** unknown (50.0%)" in said(app)
    assert "xylophone<s>&lt;unk&gt;</s>" in html(app)
    app = open_page(PAGE)
    app.text_area(key="words-text").set_value("<img src=x> <img src=x>").run()
    assert "<img" not in html(app)


def test_a_product_and_a_row_are_equal_and_neighbours_change(recorded, open_page):
    app = open_page(PAGE, run="recorded-korean")
    assert "Largest difference: **0**" in said(app)
    (word,) = [one for one in app.selectbox if one.label == "Word"]
    before = said(app)
    word.select_index(5).run()
    assert said(app) != before


def test_a_run_without_words_or_a_checkpoint_says_so_and_leads_on(recorded, open_page, store):
    app = open_page(PAGE, run="recorded-digits")
    assert "no word embeddings" in said(app)
    app.button(key="words-open").click().run()
    assert "English to Korean, recorded" in said(app)
    run = made_run(store, experiment=PRESETS["translate"].experiment, state="finished")
    app = open_page(PAGE, run=run.id)
    assert "This run has no checkpoint" in said(app)


def test_training_the_preset_is_one_press_away(busy_queue, open_page):
    app = open_page(PAGE)
    app.button(key="words-train-translate").click().run()
    assert [run.meta.preset for run in busy_queue.store.list() if run.meta.preset] == ["translate"]
