"""The page of experiments: cold, trained, while they train, and what its links open."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Selectbox

from tests.pages.made_runs import made_run
from tests.pages.opening import opened_at
from tfm_core.inspect.experiments import DEMONSTRATIONS
from tfm_core.inspect.experiments.catalogue import BY_THEME
from tfm_core.inspect.experiments.demonstration import OUTCOMES, question
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.store import RECORDED, RunStore

PAGE = "experiments/page.py"
ONE = DEMONSTRATIONS["no-positions"]


def shown(app: AppTest) -> str:
    groups = (app.subheader, app.markdown, app.caption, app.info, app.warning, app.error)
    return " ".join(one.value for group in groups for one in group)


def experiment(app: AppTest) -> Selectbox:
    return app.selectbox(key="experiment-shown")


def labels(app: AppTest) -> list[str]:
    return [one.label for one in app.button]


def guessed(app: AppTest, guess: str | None = None) -> AppTest:
    """Commit to a guess, or ask for the answer."""
    if guess is not None:
        (field,) = [one for one in (*app.radio, *app.selectbox) if guess in one.options]
        field.set_value(guess)
    label = "Show the answer" if guess is None else "Check"
    (button,) = [one for one in app.button if one.label == label]
    button.click().run()
    assert not app.exception
    return app


@pytest.fixture
def recorded(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "recorded", RECORDED)


def test_recorded_runs_show_an_experiment_at_once(recorded: None) -> None:
    app = guessed(opened_at(PAGE, experiment="heads"))
    said = shown(app)
    assert "“1 head” gets 99.5 % of unseen sequences right" in said
    assert "This was expected." in said
    assert any(label.startswith("Train 1 run") for label in labels(app))


LAST_OF_THEMES = [known[-1].name for known in BY_THEME.values()]


def test_cold_it_shows_that_curves_can_look_perfect_and_sentences_be_wrong(recorded: None) -> None:
    app = guessed(opened_at(PAGE))
    said = shown(app)
    assert "“no causal mask” gets 98.9 % of unseen sequences right" in said
    assert "it gets **1.5 %** of 200 right" in said
    assert not any(label.startswith("Train") for label in labels(app))
    (answers,) = [one.value for one in app.table]
    assert answers["with the causal mask"].str.startswith("✓").all()
    assert answers["no causal mask"].str.startswith("✗").all()


def test_an_experiment_opens_untrained_and_says_what_to_expect(store: RunStore) -> None:
    name = LAST_OF_THEMES[1]
    app = guessed(opened_at(PAGE, experiment=name))
    said = shown(app)
    assert DEMONSTRATIONS[name].expects in said
    assert "Nothing is trained yet" in said
    assert any(label.startswith("Train") for label in labels(app))


def test_another_experiment_is_opened_by_its_title(store: RunStore) -> None:
    app = opened_at(PAGE)
    experiment(app).set_value("label-smoothing").run()
    guessed(app)
    assert DEMONSTRATIONS["label-smoothing"].expects in shown(app)
    assert app.query_params["experiment"] == "label-smoothing"


def test_runs_that_are_there_are_shown_and_nothing_is_left_to_train(store: RunStore) -> None:
    for arm, step in zip(ONE.arms, (97, 89), strict=True):
        made_run(store, experiment=ONE.experiment(arm), step=step)
    app = guessed(opened_at(PAGE, experiment=ONE.name))
    said = shown(app)
    assert "**Shown:**" in said
    assert "one seed" in said  # the made runs are alike
    assert not any(label.startswith("Train") for label in labels(app))


@pytest.mark.parametrize("name", [LAST_OF_THEMES[-1], "heads"])
def test_nothing_gives_the_outcome_away_before_a_guess(recorded: None, name: str) -> None:
    app = opened_at(PAGE, experiment=name)
    assert not app.exception
    said = shown(app)
    assert DEMONSTRATIONS[name].expects not in said
    assert "Shown:" not in said
    assert not app.table
    assert DEMONSTRATIONS[name].expects not in str(experiment(app).proto)


def test_a_guess_is_kept_beside_what_was_shown(recorded: None) -> None:
    app = guessed(opened_at(PAGE), OUTCOMES["worse"])
    said = shown(app)
    assert "Your guess: **It gets fewer right**" in said
    assert ":material/cancel:" in said
    assert DEMONSTRATIONS["no-causal-mask"].expects in said


def test_every_expected_outcome_is_a_right_guess() -> None:
    for experiment in DEMONSTRATIONS.values():
        asked = question(experiment)
        assert len(set(asked.options)) == len(asked.options) == len(OUTCOMES)
        right = {kind for kind, words in OUTCOMES.items() if asked.is_right(words)}
        assert right == experiment.expected, experiment.name


def test_one_press_queues_all_runs_in_one_group(store: RunStore, busy_queue: RunQueue) -> None:
    app = opened_at(PAGE, experiment=ONE.name)
    app.button(key="experiment-start").click().run()
    assert not app.exception
    runs = [run for run in store.list() if run.status.state == "queued"]
    assert [run.experiment for run in runs[::-1]] == [ONE.experiment(arm) for arm in ONE.arms]
    assert {run.labels.group for run in runs} == {ONE.title}


def test_what_is_recorded_is_not_trained_again(
    store: RunStore, busy_queue: RunQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "recorded", RECORDED)
    one = DEMONSTRATIONS["mask-on-the-wrong-axis"]
    app = opened_at(PAGE, experiment=one.name)
    (button,) = [button for button in app.button if button.label.startswith("Train 1 run")]
    button.click().run()
    assert not app.exception
    (run,) = [run for run in store.list() if run.status.state == "queued"]
    assert run.experiment == one.experiment(one.arms[1])
    assert run.labels.group == one.title
    assert not any(label.startswith("Train") for label in labels(app))


def test_seeds_are_trained_of_every_arm(store: RunStore, busy_queue: RunQueue) -> None:
    app = opened_at(PAGE, experiment=ONE.name)
    app.session_state["seeds-number"] = 2
    app.button(key="experiment-seeds").click().run()
    assert not app.exception
    runs = [run.experiment for run in store.list() if run.status.state == "queued"]
    wanted = [ONE.experiment(arm).replace(seed=seed) for arm in ONE.arms for seed in (0, 1)]
    assert sorted(map(str, runs)) == sorted(map(str, wanted))


def test_the_settings_of_a_race_stand_in_a_table_when_they_are_asked_for(recorded: None) -> None:
    app = opened_at(PAGE, experiment="styles-write")
    assert "the blocks, in" in shown(app)
    app.session_state["experiment-settings"] = True
    app.run()
    assert not app.exception
    assert list(app.table[0].value.columns) == [
        "GPT-2 in small", "Llama in small", "Qwen in small", "Mixtral in small"
    ]  # fmt: skip
    assert list(app.table[0].value.loc["Norm"]) == ["LayerNorm", "RMSNorm", "RMSNorm", "RMSNorm"]
