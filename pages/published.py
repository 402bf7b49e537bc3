"""Published runs at addresses of their own: ``/live/TOKEN/``, without a session of the app.

A request costs a look at one file. It stands in front of all that the app does else, so that a
thousand watchers are no more to it than a thousand small files.
"""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from pages.i18n import _
from pages.ui.static_files import Answer, always, answered
from tfm_core.publish.folder import PAGE, STATE
from tfm_core.publish.shelf import Shelf
from tfm_core.runs import settings

PATH = "/live/"


class Published:
    """Answer what is asked for below ``/live/``, and hand all else on to the app."""

    def __init__(
        self, app: ASGIApp, *, shelf: Shelf, prefixes: Collection[str], unused: Collection[str] = ()
    ) -> None:
        """Stand before an app.

        prefixes: the paths that it may be asked for at. unused: what a browser could let a page do
        and this one never does.
        """
        self.app, self.shelf = app, shelf
        self._roots = tuple(f"{prefix}{PATH}" for prefix in prefixes)
        said = settings.read()
        self._is_shut = said.login_to_watch and not said.max_published
        self._always = {**always(unused), "x-robots-tag": "noindex"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on."""
        root = next((one for one in self._roots if scope.get("path", "").startswith(one)), None)
        if scope["type"] != "http" or root is None:
            await self.app(scope, receive, send)
            return
        status, said, content = self._answer(scope, scope["path"].removeprefix(root))
        said |= {"content-length": str(len(content)), **self._always}
        listed = [(name.encode(), value.encode()) for name, value in said.items()]
        await send({"type": "http.response.start", "status": status, "headers": listed})
        body = b"" if scope["method"] == "HEAD" else content
        await send({"type": "http.response.body", "body": body})

    def _answer(self, scope: Scope, path: str) -> Answer:
        if scope["method"] not in {"GET", "HEAD"}:
            return 405, {"allow": "GET, HEAD"}, b""
        token, slash, name = path.partition("/")
        file = None if self._is_shut else self.shelf.file(token, name or PAGE)
        if file is None or not (name or file.is_file()):
            return _nothing_here() if name in {"", PAGE} else (404, {}, b"")
        if not slash:  # beside it lie the others: they are asked for by short names
            return 307, {"location": f"{token}/"}, b""
        answer = answered(file, Headers(scope=scope))
        if file.name == STATE and answer[0] in {200, 304}:
            self.shelf.polls[token] += 1
        return answer


def _nothing_here() -> Answer:
    said = {"content-type": "text/plain; charset=utf-8", "cache-control": "no-store"}
    words = _(
        "No run is published at this address. It may have been taken back, or the address is not "
        "whole: ask for it anew."
    )
    return 404, said, words.encode()
