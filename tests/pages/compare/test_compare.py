"""The page that compares runs: which, what differs, their curves, and what is said of bad links."""

import dataclasses
import json

from streamlit.testing.v1 import AppTest

from pages.compare.compare import MAX_RUNS, RUNS
from tests.pages.looking import sent
from tests.pages.made_runs import damaged_run, made_run
from tests.pages.opening import opened_at
from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.runs.run import Run
from tfm_core.runs.status import write_status

PAGE = "compare/compare.py"
BASE = PRESETS["reverse"].experiment


def changed(seed: int = 0, **model: object) -> Experiment:
    """The same experiment with another seed, or other settings of the model."""
    values = BASE.model_dump()
    values["model"] |= model
    return Experiment.parse(values | {"seed": seed})


def shown(app: AppTest) -> str:
    """Everything that is said on the page, in one text."""
    groups = (app.markdown, app.caption, app.warning, app.info, app.error)
    return " ".join([*names(app), *(one.value for group in groups for one in group)])


def names(app: AppTest) -> list[str]:
    """The runs in the table of results, in its order."""
    return [name for one in app.dataframe for name in one.value.get("Run", ())]


def figure(app: AppTest) -> dict:
    """The figure of the curves as the browser gets it."""
    (found,) = sent(app, "live_figure")
    return json.loads(found["figure"])


def open_with(*runs: Run | str, **query: str) -> AppTest:
    ids = [run if isinstance(run, str) else run.id for run in runs]
    return opened_at(PAGE, runs=",".join(ids), **query)


def test_runs_of_different_tasks_or_steps_say_what_they_lack(recorded):
    assert opened_at(PAGE).query_params["runs"] == "recorded-additive,recorded-many-heads"
    said = shown(open_with("recorded-digits", "recorded-one-head"))
    assert "These runs learn different tasks" in said
    assert "The other run lacks this example" in said
    app = opened_at(PAGE)
    app.multiselect(key="compare-metrics").set_value([]).run()
    assert "Choose a quantity" in shown(app)
    app = open_with("recorded-one-head", "recorded-korean", at="30")
    assert "No snapshot at step " in shown(app)


def test_cold_it_compares_ones_own_newest_runs_of_one_task(store):
    made_run(store, experiment=PRESETS["vit-digits"].experiment)
    first = made_run(store, experiment=changed())
    second = made_run(store, experiment=changed(n_heads=1))
    app = opened_at(PAGE)
    assert set(app.multiselect(key=RUNS.key).value) == {first.id, second.id}


def test_every_run_is_a_line_called_by_its_difference_until_it_is_named(store):
    runs = [made_run(store, experiment=changed(n_heads=n)) for n in (1, 2, 4)]
    drawn = figure(open_with(*runs))
    named = [trace for trace in drawn["data"] if trace.get("showlegend")]
    assert [trace["name"] for trace in named] == ["1 head", "2 heads", "4 heads"]
    assert len({(trace["line"]["color"], trace["line"]["dash"]) for trace in named}) == 3
    assert {trace["yaxis"] for trace in drawn["data"]} == {"y", "y2"}
    one, other = (made_run(store, experiment=changed(n_heads=n)) for n in (1, 2))
    store.rename(one.id, "My <first>")
    said = shown(open_with(one, other))
    assert "My <first>" in said
    assert "2 heads" in said


def test_seeds_are_a_band_and_a_sentence_says_whether_a_difference_stands_out(store):
    runs = [
        made_run(store, experiment=changed(seed=seed, n_heads=heads), step=step)
        for heads, first, steps in ((1, 3, (90, 95, 97)), (2, 2, (96, 99, 98, 91)))
        for seed, step in enumerate(steps, first)
    ]
    app = open_with(*runs)
    said = shown(app)
    assert "n = 3 seeds" in said
    assert "“2 heads” and “1 head” are equal with each of 3 seeds" in said
    looks = list(app.dataframe[0].value["line"])
    assert len(looks) == 7
    assert len(set(looks)) == 2  # in the table too
    drawn = figure(app)["data"]
    assert [t["name"] for t in drawn if t.get("showlegend") and t["yaxis"] == "y"] == [
        "1 head: mean ± sd of 3 seeds",
        "2 heads: mean ± sd of 4 seeds",
    ]
    app.toggle(key="compare-bands").set_value(False).run()
    named = [t for t in figure(app)["data"] if t.get("showlegend")]
    assert len(named) == 7
    assert app.query_params["bands"] == "false"


