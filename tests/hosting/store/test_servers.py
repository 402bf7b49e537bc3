"""Two servers on one store: what one trains the other shows, steers, and goes on with."""

import dataclasses
import os
import subprocess
import sys

import pytest

from tests.runs.comparing import assert_same, stopping_at
from tests.runs.waiting import tiny, wait_until
from tfm_core.hosting.store import manifest, upload
from tfm_core.hosting.store.storage import Remote, remote_of
from tfm_core.runs import shared_store
from tfm_core.runs.disk import ownership
from tfm_core.runs.process.execute import execute
from tfm_core.runs.queue import tickets
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.queue.run_queue import RunQueue

LONG = 1_000_000
CHECKPOINT = "checkpoints/last/checkpoint.safetensors"


def files(run):
    """Return every file of a run that a store knows, by name."""
    large = {name: path.read_bytes() for name, path in upload.large_files(run.folder)}
    names = [name for name in manifest.SMALL if (run.folder / name).exists()]
    return large | {name: (run.folder / name).read_bytes() for name in names}


@pytest.fixture
def begin():
    """Train a run in a process of its own."""
    begun = []

    def begin(run):
        arguments = [sys.executable, "-m", "tfm_core.runs.process.worker", "--run", run.folder]
        begun.append(subprocess.Popen(arguments))
        return begun[-1]

    yield begin
    for worker in begun:
        worker.kill()
        worker.wait()


def queue_of(server):
    return RunQueue(server.store, max_running=1, warm=0, limits=Limits())


def resumed(server, run_id):
    """Take a run over, as the button does, and train it in this process."""
    run = server.run(run_id)
    queue_of(server).resume(run)
    execute(run)
    return run


def test_a_run_that_one_trained_is_whole_on_the_other(servers):
    one, two = servers
    run = one.store.create(tiny())
    assert execute(run).state == "finished"
    assert two.turn() is None

    (seen,) = two.store.kept()
    assert seen.id == run.id
    assert seen.status.state == "finished"
    assert seen.has_checkpoint
    assert not (seen.folder / CHECKPOINT).exists()  # until somebody opens it
    assert ownership.theirs(seen.folder)
    assert files(two.run(run.id)) == files(run)
    assert [a.step for a in map(seen.snapshot, seen.snapshot_steps())] == run.snapshot_steps()


def test_a_run_that_stopped_goes_on_elsewhere_bit_for_bit(servers, store):
    one, two = servers
    whole = store.create(tiny())
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TFM_RUNS_URL")
        execute(whole)
    run = one.store.create(tiny())
    execute(run, *stopping_at(4, run))
    assert run.status.state == "stopped"
    two.turn()

    again = resumed(two, run.id)
    assert again.status.state == "finished"
    assert again.curves().resumed == (4,)
    assert_same(whole, again)
    assert not ownership.is_theirs(again.folder)

    one.turn()
    assert ownership.is_theirs(run.folder)
    assert files(one.run(run.id)) == files(again)
    with pytest.raises(ValueError, match="is finished"):
        queue_of(one).resume(one.run(run.id))


def test_a_live_run_is_seen_and_steered_from_the_other_server(on_s3, begin):
    one, two = on_s3
    run = one.store.create(tiny(LONG))
    worker = begin(run)
    wait_until(lambda: two.turn() or two.ids(), "the run is published")

    def seen(condition):
        return wait_until(lambda: two.turn() is None and condition(two.run(run.id)), "it is seen")

    assert seen(lambda there: there.status.step > 7 and len(there.curves().steps) > 7)
    assert two.run(run.id).status.state == "running"
    with pytest.raises(ValueError, match="trains on another server"):
        two.store.rename(run.id, "mine")
    two.run(run.id).request("pause")
    assert seen(lambda there: there.status.state == "paused")
    assert seen(lambda there: there.checkpoint_step == run.checkpoint_step)
    two.run(run.id).request("stop")
    assert seen(lambda there: there.status.state == "stopped")
    assert worker.wait() == 0
    assert run.status.reason == "Stopped by hand."
    assert files(two.run(run.id)) == files(run)


