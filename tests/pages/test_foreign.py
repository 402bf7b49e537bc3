"""Every page draws the run of somebody else's training loop, or says why it has nothing of it."""

from __future__ import annotations

import pytest

import tfm_core
from pages.ui.navigation import page_table
from tests.looking.loops import Writer, probe, trained
from tests.pages.looking import figure_of, header_of, part_of, said

PAGES = [page.file for page in page_table.PAGES.values()]


@pytest.mark.core(10)
@pytest.mark.parametrize("path", PAGES)
def test_a_page_draws_it(path, store, open_page):
    run = trained(store, answers=lambda model: ["a b", "c d"], truth=["a b", "c e"])
    app = open_page(path, run=run.id)
    assert not app.exception


def test_a_page_that_needs_the_model_says_why_it_is_empty(store, open_page) -> None:
    run = trained(store)
    for page in page_table.PAGES.values():
        if page.needs_model:
            assert "another program" in said(open_page(page.file, run=run.id)), page.name


def test_train_has_its_curves_and_no_buttons_that_do_nothing(store, open_page) -> None:
    run = trained(store, steps=4)
    broken = tfm_core.look.training(Writer(), probe=probe(), store=store, name="Broken")
    with pytest.raises(ZeroDivisionError), broken:
        raise ZeroDivisionError("by hand")
    for one, words in (
        (run, "PyTorch model · Writer"),
        (broken.run, "by hand (more in worker.log"),
    ):
        app = open_page("train/page.py", run=one.id)
        assert words in said(app)
        labels = {button.label for button in app.button}
        assert not labels & {"Resume", "Start a new run", "Repeat with a change", "Stop", "Pause"}
        assert "Press Resume" not in said(app)


def test_its_curve_and_maps_grow_while_the_page_is_open(store, open_page) -> None:
    with tfm_core.look.training(
        Writer(), probe=probe(), store=store, every=5, steps=30, name="Elsewhere"
    ) as watched:
        app = open_page("train/page.py", run=watched.run.id)
        seen = []
        for n_steps in (10, 20):
            for _step in range(n_steps):
                watched.step(0.5)
            app.run()
            assert not app.exception
            frames = header_of(part_of(app, "stage_maps").bytes)["frames"]
            curves = figure_of(app, "-loss")["data"]
            (losses,) = [curve for curve in curves if curve["name"] == "training"]
            seen.append((frames[-1]["step"], losses["x"][-1]))
    assert seen == [(10, 10), (30, 30)]
    app.run()
    assert "Finished" in said(app)
    assert "Stop" not in {button.label for button in app.button}


def test_compare_draws_it_beside_another(store, open_page) -> None:
    runs = [trained(store), trained(store, name="Other")]
    app = open_page("compare/page.py", runs=",".join(run.id for run in runs))
    assert not app.exception
    assert "live_figure" in {one.proto.component_name for one in app.get("bidi_component")}


def test_attention_shows_the_words_and_the_module_of_a_map(store, open_page) -> None:
    run = trained(store)
    app = open_page("attention/page.py", run=run.id)
    assert not app.exception
    drawn = {one.proto.component_name for one in app.get("bidi_component")}
    assert {"head_grid", "head_lines"} <= drawn
