"""Two HttpOnly cookies: a token for each browser, and a proof that it has shown the host's key.

They are set with the page, because a websocket cannot set cookies. The host's key comes once in a
link; the browser is redirected to the same page without it, and keeps an HMAC of key and token.
"""

from __future__ import annotations

import hmac
from http.cookies import SimpleCookie
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tfm_core.runs import settings
from tfm_core.runs.auth import is_token, new_token

VISITOR = "tfm_visitor"
HOST = "tfm_host"
KEY_QUERY = "key"
"""What the address calls the host's key."""

_YEAR = 365 * 24 * 3600
_CONDITIONS = (b"if-none-match", b"if-modified-since")


class Cookies:
    """Give each browser a token with its first page, and accept the host's key."""

    def __init__(self, app: ASGIApp, *, path: str = "/") -> None:
        """Wrap an app. path: where it is served, and the path of the cookies."""
        self.app, self.path = app, path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        sent = cookie_parser(headers.get("cookie", "")).get(VISITOR, "")
        token = sent if is_token(sent) else new_token()
        proxied = headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
        is_secure = "https" in (scope.get("scheme"), proxied)  # TLS, perhaps to a proxy
        names = [name for name, _value in _query(scope)]
        if KEY_QUERY in names and "text/html" in headers.get("accept", ""):
            await self._without_key(scope, token, is_secure)(scope, receive, send)
            return

        async def with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                if answer.get("content-type", "").startswith("text/html"):
                    answer.append("set-cookie", self._cookie(VISITOR, token, is_secure, _YEAR))
                    answer["cache-control"] = "no-cache, private"  # a proxy's would go to others
            await send(message)

        if token != sent:  # "not modified" is no answer that a cookie could go with
            kept = [pair for pair in scope["headers"] if pair[0] not in _CONDITIONS]
            scope = {**scope, "headers": kept}
        await self.app(scope, receive, with_cookie)

    def _without_key(self, scope: Scope, token: str, is_secure: bool) -> Response:
        """Redirect to the same address without the key, as a host if it was right."""
        pairs = _query(scope)
        shown = [value for name, value in pairs if name == KEY_QUERY][-1]
        rest = [pair for pair in pairs if pair[0] != KEY_QUERY]
        # relative: a proxy may have taken a prefix away. "./" keeps a colon from naming a scheme
        page = "./" + quote(scope["path"].rpartition("/")[2], safe="")
        answer = Response(status_code=303, headers={"cache-control": "no-store"})
        answer.headers["location"] = f"{page}?{urlencode(rest)}" if rest else page
        answer.headers.append("set-cookie", self._cookie(VISITOR, token, is_secure, _YEAR))
        if is_key(shown):
            proof = hosts_proof(settings.read().host_key or "", token)
            answer.headers.append("set-cookie", self._cookie(HOST, proof, is_secure))
        return answer

    def _cookie(self, name: str, value: str, is_secure: bool, seconds: int | None = None) -> str:
        """Return a Set-Cookie value; without ``seconds`` the cookie ends with the browser."""
        cookie: SimpleCookie = SimpleCookie({name: value})
        morsel = cookie[name]
        morsel["path"], morsel["samesite"], morsel["httponly"] = self.path, "Lax", True
        if seconds is not None:
            morsel["max-age"] = seconds
        if is_secure:
            morsel["secure"] = True
        return morsel.OutputString()


def is_key(shown: str) -> bool:
    """Return whether this is the host's key; always False if the server has none."""
    key = settings.read().host_key
    return key is not None and hmac.compare_digest(shown.encode(errors="replace"), key.encode())


def hosts_proof(key: str, token: str) -> str:
    """Return an HMAC that only a browser with this token and key can have."""
    return hmac.new(key.encode(), f"host {token}".encode(), "sha256").hexdigest()


def is_host(cookie: str, token: str) -> bool:
    """Return whether a host's cookie matches this token and the current key."""
    key = settings.read().host_key
    if key is None or not cookie.isascii():
        return False
    return hmac.compare_digest(cookie, hosts_proof(key, token))


def _query(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