def test_a_store_that_is_away_for_a_while_loses_nothing(on_s3, door, begin):
    one, two = on_s3
    run = one.store.create(tiny(LONG))
    worker = begin(run)
    is_seen = lambda: two.turn() is None and two.ids() and two.run(run.id).status.step > 3  # noqa: E731
    wait_until(is_seen, "the run is seen to train")
    door.mode = "shut"
    wait_until(lambda: ownership.trouble(one.store.root), "the worker says what is wrong")
    assert "does not respond" in ownership.trouble(one.store.root)
    assert "does not respond" in two.turn()
    step = run.status.step
    wait_until(lambda: run.status.step > step + 7, "it trains on")
    assert two.run(run.id).status.state == "running"  # nothing is known of it, so nothing is said
    door.mode = "open"
    wait_until(lambda: not ownership.trouble(one.store.root), "the worker is well again")
    run.request("stop")
    assert worker.wait() == 0
    assert two.turn() is None
    assert two.run(run.id).status.state == "stopped"
    assert files(two.run(run.id)) == files(run)


def test_what_a_worker_could_not_publish_is_published_by_its_server(on_s3, door, monkeypatch):
    one, two = on_s3
    monkeypatch.setattr(upload, "FLUSH_SECONDS", 0.1)
    door.mode = "shut"
    run = one.store.create(tiny())
    assert execute(run).state == "finished"
    assert "does not respond" in one.turn()
    door.mode = "open"
    assert one.turn() is None
    two.turn()
    assert files(two.run(run.id)) == files(run)


@pytest.mark.parametrize(("mode", "words"), [("refuse", "credentials"), ("full", "is full")])
def test_what_is_refused_waits_and_all_else_stays_readable(on_s3, door, mode, words):
    one, two = on_s3
    old = one.store.create(tiny())
    execute(old)
    two.turn()
    door.mode = mode
    queue = queue_of(one)
    new = one.store.create(tiny())
    queue.submit(new)
    assert words in one.turn()
    assert two.run(old.id).curves().finished
    assert tickets.waiting(one.store.root) == [new.id]
    assert new.status.state == "queued"

    door.mode = "open"
    execute(new)
    assert one.turn() is None
    two.turn()
    assert two.run(new.id).status.state == "finished"


def test_a_queued_run_is_started_by_the_server_that_made_it(servers):
    one, two = servers
    run = one.store.create(tiny())
    queue_of(one).submit(run)
    one.turn()
    two.turn()
    assert two.run(run.id).status.state == "queued"
    other = queue_of(two)
    other._mend(at_once=True)
    assert tickets.waiting(two.store.root) == []

    two.run(run.id).request("stop")  # which takes it over
    assert two.run(run.id).status.state == "stopped"
    two.turn()
    one.turn()
    assert run.status.state == "stopped"
    assert tickets.waiting(one.store.root) == []


def test_one_alone_takes_a_run_over(servers, monkeypatch):
    one, two = servers
    run = one.store.create(tiny())
    execute(run, *stopping_at(3, run))
    two.turn()
    Remote(two.url).create(f"calls/{run.id}/home-000002", b"somebody")
    monkeypatch.setattr("tfm_core.hosting.store.upload.homes", lambda *_: [])  # not seen yet
    with pytest.raises(ValueError, match="Another server is taking over this run"):
        queue_of(two).resume(two.run(run.id))
    assert ownership.is_theirs(two.run(run.id).folder)


def test_a_worker_whose_run_was_taken_over_ends(servers):
    one, _ = servers
    run = one.store.create(tiny(LONG))

    def take(event):
        if getattr(event, "step", 0) == 5:
            Remote(one.url).create(f"calls/{run.id}/home-000002", b"somebody")

    status = execute(run, None, take)
    assert status.state == "stopped"
    assert status.reason == shared_store.TAKEN_OVER


def test_names_and_notes_are_shared(servers):
    one, two = servers
    run = one.store.create(tiny())
    execute(run)
    one.store.label(run.id, name="Erster Versuch", tags=["한국어"], note="zwei\nZeilen")
    one.turn()
    two.turn()
    assert two.run(run.id).labels == one.run(run.id).labels
    two.store.rename(run.id, "Zweiter")
    two.turn()
    one.turn()
    assert one.run(run.id).meta.name == "Zweiter"


