"""The store and the files of a run: found again, bounded, and read whatever stands in them."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.pairwise import crossed
from tests.runs.conftest import needs_pipes
from tests.runs.waiting import tiny
from tfm_core.runs import Run, RunNotFound, RunStore
from tfm_core.runs.labels import Labels
from tfm_core.runs.process.identity import this_host
from tfm_core.runs.run import RunDamaged
from tfm_core.runs.status import Status, read_status
from tfm_core.sentences import StudentError

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
        with pytest.raises(RunNotFound, match="A run id has"):
            store.get(run_id)
    with pytest.raises(RunNotFound, match="There is no run unknown-run"):
        store.get("unknown-run")


def test_ids_are_letters_and_digits_and_files_plain_json(store):
    assert all(store.create(tiny()).id.isalnum() for _ in range(40))
    run = store.create(tiny())
    for name in ("experiment.json", "meta.json", "status.json"):
        assert isinstance(json.loads((run.folder / name).read_text()), dict)


def test_a_renamed_run_has_its_new_name_in_one_line_and_always_one(store):
    run = store.create(tiny())
    assert store.rename(run.id, "  A\n better\tname ").meta.name == "A better name"
    assert store.get(run.id).meta.name == "A better name"
    with pytest.raises(ValueError, match="needs a name"):
        store.rename(run.id, " \n")


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
    run = end(store.create(tiny()), "running", pid=os.getpid(), host=this_host())
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
    with pytest.raises(ValueError, match="hasn't ended"):
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
    with pytest.raises(RunNotFound, match="There is no run __pycache__"):
        store.get("__pycache__")


MAX_GROUP, MAX_NOTE, MAX_TAG, MAX_TAGS = 80, 2_000, 30, 12

ODD_LABELS = {
    "number": 3,
    "infinite": float("inf"),
    "object": {"a": 1},
    "half a character": "\ud800",
    "numbers": [1],
    "empty tags": [""],
    "too long": "x" * (MAX_NOTE + 1),
    "too many": [f"t{k}" for k in range(MAX_TAGS + 1)],
    "tag too long": ["x" * (MAX_TAG + 1)],
}


def again(run: Run) -> Run:
    """The same run, read anew."""
    return Run(run.folder)


def test_labels_are_found_as_given_what_is_not_said_stays(store):
    run = store.create(tiny())
    assert again(run).labels == Labels()
    store.label(run.id, tags=["baseline", "한국어"], note="First.\nSecond.", group="Heads")
    store.rename(run.id, "Eight heads")
    assert again(run).labels == Labels(
        "Eight heads", ("baseline", "한국어"), "First.\nSecond.", "Heads"
    )
    assert again(run).meta.name == "Eight heads"
    assert again(run).damage is None
    run = store.create(tiny(), group="Heads")
    assert run.labels.group == "Heads"
    store.label(run.id, tags=["one"], note="Kept.")
    assert store.label(run.id, group="").labels == Labels(None, ("one",), "Kept.", None)
    assert store.label(run.id, tags=[], note=" \n ").labels == Labels()
    run = store.create(tiny())
    tags = store.label(run.id, tags=["Slow, baseline", " slow ", "two\nwords", ","]).labels.tags
    assert tags == ("Slow", "baseline", "two words")


def test_a_run_is_named_by_a_person_up_to_the_longest_name(store):
    plain, preset = store.create(tiny()), store.create(tiny(), name="Copy", preset="copy")
    assert not plain.is_named
    assert not preset.is_named
    assert store.create(tiny(), name="Mine").is_named
    assert store.rename(plain.id, plain.meta.name).is_named
    tags = tuple("x" * (MAX_TAG - 2) + f"{k:02}" for k in range(MAX_TAGS))
    note, group, name = "x" * MAX_NOTE, "g" * MAX_GROUP, "n" * 80
    run = store.create(tiny())
    store.label(run.id, tags=tags, note=note, group=group)
    store.rename(run.id, name)
    assert again(run).labels == Labels(name, tags, note, group)
    with pytest.raises(StudentError, match="has 81 characters; the limit is 80"):
        store.rename(run.id, name + "n")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"tags": ["x" * (MAX_TAG + 1)]}, f"the limit is {MAX_TAG}"),
        ({"tags": [f"t{k}" for k in range(MAX_TAGS + 1)]}, f"the limit is {MAX_TAGS}"),
        ({"note": "x" * (MAX_NOTE + 1)}, "the limit is 2,000"),
        ({"group": "x" * (MAX_GROUP + 1)}, f"the limit is {MAX_GROUP}"),
    ],
)
def test_what_is_too_long_is_refused_in_a_sentence_and_changes_nothing(store, given, sentence):
    run = store.create(tiny())
    before = store.label(run.id, tags=["kept"], note="Kept.", group="Kept").labels
    with pytest.raises(StudentError, match=sentence):
        store.label(run.id, **{"note": "New.", **given})
    assert again(run).labels == before


@pytest.mark.parametrize(("field", "odd"), crossed(("name", "tags", "note", "group"), ODD_LABELS))
def test_of_garbled_labels_the_rest_is_kept_and_said(store, field, odd):
    run = store.create(tiny(), name="Begun")
    values = {"name": "Named", "tags": ["a"], "note": "Note.", "group": "Heads"}
    (run.folder / "labels.json").write_text(json.dumps(values | {field: ODD_LABELS[odd]}))
    found = again(run)
    kept = {"name": "Named", "tags": ("a",), "note": "Note.", "group": "Heads"}
    for name, value in kept.items():
        assert name == field or getattr(found.labels, name) == value
    assert getattr(found.labels, field) == getattr(Labels(), field)
    assert f"the value of “{field}” in labels.json is invalid" in found.damage
    assert found.problem is None
    assert found.meta.name == ("Begun" if field == "name" else "Named")


def test_a_copy_has_the_name_and_no_other_label(store, end):
    run = end(store.create(tiny(), name="Begun", group="Heads"), "finished", step=7)
    store.label(run.id, tags=["a"], note="Of this one alone.")
    store.rename(run.id, "Named")
    copy = store.fork(run.id, steps=19)
    assert copy.meta.name == "Named"
    assert copy.labels == Labels()


FILES = ("experiment.json", "meta.json", "status.json")

ODD = {
    "negative": -1,
    "huge": 10**400,
    "infinite": float("inf"),
    "nothing": None,
    "bool": True,
    "list": [1],
    "object": {"a": 1},
    "text": "x",
    "empty": "",
    "half a character": "\ud800",
    "lines": "a\nb",
    "no date": "2026-13-45T00:00:00+00:00",
    "year 1": "0001-01-01T00:00:00+14:00",
    "no zone": "2026-11-22T00:00:00",
    "far zone": "2026-11-22T00:00:00+25:00",
}


def put(run: Run, file: str, **values: object) -> Run:
    path = run.folder / file
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    return Run(run.folder)


def assert_total(run: Run) -> None:
    """Ask all that a list of runs asks."""
    status = run.status
    assert isinstance(status, Status)
    assert 0 <= status.progress <= 1
    assert status.is_alive in (True, False)
    assert run.meta.name.isprintable()
    assert run.meta.created[10] == "T"
    assert run.problem is None or run.problem.startswith("This run is damaged")
    assert run.checkpoint_step is None
    assert run.has_checkpoint in (True, False)
    assert run.snapshot_steps() == run.log_tail() == run.reader().read() == []


STATUS = ("step", "total_steps", "epoch", "pid", "host", "created", "heartbeat", "seconds")

META = ("name", "created", "device", "threads", "preset", "owner")

KINDS = ("folder", "pipe", "link", "loop", "long", "digits", "deep", "bytes", "missing")


@pytest.mark.parametrize(("field", "odd"), crossed(STATUS, ODD, rounds=2))
def test_a_status_holds_what_can_be_or_is_said_to_be_damaged(store, field, odd):
    run = store.create(tiny(), state="running")
    sound = put(run, "status.json", pid=os.getpid(), host="elsewhere", created=1.0, heartbeat=1.0)
    status = put(sound, "status.json", **{field: ODD[odd]}).status
    assert_total(sound)
    is_optional = field in {"pid", "host", "created", "heartbeat"} and odd == "nothing"
    is_name = field == "host" and odd not in {"empty", "half a character", "lines", "nothing"}
    fits = is_optional or (is_name and isinstance(ODD[odd], str))
    if fits:  # a process elsewhere lives while its heart beats
        assert status.state in {"running", "interrupted"}
    else:
        assert status.state == "interrupted"
        assert status.reason.startswith(
            f"This run is damaged (the value of “{field}” in status.json"
        )


@pytest.mark.parametrize(("field", "odd"), crossed(META, ODD))
def test_what_meta_lacks_is_made_up_and_said(store, field, odd):
    run = put(store.create(tiny()), "meta.json", **{field: ODD[odd]})
    assert_total(run)
    kept = getattr(run.meta, field) == ODD[odd] and type(getattr(run.meta, field)) is type(ODD[odd])
    assert kept or f"the value of “{field}” in meta.json" in (run.damage or "")
    assert [listed.id for listed in store.list()] == [run.id]


@pytest.mark.parametrize(("file", "kind"), crossed(FILES, KINDS))
def test_what_is_no_file_of_a_run_is_not_waited_for(store, tmp_path, file, kind):
    if kind == "pipe" and not hasattr(os, "mkfifo"):
        pytest.skip("there are no pipes here")
    run = store.create(tiny())
    path = run.folder / file
    (tmp_path / "other").write_bytes(path.read_bytes())
    path.unlink()
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "link":
            path.symlink_to(tmp_path / "other")
        case "loop":
            path.symlink_to(path)
        case "long":
            path.write_bytes(b" " * (2**24 + 1))
        case "digits":
            path.write_text('{"state": "queued", "step": ' + "1" * 5_000 + "}")
        case "deep":
            path.write_text("[" * 100_000)
        case "bytes":
            path.write_bytes(bytes(range(256)))
    found = Run(run.folder)
    assert_total(found)
    said = found.status.reason if file == "status.json" else found.damage
    assert said.startswith("This run is damaged")
    assert file in said
    assert str(tmp_path) not in said


@pytest.mark.parametrize("name", ["checkpoints", "snapshots", "requests"])
def test_a_file_in_the_place_of_a_folder_is_no_folder(store, name):
    run = store.create(tiny())
    (run.folder / name).rmdir()
    (run.folder / name).write_text("?")
    assert_total(run)


@needs_pipes
def test_links_and_pipes_among_what_a_run_wrote_are_left_out(store, tmp_path):
    run = store.create(tiny())
    secret = tmp_path / "secret"
    secret.write_text("secret\n")
    (run.folder / "worker.log").symlink_to(secret)
    os.mkfifo(run.folder / "events.jsonl")
    os.mkfifo(run.folder / "snapshots" / "00000001.safetensors")
    (run.folder / "snapshots" / "00000002.safetensors").symlink_to(secret)
    last = run.folder / "checkpoints" / "last"
    last.mkdir()
    os.mkfifo(last / "checkpoint.safetensors")
    assert_total(run)


@pytest.mark.parametrize(
    "template", ["{n:>9999999999}", "{n.__class__}", "{n[0]}", "{n:{n}}", "{}", "{0}", "{n!z}"]
)
def test_a_forged_reason_is_taken_as_plain_english(store, template):
    run = store.create(tiny(), state="stopped")
    parts = {"template": template, "values": {"n": 9}}
    put(run, "status.json", reason="Enough.", reason_parts=parts)
    reason = read_status(run.folder).reason
    assert (reason, type(reason)) == ("Enough.", str)


ASKED = """
import sys
from pathlib import Path
from tfm_core.runs.store import RunStore

