"""Runs in a list: labelled, found by their labels, told apart, picked and compared."""

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from pages.app.accounts import visitors
from pages.runs import filter
from tests.pages.looking import keys
from tests.pages.made_runs import made_run
from tests.pages.runs.test_page import PAGE, TOKEN, captions, in_dialog, names, places
from tests.runs.waiting import tiny
from tfm_core.runs.auth import Visitor, hashed
from tfm_core.runs.labels import Labels
from tfm_core.runs.run import Run


def pick(app: AppTest, *runs: Run) -> None:
    for run in runs:
        app.checkbox(key=f"pick-{run.id}").check().run()


def search(app: AppTest, words: str) -> list[str]:
    return places(app.text_input(key="runs-words").set_value(words).run())


def test_group_tags_and_note_are_kept_shown_and_found(store, open_page):
    run, other = made_run(store, name="One"), made_run(store, name="Two")
    app = open_page(PAGE)
    app.button(key=f"labels-{run.id}").click().run()
    app.text_input(key=f"group-{run.id}").set_value("Heads [2]").run()
    app.text_input(key=f"tags-{run.id}").set_value("slow, Baseline").run()
    app.text_area(key=f"note-{run.id}").set_value("Falls *late*.\nThen fast.").run()
    app.button(key=f"label-{run.id}").click().run()
    assert store.get(run.id).labels == Labels(
        None, ("slow", "Baseline"), "Falls *late*.\nThen fast.", "Heads [2]"
    )
    assert r"Heads \[2\]" in names(app)
    assert "Baseline" in names(app)
    assert r"Falls \*late\*. Then fast." in captions(app)
    for words in ("heads", "#slow", "late fast", "n_heads=4 baseline"):
        assert search(app, words) == [run.id]
    assert search(app, "") == [other.id, run.id]
    app.selectbox(key="runs-group").set_value("Heads [2]").run()
    assert places(app) == [run.id]


def test_labels_that_are_too_much_are_refused_in_a_sentence(store, open_page):
    run = made_run(store)
    app = open_page(PAGE)
    app.button(key=f"labels-{run.id}").click().run()
    app.text_input(key=f"tags-{run.id}").set_value("x" * 31).run()
    app.button(key=f"label-{run.id}").click().run()
    assert any("has 31 characters; the limit is 30" in one.value for one in app.caption)
    assert app.text_input(key=f"tags-{run.id}").value == "x" * 31
    assert store.get(run.id).labels == Labels()


def test_runs_of_one_name_are_told_apart_by_what_differs(store, open_page):
    for seed in (3, 5):
        made_run(store, name="Copy", experiment=tiny().replace(seed=seed))
    made_run(store, name="Alone", experiment=tiny())
    same = [made_run(store, name="Same", experiment=tiny()) for _ in range(2)]
    app = open_page(PAGE)
    shown = [one.label for one in app.button if str(one.key).startswith("open-")]
    assert "**Copy** seed 3" in shown
    assert "**Copy** seed 5" in shown
    assert "**Alone**" in shown
    assert shown.count("**Same**") == len(same)


def test_ticked_runs_are_compared_also_from_other_pages_of_the_list(store, open_page, compared):
    runs = [made_run(store, name=f"Run-{k:02}", step=3) for k in range(filter.PER_PAGE + 1)]
    app = open_page(PAGE)
    assert app.button(key="runs-compare").disabled
    pick(app, runs[-1])
    assert search(app, "run-00") == [runs[0].id]
    pick(app, runs[0])
    assert app.button(key="runs-compare").label == "Compare 2 runs"
    search(app, "")
    assert app.checkbox(key=f"pick-{runs[-1].id}").value
    app.button(key="runs-compare").click().run()
    assert set(compared) == {runs[0].id, runs[-1].id}
    app.button(key="picked-none").click().run()
    assert app.button(key="runs-compare").disabled


def test_ticked_runs_are_grouped_and_tagged_together(store, open_page):
    runs = [made_run(store, name=name) for name in ("One", "Two", "Three")]
    store.label(runs[0].id, tags=["old"])
    app = open_page(PAGE)
    pick(app, *runs[:2])
    app.button(key="runs-label").click().run()
    app.text_input(key="group-picked").set_value("Pair").run()
    app.text_input(key="tags-picked").set_value("new, old").run()
    app.button(key="label-picked").click().run()
    found = [store.get(run.id).labels for run in runs]
    assert found == [
        Labels(tags=("old", "new"), group="Pair"),
        Labels(tags=("new", "old"), group="Pair"),
        Labels(),
    ]
    app.button(key=f"labels-{runs[0].id}").click().run()
    assert app.text_input(key=f"group-{runs[0].id}").value == "Pair"
    app.button(key="runs-label").click().run()
    app.text_input(key="tags-picked").set_value("late").run()
    app.button(key="label-picked").click().run()
    assert [store.get(run.id).labels.group for run in runs[:2]] == ["Pair", "Pair"]


def test_another_visitors_run_is_not_labelled_and_none_is_by_a_forged_press(
    store, open_page, monkeypatch
):
    me = Visitor(hashed(TOKEN), is_public=True)  # as where people log in
    monkeypatch.setattr(visitors, "visitor", lambda: me)
    other = made_run(store, owner=hashed("b" * 43))
    own = made_run(store, owner=hashed(TOKEN))
    app = open_page(PAGE, token=TOKEN)
    assert f"labels-{other.id}" not in keys(app)
    pick(app, other, own)
    app.button(key="runs-label").click().run()
    assert "You can't label recorded runs or other visitors' runs" in in_dialog(app)
    app.text_input(key="group-picked").set_value("Mine").run()
    app.button(key="label-picked").click().run()
    assert store.get(own.id).labels.group == "Mine"
    assert store.get(other.id).labels == Labels()
    # a button that is forged
    monkeypatch.setattr("pages.app.accounts.visitors.watches", lambda run: False)
    app.button(key="runs-label").click().run()
    app.text_input(key="group-picked").set_value("Theirs").run()
    app.button(key="label-picked").click().run()
    assert "This run belongs to another visitor" in in_dialog(app)
    assert store.get(other.id).labels == Labels()


def test_pages_of_the_list_say_what_stands_on_them(store, open_page):
    for number in range(filter.PER_PAGE + 2):
        made_run(store, name=f"Run {number}", step=3)
    app = open_page(PAGE)
    assert f"1 to {filter.PER_PAGE} of {filter.PER_PAGE + 2} runs" in captions(app)
    app.session_state["runs-page"] = 2
    app.run()
    assert f"{filter.PER_PAGE + 1} to {filter.PER_PAGE + 2} of" in captions(app)
    assert len(search(app, "run")) == 2
    assert len(search(app, "run 1")) == 5  # 1, 10, 11, 12, 13: on one page again
    assert len(search(app, "")) in (2, filter.PER_PAGE)


def test_one_dialog_is_open_at_a_time_and_none_on_another_page(store, open_page):
    run, other = made_run(store, name="One"), made_run(store, name="Two")
    app = open_page(PAGE)
    for one in (run, other):
        app.button(key=f"labels-{one.id}").click().run()
        assert [field.key for field in app.text_area] == [f"note-{one.id}"]
    app._page_hash = calc_hash("train")
    app.run()
    app._page_hash = calc_hash("runs")
    app.run()
    assert not app.text_area
