"""Runs: open, go on, train further, rename, delete and bring back, search."""

import dataclasses
import errno
import re

from streamlit.testing.v1 import AppTest

from pages.app.runs import run_words
from pages.app.typed import escape
from pages.runs import filter
from tests.limits import limited
from tests.pages.looking import keys
from tests.pages.made_runs import damaged_run, made_run, with_checkpoint
from tests.refusing import refusing
from tfm_core.runs.disk import trash
from tfm_core.runs.disk.failures import REFUSALS
from tfm_core.runs.outcome import Outcome
from tfm_core.runs.process import requests
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED, RunStore

PAGE = "runs/page.py"
TOKEN = "a" * 43


def names(app: AppTest) -> str:
    return "\n".join(element.value for element in app.main.markdown)


def captions(app: AppTest) -> str:
    return "\n".join(element.value for element in app.main.caption)


def in_dialog(app: AppTest) -> str:
    """What is said small anywhere, a dialog included."""
    return "\n".join(element.value for element in app.caption)


def test_without_runs_a_button_leads_to_home_and_an_opened_run_is_the_current_one(open_page, store):
    app = open_page(PAGE)
    app.button(key="empty-home").click().run()
    assert app.title[0].value == "Watch a Transformer learn"
    run = made_run(store)
    app = open_page(PAGE)
    app.button(key=f"open-{run.id}").click().run()
    assert app.session_state["current_run"] == run.id


def test_a_deleted_run_is_gone_and_undo_brings_it_back(store, open_page):
    run = made_run(store, name="Backwards")
    app = open_page(PAGE)
    app.button(key=f"delete-{run.id}").click().run()
    assert store.list() == []
    assert "Deleted **Backwards**. You can undo this until" in names(app)
    assert ", or until space runs out" in names(app)
    app.button(key=f"undo-{run.id}").click().run()
    assert [kept.id for kept in store.list()] == [run.id]
    assert f"undo-{run.id}" not in keys(app)
    assert f"open-{run.id}" in keys(app)


def places(app: AppTest) -> list[str]:
    """Return the runs of the list from above, deleted ones too."""
    found = [str(button.key).partition("-") for button in app.button]
    return [run_id for verb, _dash, run_id in found if verb in ("open", "undo")]


def test_a_deleted_run_leaves_its_place_to_undo_until_another_page_is_opened(store, open_page):
    runs = [made_run(store, name=name) for name in ("One", "Two", "Three")]
    before = [run.id for run in reversed(runs)]
    app = open_page(PAGE, token=TOKEN)
    assert places(app) == before
    app.button(key=f"delete-{runs[1].id}").click().run()
    assert places(app) == before
    assert f"undo-{runs[1].id}" in keys(app)
    app.selectbox(key="runs-order").set_value("name").run()
    assert places(app) == [runs[0].id, runs[2].id, runs[1].id]
    again = open_page(PAGE, token=TOKEN)
    assert places(again) == [runs[2].id, runs[0].id, runs[1].id]  # a line below the list


def test_undo_puts_a_run_that_waited_back_into_the_line(store, busy_queue, open_page):
    waiting, stopped = made_run(store, state="stopped"), made_run(store, state="stopped")
    busy_queue.resume(waiting)
    app = open_page(PAGE)
    for run, state in ((waiting, "queued"), (stopped, "stopped")):
        app.button(key=f"delete-{run.id}").click().run()
        app.button(key=f"undo-{run.id}").click().run()
        assert store.get(run.id).status.state == state
    assert waiting.status.queue_position == 1


def test_a_run_is_steered_from_the_list_by_who_may(store, busy_queue, open_page):
    running, paused = made_run(store, state="running"), made_run(store, state="paused")
    waiting = made_run(store, state="stopped")
    busy_queue.resume(waiting)
    app = open_page(PAGE)
    for run, verbs in (
        (running, {"pause", "stop"}),
        (paused, {"resume", "stop"}),
        (waiting, {"stop"}),
    ):
        offered = {key.partition("-")[0] for key in keys(app) if key.endswith(run.id)}
        assert offered & {"pause", "resume", "stop"} == verbs
    assert app.button(key=f"stop-{waiting.id}").label.startswith("Cancel")
    app.button(key=f"stop-{waiting.id}").click().run()
    assert store.get(waiting.id).status.state == "stopped"
    app.button(key=f"pause-{running.id}").click().run()
    assert requests.take(running.folder) == ["pause"]


