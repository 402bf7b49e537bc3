"""Published runs at ``/live/TOKEN/``, and the recorded runs alone (``TFM_RECORDED_ONLY=1``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pages.components import live
from pages.i18n import _
from pages.server.static_files import Answer, common_headers, file_response
from pages.ui.files import publication
from tfm_core.hosting.published.folder import PAGE, STATE, is_served
from tfm_core.hosting.published.shelf import Shelf
from tfm_core.runs import settings
from tfm_core.sentences import StudentError

PATH = "/live/"


class Published:
    """Answer requests below ``/live/`` from files, without a session of the app."""

    def __init__(
        self, app: ASGIApp, *, shelf: Shelf, prefixes: Collection[str], unused: Collection[str] = ()
    ) -> None:
        """Wrap an app. prefixes: its base paths. unused: browser features to switch off."""
        self.app, self.shelf = app, shelf
        self._roots = tuple(f"{prefix}{PATH}" for prefix in prefixes)
        config = settings.read()
        self._is_disabled = config.login_to_watch and not config.max_published
        self._headers = {**common_headers(unused), "x-robots-tag": "noindex"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on."""
        root = next((r for r in self._roots if scope.get("path", "").startswith(r)), None)
        if scope["type"] != "http" or root is None:
            await self.app(scope, receive, send)
            return
        status, headers, content = self._answer(scope, scope["path"].removeprefix(root))
        headers |= {"content-length": str(len(content)), **self._headers}
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": encoded})
        body = b"" if scope["method"] == "HEAD" else content
        await send({"type": "http.response.body", "body": body})

    def _answer(self, scope: Scope, path: str) -> Answer:
        if scope["method"] not in {"GET", "HEAD"}:
            return 405, {"allow": "GET, HEAD"}, b""
        token, slash, name = path.partition("/")
        file = None if self._is_disabled else self.shelf.file(token, name or PAGE)
        if file is None or not (name or file.is_file()):
            return _not_published() if name in {"", PAGE} else (404, {}, b"")
        if not slash:  # the page asks for the others by relative names
            return 307, {"location": f"{token}/"}, b""
        response = file_response(file, Headers(scope=scope))
        if file.name == STATE and response[0] in {200, 304}:
            self.shelf.polls[token] += 1
        return response


def _not_published() -> Answer:
    headers = {"content-type": "text/plain; charset=utf-8", "cache-control": "no-store"}
    return 404, headers, _("No run is published at this address. Ask for a new link.").encode()


logger = logging.getLogger(__name__)


class RecordedOnly:
    """The recorded runs as files: no session, no worker, no PyTorch (``TFM_RECORDED_ONLY=1``).

    The files are written to a temporary folder while the server starts; a request for a run that
    is not written yet waits for it.
    """

    def __init__(self, unused: Collection[str]) -> None:
        """unused: browser features to switch off."""
        self._headers = common_headers(unused)
        self._folder = Path()
        self._runs: dict[str, Future[None]] = {}

    @asynccontextmanager
    async def written(self) -> AsyncIterator[None]:
        """Write the gallery, then the runs, in the background; delete all at the end of the block.

        The gallery lacks a damaged run, and its page says so. Raises OSError.
        """
        with TemporaryDirectory(prefix="recorded-") as folder:
            self._folder = Path(folder)
            runs = publication.recorded_runs()
            publication.write_gallery(self._folder, runs)
            writer = ThreadPoolExecutor(1, "recorded")
            self._runs = {
                run.id: writer.submit(publication.write_run, self._folder, run) for run in runs
            }
            try:
                yield
            finally:
                writer.shutdown(cancel_futures=True)

    def routes(self, prefixes: Collection[str]) -> list[BaseRoute]:
        """Return the routes below each of these paths, with /health also where Streamlit has it."""
        routes: list[BaseRoute] = []
        for prefix in sorted(prefixes, key=len, reverse=True):  # "" would answer for all
            if prefix:
                routes.append(Route(prefix, self._with_slash))
            routes += [
                Route(f"{prefix}/health", self._health),
                Route(f"{prefix}/_stcore/health", self._health),
                Route(f"{prefix}/{{path:path}}", self._answer),
            ]
        return routes

    async def _health(self, _request: Request) -> Response:
        return JSONResponse({"ok": True, "reason": None}, headers={"Cache-Control": "no-store"})

    async def _with_slash(self, request: Request) -> Response:
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"{request.scope['path']}/{query}", 307)

    async def _answer(self, request: Request) -> Response:
        path = str(request.path_params["path"])
        run_id, slash, name = path.rpartition("/")
        if not slash and name in self._runs:
            return await self._with_slash(request)
        if (slash and run_id not in self._runs) or not is_served(name or PAGE):
            return self._not_found(request, path)
        if slash:
            try:
                # a client that disconnects must not cancel it for the others
                await asyncio.shield(asyncio.wrap_future(self._runs[run_id]))
            except (StudentError, OSError):
                logger.exception("The recorded run %s could not be written.", run_id)
                message = _("This recording cannot be shown; see the server's log.")
                return PlainTextResponse(message, 503, self._headers)
        path_of_file = self._folder / run_id / (name or PAGE)
        status, headers, content = file_response(path_of_file, request.headers)
        if status == 404:
            return self._not_found(request, path)
        return Response(content, status, {**headers, **self._headers})

    def _not_found(self, request: Request, path: str) -> Response:
        root = str(request.scope["path"]).removesuffix(path)
        content = live.missing_page(list(self._runs), root)
        headers = {"content-type": "text/html; charset=utf-8", "cache-control": "no-store"}
        return Response(content, 404, {**headers, **self._headers})
