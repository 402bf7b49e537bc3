"""The page that compares runs: which, what differs, their curves, and what is said of bad links."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest
from streamlit.testing.v1 import AppTest

from pages.compare.link import MAX_RUNS, METRIC, RUNS
from pages.compare.table import ordered
from tests.pages.made_runs import damaged_run, made_run
from tests.pages.opening import opened_at
from tfm_core.config import Experiment
from tfm_core.presets import PRESETS
from tfm_core.runs.run import Run
from tfm_core.runs.status import write_status
from tfm_core.runs.store import RECORDED, RunStore

PAGE = "compare/page.py"
BASE = PRESETS["reverse"].experiment


def changed(seed: int = 0, **model: object) -> Experiment:
    """The same experiment with another seed, or other settings of the model."""
    values = BASE.model_dump()
    values["model"] |= model
    return Experiment.parse(values | {"seed": seed})


def shown(app: AppTest) -> str:
    """Everything that is said on the page, in one text."""
    groups = (app.markdown, app.caption, app.warning, app.info, app.error)
    html = " ".join(one.proto.body for one in app.get("html"))
    return html + " ".join(one.value for group in groups for one in group)


def figure(app: AppTest) -> dict:
    """The figure of the curves as the browser gets it."""
    (found,) = [
        json.loads(one.proto.json)
        for one in app.get("bidi_component")
        if one.proto.component_name == "live_figure"
    ]
    return json.loads(found["figure"])


def open_with(*runs: Run | str, **query: str) -> AppTest:
    ids = [run if isinstance(run, str) else run.id for run in runs]
    app = opened_at(PAGE, runs=",".join(ids), **query)
    assert not app.exception
    return app


@pytest.fixture
def recorded(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "recorded", RECORDED)


def test_cold_it_compares_two_recorded_runs_by_what_differs(recorded: None) -> None:
    app = opened_at(PAGE)
    assert not app.exception
    assert app.multiselect(key=RUNS.key).value == ["recorded-one-head", "recorded-many-heads"]
    said = shown(app)
    assert ">1 head<" in said
    assert ">4 heads<" in said
    assert "n_heads" in said
    assert "d_model" not in said
    assert app.query_params["runs"] == "recorded-one-head,recorded-many-heads"
    assert [one.value for one in app.header] == ["Same example, same step"]


def test_cold_it_compares_ones_own_newest_runs_of_one_task(store: RunStore) -> None:
    made_run(store, experiment=PRESETS["vit-digits"].experiment)
    first = made_run(store, experiment=changed())
    second = made_run(store, experiment=changed(n_heads=1))
    app = opened_at(PAGE)
    assert set(app.multiselect(key=RUNS.key).value) == {first.id, second.id}


def test_every_run_of_a_link_is_a_line_in_each_panel(store: RunStore) -> None:
    runs = [made_run(store, experiment=changed(n_heads=n)) for n in (1, 2, 4)]
    drawn = figure(open_with(*runs))
    named = [trace for trace in drawn["data"] if trace.get("showlegend")]
    assert [trace["name"] for trace in named] == ["1 head", "2 heads", "4 heads"]
    assert len({(trace["line"]["color"], trace["line"]["dash"]) for trace in named}) == 3
    assert {trace["yaxis"] for trace in drawn["data"]} == {"y", "y2"}


def test_a_run_keeps_its_colour_when_another_goes(store: RunStore) -> None:
    runs = [made_run(store, experiment=changed(n_heads=n)) for n in (1, 2, 4)]
    app = open_with(*runs)
    before = {t["name"]: t["line"] for t in figure(app)["data"] if t.get("showlegend")}
    app.multiselect(key=RUNS.key).set_value([runs[1].id, runs[2].id]).run()
    after = {t["name"]: t["line"] for t in figure(app)["data"] if t.get("showlegend")}
    assert after == {name: before[name] for name in ("2 heads", "4 heads")}
    assert app.query_params["runs"] == f"{runs[1].id},{runs[2].id}"


def test_a_run_is_called_by_its_difference_until_its_user_names_it(store: RunStore) -> None:
    one, other = (made_run(store, experiment=changed(n_heads=n)) for n in (1, 2))
    store.rename(one.id, "My <first>")
    said = shown(open_with(one, other))
    assert ">My &lt;first&gt;<" in said
    assert ">2 heads<" in said


def test_seeds_are_a_band_and_a_sentence_says_whether_a_difference_stands_out(
    store: RunStore,
) -> None:
    runs = [
        made_run(store, experiment=changed(seed=seed, n_heads=heads), step=step)
        for heads, first, steps in ((1, 3, (90, 95, 97)), (2, 2, (96, 99, 98, 91)))
        for seed, step in enumerate(steps, first)
    ]
    app = open_with(*runs)
    said = shown(app)
    assert "n = 3 seeds" in said
    assert "“2 heads” and “1 head” are equal with each of 3 seeds" in said
    looks = re.findall(r'<img src="([^"]+)"', said)
    assert len(looks) == 7
    assert len(set(looks)) == 2  # in the table too
    drawn = figure(app)["data"]
    assert [t["name"] for t in drawn if t.get("showlegend") and t["yaxis"] == "y"] == [
        "1 head: mean ± sd of 3 seeds", "2 heads: mean ± sd of 4 seeds"
    ]  # fmt: skip
    app.toggle(key="compare-bands").set_value(False).run()
    named = [t for t in figure(app)["data"] if t.get("showlegend")]
    assert len(named) == 7
    assert app.query_params["bands"] == "false"


def test_a_mean_is_of_the_seeds_that_have_a_curve(store: RunStore) -> None:
    runs = [
        *(made_run(store, experiment=changed(seed=seed, n_heads=1)) for seed in (0, 1)),
        made_run(store, experiment=changed(seed=2, n_heads=1), state="queued", step=3),
    ]
    for run in runs[2:]:
        (run.folder / "events.jsonl").write_text("")
    named = [trace["name"] for trace in figure(open_with(*runs))["data"] if trace.get("showlegend")]
    assert len(named) == 1
    assert "mean ± sd of 2 of 3 seeds" in named[0]


def test_a_missing_and_a_damaged_run_are_a_sentence_each_and_the_rest_is_drawn(
    store: RunStore,
) -> None:
    one, broken = made_run(store), damaged_run(store)
    other = made_run(store, experiment=changed(n_heads=1))
    said = shown(open_with(one, "nobody-knows-it", broken, other))
    assert "There is no run nobody-knows-it here" in said
    assert "**Broken** cannot be compared." in said
    assert ">1 head<" in said


def test_a_link_that_is_none_says_so_and_the_page_stands(store: RunStore) -> None:
    app = opened_at(PAGE, runs="../../etc/passwd,<b>")
    assert not app.exception
    assert "must be up to" in shown(app)
    assert "Choose runs, or open two" in shown(app)


def test_a_link_with_too_many_runs_shows_as_many_as_there_may_be(store: RunStore) -> None:
    ids = [f"somebody-{n}" for n in range(MAX_RUNS + 7)]
    assert "must be up to" in shown(open_with(*ids))


def test_one_run_is_offered_others_of_its_task_and_none_the_recorded_ones(
    recorded: None, store: RunStore
) -> None:
    one = made_run(store, name="First")
    made_run(store, name="Second", experiment=changed(n_heads=1))
    app = open_with(one)
    assert "Add another run to compare" in shown(app)
    app.button(key="compare-offer-0").click().run()
    assert ">1 head<" in shown(app)
    app.multiselect(key=RUNS.key).set_value([]).run()
    assert "Choose runs, or open two" in shown(app)
    app.button(key="compare-offer-0").click().run()
    assert ">4 heads<" in shown(app)


def test_runs_of_different_tasks_are_said_not_to_be_comparable(recorded: None) -> None:
    said = shown(open_with("recorded-digits", "recorded-one-head"))
    assert "These runs learn different tasks" in said
    assert "The other run lacks this example" in said


def test_time_that_was_not_written_down_is_said_to_be_reckoned_and_cpu_time_to_be_missing(
    recorded: None,
) -> None:
    ids = ("recorded-one-head", "recorded-many-heads")
    app = open_with(*ids, axis="clock")
    assert "estimated from the speed" in shown(app)
    assert figure(app)["layout"]["xaxis"]["title"]["text"] == "seconds"
    app = open_with(*ids, axis="cpu")
    assert "Waiting for the first measurement" not in shown(app)
    assert "Not recorded" in shown(app)


def test_the_page_of_runs_that_train_ticks_until_they_are_over(store: RunStore) -> None:
    one = made_run(store, state="running", step=20)
    other = made_run(store, experiment=changed(n_heads=1), step=50)
    app = open_with(one, other)
    assert "1 run is training." in shown(app)
    drawn = figure(app)["layout"]["uirevision"]
    status = dataclasses.replace(one.status, state="finished")
    write_status(one.folder, status)
    app.run()
    assert "still training" not in shown(app)
    assert figure(app)["layout"]["uirevision"] == drawn  # so the zoom is kept


def test_the_same_example_is_answered_side_by_side_at_the_same_step(recorded: None) -> None:
    app = open_with("recorded-one-head", "recorded-many-heads", at="0", example="2")
    answers = [
        json.loads(one.proto.json)
        for one in app.get("bidi_component")
        if one.proto.component_name == "moving"
    ]
    assert [list(one["trees"]) for one in answers] == [["0"], ["0"]]
    assert app.selectbox(key="compare-example").value == 1
    app = open_with("recorded-one-head", "recorded-korean", at="30")
    assert "No snapshot at step " in shown(app)


def test_the_same_example_has_one_run_of_each_configuration(store: RunStore) -> None:
    runs = [made_run(store, experiment=changed(seed, n_heads=n)) for n in (1, 2) for seed in (3, 5)]
    app = open_with(*runs)
    assert "One run per configuration" in shown(app)
    assert "lacks this example" not in shown(app)


def test_a_link_with_too_many_quantities_draws_the_first(recorded: None) -> None:
    app = opened_at(PAGE, metrics="loss,accuracy,speed,gradient")
    assert not app.exception
    assert len(app.multiselect(key=METRIC.key).value) == METRIC.maximum
    assert "at most 3 of" in shown(app)


def test_a_quantity_must_be_chosen(recorded: None) -> None:
    app = opened_at(PAGE)
    app.multiselect(key="compare-metrics").set_value([]).run()
    assert "Choose a quantity" in shown(app)


def test_runs_are_chosen_by_name_and_seed(store: RunStore) -> None:
    one = made_run(store, name="Copy", experiment=changed(seed=3))
    other = made_run(store, name="Copy", experiment=changed(seed=4))
    twin = made_run(store, name="Copy", experiment=changed(seed=3, n_heads=1))
    chosen = open_with(one, other, twin).multiselect(key=RUNS.key)
    called = set(chosen.options)
    assert {"Copy · seed 3", "Copy · seed 4", "Copy · 1 head · seed 3"} <= called
    later = made_run(store, name="Copy", experiment=changed(seed=4, n_heads=2))
    assert called < set(open_with(one, other, later).multiselect(key=RUNS.key).options)


def test_a_group_is_added_at_one_press(store: RunStore) -> None:
    first, *members = (made_run(store, experiment=changed(seed=seed)) for seed in range(4))
    for run in members:
        store.label(run.id, group="*Seeds*")
    app = open_with(first, members[0])
    (button,) = [one for one in app.button if one.key.startswith("compare-group-")]
    assert button.label == r"Add \*Seeds\*: 3 runs"
    button.click().run()
    assert not app.exception
    assert set(app.multiselect(key=RUNS.key).value) == {first.id, *(run.id for run in members)}
    assert not [one for one in app.button if one.key.startswith("compare-group-")]


def test_the_table_is_sorted_by_a_column(store: RunStore) -> None:
    runs = [made_run(store, experiment=changed(n_heads=n)) for n in (2, 4, 1)]
    app = open_with(*runs)

    def rows() -> list[str]:
        return re.findall(r"target=\"_blank\"[^>]*>([^<]+)</a>", shown(app))

    assert rows() == ["2 heads", "4 heads", "1 head"]
    app.selectbox(key="compare-sort").set_value("model.n_heads").run()
    assert rows() == ["1 head", "2 heads", "4 heads"]
    assert 'aria-sort="ascending"' in shown(app)
    app.toggle(key="compare-falling").set_value(True).run()
    assert rows() == ["4 heads", "2 heads", "1 head"]
    assert 'aria-sort="descending"' in shown(app)
    assert "compare-sort" not in {one.key for one in open_with(*runs[:2]).selectbox}


def test_what_has_no_value_stands_last_and_numbers_are_no_words() -> None:
    assert ordered([None, 10, 9.5], is_falling=False) == (2, 1, 0)
    assert ordered([None, 10, 9.5], is_falling=True) == (1, 2, 0)
    assert ordered(["b", None, "A"], is_falling=False) == (2, 0, 1)


def test_three_configurations_are_tested_with_holms_correction(store: RunStore) -> None:
    runs = []
    for heads, shares in ((1, (0.4, 0.52, 0.47)), (2, (0.9, 0.97, 0.91)), (4, (0.6, 0.51, 0.66))):
        for seed, share in enumerate(shares):
            run = made_run(store, experiment=changed(seed=seed, n_heads=heads))
            last = {"event": "measured", "step": 97, "split": "validation", "accuracy": share}
            with open(run.folder / "events.jsonl", "a") as file:
                file.write(json.dumps(last) + "\n")
            runs.append(run)
    said = shown(open_with(*runs))
    tested = len(re.findall(r"Paired t-test, n = 3 pairs", said))
    assert said.count("Holm’s correction for 2 comparisons") == tested == 2
