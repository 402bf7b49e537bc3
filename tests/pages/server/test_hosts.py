"""Names under which the app answers: a foreign site's that points here is none of them."""

import asyncio
import socket

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import Message
from starlette.websockets import WebSocket

from pages.server.guards import Hosts, allowed

LOOPBACK = ("127.0.0.1", "127.0.1.1", "::1", "::ffff:127.0.0.1")
FOREIGN = (
    "evil.example",
    "evil.example:8501",
    "127.0.0.1.evil.example",
    "evil.example.",
    "a.b:c:d",
    "localhost.evil.example",
    "[::1",
    "EVIL.EXAMPLE",
    "127.0.0.1@evil.example",
)
OWN = (
    "localhost",
    "localhost:8501",
    "LOCALHOST",
    "127.0.0.1:8501",
    "127.9.9.9",
    "[::1]:8501",
    "app.localhost:1",
    "my-computer:8501",
    "192.168.0.5",
    "localhost.",
    "",
)


async def fine(_request: object) -> PlainTextResponse:
    return PlainTextResponse("fine")


async def stream(socket: WebSocket) -> None:
    await socket.accept()
    await socket.close()


def answered(
    kind: str, host: str, server: tuple[str, int | None] | None, *, names=(), **headers: str
) -> bool:
    """Whether a request is answered by the app."""
    app = Starlette(
        routes=[Route("/", fine), WebSocketRoute("/", stream)],
        middleware=[Middleware(Hosts, allowed=names)],
    )
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": f"{kind}.connect" if kind == "websocket" else "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    given = [(b"host", host.encode())] + [(k.encode(), v.encode()) for k, v in headers.items()]
    scope = {
        "type": kind,
        "method": "GET",
        "path": "/",
        "root_path": "",
        "query_string": b"",
        "headers": given,
        "server": server,
    }
    asyncio.run(app(scope, receive, send))
    if kind == "http":
        assert sent[0]["status"] in (200, 421)
        return sent[0]["status"] == 200
    assert sent[0]["type"] in ("websocket.accept", "websocket.close")
    return sent[0]["type"] == "websocket.accept"


def test_a_foreign_name_is_refused_on_loopback():
    for host in FOREIGN:
        for kind in ["http", "websocket"]:
            for address in LOOPBACK:
                assert not answered(kind, host, (address, 8501))
                assert not answered(kind, host, (address, 8501), origin=f"http://{host}")


def test_names_of_this_computer_are_answered():
    for host in OWN:
        for kind in ["http", "websocket"]:
            for address in LOOPBACK:
                assert answered(kind, host, (address, 8501))


def test_what_comes_through_a_proxy_or_from_elsewhere_is_answered():
    for kind in ["http", "websocket"]:
        for name in ("x-forwarded-for", "x-forwarded-host", "forwarded", "x-real-ip", "via"):
            assert answered(kind, "app.example.org", ("127.0.0.1", 8501), **{name: "1.2.3.4"})
        for address in ("192.168.0.5", "172.17.0.2", "fe80::1", "/run/app.sock"):
            assert answered(kind, "app.example.org", (address, 8501))
        assert answered(kind, "app.example.org", None)


def test_the_host_may_name_others():
    for names, is_answered in [
        (("app.example.org",), True),
        (("*.example.org",), True),
        (("APP.example.ORG",), True),
        (("*",), True),
        (("example.org",), False),
        (("*.app.example.org",), False),
    ]:
        said = answered("websocket", "app.example.org:443", ("127.0.0.1", 8501), names=names)
        assert said == is_answered


def test_this_computers_name_and_the_variables_are_allowed(monkeypatch):
    monkeypatch.setenv("TFM_HOSTS", "app.example.org *.example.com")
    assert allowed() >= {socket.gethostname(), "app.example.org", "*.example.com"}