def test_runs_are_ordered_by_anything(store):
    slow = made_run(store, name="b", step=97)
    waiting = store.create(slow.experiment, name="A")
    runs = [slow, waiting]
    assert filter.ordered(runs, "newest") == runs
    assert filter.ordered(runs, "name") == [waiting, slow]
    assert filter.ordered(runs, "steps")[0] is slow
    assert filter.ordered(runs, "state") == [waiting, slow]
    for order in ("result", "time", "task"):
        assert filter.ordered([waiting, slow], order)[0] is (waiting if order == "task" else slow)
    digits, korean = (Run(RECORDED / f"recorded-{name}") for name in ("digits", "korean"))
    assert filter.ordered([waiting, digits, korean], "loss") == [korean, digits, waiting]


def test_accuracy_is_said_as_what_it_is(store):
    assert run_words.result(made_run(store)) == "98.4% of tokens right (validation)"
    korean = run_words.result(Run(RECORDED / "recorded-korean"))
    assert re.fullmatch(r"[\d.]+% of tokens, [\d.]+% of sequences right \(test\)", korean)
    digits = run_words.result(Run(RECORDED / "recorded-digits"))
    assert re.fullmatch(r"[\d.]+% right \(test\)", digits)


def test_a_run_that_learned_nothing_is_no_green_finished(store, open_page, monkeypatch):
    run = made_run(store)
    outcome = Outcome("diverged", 2, "It diverged: its loss ended at 547.0.")
    monkeypatch.setattr(Run, "outcome", outcome)
    app = open_page(PAGE, run=run.id)
    assert "Diverged" in names(app)
    assert "Finished" not in names(app)
    assert escape(outcome.sentence) in captions(app)


def test_the_trash_is_counted_and_emptied(store, open_page):
    made_run(store), made_run(store, name="Backwards")
    app = open_page(PAGE)
    assert re.search(r"2 runs take [\d.]+ KiB; .* are free\.$", captions(app), re.MULTILINE)
    assert "empty-trash" not in keys(app)
    app.button(key=f"delete-{store.list()[0].id}").click().run()
    assert "1 run takes" in captions(app)
    assert "1 deleted run takes" in captions(app)
    app.button(key="empty-trash").click().run()
    assert trash.deleted(store.root) == []
    assert "deleted" not in captions(app)
    assert "empty-trash" not in keys(app)
    assert not [key for key in keys(app) if key.startswith("undo-")]


def test_a_run_that_made_way_for_another_is_told(store, open_page, monkeypatch, request):
    limited(monkeypatch, max_runs=2)
    request.getfixturevalue("busy_queue")
    oldest = made_run(store, name="Oldest")
    oldest.write_meta(dataclasses.replace(oldest.meta, owner="a" * 64))
    run = made_run(store, state="stopped")
    app = open_page(PAGE)
    assert "The oldest finished run is deleted when space runs out." in captions(app)
    app.button(key=f"resume-{run.id}").click().run()
    assert "The oldest finished run was deleted" in app.info[0].value
    assert "Oldest" not in {kept.meta.name for kept in store.list()}


def test_a_run_that_no_trash_could_take_is_said_to_be_gone(store, open_page, monkeypatch):
    run = made_run(store)
    monkeypatch.setattr(trash, "put", lambda root, run_id: trash.remove(root / run_id))
    app = open_page(PAGE)
    app.button(key=f"delete-{run.id}").click().run()
    assert "The disk is full" in app.info[0].value
    assert f"undo-{run.id}" not in keys(app)


def test_a_refused_start_leaves_nothing(store, open_page, monkeypatch, request):
    limited(monkeypatch, max_steps=100)
    request.getfixturevalue("busy_queue")
    run = with_checkpoint(made_run(store, step=97))
    before = [path for path in store.root.rglob("*") if ".queue" not in path.parts]
    app = open_page(PAGE)
    app.number_input(key=f"run-more-{run.id}").set_value(34).run()
    app.button(key=f"further-{run.id}").click().run()
    assert "the limit is 100" in app.error[0].value
    home = open_page("home/page.py")
    home.button(key="begin").click().run()
    assert "the limit is 100" in home.error[0].value
    assert [path for path in store.root.rglob("*") if ".queue" not in path.parts] == before


