"""What the server answers below /live/: parts, 304, and nothing but what is published."""

from __future__ import annotations

import asyncio
import os
import re

import pytest
from starlette.responses import PlainTextResponse

from pages.server.published import Published
from tfm_core.hosting.published.folder import tag
from tfm_core.hosting.published.shelf import Shelf

LOG = f"log-{tag(b'log')}.jsonl"
LASTING = f"look-{tag(b'look')}-en.json"
CONTENT = b'["batch",1,0.5]\n["batch",2,0.25]\n'


@pytest.fixture
def live(tmp_path):
    """A server, the token of a published run, and its folder."""
    shelf = Shelf(tmp_path)
    published = shelf.publish("a-run-of-mine", most=1)
    (published.folder / LOG).write_bytes(CONTENT)
    (published.folder / LASTING).write_bytes(b"{}")
    (published.folder / "run.json").write_bytes(b'{"form": 1}')
    (published.folder / "index.html").write_bytes(b"<!doctype html>")
    app = Published(PlainTextResponse("the app"), shelf=shelf, prefixes=["", "/some/base"])
    return app, published.token, published.folder


def ask(app, path, method="GET", **asked):
    """Return status, headers and content. asked: headers of the request."""
    messages: list[dict] = []

    async def send(message) -> None:
        messages.append(dict(message))

    given = [(name.replace("_", "-").encode(), text.encode()) for name, text in asked.items()]
    scope = {"type": "http", "method": method, "path": path, "root_path": "", "headers": given}
    asyncio.run(app(scope | {"query_string": b""}, None, send))
    said = {name.decode(): text.decode() for name, text in messages[0]["headers"]}
    return messages[0]["status"], said, b"".join(one.get("body", b"") for one in messages[1:])


def test_the_page_and_its_files_are_answered_below_the_base_path_too(live) -> None:
    app, token, _folder = live
    for base in ("", "/some/base"):
        status, said, content = ask(app, f"{base}/live/{token}/")
        assert (status, content) == (200, b"<!doctype html>")
        assert said["content-type"].startswith("text/html")
        assert ask(app, f"{base}/live/{token}/{LOG}")[2] == CONTENT
    assert ask(app, f"/live/{token}")[:2][0] == 307
    assert ask(app, f"/live/{token}")[1]["location"] == f"{token}/"


def test_where_one_logs_in_to_watch_no_published_run_answers(live, monkeypatch) -> None:
    app, token, _folder = live
    monkeypatch.setenv("TFM_LOGIN_TO_WATCH", "1")
    shut = Published(app.app, shelf=app.shelf, prefixes=[""])
    assert ask(shut, f"/live/{token}/")[0] == 404
    monkeypatch.setenv("TFM_MAX_PUBLISHED", "1")  # the host lets who has the address watch
    shut = Published(app.app, shelf=app.shelf, prefixes=[""])
    assert ask(shut, f"/live/{token}/")[0] == 200


def test_what_is_known_is_not_sent_again_until_it_changes(live) -> None:
    app, token, folder = live
    path = f"/live/{token}/run.json"
    status, said, _content = ask(app, path)
    assert (status, said["cache-control"]) == (200, "no-cache")
    assert ask(app, path, if_none_match=said["etag"])[0::2] == (304, b"")
    assert ask(app, path, if_none_match=f'"other", W/{said["etag"]}')[0] == 304
    facts = (folder / "run.json").stat()
    (folder / "run.json").write_bytes(b'{"form": 2}')  # as long as before
    os.utime(folder / "run.json", ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))
    assert ask(app, path, if_none_match=said["etag"])[0::2] == (200, b'{"form": 2}')


def test_of_a_log_that_grew_the_end_is_enough(live) -> None:
    app, token, _folder = live
    path = f"/live/{token}/{LOG}"
    status, said, content = ask(app, path, range="bytes=16-")
    assert (status, content) == (206, b'["batch",2,0.25]\n')
    assert said["content-range"] == f"bytes 16-{len(CONTENT) - 1}/{len(CONTENT)}"
    assert said["content-length"] == str(len(content))
    assert ask(app, path, range="bytes=0-15")[2] == b'["batch",1,0.5]\n'
    assert ask(app, path, range="bytes=16-9999")[2] == b'["batch",2,0.25]\n'
    status, said, content = ask(app, path, range=f"bytes={len(CONTENT)}-")
    assert (status, content) == (416, b"")
    assert said["content-range"] == f"bytes */{len(CONTENT)}"


