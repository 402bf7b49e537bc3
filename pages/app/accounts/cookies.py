"""An HttpOnly cookie: a token for each browser.

It is set with the page, because a websocket cannot set cookies.
"""

from __future__ import annotations

from http.cookies import SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tfm_core.runs.auth import is_token, new_token

VISITOR = "tfm_visitor"

_YEAR = 365 * 24 * 3600
_CONDITIONS = (b"if-none-match", b"if-modified-since")


class Cookies:
    """Give each browser a token with its first page."""

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

        async def with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                if answer.get("content-type", "").startswith("text/html"):
                    answer.append("set-cookie", self._cookie(token, is_secure))
                    answer["cache-control"] = "no-cache, private"  # a proxy's would go to others
            await send(message)

        if token != sent:  # "not modified" is no answer that a cookie could go with
            kept = [pair for pair in scope["headers"] if pair[0] not in _CONDITIONS]
            scope = {**scope, "headers": kept}
        await self.app(scope, receive, with_cookie)

    def _cookie(self, token: str, is_secure: bool) -> str:
        """Return a Set-Cookie value."""
        cookie: SimpleCookie = SimpleCookie({VISITOR: token})
        morsel = cookie[VISITOR]
        morsel["path"], morsel["samesite"], morsel["httponly"] = self.path, "Lax", True
        morsel["max-age"] = _YEAR
        if is_secure:
            morsel["secure"] = True
        return morsel.OutputString()
