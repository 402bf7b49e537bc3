"""Experiments: cold, trained, while they train, and what their links open."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.looking import said
from tests.pages.made_runs import made_run
from tests.pages.opening import opened_at
from tfm_core.studies.experiments import BY_THEME, DEMONSTRATIONS, OUTCOMES

PAGE = "learn/challenges/page.py"
ONE = DEMONSTRATIONS["no-positions"]


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
    return app


def test_recorded_runs_show_experiments_also_cold(recorded):
    app = guessed(opened_at(PAGE, experiment="heads"))
    words = said(app)
    assert "“1 head” gets 99.5% of unseen sequences right" in words
    assert "This was expected." in words
    assert any(label.startswith("Train 1 run") for label in labels(app))
    app = guessed(opened_at(PAGE, experiment="no-causal-mask"), OUTCOMES["worse"])
    words = said(app)
    assert "Your guess: **It gets fewer right**" in words
    assert ":material/cancel:" in words
    assert DEMONSTRATIONS["no-causal-mask"].expects in words
    app = guessed(opened_at(PAGE, experiment="no-causal-mask"))
    words = said(app)
    assert "“no causal mask” gets 98.9% of unseen sequences right" in words
    assert "it gets **1.5%** of 200 right" in words
    assert not any(label.startswith("Train") for label in labels(app))
    (answers,) = [one.value for one in app.table]
    assert answers["with the causal mask"].str.startswith("✓").all()
    assert answers["no causal mask"].str.startswith("✗").all()


LAST_OF_THEMES = [known[-1].name for known in BY_THEME.values()]


def test_an_experiment_opens_untrained_and_says_what_to_expect(store):
    name = LAST_OF_THEMES[1]
    app = guessed(opened_at(PAGE, experiment=name))
    words = said(app)
    assert DEMONSTRATIONS[name].expects in words
    assert "No runs yet" in words
    assert any(label.startswith("Train") for label in labels(app))


def test_runs_that_are_there_are_shown_and_nothing_is_left_to_train(store):
    for arm, step in zip(ONE.arms, (97, 89), strict=True):
        made_run(store, experiment=ONE.experiment(arm), step=step)
    app = guessed(opened_at(PAGE, experiment=ONE.name))
    words = said(app)
    assert "**Shown:**" in words
    assert "a single seed proves little" in words  # the made runs are alike
    assert not any(label.startswith("Train") for label in labels(app))


def test_a_run_that_failed_says_why(store):
    why = "The disk is full"
    made_run(store, experiment=ONE.experiment(ONE.arms[0]), state="failed", reason=why)
    assert why in said(guessed(opened_at(PAGE, experiment=ONE.name)))


@pytest.mark.parametrize("name", [LAST_OF_THEMES[-1], "heads"])
def test_nothing_gives_the_outcome_away_before_a_guess(recorded, name):
    app = opened_at(PAGE, experiment=name)
    words = said(app)
    assert DEMONSTRATIONS[name].expects not in words
    assert "Shown:" not in words
    assert not app.table


def test_every_expected_outcome_is_a_right_guess():
    for experiment in DEMONSTRATIONS.values():
        asked = experiment.question
        assert len(set(asked.options)) == len(asked.options) == len(OUTCOMES)
        right = {kind for kind, words in OUTCOMES.items() if asked.is_right(words)}
        assert right == experiment.expected, experiment.name


def test_one_press_queues_all_runs_in_one_group(store, busy_queue):
    app = opened_at(PAGE, experiment=ONE.name)
    app.button(key="experiment-start").click().run()
    runs = [run for run in store.list() if run.status.state == "queued"]
    assert [run.experiment for run in runs[::-1]] == [ONE.experiment(arm) for arm in ONE.arms]
    assert {run.labels.group for run in runs} == {ONE.title}


def test_what_is_recorded_is_not_trained_again(store, busy_queue, recorded):
    one = DEMONSTRATIONS["mask-on-the-wrong-axis"]
    app = opened_at(PAGE, experiment=one.name)
    (button,) = [button for button in app.button if button.label.startswith("Train 1 run")]
    button.click().run()
    (run,) = [run for run in store.list() if run.status.state == "queued"]
    assert run.experiment == one.experiment(one.arms[1])
    assert run.labels.group == one.title
    assert not any(label.startswith("Train") for label in labels(app))
