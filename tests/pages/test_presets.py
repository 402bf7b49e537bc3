"""Every page that shows a run opens with a run of every kind of model and task.

The runs are made once, of two steps on a little data; the models are those of the presets.
"""

import pytest

from pages.app.navigation.page_table import PAGES
from pages.learn.training_step import STAGES
from tests.pages.linked_views import PARAMETERS
from tests.pages.opening import opened_at
from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.runs.process.execute import execute
from tfm_core.runs.queue import local_workers
from tfm_core.runs.store import RunStore

LITTLE = {"n_train": 64, "n_validation": 16, "n_test": 16}
PASTED = "it was the best of times it was the worst of times " * 40


def short(experiment: Experiment) -> Experiment:
    """Return the experiment on a little data, over after two steps; MNIST is the part that comes
    with the app, so that nothing is downloaded."""
    task = experiment.task
    sizes = {name: n for name, n in LITTLE.items() if name in type(task).model_fields}
    name = "mnist-5000" if task.name == "mnist" else task.name
    return experiment.replace(
        task=task.replace(**sizes, name=name).model_dump(),
        training=experiment.training.replace(steps=2, batch_size=8).model_dump(),
    )


def experiments() -> dict[str, Experiment]:
    """Return what is trained: each preset, and one on a pasted text of words."""
    found = {name: short(preset.experiment) for name, preset in PRESETS.items()}
    text = found["gpt-text"].task.replace(text=PASTED, unit="words", context=16)
    found["pasted"] = found["gpt-text"].replace(task=text.model_dump())
    return found


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A store with a trained run of each, and their ids by name."""
    store = RunStore(tmp_path_factory.mktemp("presets"), recorded=None)
    made = {}
    for name, experiment in experiments().items():
        run = store.create(experiment, name=name, preset=None if name == "pasted" else name)
        status = execute(run)
        assert status.state == "finished", (name, status.reason)
        made[name] = run.id
    return store, made


@pytest.fixture
def ids(runs, monkeypatch):
    """The same, and the pages look into their store."""
    store, made = runs
    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
    monkeypatch.setattr(local_workers, "default_size", lambda: 0)
    return made


def one_of_each_kind() -> list[str]:
    """Return a name for each kind of model and task that there is."""
    kinds = {
        (experiment.model.family, experiment.task.kind, experiment.task.facts.answer): name
        for name, experiment in experiments().items()
    }
    return sorted(kinds.values())


FOLLOWS = [page for page in PAGES.values() if page.name not in {"home", "runs", "training-step"}]


@pytest.mark.wide
@pytest.mark.parametrize("name", one_of_each_kind())
def test_every_page_opens_with_a_run_of_every_kind(ids, name):
    for page in FOLLOWS:
        app = opened_at(
            page.file, run=ids[name], **({"show": "run"} if page.name in PARAMETERS else {})
        )
        assert not app.error, page.name


@pytest.mark.core(3)
@pytest.mark.parametrize("name", one_of_each_kind())
def test_a_training_step_is_taken_apart_with_every_kind(ids, name):
    for stage in STAGES:
        query = {"show": "run", "stage": stage, "run": ids[name]}
        app = opened_at(PAGES["training-step"].file, **query)
        assert not app.error, stage
