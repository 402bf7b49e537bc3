"""The Train page's live view: every state of a run, what can be asked of it, many who look."""

import dataclasses
import json
import time

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.app import show
from pages.app.runs import run_time, run_words
from pages.train import live
from pages.train.live import Crowd, crowded
from pages.train.live_keys import seconds_left, speed
from tests.pages.learned_runs import learned_run
from tests.pages.looking import film, part_of, said
from tests.pages.made_runs import damaged_run, made_run, with_checkpoint
from tfm_core.choices.config import to_json
from tfm_core.inspect import stage
from tfm_core.runs.process.identity import ProcessId, process_id, this_host
from tfm_core.runs.queue import waiting_line
from tfm_core.runs.run import Run
from tfm_core.runs.status import STATES, write_status

TRAIN = "train/page.py"
BUTTONS = {
    "queued": {"run-stop"},
    "starting": {"run-stop"},
    "running": {"run-pause", "run-stop"},
    "paused": {"run-resume", "run-stop"},
    "finished": {"run-take"},
    "stopped": {"run-again", "run-take"},
    "failed": {"run-again", "run-take"},
    "interrupted": {"run-again", "run-take"},
}


def run_list(app: AppTest) -> set[str]:
    return {button.key for button in app.button if button.key and button.key.startswith("run-")}


@pytest.mark.parametrize("state", [state for state in STATES if state != "opened"])
def test_every_state_is_shown_with_the_buttons_that_make_sense(store, watch, state):
    app = watch(made_run(store, state=state).id)
    beside = {"run-new", "run-seeds", "run-twin", "run-compare"}
    assert run_list(app) == BUTTONS[state] | beside
    assert "Backwards" in said(app)


@pytest.mark.parametrize("preset", ["reverse", "vit-digits", "gpt-grammar"])
def test_a_finished_run_shows_its_keys_predictions_and_a_map(store, watch, preset):
    app = watch(learned_run(store, preset).id)
    values = {metric.label: metric.value for metric in app.metric}
    assert values["Test accuracy"] == "99.1%"
    assert "Trained for: 1 min 1 s" in said(app)
    assert ("Perplexity" in values) == (preset == "gpt-grammar")
    scores_sequences = preset not in {"vit-digits", "gpt-grammar"}
    assert ("Test, whole sequences" in values) == scores_sequences
    header, weights = film(part_of(app, "stage_maps").bytes)
    assert [frame["step"] for frame in header["frames"]] == [1, 211]
    assert weights.size > 0


def test_the_kind_and_the_example_that_were_chosen_are_shown(store, watch):
    run = learned_run(store, "reverse")
    app = watch(run.id)
    assert film(part_of(app, "stage_maps").bytes)[0]["kinds"][0]["label"] == "Cross-attention"
    app.session_state[f"stage-{run.id}-chosen {run.id}"] = ("decoder", 2)
    app.run()
    header, weights = film(part_of(app, "stage_maps").bytes)
    assert header["example"] == 2
    assert np.isnan(weights).any()  # the future is masked
    np.testing.assert_array_equal(weights, stage.read_stage(run, "decoder", 2).weights)


def test_a_failed_and_an_interrupted_run_say_why_and_where(store, watch):
    run = made_run(store, state="failed", reason="The memory of the GPU is full.")
    words = said(watch(run.id))
    assert "The memory of the GPU is full" in words.replace("\\", "")
    assert "Press Resume to try again" in words
    words = said(watch(made_run(store, state="interrupted", step=61).id))
    assert "Interrupted at step 61." in words


@pytest.mark.parametrize("wrote", [50, 70])
def test_an_interrupted_run_has_one_last_step_that_of_its_curves(store, watch, wrote):
    run = made_run(store, step=61)
    status = dataclasses.replace(run.status, state="running", step=wrote, total_steps=100)
    write_status(run.folder, status.with_process(ProcessId(2**22 + 1, this_host())))
    words = said(watch(run.id))
    assert "Interrupted at step 61." in words
    assert "ended at step 61: it was killed" in words.replace("\\", "")
    assert str(wrote) not in words
    assert run_words.progress(run.status) == "61 / 100 steps"
    assert "step 61:" in run_words.ended(run)


def test_a_waiting_run_says_its_place_and_who_holds_the_others(busy_queue, open_page):
    run = made_run(busy_queue.store, state="queued", step=7, name="Patient")
    busy_queue.submit(run)
    app = open_page(TRAIN, run=run.id)
    assert "Number 1 in the queue." in said(app)
    labels = " ".join(button.label for button in app.button)
    assert "The one that trains" in labels
    app.button(key="run-stop").click().run()
    assert run.status.state == "stopped"
    assert "Stopped in the queue" in said(app).replace("\\", "")


