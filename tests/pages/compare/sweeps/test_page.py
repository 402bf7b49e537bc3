"""The page of sweeps, through the frame."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from pages.app.runs import runs_access
from tests.pages.looking import n_drawn, said
from tests.pages.opening import links
from tests.sweeps.made import HEADS, RATES, a_plan, driven, ended, waiting
from tests.sweeps.test_driver import valley
from tfm_core.choices.presets import PRESETS
from tfm_core.runs.auth import hashed
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.store import RunStore
from tfm_core.sweeps import plan as plans
from tfm_core.sweeps.driver import Driver
from tfm_core.sweeps.store import Sweep, SweepStore

PAGE = "compare/sweeps/page.py"
Open = Callable[..., AppTest]
TOKEN, OTHER = "a" * 43, "b" * 43


@pytest.fixture
def driver(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """The driver of the pages, which looks only when a test does, with a queue that starts none."""
    made = Driver(RunQueue(store, warm=0, limits=Limits()))
    monkeypatch.setattr(runs_access, "sweeps", lambda: made)
    return made


@pytest.fixture
def over(driver: Driver, store: RunStore) -> Sweep:
    """A sweep of eight runs that is over."""
    sweep = driver.sweeps.create(a_plan(max_runs=8, owner=hashed(TOKEN)))
    driven(driver, store, sweep, valley)
    return sweep


def press(app: AppTest, key: str) -> AppTest:
    app.button(key=key).click().run()
    assert not app.exception
    return app


def test_one_press_starts_it_and_the_link_shows_it(
    driver: Driver, store: RunStore, open_page: Open
) -> None:
    app = press(open_page(PAGE), "sweeps-start")
    (sweep,) = SweepStore(store.root).list()
    assert sweep.id in app.query_params["sweep"]
    assert f"sweep={sweep.id}" in links(app)[0]
    plan = sweep.plan()
    assert plan.space == plans.example_plan().space
    assert plan.owner is not None
    driver.step()
    (run,) = waiting(store)
    assert run.experiment.training.steps == plans.EXAMPLE_STEPS
    assert run.meta.owner == plan.owner
    assert run.labels.group == plan.name
    app.run()
    assert app.dataframe[0].value.iloc[0]["State"] == "waiting"
    assert ":material/check_circle: done" not in said(app)  # a search that runs is not done


def test_the_leaderboard_has_the_best_first_and_all_figures_are_made_without_asking(
    over: Sweep, open_page: Open
) -> None:
    app = open_page(PAGE, sweep=over.id, token=TOKEN)
    assert not app.exception
    board = app.dataframe[0].value
    figures = [float(text) for text in board["validation loss"] if text != "–"]
    assert figures == sorted(figures)
    assert len(figures) == 8
    assert n_drawn(app) == 3  # no importance: too few trials finished with some number of heads
    words = said(app)
    assert "Importance needs 2 finished trials per value" in words
    assert "From 8 finished of" in words
    assert "The budget of 8 runs is used up." in words
    assert f"**Best: trial {board.iloc[0]['Trial']}**" in words
    for caption in ("Two settings", "Each dot"):
        assert caption in words
    assert ":material/check_circle: done" in said(app.run())


def test_more_runs_are_appended_and_ranges_change(
    over: Sweep, driver: Driver, store: RunStore, open_page: Open
) -> None:
    app = open_page(PAGE, sweep=over.id, token=TOKEN)
    key = f"change-{over.id}-{hash(over.plan().space)}-8"
    app.number_input(key=f"{key}-runs").set_value(10).run()
    app.text_input(key=f"{key}-training.learning_rate-high").set_value("0.02").run()
    press(app, "sweeps-apply")
    plan = over.plan()
    assert (plan.state, plan.max_runs) == ("active", 10)
    assert plan.space[0].high == 0.02  # type: ignore[union-attr]
    driven(driver, store, over, valley)
    assert len(store.list()) == 10


def test_a_sweep_stops_and_goes_on(driver: Driver, store: RunStore, open_page: Open) -> None:
    sweep = driver.sweeps.create(a_plan(owner=hashed(TOKEN)))
    driver.step()
    press(open_page(PAGE, sweep=sweep.id, token=TOKEN), "sweeps-stop")
    for _look in range(2):
        driver.step()
    assert sweep.plan().state == "stopped"
    press(open_page(PAGE, sweep=sweep.id, token=TOKEN), "sweeps-go-on")
    assert sweep.plan().state == "active"
    driver.step()
    assert len(waiting(store)) == 1
    assert len(store.list()) == 1


def test_a_sweep_is_deleted_and_brought_back_and_its_runs_stay(
    over: Sweep, store: RunStore, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = press(open_page(PAGE, sweep=over.id, token=TOKEN), "sweeps-delete")
    assert "sweep" not in app.query_params
    assert SweepStore(store.root).list() == []
    assert len(store.list()) == 8
    assert "Deleted *Rates and heads*." in said(app)
    with monkeypatch.context() as public:
        public.setenv("TFM_PUBLIC", "1")
        assert "Deleted *" not in said(open_page(PAGE, token=OTHER))
    press(app, f"sweeps-undo-{over.id}")
    assert over.id in app.query_params["sweep"]
    assert "The budget of 8 runs is used up." in said(app)
    assert [one.id for one in SweepStore(store.root).list()] == [over.id]


def test_fields_of_two_ranges_have_names_of_their_own(driver: Driver, open_page: Open) -> None:
    app = open_page(PAGE)
    app.selectbox(key="sweeps-base").set_value("preset:vit-digits").run()
    fields = [*app.text_input, *app.number_input, *app.toggle]
    labels = [one.label for one in fields]
    assert "Learning rate: from" in labels
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize(
    ("edits", "sentence"),
    [
        ({"training.learning_rate-low": "much"}, "must be a number"),
        ({"training.warmup-values": "0, 7"}, "warmup is 7; it must be at most 1."),
    ],
)
def test_what_cannot_be_is_said_and_start_waits(
    driver: Driver, store: RunStore, open_page: Open, edits: dict[str, object], sentence: str
) -> None:
    app = open_page(PAGE)
    for name, value in edits.items():
        key = f"new-preset:copy-{name}"
        control = app.number_input(key=key) if name == "runs" else app.text_input(key=key)
        control.set_value(value)
    app.run()
    assert not app.exception
    assert sentence in said(app).replace("\\", "")
    assert app.button(key="sweeps-start").disabled
    assert SweepStore(store.root).list() == []


def test_nothing_varies_is_said(driver: Driver, open_page: Open) -> None:
    app = open_page(PAGE)
    app.multiselect(key="new-preset:copy-paths").set_value([]).run()
    assert "Choose at least one setting" in said(app)


def test_any_experiment_and_any_setting_can_be_swept(driver: Driver, open_page: Open) -> None:
    app = open_page(PAGE)
    steps = PRESETS["vit-digits"].experiment.training.steps
    app.selectbox(key="sweeps-base").set_value("preset:vit-digits").run()
    key = "new-preset:vit-digits"
    paths = app.multiselect(key=f"{key}-paths")
    wanted = ["model.n_heads", "model.patch_size", "model.norm_first", "model.position", "seed"]
    paths.set_value([*paths.value, *wanted]).run()
    assert not app.exception
    assert not app.button(key="sweeps-start").disabled
    assert f"**16 runs** of {steps:,} steps" in said(app)
    heads = next(one for one in app.text_input if str(one.key).endswith("n_heads-values"))
    assert heads.value == "2, 4, 8"  # half and twice what the preset has


def test_a_link_to_a_sweep_that_is_not_here_says_so(driver: Driver, open_page: Open) -> None:
    app = open_page(PAGE, sweep="nobodys-sweep")
    assert not app.exception
    assert "There is no sweep nobodys-sweep." in said(app)
    assert not app.button(key="sweeps-start").disabled


def test_points_of_a_grid_are_asked_for_a_grid_alone(driver: Driver, open_page: Open) -> None:
    app = open_page(PAGE)

    def asked() -> bool:
        return any("grid points" in one.label for one in app.number_input)

    assert asked()
    key = next(one.key for one in app.segmented_control if str(one.key).endswith("-search"))
    app.segmented_control(key=key).set_value("tpe").run()
    assert not app.exception
    assert not asked()


def test_a_damaged_file_is_a_sentence_and_the_list_goes_on(
    over: Sweep, driver: Driver, open_page: Open
) -> None:
    other = driver.sweeps.create(a_plan(name="The other"))
    over.trials.write_bytes(b"[]")
    app = open_page(PAGE, sweep=over.id, token=TOKEN)
    assert not app.exception
    assert "cannot be read" in app.error[0].value
    (other.folder / "sweep.json").write_text("{")
    app = open_page(PAGE, sweep=other.id)
    assert not app.exception
    assert "is damaged" in app.error[0].value


def test_another_visitor_looks_on_and_changes_nothing(
    over: Sweep, driver: Driver, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFM_PUBLIC", "1")
    app = open_page(PAGE, sweep=over.id, token=OTHER)
    assert not app.exception
    assert n_drawn(app) == 3
    keys = {button.key for button in app.button}
    assert not keys & {"sweeps-stop", "sweeps-go-on", "sweeps-apply", "sweeps-delete"}


def test_a_stranger_sweeps_within_limits(
    driver: Driver, store: RunStore, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFM_PUBLIC", "1")
    app = open_page(PAGE, token=TOKEN)
    app.number_input(key="new-preset:copy-runs").set_value(25).run()
    press(app, "sweeps-start")
    assert "At most 24 runs per sweep" in app.error[0].value
    app.number_input(key="new-preset:copy-runs").set_value(8).run()
    press(app, "sweeps-start")
    assert len(SweepStore(store.root).list()) == 1
    app = press(open_page(PAGE, token=TOKEN), "sweeps-start")
    assert "You already have a running sweep" in app.error[0].value


def test_a_run_ended_by_hand_shows_why_in_the_list(
    driver: Driver, store: RunStore, open_page: Open
) -> None:
    sweep = driver.sweeps.create(a_plan(space=(RATES, HEADS), owner=hashed(TOKEN)))
    driver.step()
    ended(store, waiting(store)[0], state="stopped", reason="Stopped by hand.")
    driver.step()
    app = open_page(PAGE, sweep=sweep.id, token=TOKEN)
    board = app.dataframe[0].value
    assert "Stopped by hand." in set(board["Why"])
