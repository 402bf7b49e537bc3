"""The recorded runs alone, at the app's address: what is served with ``TFM_RECORDED_ONLY=1``.

No session, no worker and no PyTorch: a request is answered with a file of ``recorded_site``. The
files are written while the server starts, into a folder that ends with it; who asks for a run that
is not written yet waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from pages.components import gallery
from pages.i18n import _
from pages.ui import recorded_site
from pages.ui.static_files import always, answered
from tfm_core.publish.folder import PAGE, is_served
from tfm_core.sentences import StudentError

logger = logging.getLogger(__name__)


class RecordedOnly:
    """The site of a server, from its start to its end.

    unused: what a browser could let a page do and these pages never do.
    """

    def __init__(self, unused: Collection[str]) -> None:
        """Begin with nothing; ``written`` writes it."""
        self._always = always(unused)
        self._folder = Path()
        self._runs: dict[str, Future[None]] = {}

    @asynccontextmanager
    async def written(self) -> AsyncIterator[None]:
        """Write the gallery, then the runs one after the other; all goes with the block.

        Raises OSError, and ValueError where a run cannot be read.
        """
        with TemporaryDirectory(prefix="recorded-") as folder:
            self._folder = Path(folder)
            runs = recorded_site.recorded()
            recorded_site.write_gallery(self._folder, runs)
            writer = ThreadPoolExecutor(1, "recorded")
            self._runs = {
                run.id: writer.submit(recorded_site.write_run, self._folder, run) for run in runs
            }
            try:
                yield
            finally:
                writer.shutdown(cancel_futures=True)

    def routes(self, prefixes: Collection[str]) -> list[BaseRoute]:
        """Answer below each of these paths; load balancers at /health, and where Streamlit does."""
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
            return self._nowhere(request, path)
        if slash:
            try:
                # who hangs up meanwhile does not keep it from the others
                await asyncio.shield(asyncio.wrap_future(self._runs[run_id]))
            except (StudentError, OSError):
                logger.exception("The recorded run %s could not be written.", run_id)
                words = _("This recording cannot be shown here; the server's log says why.")
                return PlainTextResponse(words, 503, self._always)
        status, said, content = answered(self._folder / run_id / (name or PAGE), request.headers)
        if status == 404:
            return self._nowhere(request, path)
        return Response(content, status, {**said, **self._always})

    def _nowhere(self, request: Request, path: str) -> Response:
        root = str(request.scope["path"]).removesuffix(path)
        content = gallery.nowhere(list(self._runs), root)
        said = {"content-type": "text/html; charset=utf-8", "cache-control": "no-store"}
        return Response(content, 404, {**said, **self._always})
