"""The recorded runs alone (``TFM_RECORDED_ONLY=1``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import BaseRoute, Route
from starlette.staticfiles import StaticFiles

from pages.app.runs import film
from pages.i18n import _
from tfm_core import settings
from tfm_core.sentences import StudentError

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'"
)
"""What every answer may do; the pages themselves allow only their own scripts and styles."""

logger = logging.getLogger(__name__)


class RecordedOnly:
    """The recorded runs as files: no session, no worker, no PyTorch (``TFM_RECORDED_ONLY=1``).

    The files are written to a temporary folder while the server starts; a request for a run that
    is not written yet waits for it.
    """

    def __init__(self, unused: Collection[str]) -> None:
        """unused: browser features to switch off."""
        frames = settings.read().frame_ancestors
        self._headers = {
            "content-security-policy": POLICY + (f"; frame-ancestors {frames}" if frames else ""),
            "permissions-policy": ", ".join(f"{name}=()" for name in unused),
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
        }
        self._folder = Path()
        self._runs: dict[str, Future[None]] = {}

    @asynccontextmanager
    async def written(self) -> AsyncIterator[None]:
        """Write the gallery, then the runs, in the background; delete all at the end of the block.

        The gallery lacks a damaged run, and its page says so. Raises OSError.
        """
        with TemporaryDirectory(prefix="recorded-") as folder:
            self._folder = Path(folder)
            runs = film.recorded_runs()
            film.write_gallery(self._folder, runs)
            writer = ThreadPoolExecutor(1, "recorded")
            self._runs = {run.id: writer.submit(film.write_run, self._folder, run) for run in runs}
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
        if (slash and run_id not in self._runs) or name not in {"", film.INDEX_PAGE}:
            return self._not_found(request, path)
        if slash:
            try:
                # a client that disconnects must not cancel it for the others
                await asyncio.shield(asyncio.wrap_future(self._runs[run_id]))
            except (StudentError, OSError):
                logger.exception("The recorded run %s could not be written.", run_id)
                message = _("This run cannot be shown; see the server's log.")
                return PlainTextResponse(message, 503, self._headers)
        file = self._folder / run_id / film.INDEX_PAGE
        files = StaticFiles(directory=self._folder)  # answers 304 to who has the page
        response = files.file_response(file, file.stat(), request.scope)
        response.headers.update({**self._headers, "cache-control": "no-cache"})
        return response

    def _not_found(self, request: Request, path: str) -> Response:
        root = str(request.scope["path"]).removesuffix(path)
        content = film.missing_page(list(self._runs), root)
        return HTMLResponse(content, 404, {**self._headers, "cache-control": "no-store"})
