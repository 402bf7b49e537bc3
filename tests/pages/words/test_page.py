"""The page of words, through the frame."""

import pytest

from tests.pages.looking import said
from tests.pages.made_runs import made_run
from tfm_core.presets import PRESETS
from tfm_core.runs.store import RECORDED

PAGE = "words/page.py"
VIEWS = ("tokens", "batch", "embeddings", "moving", "patches")


@pytest.fixture
def with_recorded(store, monkeypatch):
    monkeypatch.setattr(store, "recorded", RECORDED)


def viewed(app, view):
    app.button_group(key="words-view").set_value(view).run()
    assert not app.exception
    return app


def html(app):
    return " ".join(part.proto.body for part in app.get("html"))


@pytest.mark.parametrize("run_id", ["recorded-korean", "recorded-digits"])
def test_every_view_is_there(with_recorded, open_page, run_id):
    app = open_page(PAGE, run=run_id)
    for view in VIEWS:
        assert not viewed(app, view).error, view


@pytest.mark.parametrize("corpus", ["text", "korean"])
def test_every_way_to_cut(open_page, corpus):
    app = open_page(PAGE)
    app.selectbox(key="words-corpus").set_value(corpus).run()
    for cut in ("bpe", "word", "character", "byte"):
        app.button_group(key="words-cut").set_value(cut).run()
        assert not app.exception, cut
        assert "** tokens · vocabulary **" in said(app)


def test_merges_shorten_the_text(open_page):
    app = open_page(PAGE)
    app.text_area(key="words-text").set_value("low low low lowest").run()
    slider = next(slider for slider in app.slider if slider.label == "Merges")
    slider.set_value(0).run()
    assert "**19** tokens" in said(app)
    assert "First merge:" in said(app)
    next(slider for slider in app.slider if slider.label == "Merges").set_value(2).run()
    assert "**11** tokens" in said(app)
    assert "Merge 2:" in said(app)


def test_a_word_outside_the_vocabulary_is_shown_as_unknown(open_page):
    app = open_page(PAGE)
    app.text_area(key="words-text").set_value("the xylophone").run()
    app.selectbox(key="words-corpus").set_value("english").run()
    app.button_group(key="words-cut").set_value("word").run()
    assert "**1** unknown (50.0 %)" in said(app)
    assert "xylophone<s>&lt;unk&gt;</s>" in html(app)


def test_text_is_never_markup(open_page):
    app = open_page(PAGE)
    app.text_area(key="words-text").set_value("<img src=x> <img src=x>").run()
    assert "<img" not in html(app)


def test_a_text_that_cannot_be_cut_is_said_and_kept(open_page):
    app = open_page(PAGE)
    app.text_area(key="words-text").set_value("   ").run()
    assert "at least one character" in app.error[0].value
    assert app.text_area(key="words-text").value == "   "


def test_a_shorter_batch_says_what_it_cut(open_page):
    app = viewed(open_page(PAGE), "batch")
    app.text_area(key="words-sentences").set_value("a b c d e\nb").run()
    assert "Shape **(2, 7)**: 28.6 %" in said(app)
    app.slider[0].set_value(5).run()
    assert "2 words were cut" in app.warning[0].value
    assert "Sentence 1 lost “d e”" in app.warning[0].value


def test_too_many_sentences_are_said(open_page):
    app = viewed(open_page(PAGE), "batch")
    app.text_area(key="words-sentences").set_value("a\n" * 9).run()
    assert "9 sentences" in app.error[0].value


def test_a_product_and_a_row_are_equal_and_neighbours_change(with_recorded, open_page):
    app = viewed(open_page(PAGE, run="recorded-korean"), "embeddings")
    assert "Largest difference: **0**" in said(app)
    app.selectbox[0].select_index(5).run()
    assert not app.exception
    assert "for “child”" not in said(app)


def test_the_target_table_can_be_chosen(with_recorded, open_page):
    app = viewed(open_page(PAGE, run="recorded-korean"), "moving")
    app.button_group(key="words-table").set_value("tgt_embedding").run()
    app.button_group(key="words-dimensions").set_value("3").run()
    assert not app.exception
    assert "the last step's 3 main directions" in said(app)


def test_without_words_the_recorded_run_is_one_press_away(with_recorded, open_page):
    app = viewed(open_page(PAGE, run="recorded-digits"), "embeddings")
    assert "no word table" in said(app)
    app.button(key="words-open").click().run()
    assert not app.exception
    assert "English to Korean, recorded" in said(app)


def test_training_the_preset_is_one_press_away(busy_queue, open_page):
    app = viewed(open_page(PAGE), "embeddings")
    app.button(key="words-train-translate").click().run()
    assert not app.exception
    assert [run.meta.preset for run in busy_queue.store.list() if run.meta.preset] == ["translate"]


def test_a_run_without_a_checkpoint_says_so(store, open_page):
    run = made_run(store, experiment=PRESETS["translate"].experiment, state="finished")
    app = viewed(open_page(PAGE, run=run.id), "embeddings")
    assert "This run has no checkpoint" in said(app)


def test_a_text_that_is_too_long_stays_and_is_said_so(open_page):
    app = open_page(PAGE)
    app.text_area(key="words-text").set_value("word " * 1000).run()
    assert "characters; the limit is 1,000" in app.error[0].value
    assert app.text_area(key="words-text").value == "word " * 1000
    assert app.text_area(key="words-text").proto.max_chars == 0  # a limit would refuse the paste