for run in RunStore(Path(sys.argv[1]), recorded=None).list():
    run.status, run.snapshot_steps(), run.checkpoint_step, run.reader().read(), run.log_tail()
    print(run.damage, "|", run.status.reason, "|", run.has_checkpoint)
"""


@pytest.mark.skipif(os.name != "posix", reason="there are no such permissions")
@pytest.mark.parametrize("name", [*FILES, "events.jsonl", "snapshots", "checkpoints", "."])
def test_what_may_not_be_read_is_said_and_breaks_nothing(store, name):
    run, other = store.create(tiny()), store.create(tiny())
    (run.folder / "events.jsonl").touch()
    command = [sys.executable, "-c", ASKED, str(store.root)]
    if os.geteuid() == 0:  # to whom permissions do not apply, unless these are taken from root
        if shutil.which("setpriv") is None:
            pytest.skip("root may read everything here")
        rights = "-dac_override,-dac_read_search"
        command = ["setpriv", "--bounding-set", rights, "--inh-caps", rights, *command]
    (run.folder / name).chmod(0)
    try:
        asked = subprocess.run(command, capture_output=True, text=True, check=True)
    finally:
        (run.folder / name).chmod(0o700)
    said = asked.stdout.splitlines()
    assert len(said) == 2
    assert sum("Permission denied" in line for line in said) == (name in {*FILES, "."})
    assert str(store.root) not in asked.stdout
    assert other.problem is None
