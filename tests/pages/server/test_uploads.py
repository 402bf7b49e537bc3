"""What the server takes in over HTTP is measured as it comes, a session's files together."""

import asyncio
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

from pages.server import guards
from pages.server.guards import Uploads
from tfm_core.data import user_picture

ROOT = Path(__file__).resolve().parents[3]
SIZES = {"MAX_PER_SESSION": 100, "MAX_TOTAL": 250, "MAX_BODY": 20}


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    for name, size in SIZES.items():
        monkeypatch.setattr(guards, name, size)


class Server:
    """An app behind the middleware that reads every body and says 204."""

    def __init__(self) -> None:
        self.kept: set[tuple[str, str]] = set()
        self.read: list[int] = []
        self.status = 204
        self.app = Uploads(self._answer, is_stored=lambda file: file in self.kept)

    async def _answer(self, scope, receive, send):
        n = 0
        while True:
            message = await receive()
            n += len(message["body"])
            self.read.append(n)
            if not message["more_body"]:
                break
        file = tuple(scope["path"].split("/")[-2:])
        if scope["method"] == "DELETE":
            self.kept.discard(file)
        elif scope["method"] == "PUT" and self.status == 204:
            self.kept.add(file)
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def send(
        self, method: str, path: str, parts: Iterable[bytes] = (b"",), announced: int | None = None
    ) -> int:
        """Return the status of the answer to a request whose body comes in parts."""
        waiting, answers = list(parts), []

        async def receive():
            return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

        async def send(message):
            answers.append(message)

        length = [] if announced is None else [(b"content-length", str(announced).encode())]
        scope = {"type": "http", "method": method, "path": path, "headers": length}
        asyncio.run(self.app(scope, receive, send))
        return answers[0]["status"]

    def put(self, session: str, file: str, n_bytes: int, **rest: int) -> int:
        size = 10
        parts = [b"x" * min(size, n_bytes - at) for at in range(0, n_bytes, size)]
        return self.send("PUT", f"/base/_stcore/upload_file/{session}/{file}", parts, **rest)


@pytest.fixture
def server():
    return Server()


def test_files_are_bounded_by_session_and_together(server):
    assert server.put("a", "1", 60) == 204
    assert server.put("a", "2", 60) == 413
    assert server.put("a", "3", 40) == 204
    assert server.put("a", "4", 10) == 413
    assert server.put("b", "1", 100) == 204
    assert server.put("c", "1", 60) == 413
    assert server.put("c", "1", 50) == 204


def test_what_is_replaced_removed_refused_or_of_an_ended_session_does_not_count(server):
    for _ in range(5):
        assert server.put("a", "1", 90) == 204
    assert server.send("DELETE", "/_stcore/upload_file/a/1") == 204
    assert server.put("a", "2", 100) == 204
    server = Server()
    for session in "ab":
        server.put(session, "1", 100)
    server.kept.remove(("a", "1"))
    assert server.put("c", "1", 100) == 204
    server = Server()
    server.status = 400
    assert server.put("a", "1", 90) == 400
    server.status = 204
    assert server.put("a", "2", 90) == 204


def test_a_body_is_unread_from_where_it_is_or_says_that_it_is_too_long(server):
    assert server.put("a", "1", 10, announced=101) == 413
    assert server.read == []
    assert server.put("a", "1", 10, announced=10) == 204
    assert server.put("a", "1", 10_000) == 413
    assert max(server.read) <= SIZES["MAX_PER_SESSION"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_what_is_no_upload_has_a_small_body(server, method):
    assert server.send(method, "/somewhere", [b"x" * 20]) == 204
    assert server.send(method, "/somewhere", [b"x" * 15, b"x" * 6]) == 413


def test_two_that_come_at_once_count_together(server):
    async def both() -> list[int]:
        gate = asyncio.Event()
        statuses, waiting = [], []

        async def one(name: str) -> None:
            parts = [b"x" * 40, b"x" * 40]

            async def receive():
                body = parts.pop(0)
                waiting.append(name)
                if len(waiting) == 2:  # both have begun before either has sent anything
                    gate.set()
                await gate.wait()
                return {"type": "http.request", "body": body, "more_body": bool(parts)}

            async def send(message):
                if message["type"] == "http.response.start":
                    statuses.append(message["status"])

            path = f"/_stcore/upload_file/a/{name}"
            scope = {"type": "http", "method": "PUT", "path": path, "headers": []}
            await server.app(scope, receive, send)

        await asyncio.wait_for(asyncio.gather(one("1"), one("2")), 60)
        return statuses

    statuses = asyncio.run(both())
    held = sum(server.app._sizes.values())
    assert held <= SIZES["MAX_PER_SESSION"]
    assert 413 in statuses


def test_no_page_offers_to_take_more_than_the_server_takes():
    config = tomllib.loads((ROOT / ".streamlit/config.toml").read_text(encoding="utf-8"))
    assert config["server"]["maxUploadSize"] == guards.MAX_MEGABYTES
    assert user_picture.MAX_BYTES / 10**6 <= guards.MAX_MEGABYTES