def test_a_run_that_could_not_begin_says_why(busy_queue, open_page):
    run = made_run(busy_queue.store, state="queued", step=7)
    busy_queue.submit(run)
    waiting_line.start_errors[run.folder] = "The disk is full. It begins by itself once it can."
    app = open_page(TRAIN, run=run.id)
    assert "begins by itself once it can" in said(app)
    del waiting_line.start_errors[run.folder]


def test_a_silent_worker_and_a_pause_are_said_with_their_times(store, watch):
    run = made_run(store, state="running")
    suspended = {"started": process_id().started, "uptime": time.monotonic() - 61}
    write_status(run.folder, dataclasses.replace(run.status, **suspended))
    assert f"No sign of the worker for {show.duration(61)}" in said(watch(run.id))
    write_status(run.folder, dataclasses.replace(run.status, uptime=time.monotonic()))
    assert "No sign of the worker" not in said(watch(run.id))
    run = made_run(store, state="paused")
    assert f"After {show.duration(600)} it stops if other runs wait" in said(watch(run.id))


def test_pressing_start_makes_a_run_and_watches_it(busy_queue, open_page):
    app = open_page(TRAIN)
    app.toggle(key="all-settings").set_value(True).run()
    app.text_input(key="start-name").set_value("Mine").run()
    app.button(key="start").click().run()
    (run,) = (run for run in busy_queue.store.list() if run.meta.name == "Mine")
    assert app.query_params["run"] == run.id
    assert not [key for key in app.query_params if "." in key]
    assert run.meta.preset == "vit-digits"
    assert "Mine" in said(app)


def test_new_run_begins_with_the_settings_of_the_run_that_was_shown(store, watch):
    app = watch(learned_run(store, "addition").id)
    app.button(key="run-new").click().run()
    assert app.button(key="start") is not None
    app.toggle(key="all-settings").set_value(True).run()
    (task,) = [box for box in app.selectbox if str(box.key).startswith("setting:task.name")]
    assert task.value == "addition"
    assert "run" not in app.query_params


def test_a_copy_trains_further(busy_queue, open_page):
    run = with_checkpoint(learned_run(busy_queue.store, "reverse"))
    app = open_page(TRAIN, run=run.id)
    app.number_input(key=f"run-more-{run.id}").set_value(89).run()
    app.button(key="run-further").click().run()
    (copy,) = (other for other in busy_queue.store.list() if other.meta.parent == run.id)
    assert copy.experiment.training.steps == 211 + 89
    assert app.query_params["run"] == copy.id


def test_what_the_learning_rate_of_a_copy_does_is_said_and_can_be_kept_low(busy_queue, open_page):
    run = with_checkpoint(learned_run(busy_queue.store, "reverse"))
    old = run.experiment.training.replace(steps=211)
    ended = run.experiment.replace(training=old.model_dump())
    (run.folder / "experiment.json").write_text(to_json(ended), encoding="utf-8")
    app = open_page(TRAIN, run=run.id)
    before = f"Learning rate: {old.rate(211):.2g} at step 211,"
    app.number_input(key=f"run-more-{run.id}").set_value(211).run()
    after = old.replace(steps=422).rate(212)
    assert after > 100 * old.rate(211)
    jump = f"from {old.rate(211):.2g} (step 211) to {after:.2g}, because the schedule restarts"
    assert f"{jump} over all 422" in said(app)
    app.toggle(key=f"run-low-{run.id}").set_value(True).run()
    assert f"{before} then constant at {old.learning_rate / 10:.2g}." in said(app)
    app.number_input(key=f"run-more-{run.id}").set_value(1_000_000).run()
    assert "must be at most" in said(app)
    app.number_input(key=f"run-more-{run.id}").set_value(9).run()
    app.button(key="run-further").click().run()
    (copy,) = (other for other in busy_queue.store.list() if other.meta.parent == run.id)
    training = copy.experiment.training
    assert {training.rate(step) for step in range(1, 221)} == {old.learning_rate / 10}


