"""A run as static files: everything is there, nothing that is nobody's business, nothing twice."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from pages.components import live
from pages.i18n import _, language, languages, speaking
from pages.publish import WRONG_INPUT, main
from pages.ui.files.publication import MAX_VIEWS, REEL, Publication
from pages.ui.files.publisher import Publisher, pace
from pages.ui.runs import run_actions
from tests.pages.learned_runs import learned_run
from tests.pages.made_runs import made_run, with_worker
from tfm_core.hosting.published.folder import EVERY, STATE, Folder, is_served
from tfm_core.hosting.published.shelf import Shelf
from tfm_core.inspect.progress import stage
from tfm_core.runs.auth import NotYours, hashed, new_token
from tfm_core.runs.disk import locks
from tfm_core.runs.record.snapshots import snapshot_path, write

EVIL = "</title><script>alert(1)</script>\"'&"


def said(folder):
    return json.loads((folder / STATE).read_text(encoding="utf-8"))


def lines(folder):
    log = said(folder)["log"]
    content = (folder / log["name"]).read_bytes()[: log["bytes"]]
    return [json.loads(line) for line in content.splitlines()]


def frames(content):
    """The snapshots of a reel: headers."""
    found, at = [], 0
    while at < len(content):
        length = int.from_bytes(content[at : at + 4], "little")
        part = content[at + 4 : at + 4 + length]
        found.append(json.loads(part[4 : 4 + int.from_bytes(part[:4], "little")]))
        at += 4 + length
    return found


@pytest.mark.parametrize("preset", ["translate", "vit-digits", "sentiment"])
def test_a_page_finds_all_that_it_is_told_of(store, tmp_path, preset) -> None:
    run, folder = learned_run(store, preset), tmp_path / "public"
    assert not Publication(run, Folder(folder)).update()
    told, shown = said(folder), stage.read(run)
    assert told["languages"] == ["en", "ko"]
    for spoken in told["languages"]:
        look = json.loads((folder / f"look-{told['look']}-{spoken}.json").read_text("utf-8"))
        assert (folder / f"now-{told['now']}-{spoken}.json").is_file()
    assert len(look["views"]) <= MAX_VIEWS
    assert look["first"] == [0, shown.example]
    snapshots = {line[1]: line[2] for line in lines(folder) if line[0] == "snapshot"}
    assert tuple(snapshots) == shown.steps
    for view in look["views"]:
        ending = f"{view['attention']}-{view['example']}.bin"
        for step, its in snapshots.items():
            assert (folder / f"{step:08d}-{its}-{ending}").is_file()
        reel = frames((folder / f"reel-{told['reel']}-{ending}").read_bytes())
        assert [(frame["step"], frame["tag"]) for frame in reel] == list(snapshots.items())
    page = (folder / "index.html").read_text("utf-8")
    for name in re.findall(r'(?:href|src)="(live-[^"]+)"', page):
        assert (folder / name).is_file()
        assert (folder / f"{name}.gz").is_file()
    assert all(is_served(path.name) for path in folder.iterdir())


def test_nobody_learns_more_than_there_is_to_see(store, tmp_path) -> None:
    run, folder = learned_run(store), tmp_path / "public"
    Publication(run, Folder(folder)).update()
    for path in folder.iterdir():
        content = path.read_bytes()
        assert run.id.encode() not in content, path.name
        assert str(tmp_path).encode() not in content, path.name


def test_a_name_is_text_and_nothing_else(store, tmp_path) -> None:
    run, folder = made_run(store, name=EVIL), tmp_path / "public"
    Publication(run, Folder(folder)).update()
    page = (folder / "index.html").read_text("utf-8")
    assert "<script>" not in page
    assert page.count("<script") == 1
    assert "&lt;/title&gt;&lt;script&gt;" in page
    assert "script-src &#x27;self&#x27;;" in page
    assert not re.search(r"\son\w+=|style=", page)


def test_only_what_is_new_is_written(store, tmp_path) -> None:
    run, folder = with_worker(learned_run(store), "paused"), tmp_path / "public"
    publication = Publication(run, Folder(folder))
    publication.update()
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    publication.update()
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    with (run.folder / "events.jsonl").open("a") as file:
        file.write('{"event": "step", "step": 500, "loss": 0.5, "accuracy": 0.25}\n')
    n_lines = len(lines(folder))
    publication.update()
    assert [line[:2] for line in lines(folder)[n_lines:]] == [["batch", 500]]
    changed = {
        path.name for path in folder.iterdir() if before.get(path.name) != path.stat().st_mtime_ns
    }
    assert changed - {"index.html"} <= {STATE, said(folder)["log"]["name"]}


def test_who_comes_late_gets_many_snapshots_in_one_file(store, tmp_path) -> None:
    run, folder = with_worker(learned_run(store), "paused"), tmp_path / "public"
    publication = Publication(run, Folder(folder))
    publication.update()
    assert "reel" not in said(folder)
    first = run.snapshot(run.snapshot_steps()[0])
    for step in range(3, 3 + REEL):
        write(run.folder, dataclasses.replace(first, step=step))
    publication.update()
    (reel,) = folder.glob(f"reel-{said(folder)['reel']}-0-0.bin")
    assert [frame["step"] for frame in frames(reel.read_bytes())] == run.snapshot_steps()


def test_a_snapshot_that_is_written_anew_has_another_name(store, tmp_path) -> None:
    run, folder = learned_run(store), tmp_path / "public"
    publication = Publication(run, Folder(folder))
    publication.update()
    (_, step, its) = next(line for line in lines(folder) if line[0] == "snapshot")
    path = snapshot_path(run.folder, step)
    path.write_bytes(path.read_bytes())
    publication.update()
    assert ["gone", step] in lines(folder)
    (again,) = [line for line in lines(folder) if line[:2] == ["snapshot", step]][1:]
    assert again[2] != its


def test_a_damaged_snapshot_is_left_out(store, tmp_path) -> None:
    run, folder = learned_run(store), tmp_path / "public"
    first, last = run.snapshot_steps()
    path = snapshot_path(run.folder, first)
    path.write_bytes(path.read_bytes()[:-7])
    Publication(run, Folder(folder)).update()
    assert [line[1] for line in lines(folder) if line[0] == "snapshot"] == [last]


def test_what_was_told_before_goes(store, tmp_path) -> None:
    run, folder = learned_run(store), tmp_path / "public"
    publication = Publication(run, Folder(folder, linger=0))
    publication.update()
    looks = [said(folder)["look"]]
    for name in ("Another name", "And another"):
        store.rename(run.id, name)
        publication.run = store.get(run.id)
        publication.update()
        looks.append(said(folder)["look"])
    kept = {path.name.split("-")[1] for path in folder.glob("look-*")}
    assert len(set(looks)) == 3
    assert kept == {looks[-1]}


def test_a_run_without_a_snapshot_has_a_page_already(store, tmp_path) -> None:
    run, folder = made_run(store, state="running"), tmp_path / "public"
    assert Publication(run, Folder(folder)).update()
    told = said(folder)
    assert (told["live"], told["state"], told["step"]) == (True, "running", 97)
    look = json.loads((folder / f"look-{told['look']}-en.json").read_text("utf-8"))
    assert (look["first"], look["views"]) == (None, [])


def test_the_command_line_writes_a_run_that_is_over_and_ends(store, tmp_path, capsys) -> None:
    run, folder = learned_run(store), tmp_path / "public"
    assert main([run.id, "--to", str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder / 'index.html'}\n"
    assert said(folder)["state"] == "finished"
    assert main(["no-such-run", "--to", str(folder)]) == WRONG_INPUT
    assert "no-such-run" in capsys.readouterr().err


def test_the_publisher_follows_the_shelf(store, tmp_path) -> None:
    run, shelf = learned_run(store), Shelf(store.root)
    kept = Publisher(store, shelf)
    one = shelf.publish(run.id, most=1)
    kept.turn()
    assert said(one.folder)["state"] == "finished"
    assert locks.is_locked(one.lock)
    store.delete(run.id)
    kept._kept[one.token].due = 0
    kept.turn()
    assert shelf.list() == []
    assert not one.folder.exists()
    kept.turn()
    assert kept._kept == {}


def test_two_servers_do_not_write_one_folder(store) -> None:
    run, shelf = learned_run(store), Shelf(store.root)
    one = shelf.publish(run.id, most=1)
    first, second = Publisher(store, shelf), Publisher(store, shelf)
    first.turn()
    before = said(one.folder)
    second.turn()
    assert second._kept == {}
    assert said(one.folder) == before
    first._forget(one.token)  # it ends
    second.turn()
    assert list(second._kept) == [one.token]
    assert said(one.folder)["log"]["name"] != before["log"]["name"]
    second._forget(one.token)


def test_a_run_that_cannot_be_read_leaves_the_others_alone(store, caplog) -> None:
    shelf = Shelf(store.root)
    ill, well = learned_run(store), learned_run(store, "vit-digits")
    folders = [shelf.publish(run.id, most=2).folder for run in (ill, well)]
    (ill.folder / "experiment.json").write_text("{", encoding="utf-8")
    kept = Publisher(store, shelf)
    kept.turn()
    assert "could not be brought up to date" in caplog.text
    assert not (folders[0] / STATE).exists()
    assert said(folders[1])["state"] == "finished"
    for token in list(kept._kept):
        kept._forget(token)


def test_another_visitors_run_is_neither_published_nor_unpublished(store, monkeypatch) -> None:
    monkeypatch.setenv("TFM_PUBLIC", "1")
    theirs = made_run(store, owner=hashed(new_token()))
    shelf = Shelf(store.root.resolve())
    with pytest.raises(NotYours):
        run_actions.publish(theirs)
    assert shelf.list() == []
    shelf.publish(theirs.id, most=1)
    with pytest.raises(NotYours):
        run_actions.unpublish(theirs)
    assert shelf.of(theirs.id) is not None


def test_the_more_ask_the_more_seldom_each_does() -> None:
    assert pace(0, EVERY) == EVERY
    assert pace(50, EVERY) == EVERY
    assert pace(500, 2.0) == 10.0  # a thousand, 100 of them in a second
    assert pace(100, 10.0) == 10.0
    assert pace(10_000, 30.0) == 30.0


def test_a_thread_without_a_session_speaks_what_it_is_told_to() -> None:
    before = language()
    with speaking("pseudo"):
        assert language() == "pseudo"
    assert language() == before in languages()
    assert _("Switch theme") == live.words()["theme"]