def test_what_is_deleted_goes_everywhere_and_comes_back(servers):
    one, two = servers
    run = one.store.create(tiny())
    execute(run)
    two.turn()
    one.store.delete(run.id)
    one.turn()
    two.turn()
    assert two.ids() == set()

    one.store.undelete(run.id)
    one.turn()
    two.turn()
    assert files(two.run(run.id)) == files(one.run(run.id))

    one.store.delete(run.id)
    one.store.empty_trash()
    one.turn()
    two.turn()
    assert one.ids() == two.ids() == set()
    remote = remote_of(one.url)
    for folder in ("index", f"files/{run.id}", f"calls/{run.id}"):
        assert remote.listing(folder) == {}


def test_a_store_that_is_empty_all_of_a_sudden_takes_nothing_away(servers):
    one, two = servers
    run = one.store.create(tiny())
    execute(run)
    two.turn()
    remote, before = Remote(one.url), files(two.run(run.id))
    remote.remove("store.json", f"index/{run.id}.json")
    for server in servers:
        assert "bucket or folder of TFM_RUNS_URL does not exist" in server.turn()
    assert files(two.run(run.id)) == before

    remote.write("store.json", b"")
    assert one.turn() is two.turn() is None
    assert files(two.run(run.id)) == before


def test_a_run_folder_that_was_lost_comes_back_from_the_store(servers):
    import shutil

    one, two = servers
    run = one.store.create(tiny())
    execute(run)
    two.turn()
    before = files(two.run(run.id))
    shutil.rmtree(run.folder)
    one.turn()
    assert files(one.run(run.id)) == before


def test_a_fresh_server_publishes_nothing_twice_and_leaves_nothing(on_s3, door, monkeypatch):
    monkeypatch.setattr(upload, "_KEPT_SECONDS", 0.0)
    one, _ = on_s3
    run = one.store.create(tiny())
    execute(run)
    one.turn()
    one.turn()
    asked = dict(door.n_asked)
    one.turn()
    more = {kind: n - asked.get(kind, 0) for kind, n in door.n_asked.items()}
    assert {kind: n for kind, n in more.items() if n} == {"GET": 1}  # it lists, and that is all
    assert type(one)(one.store.root, one.url).turn() is None
    assert door.n_asked.get("PUT") == asked["PUT"]

    remote = Remote(one.url)
    made = manifest.read(remote.read(f"index/{run.id}.json"))
    named = {part for entry in made.files.values() for part, _size in entry.parts}
    assert set(remote.listing(f"files/{run.id}")) == named


def test_a_manifest_that_is_none_is_left_alone(servers):
    one, two = servers
    run = one.store.create(tiny())
    execute(run)
    two.turn()
    remote, before = Remote(one.url), files(two.run(run.id))
    made = manifest.read(remote.read(f"index/{run.id}.json"))
    evil = dataclasses.replace(made, files={"../../evil": manifest.Entry((), b"x")})
    for content in (b"", b"[]", evil.content(), made.content()[:-5]):
        remote.write(f"index/{run.id}.json", content)
        assert two.turn() is None
        assert files(two.run(run.id)) == before
    assert not (two.store.root.parent / "evil").exists()


def test_the_doctor_tries_the_store(on_s3, door):
    from tfm_core.doctor.checks import check_store

    assert check_store(shared_store.shared_store()).level == "ok"
    door.mode = "full"
    found = check_store(shared_store.shared_store())
    assert found.level == "problem"
    assert "is full" in found.words


def test_the_command_line_says_what_is_wrong_and_lists_what_is_here(on_s3, door):
    one, _ = on_s3
    run = one.store.create(tiny())
    execute(run)
    door.mode = "refuse"
    env = {**os.environ, "TFM_RUNS_DIR": str(one.store.root)}
    done = subprocess.run(
        [sys.executable, "-m", "tfm_core", "runs"], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "refuses the credentials" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert run.id in done.stdout
