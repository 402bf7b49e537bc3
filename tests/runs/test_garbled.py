"""Whatever stands in the files of a run, it is a run with values that can be, or a sentence."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.pairwise import crossed
from tests.runs.conftest import needs_pipes
from tests.runs.waiting import tiny
from tfm_core.runs.run import Run
from tfm_core.runs.status import Status, read_status

pytestmark = pytest.mark.quick

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
        assert status.reason.startswith("This run is damaged (status.json")


@pytest.mark.parametrize(("field", "odd"), crossed(META, ODD))
def test_what_meta_lacks_is_made_up_and_said(store, field, odd):
    run = put(store.create(tiny()), "meta.json", **{field: ODD[odd]})
    assert_total(run)
    kept = getattr(run.meta, field) == ODD[odd] and type(getattr(run.meta, field)) is type(ODD[odd])
    assert kept or f"meta.json has a value of “{field}”" in (run.damage or "")
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
