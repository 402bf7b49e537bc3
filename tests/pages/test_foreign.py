"""Every page draws the run of somebody else's training loop, or says why it has nothing of it."""

import json
import math

import tfm_core
from pages.app.runs import run_words
from tests.looking.loops import Writer, probe
from tests.pages.looking import figure_of, header_of, part_of, said
from tfm_core.plots import of_run
from tfm_core.runs.notebook import OpenedRun


class Hidden(Writer):
    """A model that shows no logits, so that nobody knows among how many answers it chooses."""

    def forward(self, ids):
        return {"hidden": super().forward(ids)}


def test_of_a_loop_without_logits_no_guessing_and_no_symptom_is_claimed(store, open_page):
    with tfm_core.look.training(
        Hidden(), probe=probe(), store=store, answers=lambda _model: ["a", "a"], truth=["a", "b"]
    ) as watched:
        for _step in range(200):
            watched.step(math.log(7), accuracy=1 / 7)
        watched.measured(math.log(7), accuracy=1 / 7)
    run = watched.run
    assert not {"start_loss", "chance"} & run.curves().started.keys()
    assert (run_words.symptoms(run), run_words.symptom_marks(run)) == (None, [])
    app = open_page("train/page.py", run=run.id)
    curves = json.dumps(figure_of(app, "-loss").to_dict(), default=str)
    curves += str(of_run.curves(OpenedRun(run)))
    for words in ("guessing", "Doctor", "chance", "nats"):
        assert words not in said(app) + curves, words


def test_its_curve_and_maps_grow_while_the_page_is_open(store, open_page):
    with tfm_core.look.training(
        Writer(), probe=probe(), store=store, every=5, steps=30, name="Elsewhere"
    ) as watched:
        app = open_page("train/page.py", run=watched.run.id)
        seen = []
        for n_steps in (10, 20):
            for _step in range(n_steps):
                watched.step(0.5)
            app.run()
            frames = header_of(part_of(app, "stage_maps").bytes)["frames"]
            curves = figure_of(app, "-loss")["data"]
            (losses,) = [curve for curve in curves if curve["name"] == "training"]
            seen.append((frames[-1]["step"], losses["x"][-1]))
    assert seen == [(10, 10), (30, 30)]
    app.run()
    assert "Finished" in said(app)
    assert "Stop" not in {button.label for button in app.button}
