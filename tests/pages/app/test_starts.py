"""Several runs by one press: as many as may, one group, one sentence, the way to compare them."""

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from pages.app import state
from pages.app.accounts import visitors
from pages.app.runs import comparison
from tests.limits import limited
from tests.pages.made_runs import made_run
from tests.runs.waiting import tiny
from tfm_core.runs.auth import Visitor, hashed
from tfm_core.runs.queue.limits import LimitReached
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore

TOKEN, OTHER = "a" * 43, "b" * 43


def train(experiments, device):  # a script of its own, which knows no types
    from pages.app.runs import comparison

    comparison.seed_button(
        lambda: [comparison.Start(one, device) for one in experiments], key="of-test"
    )


def train_run(run):
    from pages.app.runs import comparison

    comparison.seed_button(lambda: [comparison.start_like(run)], key="of-test")


@pytest.fixture
def said(monkeypatch):
    """The notices."""
    sentences: list[str] = []
    monkeypatch.setattr(state, "notify", lambda sentence, **_how: sentences.append(sentence))
    return sentences


def press(script: Callable[..., None], *args: object, n: int | None = None) -> AppTest:
    """Press the button of a script, with a number of seeds."""
    app = AppTest.from_function(script, args=args, default_timeout=180)
    app.session_state["visitor_token"] = TOKEN
    if n is not None:
        app.session_state[comparison.SEEDS] = n
    app.run()
    app.button(key="of-test-seeds").click().run()
    return app


def own(store: RunStore) -> list[Run]:
    """The runs of the visitor, the first one begun first."""
    return [run for run in reversed(store.list()) if run.meta.owner == hashed(TOKEN)]


def test_five_seeds_wait_in_one_group_and_lead_to_their_comparison(
    store, busy_queue, compared, said
):
    press(train, [tiny()], "cpu")
    runs = own(store)
    assert [run.experiment for run in runs] == [tiny().replace(seed=seed) for seed in range(5)]
    assert [run.status.queue_position for run in runs] == [1, 2, 3, 4, 5]
    assert {run.labels.group for run in runs} == {"Copy: 5 seeds"}
    assert compared == [run.id for run in runs]
    assert said == ["5 runs queued."]


def test_a_run_gets_what_is_missing_and_joins_the_group(store, busy_queue, compared, said):
    run = made_run(store, name="Mine", experiment=tiny().replace(seed=3))
    press(train_run, run, n=3)
    assert [one.experiment.seed for one in own(store)] == [4, 5]
    assert {one.meta.name for one in own(store)} == {"Mine"}
    assert Run(run.folder).labels.group == own(store)[0].labels.group == "Mine: 3 seeds"
    assert compared == [run.id, *(one.id for one in own(store))]
    press(train_run, run, n=3)
    assert len(own(store)) == 2
    assert said[-1] == "All 3 seeds exist."
    press(train_run, run, n=4)
    assert own(store)[-1].labels.group == "Mine: 3 seeds"


def test_two_sets_of_seeds_are_two_groups(store, busy_queue, compared):
    press(train, [tiny()], "cpu", n=2)
    press(train, [tiny(steps=11)], "cpu", n=2)
    groups = [run.labels.group for run in own(store)]
    assert groups == ["Copy: 2 seeds"] * 2 + ["Copy: 2 seeds (2)"] * 2


def test_configurations_of_a_comparison_get_the_same_seeds(store, busy_queue, compared):
    press(train, [tiny().replace(seed=7), tiny(steps=11)], "cpu", n=2)
    assert [run.experiment.seed for run in own(store)] == [7, 8, 7, 8]
    assert {run.labels.group for run in own(store)} == {"Copy and 1 more: 2 seeds"}


def test_as_many_as_may_begin_and_the_rest_at_the_next_press(
    store, monkeypatch, request, compared, said
):
    limited(monkeypatch, max_per_session=3)
    request.getfixturevalue("busy_queue")
    press(train, [tiny()], "cpu")
    assert len(own(store)) == len(compared) == 3
    assert said[-1].startswith("Queued 3 of 5 runs, the most that this server allows")
    press(train, [tiny()], "cpu")
    assert "limit of active runs is 3" in said[-1]
    own(store)[0].request("stop")
    press(train, [tiny()], "cpu")
    seeds = [run.experiment.seed for run in own(store)]
    assert seeds == [0, 1, 2, 0]


@pytest.mark.parametrize(
    ("only_shows", "words"), [(False, "the limit is 3"), (True, "only shows trained")]
)
def test_what_is_refused_leaves_nothing(
    store, monkeypatch, request, compared, said, only_shows, words
):
    limited(monkeypatch, max_steps=3)
    if only_shows:
        monkeypatch.setenv("TFM_MAX_SECONDS", "0")
    request.getfixturevalue("busy_queue")
    run = made_run(store, experiment=tiny())
    press(train_run, run)
    assert words in said[-1]
    assert own(store) == []
    assert Run(run.folder).labels.group is None
    assert compared == []


def test_what_goes_wrong_on_the_way_is_said_and_what_began_stays(
    store, busy_queue, monkeypatch, compared, said
):
    submit = busy_queue.submit

    def refusing(run: Run) -> int:
        if run.experiment.seed == 2:
            raise LimitReached("The disk is full.")
        return submit(run)

    monkeypatch.setattr(busy_queue, "submit", refusing)
    press(train, [tiny()], "cpu")
    assert [run.experiment.seed for run in own(store)] == [0, 1]
    assert said == ["2 of 5 runs queued. The disk is full."]
    assert len(compared) == 2


@pytest.mark.parametrize(("asked", "n"), [(1, 2), (21, 20)])
def test_no_fewer_seeds_are_asked_for_than_compare_and_no_more_than_may(
    store, busy_queue, compared, asked, n
):
    app = press(train, [tiny()], "cpu", n=asked)
    assert app.button(key="of-test-seeds").label == f"{n} seeds"
    assert len(own(store)) == min(n, busy_queue.limits.max_per_session)


def test_another_visitors_run_is_compared_with_and_not_labelled(
    store, monkeypatch, request, compared
):
    me = Visitor(hashed(TOKEN), is_public=True)  # as where people log in
    monkeypatch.setattr(visitors, "visitor", lambda: me)
    request.getfixturevalue("busy_queue")
    run = made_run(store, experiment=tiny(), owner=hashed(OTHER))
    press(train_run, run, n=2)
    assert compared[0] == run.id
    assert Run(run.folder).labels.group is None
    assert [one.labels.group for one in own(store)] == ["Backwards: 2 seeds"]
