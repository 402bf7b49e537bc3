"""Cookies: a token with the first page, none with anything a cache may keep."""

from http.cookies import Morsel, SimpleCookie

import anyio
import pytest
from starlette.responses import Response

from pages.app.accounts.visitors import VISITOR_COOKIE, Cookies
from tfm_core.runs.auth import is_token, new_token

TOKEN = new_token()


def ask(
    path: str = "/",
    *,
    token: str | None = None,
    accept: str = "text/html,*/*",
    kind: str = "text/html; charset=utf-8",
    base: str = "/",
    scheme: str = "http",
    **headers: str,
) -> tuple[int, dict[str, str], dict[str, Morsel], dict[str, str]]:
    """Return status, headers and cookies of an answer, and the headers that the app was asked."""
    path, _mark, query = path.partition("?")
    sent = {"accept": accept, **{name.replace("_", "-"): text for name, text in headers.items()}}
    if token is not None:
        sent["cookie"] = f"other=1; {VISITOR_COOKIE}={token}"
    scope = {
        "type": "http",
        "method": "GET",
        "scheme": scheme,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), text.encode()) for name, text in sent.items()],
    }
    asked, answered = {}, []

    async def app(scope, receive, send) -> None:
        asked.update({name.decode(): text.decode() for name, text in scope["headers"]})
        response = Response("page", media_type=None, headers={"content-type": kind})
        response.headers["cache-control"] = "no-cache"
        await response(scope, receive, send)

    async def send(message) -> None:
        answered.append(message)

    anyio.run(Cookies(app, path=base), scope, None, send)
    pairs = [(name.decode(), text.decode()) for name, text in answered[0]["headers"]]
    baked: dict[str, Morsel] = {}
    for name, text in pairs:
        if name == "set-cookie":
            baked |= SimpleCookie(text)
    return answered[0]["status"], dict(pairs), baked, asked


def test_a_browser_gets_and_keeps_its_token():
    _status, headers, baked, _asked = ask()
    morsel = baked[VISITOR_COOKIE]
    assert is_token(morsel.value)
    assert morsel["httponly"]
    assert not morsel["secure"]
    assert (morsel["samesite"], morsel["path"]) == ("Lax", "/")
    assert int(morsel["max-age"]) == 365 * 24 * 3600
    assert "private" in headers["cache-control"]
    assert ask(token=TOKEN)[2][VISITOR_COOKIE].value == TOKEN
    assert ask()[2][VISITOR_COOKIE].value != ask()[2][VISITOR_COOKIE].value
    for token in ["", "short", "x" * 44, "%00" * 20]:
        given = ask(token=token)[2][VISITOR_COOKIE].value
        assert is_token(given)
        assert given != token
    conditions = {"if_none_match": "abc", "if_modified_since": "now"}
    assert not {"if-none-match", "if-modified-since"} & ask("/", **conditions)[3].keys()
    assert "if-none-match" in ask("/", token=TOKEN, **conditions)[3]


@pytest.mark.parametrize("kind", ["text/javascript", "image/png", "application/json"])
def test_what_a_cache_may_keep_carries_no_token(kind):
    _status, headers, baked, _asked = ask("/static/a.js", kind=kind)
    assert not baked
    assert headers["cache-control"] == "no-cache"


def test_cookies_go_over_tls_below_their_path_and_not_to_scripts():
    assert ask(scheme="https")[2][VISITOR_COOKIE]["secure"]
    assert ask(x_forwarded_proto="https")[2][VISITOR_COOKIE]["secure"]
    assert ask("/base/train", base="/base")[2][VISITOR_COOKIE]["path"] == "/base"
    reached = []

    async def app(scope, receive, send) -> None:
        reached.append(scope)

    for scope in ({"type": "websocket"}, {"type": "http", "method": "PUT"}):
        anyio.run(Cookies(app), scope, None, None)
    assert len(reached) == 2
