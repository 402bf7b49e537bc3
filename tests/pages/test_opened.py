"""Every page draws the run of a model from a folder, and says what it cannot show of it."""

import pytest

from pages.app.navigation import page_table
from tests.export.test_heads import classifier, classifying_writer
from tests.pages.looking import said
from tfm_core.export.opening import open_run

PAGES = [page.file for page in page_table.PAGES.values()]


def named(app):
    """Return the name of the run in the head."""
    (menu,) = (one.proto for one in app.get("menu_button") if "head-run" in one.proto.id)
    return menu.label


@pytest.mark.core(16)
@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("name", ["gpt2", "bert", "bert-for-words", "vit", "t5"])
def test_a_page_draws_it(name, path, opened, open_page):
    run = opened(name)
    open_page(path, run=run.id)


@pytest.mark.parametrize("finding", ["sinks", "specialise"])
def test_a_finding_draws_it(finding, opened, open_page):
    open_page("findings/page.py", run=opened("gpt2").id, finding=finding)


@pytest.mark.parametrize("view", ["read", "continue", "lens"])
def test_gpt_reads_and_writes_with_it(view, opened, open_page):
    run = opened("llama")
    app = open_page("try_it/page.py", run=run.id, view=view)
    assert not app.error
    assert named(app) == "llama"


def test_bytes_of_a_character_are_shown_as_parts_of_it_and_texts_as_text(opened, open_page):
    run = opened("gpt2")
    app = open_page("look_inside/attention/page.py", run=run.id, example="own", text="the 안")
    assert "안 1/3" in said(app)
    assert "ì" not in said(app)
    app = open_page("try_it/page.py", run=run.id, view="continue")
    app.text_input(key="write-text").set_value("the 안")
    app.number_input(key="write-samples").set_value(2).run()
    written = "".join(html.proto.body for html in app.get("html"))
    assert ">안</span>" in written
    assert "1/3" not in written


def test_translate_writes_with_it_and_train_leads_to_what_shows_it(opened, open_page):
    run = opened("t5-gated")
    app = open_page("try_it/page.py", run=run.id, text="the cat")
    assert not app.error
    assert named(app) == "t5-gated"
    methods = [one.options for one in app.button_group if "Greedy" in one.options]
    assert methods
    assert not any("Compare with truth" in options for options in methods)
    runs = [opened("gpt2"), opened("llama")]
    app = open_page("train/page.py", run=runs[0].id)
    links = {link.proto.page for link in app.get("page_link")}
    assert {"attention", "try", "knockouts", "walk"} <= links
    app = open_page("compare/compare.py", runs=",".join(run.id for run in runs))
    assert "no curves" in said(app)


def test_attention_says_what_the_head_of_a_model_answers(opened, store, open_page, tmp_path):
    shown = {"example": "own", "text": "the cat", "deeper": "answer"}
    for made in (classifier, classifying_writer):
        run = open_run(made(tmp_path / made.__name__), store)
        app = open_page("look_inside/attention/page.py", run=run.id, **shown)
        assert all(name in said(app) for name in ("good one", "bad", "so so", "%", "Probability"))
        assert "The model writes" not in said(app)
        app = open_page("train/page.py", run=run.id)
        assert "Its head labels a text: bad, good one, so so" in said(app)
    run = opened("bert-for-words")
    app = open_page("look_inside/attention/page.py", run=run.id)
    assert "MASK" in said(app)
    app = open_page("look_inside/attention/page.py", run=run.id, example="own", text="the [MASK]s")
    assert "for each word to guess" in said(app)
    assert "%, " in said(app)
    assert "guesses the word of" in said(open_page("train/page.py", run=run.id))
    folder = classifier(tmp_path / "another", problem_type="regression")
    app = open_page("train/page.py", run=open_run(folder, store).id)
    assert "Opened without its head (classifier)" in said(app)


@pytest.mark.parametrize("name", ["vit", "t5"])
def test_a_part_is_knocked_out_of_one_example(name, opened, open_page):
    run = opened(name)
    app = open_page("look_inside/knockouts/page.py", run=run.id, off="encoder.1.self.2")
    assert not app.error
    assert "no known answers" in said(app)


@pytest.mark.core(1)
@pytest.mark.parametrize("name", ["vit", "t5", "gpt2", "llama"])
def test_a_head_of_a_pretrained_model_gets_another_pattern(name, opened, open_page):
    run = opened(name)
    app = open_page(
        "look_inside/knockouts/page.py",
        run=run.id,
        view="pattern",
        pattern="previous",
        how="even",
        off="none",
    )
    assert not app.error
    assert "answers change.**" in said(app)
    (how,) = (one.value for one in app.button_group if one.label == "Replace by")
    assert how == "even"


@pytest.mark.parametrize("own", ["picture-large.00000000", "picture-large.", "picture-AAAA"])
def test_a_picture_that_is_not_in_the_link_is_asked_for_again(own, opened, open_page):
    app = open_page("look_inside/attention/page.py", run=opened("vit").id, example="own", own=own)
    assert [one for one in app.error if "pload it again" in one.value]