def test_it_says_which_weights_were_tested(store, watch):
    run = learned_run(store, "reverse")
    assert "Test figures use the final weights (step 211), or with patience" in said(watch(run.id))
    training = run.experiment.training.replace(patience=3)
    patient = run.experiment.replace(training=training.model_dump())
    (run.folder / "experiment.json").write_text(to_json(patient), encoding="utf-8")
    best = int(run.curves().validation["step"][run.curves().best_validation()])
    events = run.folder / "events.jsonl"
    lines = [json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if line.get("split") == "test":
            line["step"] = best
    events.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert f"Test figures use the best weights by validation (step {best})" in said(watch(run.id))


def test_a_damaged_run_or_snapshot_is_a_sentence_and_a_way_out(store, watch):
    app = watch(damaged_run(store).id)
    assert "This run is damaged" in said(app)
    app.button(key="run-new").click().run()
    assert app.button(key="start") is not None
    run = learned_run(store, "reverse")
    (run.folder / "probe.json").write_text("{")
    assert "The probe of this run is damaged" in said(watch(run.id))


def test_new_runs_are_looked_at_often_and_time_left_follows_the_newest_speed(store):
    new, begun = (made_run(store, state="running", step=3) for _ in range(2))
    (new.folder / "events.jsonl").write_text("")
    status = dataclasses.replace(new.status, seconds=1.0)
    paces = [live._pace(run, status) for run in (new, begun)]
    assert paces == [live.EAGER, live.BRISK]
    meta = json.loads((new.folder / "meta.json").read_text())
    (new.folder / "meta.json").write_text(json.dumps(meta | {"created": "2024-02-03T05:07:11Z"}))
    assert live._pace(store.get(new.id), status) == live.BRISK  # it waited for others
    run = learned_run(store, "reverse", state="stopped", step=97)
    curves = run.curves()
    assert speed(curves) == pytest.approx(2100)
    assert seconds_left(run, run.status, curves) is None  # nobody works on it


def test_a_copy_that_trains_further_shows_validation_until_its_own_test(store, watch):
    run = learned_run(store, "reverse")
    with (run.folder / "events.jsonl").open("a") as file:
        file.write('{"event": "resumed", "step": 211}\n{"event": "step", "step": 212}\n')
    labels = {metric.label for metric in watch(run.id).metric}
    assert "Accuracy" in labels
    assert "Test accuracy" not in labels


def test_the_link_to_the_run_comes_back_after_a_change_of_page(store, watch):
    run = learned_run(store, "reverse")
    app = watch(run.id)
    app.switch_page("home/page.py").run()
    app.query_params.clear()
    app.switch_page(TRAIN).run()
    assert app.query_params["run"] == run.id


def test_a_run_of_a_gpu_that_is_not_here_goes_on_on_the_cpu(busy_queue, open_page):
    run = with_checkpoint(made_run(busy_queue.store, state="stopped"))
    run.write_meta(dataclasses.replace(run.meta, device="cuda:7"))
    app = open_page(TRAIN, run=run.id)
    assert "Training continues as on" in said(app)
    app.button(key="run-again-there").click().run()
    assert (run.status.state, Run(run.folder).meta.device) == ("queued", "cpu")


def test_a_copy_goes_on_where_one_says(busy_queue, open_page):
    run = with_checkpoint(made_run(busy_queue.store))
    run.write_meta(dataclasses.replace(run.meta, device="cuda:7"))
    app = open_page(TRAIN, run=run.id)
    run_time.wait()
    app.run()
    (device,) = (box for box in app.selectbox if str(box.key).startswith("run-further-on"))
    assert device.options == ["CPU"]
    app.button(key="run-further").click().run()
    (copy,) = (other for other in busy_queue.store.list() if other.meta.parent == run.id)
    assert (copy.meta.device, copy.meta.begun_on) == ("cpu", "cuda:7")


def test_sessions_count_once_look_freely_when_few_and_share_when_many():
    now = [0.0]
    crowd = Crowd(lambda: now[0])
    assert [crowd.record_poll(name) for name in ("a", "b", "a")] == [1, 2, 2]
    now[0] = 30.0
    assert crowd.record_poll("b") == 2
    now[0] += 1
    assert crowd.record_poll("b") == 1
    assert crowded(1.0, 1) == crowded(1.0, 7) == 1.0
    assert crowded(1.0, 20) == crowded(3.0, 20) == 3.0
    assert crowded(3.0, 40) == 6.0
    assert crowded(0.25, 1) == 0.25
    assert crowded(0.25, 7) == 1.0
    looks_a_second = [n / crowded(1.0, n) for n in range(1, 200)]
    assert max(looks_a_second) <= 7


def place_of(block, key, path=()):
    """Return the numbers of the children that lead to a widget; None where it is not."""
    for number, child in block.children.items():
        if getattr(child, "key", None) == key:
            return (*path, number)
        found = place_of(child, key, (*path, number)) if hasattr(child, "children") else None
        if found is not None:
            return found
    return None


def test_fields_stay_where_they_are_while_another_is_changed(open_page):
    """A browser makes a field anew that moves, and loses what is being typed there."""
    app = open_page(TRAIN)
    app.toggle(key="all-settings").set_value(True).run()
    before = place_of(app.main, "setting:training.steps")
    app.number_input(key="setting:model.n_layers").set_value(0).run()
    assert "it must be" in said(app)
    assert before is not None
    assert place_of(app.main, "setting:training.steps") == before
