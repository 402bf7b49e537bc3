"""Every page draws the run of a model from a folder, and says what it cannot show of it."""

from __future__ import annotations

import pytest

from pages.ui.navigation import page_table
from tests.pages.looking import said
from tests.pretrained.with_tokenizer import folder_with_tokenizer
from tfm_core.export.opening import open_run

PAGES = [page.file for page in page_table.PAGES.values()]


@pytest.fixture
def opened(store, tmp_path):
    def make(name):
        return open_run(folder_with_tokenizer(name, tmp_path / "from" / name), store)

    return make


@pytest.mark.core(16)
@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("name", ["gpt2", "bert", "vit", "t5"])
def test_a_page_draws_it(name, path, opened, open_page):
    run = opened(name)
    assert not open_page(path, run=run.id).exception


@pytest.mark.parametrize("part", ["read", "write", "lens"])
def test_gpt_reads_and_writes_with_it(part, opened, open_page):
    run = opened("llama")
    app = open_page("gpt/page.py", run=run.id, part=part)
    assert not app.exception
    assert not app.error
    assert "llama" in said(app)


def test_translate_writes_with_it_and_offers_no_truth(opened, open_page):
    run = opened("t5-gated")
    app = open_page("translate/page.py", run=run.id, text="the cat")
    assert not app.exception
    assert not app.error
    assert "t5-gated" in said(app)
    methods = [one.options for one in app.button_group if "Greedy" in one.options]
    assert methods
    assert not any("Compare with truth" in options for options in methods)


@pytest.mark.parametrize("name", ["vit", "t5"])
def test_a_part_is_knocked_out_of_one_example(name, opened, open_page):
    run = opened(name)
    app = open_page("knockouts/page.py", run=run.id, off="encoder.1.self.2")
    assert not app.exception
    assert not app.error
    assert "no answers are known" in said(app)


@pytest.mark.core(1)
@pytest.mark.parametrize("name", ["vit", "t5", "gpt2", "llama"])
def test_a_head_of_a_pretrained_model_gets_another_pattern(name, opened, open_page):
    run = opened(name)
    app = open_page(
        "knockouts/page.py", run=run.id, view="pattern", pattern="previous", how="even", off="none"
    )
    assert not app.exception
    assert not app.error
    assert "Other answers:" in said(app)
    assert "replaced by even attention" in said(app)


@pytest.mark.parametrize("own", ["picture-large.00000000", "picture-large.", "picture-AAAA"])
def test_a_picture_that_is_not_in_the_link_is_asked_for_again(own, opened, open_page):
    app = open_page("attention/page.py", run=opened("vit").id, example="own", own=own)
    assert not app.exception
    assert [one for one in app.error if "pload it again" in one.value]


def test_train_leads_to_the_pages_that_show_it(opened, open_page):
    app = open_page("train/page.py", run=opened("gpt2").id)
    drawn = {one.proto.component_name for one in app.get("bidi_component")}
    assert "picture" in drawn
    links = {link.proto.page for link in app.get("page_link")}
    assert {"attention", "gpt", "knockouts", "walk"} <= links
    assert "trained elsewhere" in said(app)
    assert not [one for one in app.button if one.label in ("Train further", "Start a new run")]


def test_compare_says_that_there_are_no_curves(opened, open_page):
    runs = [opened("gpt2"), opened("llama")]
    app = open_page("compare/page.py", runs=",".join(run.id for run in runs))
    assert not app.exception
    assert "no curves" in said(app)
