"""Play: sliders change the draft, a run that trains, or start a new run."""

import pytest

from pages.app.accounts import visitors
from pages.app.runs import comparison, run_words
from pages.train import play
from tests.pages.made_runs import made_run
from tests.runs.test_turned_runs import TURNS, train
from tests.runs.waiting import tiny
from tfm_core.choices.config import MODEL_CONFIGS
from tfm_core.choices.presets import PRESETS
from tfm_core.runs.process.requests import take
from tfm_core.runs.run import Run

TRAIN = "train/page.py"


def slider(app, path):
    (found,) = [one for one in app.select_slider if f":{path}:" in str(one.key)]
    return found


def toggle(app, path):
    (found,) = [one for one in app.toggle if str(one.key).endswith(f":{path}")]
    return found


def waiting(store):
    return [run for run in store.list() if run.status.state == "queued"]


@pytest.mark.parametrize("family", MODEL_CONFIGS)
def test_each_family_is_played_with_by_its_own_sliders(open_page, family):
    preset = next(name for name, one in PRESETS.items() if one.experiment.model.family == family)
    app = open_page(TRAIN, preset=preset)
    experiment = PRESETS[preset].experiment.model_dump()
    paths = [path for path in play.PLAYED if path.split(".")[1] in experiment[path.split(".")[0]]]
    keys = [
        str(one.key) for kind in ("select_slider", "toggle", "selectbox") for one in app.get(kind)
    ]
    assert [path for path in paths if not any(f":{path}" in key for key in keys)] == []


def test_sliders_change_the_draft_and_fit_each_other(open_page):
    app = open_page(TRAIN, preset="reverse")
    slider(app, "model.d_ff").set_value(256).run()
    toggle(app, "model.norm_first").set_value(False).run()
    model = app.session_state["draft"].values["model"]
    assert (model["d_ff"], model["norm_first"]) == (256, False)
    assert app.query_params["model.d_ff"] == "256"
    app.button(key="configure-undo").click().run()
    app.button(key="configure-undo").click().run()
    assert slider(app, "model.d_ff").value == 128
    app = open_page(TRAIN, preset="reverse")
    for _turn in range(3):
        heads, width = slider(app, "model.n_heads"), slider(app, "model.d_model")
        assert all(width.value % int(float(n)) == 0 for n in heads.options)
        assert all(int(float(n)) % heads.value == 0 for n in width.options)
        heads.set_value(sorted(int(float(n)) for n in heads.options)[-1]).run()
        assert app.session_state["draft"].values["model"]["n_heads"] > 0


def test_a_setting_of_a_training_is_turned_by_a_request(store, watch):
    run = made_run(store, state="running")
    app = watch(run.id)
    slider(app, "training.learning_rate").set_value(0.01).run()
    assert take(run.folder) == ["turn.training.learning_rate=0.01"]
    assert slider(app, "training.learning_rate").value == 0.01
    app.run()
    assert take(run.folder) == []
    assert store.list()[0].id == run.id


def test_another_architecture_starts_a_new_run_in_its_place(store, busy_queue, open_page):
    (run,) = store.list()
    app = open_page(TRAIN, run=run.id)
    slider(app, "model.d_ff").set_value(256).run()
    assert take(run.folder) == ["stop"]
    (new,) = waiting(store)
    assert new.experiment.model.d_ff == 256
    assert new.labels.group == store.get(run.id).labels.group == "Playground"
    assert app.session_state["current_run"] == new.id
    assert slider(app, "model.d_ff").value == 256
    play._change(run.id, "model.d_ff", 64)  # a late message of the old page
    app.run()
    assert [one.id for one in waiting(store)] == [new.id]


def test_a_slider_of_a_finished_run_starts_a_new_one(store, busy_queue, open_page):
    run = made_run(store)
    app = open_page(TRAIN, run=run.id)
    slider(app, "training.learning_rate").set_value(0.01).run()
    (new,) = waiting(store)
    assert new.experiment.training.learning_rate == 0.01
    assert run.experiment.training.learning_rate != 0.01


def test_runs_of_others_and_recorded_ones_have_no_sliders(store, monkeypatch):
    run = made_run(store, state="running")
    assert play.is_playable(run)
    assert not play.is_playable(Run(run.folder, recorded=True))
    monkeypatch.setattr(visitors, "watches", lambda _run: True)
    assert not play.is_playable(run)


def test_the_last_turn_is_marked_and_branched(store, busy_queue, open_page, monkeypatch):
    compared = []
    monkeypatch.setattr(comparison, "open_comparison", compared.extend)
    run = store.create(tiny(), name="Turned")
    train(run)
    assert run_words.turn_marks(run) == [(3, "Learning rate 0.02"), (5, "Batch size 3")]
    app = open_page(TRAIN, run=run.id)
    assert "Step 5: Batch size 5 → 3" in "\n".join(one.value for one in app.caption)
    app.button(key=f"play-branch-{run.id}").click().run()
    (branch,) = waiting(store)
    assert compared == [run.id, branch.id]
    assert (branch.meta.name, branch.meta.parent) == ("Turned, Batch size 5", run.id)
    assert branch.checkpoint_step == max(TURNS)