def test_a_part_that_is_not_understood_is_the_whole(live) -> None:
    for asked in ["bytes=-5", "bytes=0-1,3-4", "bytes=x-", "lines=0-", "bytes="]:
        app, token, _folder = live
        assert ask(app, f"/live/{token}/{LOG}", range=asked)[0::2] == (200, CONTENT)


def test_a_part_of_another_version_is_the_whole(live) -> None:
    app, token, _folder = live
    path = f"/live/{token}/{LOG}"
    assert ask(app, path, range="bytes=16-", if_range='"other"')[0::2] == (200, CONTENT)
    etag = ask(app, path)[1]["etag"]
    assert ask(app, path, range="bytes=16-", if_range=etag)[0] == 206


def test_what_never_changes_is_kept_and_all_is_forbidden_to_ask_others(live) -> None:
    app, token, _folder = live
    assert "immutable" in ask(app, f"/live/{token}/{LASTING}")[1]["cache-control"]
    said = ask(app, f"/live/{token}/")[1]
    policy = said["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"https?:|\*", policy)
    assert (said["referrer-policy"], said["x-content-type-options"]) == ("no-referrer", "nosniff")
    assert "set-cookie" not in said


def test_head_says_the_same_without_content_and_nothing_is_written(live) -> None:
    app, token, _folder = live
    status, said, content = ask(app, f"/live/{token}/{LOG}", "HEAD")
    assert (status, said["content-length"], content) == (200, str(len(CONTENT)), b"")
    for method in ("POST", "PUT", "DELETE"):
        assert ask(app, f"/live/{token}/{LOG}", method)[0] == 405


def test_nothing_but_published_files_is_answered(live, tmp_path) -> None:
    app, token, folder = live
    (tmp_path / "secret.txt").write_text("secret")
    (folder / f"now-{tag(b'now')}-en.json").symlink_to(tmp_path / "secret.txt")
    names = [
        ".source.json", "../.source.json", "..", "../../secret.txt", "..%2f..%2fsecret.txt",
        f"../{token}/run.json", "//run.json", "run.json/", "run.json\0", "events.jsonl",
        f"now-{tag(b'now')}-en.json", "\\..\\secret.txt", "/etc/passwd", "run.json%00",
    ]  # fmt: skip
    for name in names:
        assert ask(app, f"/live/{token}/{name}")[0::2] == (404, b""), name
    for path in ("", "..", "../", f"{token[:-1]}/run.json", f"{token}x/", "x" * 43 + "/run.json"):
        assert ask(app, f"/live/{path}")[0] == 404, path


def test_all_else_is_the_apps(live) -> None:
    app, token, _folder = live
    for path in ("/", "/live", "/lively/x", f"/other/live/{token}/", "/train"):
        assert ask(app, path)[2] == b"the app"


def test_unpublished_it_answers_nobody(live) -> None:
    app, token, _folder = live
    app.shelf.unpublish("a-run-of-mine")
    for name in ("", "run.json", LOG):
        assert ask(app, f"/live/{token}/{name}")[0] == 404
    for path in (token, f"{token}/", ""):  # whoever opens it reads why
        assert ask(app, f"/live/{path}")[2].startswith(b"No run is published at this address.")


def test_who_asks_again_is_counted(live) -> None:
    app, token, _folder = live
    etag = ask(app, f"/live/{token}/run.json")[1]["etag"]
    ask(app, f"/live/{token}/run.json", if_none_match=etag)
    ask(app, f"/live/{token}/{LOG}")
    ask(app, f"/live/{'x' * 43}/run.json")
    assert dict(app.shelf.polls) == {token: 2}


def test_scripts_go_compressed_to_who_reads_that(live) -> None:
    app, token, folder = live
    name = f"live-{tag(b'script')}.js"
    (folder / name).write_bytes(b"let plain;")
    (folder / f"{name}.gz").write_bytes(b"packed")
    path = f"/live/{token}/{name}"
    status, said, content = ask(app, path, accept_encoding="br, gzip")
    assert (status, content, said["content-encoding"]) == (200, b"packed", "gzip")
    assert said["content-type"].startswith("text/javascript")
    assert ask(app, path)[2] == b"let plain;"
