"""The files of a published run: whole lines, whole files, and names that hold nothing else."""

from __future__ import annotations

import json
import os
import threading

import pytest

from tfm_core.hosting.published.folder import STATE, Folder, is_lasting, is_served, media_type, tag

TAG = tag(b"some content")
SERVED = [
    "index.html", "run.json", f"log-{TAG}.jsonl", f"live-{TAG}.js", f"live-{TAG}.css.gz",
    f"look-{TAG}-en.json", f"now-{TAG}-pt_BR.json", f"00000012-{TAG}-0-3.bin",
    f"reel-{TAG}-2-0.bin",
]  # fmt: skip
PRIVATE = [
    "", ".", "..", ".source.json", ".lock", "../run.json", "a/run.json", "run.json/", "run.json\n",
    f"log-{TAG}.jsonl/..", "log-.jsonl", f"live-{TAG}.py", f"00000012-{TAG}-0-3.bin.tmp",
    "events.jsonl", "..%2frun.json", "\\run.json", f".run.json.{TAG}", "run.json\0",
]  # fmt: skip


def test_what_a_page_reads_is_served_as_what_it_is() -> None:
    for name in SERVED:
        assert is_served(name)
        assert "/" in media_type(name)
        assert is_lasting(name) == (name not in {"index.html", "run.json", f"log-{TAG}.jsonl"})


def test_nothing_else_is_served() -> None:
    for name in PRIVATE:
        assert not is_served(name)


def said(folder: Folder) -> dict:
    return json.loads((folder.path / STATE).read_text(encoding="utf-8"))


def test_a_reader_never_sees_half_a_line(tmp_path) -> None:
    folder = Folder(tmp_path)
    folder.say({"step": 0})
    is_over, wrong, n_read = threading.Event(), [], 0

    def read() -> None:
        nonlocal n_read
        while not is_over.is_set() or not n_read:
            log = said(folder)["log"]
            if not log["bytes"]:
                continue
            with open(tmp_path / log["name"], "rb") as file:
                content = file.read(log["bytes"])
            lines = content.split(b"\n")
            if lines.pop() or any(json.loads(line)[1] != n for n, line in enumerate(lines)):
                wrong.append(content[-40:])
            n_read += 1

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(0, 600, 3):
        folder.append(["batch", n, 0.5] for n in range(number, number + 3))
        folder.say({"step": number})
    is_over.set()
    reader.join()
    assert wrong == []
    assert said(folder)["log"]["bytes"] == (tmp_path / folder.log).stat().st_size


def test_what_a_full_disk_took_in_part_is_written_over(tmp_path, monkeypatch) -> None:
    folder = Folder(tmp_path)
    folder.append([["batch", 1, 0.25]])
    write = os.write

    def half(file: int, content: bytes) -> int:
        write(file, bytes(content)[:5])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(OSError, match="No space"):
        folder.append([["batch", 2, 0.125]])
    monkeypatch.undo()
    folder.append([["batch", 2, 0.5]])
    content = (tmp_path / folder.log).read_bytes()
    assert content == b'["batch",1,0.25]\n["batch",2,0.5]\n'
    assert folder.log_bytes == len(content)


def test_the_state_is_written_only_where_it_says_something_new(tmp_path) -> None:
    folder = Folder(tmp_path)
    assert folder.say({"step": 1})
    before = (tmp_path / STATE).stat()
    assert not folder.say({"step": 1})
    assert (tmp_path / STATE).stat() == before
    assert folder.say({"step": 2})


def test_two_states_never_share_a_second(tmp_path) -> None:
    # a server that knows files apart by the second alone would keep the first for ever
    folder = Folder(tmp_path)
    seconds = []
    for step in range(5):
        folder.say({"step": step})
        seconds.append(int((tmp_path / STATE).stat().st_mtime))
    assert sorted(set(seconds)) == seconds


def test_a_folder_that_is_begun_again_has_another_log(tmp_path) -> None:
    first, second = Folder(tmp_path), Folder(tmp_path)
    assert first.log != second.log


def test_tidying_takes_what_nobody_reads_and_nothing_else(tmp_path) -> None:
    folder = Folder(tmp_path, linger=0)
    (tmp_path / "notes.txt").write_text("of somebody else")
    folder.append([["batch", 1, 0.5]])
    folder.say({})
    folder.put("index.html", b"<!doctype html>")
    kept, old = f"look-{TAG}-en.json", f"now-{TAG}-en.json"
    for name in (kept, old):
        folder.put(name, b"{}")
    folder.tidy([kept])
    assert sorted(os.listdir(tmp_path)) == sorted(
        ["notes.txt", folder.log, STATE, "index.html", kept]
    )


def test_what_somebody_may_just_have_read_of_stays_for_a_while(tmp_path) -> None:
    folder, name = Folder(tmp_path), f"look-{TAG}-en.json"
    folder.put(name, b"{}")
    folder.tidy([])
    folder.tidy([])
    assert folder.has(name)


def test_a_file_that_never_changes_is_written_once(tmp_path) -> None:
    folder = Folder(tmp_path)
    name = f"look-{TAG}-en.json"
    folder.put(name, b"1")
    before = (tmp_path / name).stat().st_ino
    folder.put(name, b"1")
    assert (tmp_path / name).stat().st_ino == before
