"""Cookies: a token with the first page, none with anything a cache may keep, and the host's key."""

from __future__ import annotations

from http.cookies import Morsel, SimpleCookie

import anyio
import pytest
from starlette.responses import Response

from benchmarks.linked_views import VIEWS
from pages.ui.accounts import cookies
from pages.ui.accounts.cookies import HOST, VISITOR, Cookies
from pages.ui.address import view_link
from tfm_core.runs.auth import is_token, new_token

KEY = "only the host knows this"
TOKEN = new_token()


@pytest.fixture
def host_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFM_HOST_KEY", KEY)


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
        sent["cookie"] = f"other=1; {VISITOR}={token}"
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


def test_a_page_gives_a_browser_its_token() -> None:
    _status, headers, baked, _asked = ask()
    morsel = baked[VISITOR]
    assert is_token(morsel.value)
    assert morsel["httponly"]
    assert not morsel["secure"]
    assert (morsel["samesite"], morsel["path"]) == ("Lax", "/")
    assert int(morsel["max-age"]) == 365 * 24 * 3600
    assert "private" in headers["cache-control"]


def test_a_browser_keeps_its_token() -> None:
    assert ask(token=TOKEN)[2][VISITOR].value == TOKEN


def test_what_is_no_token_is_replaced() -> None:
    for token in ["", "short", "x" * 44, "%00" * 20]:
        given = ask(token=token)[2][VISITOR].value
        assert is_token(given)
        assert given != token


def test_two_browsers_get_two_tokens() -> None:
    assert ask()[2][VISITOR].value != ask()[2][VISITOR].value


@pytest.mark.parametrize("kind", ["text/javascript", "image/png", "application/json"])
def test_what_a_cache_may_keep_carries_no_token(kind: str) -> None:
    _status, headers, baked, _asked = ask("/static/a.js", kind=kind)
    assert not baked
    assert headers["cache-control"] == "no-cache"


def test_a_new_browser_is_never_told_that_nothing_changed() -> None:
    conditions = {"if_none_match": "abc", "if_modified_since": "now"}
    assert not {"if-none-match", "if-modified-since"} & ask("/", **conditions)[3].keys()
    assert "if-none-match" in ask("/", token=TOKEN, **conditions)[3]


def test_over_tls_the_cookie_goes_over_tls_only() -> None:
    assert ask(scheme="https")[2][VISITOR]["secure"]
    assert ask(x_forwarded_proto="https")[2][VISITOR]["secure"]


def test_below_a_path_the_cookie_stays_there() -> None:
    assert ask("/base/train", base="/base")[2][VISITOR]["path"] == "/base"


@pytest.mark.usefixtures("host_key")
def test_the_right_key_is_taken_out_of_the_address_and_makes_the_host() -> None:
    status, headers, baked, asked = ask(f"/train?run=abc&key={KEY}&x=", token=TOKEN)
    assert (status, asked) == (303, {})
    assert headers["location"] == "./train?run=abc&x="
    assert headers["cache-control"] == "no-store"
    proof = baked[HOST]
    assert cookies.is_host(proof.value, TOKEN)
    assert not cookies.is_host(proof.value, new_token())
    assert proof["httponly"]
    assert not proof["max-age"]
    assert KEY not in str(headers)


@pytest.mark.usefixtures("host_key")
def test_a_browser_without_a_token_gets_one_with_the_hosts_proof() -> None:
    baked = ask(f"/?key={KEY}")[2]
    assert cookies.is_host(baked[HOST].value, baked[VISITOR].value)


@pytest.mark.usefixtures("host_key")
def test_a_wrong_key_is_taken_out_of_the_address_and_makes_nobody_host() -> None:
    for key in ["wrong", "", KEY[:-1], KEY + "x", "%ff", "ü"]:
        status, headers, baked, _asked = ask(f"/?key={key}", token=TOKEN)
        assert status == 303
        assert headers["location"] == "./"
        assert HOST not in baked


def test_without_a_key_nobody_is_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TFM_HOST_KEY", raising=False)
    assert not cookies.is_key("")
    assert HOST not in ask("/?key=")[2]
    assert not cookies.is_host(cookies.hosts_proof("", TOKEN), TOKEN)


@pytest.mark.usefixtures("host_key")
def test_another_key_ends_what_the_old_one_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = cookies.hosts_proof(KEY, TOKEN)
    monkeypatch.setenv("TFM_HOST_KEY", "the host has another one")
    assert not cookies.is_host(proof, TOKEN)
    assert not cookies.is_host("ü", TOKEN)


@pytest.mark.parametrize("path", ["//evil.example/a", "/javascript:alert(1)", "/a%0d%0aX: y"])
@pytest.mark.usefixtures("host_key")
def test_the_way_on_stays_on_this_server(path: str) -> None:
    location = ask(f"{path}?key=x")[1]["location"]
    assert location.startswith("./")
    assert not {":", "\r", "\n"} & set(location)


def test_no_view_calls_anything_like_the_key() -> None:
    for view in VIEWS.values():
        parameters = view_link.parameters(view).values()
        assert cookies.KEY_QUERY not in {parameter.query for parameter in parameters}


def test_scripts_and_sockets_are_left_alone() -> None:
    reached = []

    async def app(scope, receive, send) -> None:
        reached.append(scope)

    for scope in ({"type": "websocket"}, {"type": "http", "method": "PUT"}):
        anyio.run(Cookies(app), scope, None, None)
    assert len(reached) == 2
