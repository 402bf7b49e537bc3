"""The store: what is created is found again, and nothing outside its folder can be reached."""

import json
import os
import re

import pytest

from tests.runs.waiting import tiny
from tfm_core.runs import RunNotFound, RunStore
from tfm_core.runs.run import RunDamaged

pytestmark = pytest.mark.quick


def test_a_created_run_is_found_with_all_it_was_given(store):
    run = store.create(tiny(), device="cuda:1", threads=3, name="First", preset="copy")

    loaded = store.get(run.id)

    assert loaded.experiment == tiny()
    assert loaded.meta.name == "First"
    assert (loaded.meta.device, loaded.meta.threads, loaded.meta.preset) == ("cuda:1", 3, "copy")
    assert loaded.meta.created.endswith("+00:00")
    assert loaded.status.state == "queued"
    assert loaded.status.total_steps == 7
    assert loaded.problem is None


def test_the_newest_run_is_listed_first_and_nothing_half_made(store):
    runs = [store.create(tiny()) for _ in range(3)]
    (store.root / ".new-half").mkdir()
    (store.root / "stray-file").write_text("")
    assert [listed.id for listed in store.list()] == [run.id for run in reversed(runs)]


def test_the_folder_can_be_named_by_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path / "elsewhere"))
    assert RunStore().create(tiny()).folder.parent == tmp_path / "elsewhere"


def test_an_unknown_id_or_none_is_answered_in_a_sentence(store):
    for run_id in [
        "..",
        "../secrets",
        "a/b/c/d/e/f",
        ".trash",
        "short",
        "x" * 65,
        "ab\0cdefgh",
        "",
        "abcdefgh\n",
    ]:
        with pytest.raises(RunNotFound, match="not a run id"):
            store.get(run_id)
    with pytest.raises(RunNotFound, match="There is no run unknown-run here"):
        store.get("unknown-run")


def test_ids_are_letters_and_digits_and_files_plain_json(store):
    assert all(store.create(tiny()).id.isalnum() for _ in range(40))
    run = store.create(tiny())
    for name in ("experiment.json", "meta.json", "status.json"):
        assert isinstance(json.loads((run.folder / name).read_text()), dict)


def test_a_renamed_run_has_its_new_name_in_one_line(store):
    run = store.create(tiny())
    assert store.rename(run.id, "  A\n better\tname ").meta.name == "A better name"
    assert store.get(run.id).meta.name == "A better name"


@pytest.mark.parametrize(
    ("name", "sentence"), [(" \n", "needs a name"), ("x" * 81, "the limit is 80")]
)
def test_a_name_must_be_a_name(store, name, sentence):
    run = store.create(tiny())
    with pytest.raises(ValueError, match=sentence):
        store.rename(run.id, name)


def test_a_deleted_run_can_be_taken_back(store, end):
    run = end(store.create(tiny()))

    store.delete(run.id)
    assert store.list() == []
    assert run.problem == "This run was deleted."

    assert store.undelete(run.id).experiment == tiny()
    assert [listed.id for listed in store.list()] == [run.id]


@pytest.mark.parametrize("run_id", ["../etc/passwd", "never-deleted"])
def test_only_what_was_deleted_can_be_taken_back(store, run_id):
    with pytest.raises(RunNotFound, match="no deleted run"):
        store.undelete(run_id)


def test_a_run_that_trains_is_not_deleted(store, end):
    run = end(store.create(tiny()), "running", pid=os.getpid(), host=_host())
    with pytest.raises(ValueError, match="Stop it first"):
        store.delete(run.id)


def test_a_fork_goes_on_where_its_parent_ended(store, end):
    parent = end(
        store.create(tiny(), name="Parent", preset="copy", device="cuda:0"), "finished", step=7
    )

    fork = store.fork(parent.id, steps=19)

    assert fork.id != parent.id
    assert fork.experiment == tiny(steps=19)
    assert (fork.meta.parent, fork.meta.preset) == (parent.id, "copy")
    assert (fork.status.state, fork.status.step, fork.status.total_steps) == ("stopped", 7, 19)
    assert fork.has_checkpoint
    assert fork.meta.device == "cuda:0"
    assert store.fork(parent.id, steps=19, device="cpu").meta.device == "cpu"
    assert fork.curves().steps["step"].tolist() == [7]


def test_a_fork_must_train_further_from_a_checkpoint_of_a_run_that_is_over(store, end):
    parent = end(store.create(tiny()), "finished", step=7)
    with pytest.raises(ValueError, match="has already done 7 steps"):
        store.fork(parent.id, steps=7)
    run = store.create(tiny(), state="stopped")
    with pytest.raises(ValueError, match="no checkpoint"):
        store.fork(run.id, steps=19)
    with pytest.raises(ValueError, match="not over"):
        store.fork(store.create(tiny()).id, steps=19)


def test_recorded_runs_are_listed_and_forked_but_never_changed(store, end, tmp_path):
    end(RunStore(tmp_path / "recorded").create(tiny(), device="cuda:0"), "finished", step=7)

    (run,) = store.list()

    assert run.meta.recorded
    with pytest.raises(ValueError, match="comes with the app"):
        store.delete(run.id)
    with pytest.raises(ValueError, match="comes with the app"):
        store.rename(run.id, "Mine")
    with pytest.raises(ValueError, match="comes with the app"):
        store.label(run.id, tags=["mine"])
    fork = store.fork(run.id, steps=19)
    assert not fork.meta.recorded
    assert fork.meta.device == "cpu"
    assert fork.folder.parent == store.root


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, r"^This run is damaged .experiment.json is missing..$"),
        ("{torn", "Invalid JSON"),
        ('{"model": {"family": "vit", "d_model": -3}}', "must be at least"),
        ("[" * 100_000, "damaged"),
    ],
)
def test_a_damaged_run_is_listed_with_its_problem_and_can_be_deleted(store, end, content, sentence):
    run = end(store.create(tiny()))
    path = run.folder / "experiment.json"
    path.unlink() if content is None else path.write_text(content)

    (damaged,) = store.list()

    assert re.search(sentence, damaged.problem or "")
    with pytest.raises(RunDamaged, match=sentence):
        _ = damaged.experiment
    assert damaged.status.state == "stopped"
    assert damaged.meta.name == "Copy"
    store.delete(damaged.id)
    assert store.list() == []


def test_a_folder_that_is_called_like_a_run_and_holds_none_is_no_run(store):
    run = store.create(tiny())
    for root in (store.root, store.recorded):
        (root / "__pycache__").mkdir(parents=True)
        (root / "__pycache__" / "build.cpython-311.pyc").touch()
    assert [listed.id for listed in store.list()] == [run.id]
    with pytest.raises(RunNotFound, match="There is no run __pycache__ here"):
        store.get("__pycache__")


def _host():
    from tfm_core.runs.process.identity import this_host

    return this_host()