def test_a_mean_is_of_the_seeds_that_have_a_curve(store):
    runs = [
        *(made_run(store, experiment=changed(seed=seed, n_heads=1)) for seed in (0, 1)),
        made_run(store, experiment=changed(seed=2, n_heads=1), state="queued", step=3),
    ]
    for run in runs[2:]:
        (run.folder / "events.jsonl").write_text("")
    named = [trace["name"] for trace in figure(open_with(*runs))["data"] if trace.get("showlegend")]
    assert len(named) == 1
    assert "mean ± sd of 2 of 3 seeds" in named[0]


def test_a_missing_and_a_damaged_run_are_a_sentence_each_and_the_rest_is_drawn(store):
    one, broken = made_run(store), damaged_run(store)
    other = made_run(store, experiment=changed(n_heads=1))
    said = shown(open_with(one, "nobody-knows-it", broken, other))
    assert "There is no run nobody-knows-it." in said
    assert "**Broken** cannot be compared." in said
    assert "1 head" in said


def test_a_link_that_is_none_or_has_too_many_runs_says_so_and_the_page_stands(store):
    app = opened_at(PAGE, runs="../../etc/passwd,<b>")
    assert "must be up to" in shown(app)
    assert "Choose runs, or open two" in shown(app)
    ids = [f"somebody-{n}" for n in range(MAX_RUNS + 7)]
    assert "must be up to" in shown(open_with(*ids))


def test_one_run_is_offered_others_of_its_task_and_none_the_recorded_ones(recorded, store):
    one = made_run(store, name="First")
    made_run(store, name="Second", experiment=changed(n_heads=1))
    app = open_with(one)
    assert "Add another run to compare" in shown(app)
    app.button(key="compare-offer-0").click().run()
    assert "1 head" in shown(app)
    app.multiselect(key=RUNS.key).set_value([]).run()
    assert "Choose runs, or open two" in shown(app)
    app.button(key="compare-offer-0").click().run()
    assert "RNN with attention" in shown(app)


def test_the_page_of_runs_that_train_ticks_until_they_are_over(store):
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


def test_the_same_example_has_one_run_of_each_configuration(store):
    runs = [made_run(store, experiment=changed(seed, n_heads=n)) for n in (1, 2) for seed in (3, 5)]
    app = open_with(*runs)
    assert "One run per configuration" in shown(app)
    assert "lacks this example" not in shown(app)


def test_runs_are_chosen_by_name_and_seed(store):
    one = made_run(store, name="Copy", experiment=changed(seed=3))
    other = made_run(store, name="Copy", experiment=changed(seed=4))
    twin = made_run(store, name="Copy", experiment=changed(seed=3, n_heads=1))
    chosen = open_with(one, other, twin).multiselect(key=RUNS.key)
    called = set(chosen.options)
    assert {"Copy · seed 3", "Copy · seed 4", "Copy · 1 head · seed 3"} <= called
    later = made_run(store, name="Copy", experiment=changed(seed=4, n_heads=2))
    assert called < set(open_with(one, other, later).multiselect(key=RUNS.key).options)


def test_a_group_is_added_at_one_press(store):
    first, *members = (made_run(store, experiment=changed(seed=seed)) for seed in range(4))
    for run in members:
        store.label(run.id, group="*Seeds*")
    app = open_with(first, members[0])
    (button,) = [one for one in app.button if one.key.startswith("compare-group-")]
    assert button.label == r"Add \*Seeds\*: 3 runs"
    button.click().run()
    assert set(app.multiselect(key=RUNS.key).value) == {first.id, *(run.id for run in members)}
    assert not [one for one in app.button if one.key.startswith("compare-group-")]


def test_the_table_has_numbers_that_a_press_on_a_head_sorts(store):
    runs = [made_run(store, experiment=changed(n_heads=n)) for n in (2, 4, 1)]
    table = open_with(*runs).dataframe[0].value
    assert list(table["Run"]) == ["2 heads", "4 heads", "1 head"]
    assert list(table["n_heads"]) == [2, 4, 1]
    assert table["open"].str.contains("/train\\?").all()