def test_a_disk_that_can_only_be_read_or_refuses_is_said_beside_its_runs(
    store, open_page, monkeypatch
):
    run = made_run(store, name="Backwards")
    app = open_page(PAGE)
    app.button(key=f"labels-{run.id}").click().run()
    app.text_input(key=f"name-{run.id}").set_value("Another").run()
    with refusing(store.root, errno.EROFS):
        app.button(key=f"label-{run.id}").click().run()
        assert escape(str(REFUSALS[errno.EROFS])) in in_dialog(app)
        app.button(key=f"delete-{run.id}").click().run()
        assert app.info[0].value == REFUSALS[errno.EROFS]
    assert store.get(run.id).meta.name == "Backwards"
    run = made_run(store)
    monkeypatch.setattr("pages.runs.room.obstacle", lambda folder: REFUSALS[errno.EROFS])
    app = open_page(PAGE)
    assert app.error[0].value == REFUSALS[errno.EROFS]
    assert f"open-{run.id}" in keys(app)


def test_a_run_that_trains_cannot_be_deleted_and_a_damaged_one_can(store, open_page):
    run = damaged_run(store)
    app = open_page(PAGE)
    assert escape(run.problem) in [caption.value for caption in app.caption]
    assert keys(app) - {"present"} == {f"delete-{run.id}", "runs-compare"}
    app.button(key=f"delete-{run.id}").click().run()
    assert store.list() == []
    run = made_run(store, state="running")
    assert open_page(PAGE).button(key=f"delete-{run.id}").disabled


def test_a_run_that_ended_early_waits_again_after_resume(store, busy_queue, open_page):
    run = made_run(store, state="interrupted")
    app = open_page(PAGE)
    app.button(key=f"resume-{run.id}").click().run()
    assert store.get(run.id).status.state == "queued"
    assert app.session_state["current_run"] == run.id


def test_a_recorded_run_offers_neither_name_nor_delete(
    store, open_page, monkeypatch, tmp_path_factory
):
    elsewhere = RunStore(tmp_path_factory.mktemp("recorded"), recorded=None)
    run = with_checkpoint(made_run(elsewhere))
    monkeypatch.setattr(store, "recorded", elsewhere.root)
    app = open_page(PAGE)
    verbs = ("open", "take", "further", "seeds", "twin")
    verbed = {f"{verb}-{run.id}" for verb in verbs}
    assert keys(app) - {"present"} == {*verbed, "runs-compare"}


def test_words_and_kind_choose_what_is_shown(store, open_page):
    first, second = made_run(store, name="One"), made_run(store, name="Two", state="stopped")
    app = open_page(PAGE)
    app.text_input(key="runs-words").set_value("one REVERSE").run()
    assert f"open-{first.id}" in keys(app)
    assert f"open-{second.id}" not in keys(app)
    app.text_input(key="runs-words").set_value("").run()
    app.button_group(key="runs-kind").set_value("early").run()
    assert f"open-{second.id}" in keys(app)
    assert f"open-{first.id}" not in keys(app)
    app.text_input(key="runs-words").set_value("one").run()
    assert "No run matches" in "\n".join(caption.value for caption in app.caption)


def test_a_run_that_cannot_be_drawn_takes_no_other_from_the_list(store, open_page, monkeypatch):
    sound, other = made_run(store, name="Sound"), made_run(store, name="Other")

    def result(run: Run) -> str:
        if run.id == other.id:
            raise ZeroDivisionError
        return "what it reached"

    monkeypatch.setattr(run_words, "result", result)
    app = open_page(PAGE)
    assert {f"open-{sound.id}", f"open-{other.id}"} <= keys(app)
    assert f"The run {other.id} can't be shown" in "".join(one.value for one in app.caption)


def test_a_folder_of_runs_that_has_become_a_file_breaks_no_page(open_page, store):
    open_page(PAGE)
    store.root.rename(store.root.with_name("lost"))
    store.root.write_text("no folder")
    app = open_page(PAGE, run="run12345678")
    assert "could not be drawn" not in "\n".join(one.value for one in app.error)
