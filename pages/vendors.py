"""The scripts of others that pages load: these files are served, and nothing beside them."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Collection
from pathlib import Path

import plotly
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from pages.i18n import PAGES_DIR

KEPT = "public, max-age=3600"
"""Within an hour a browser does not even ask whether a script is still the same."""
_OURS = PAGES_DIR / "components" / "vendor"
VENDORS = {
    "plotly": (Path(plotly.__file__).parent / "package_data", {"plotly.min.js"}),
    "uplot": (_OURS / "uplot", {"uplot.js"}),
    "viz": (_OURS / "viz", {"viz.js"}),
}
PACKED = {"plotly/plotly-cartesian.min.js": _OURS / "plotly" / "plotly-cartesian.min.js.gz"}
"""Scripts that are kept as they are sent: gzipped."""


def routes(prefixes: Collection[str]) -> list[BaseRoute]:
    """Serve the scripts of plotly, uPlot and Graphviz at /vendor/... below each of these paths."""
    packed = {name: _Packed(path) for name, path in PACKED.items()}
    return [
        *(
            Route(f"{prefix}/vendor/{name}", script.answer)
            for prefix in prefixes
            for name, script in packed.items()
        ),
        *(
            Mount(f"{prefix}/vendor/{name}", _Only(folder, files))
            for prefix in prefixes
            for name, (folder, files) in VENDORS.items()
        ),
    ]


class _Packed:
    """A gzipped script, unpacked for who cannot read it."""

    def __init__(self, path: Path) -> None:
        self._small = path.read_bytes()
        self._tag = f'"{hashlib.sha256(self._small).hexdigest()[:32]}"'

    async def answer(self, request: Request) -> Response:
        said = {"Cache-Control": KEPT, "ETag": self._tag, "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == self._tag:
            return Response(status_code=304, headers=said)
        body = self._small
        if "gzip" in request.headers.get("accept-encoding", ""):
            said["Content-Encoding"] = "gzip"
        else:
            body = gzip.decompress(body)
        return Response(body, media_type="text/javascript", headers=said)


class _Only(StaticFiles):
    """Some files of a folder."""

    def __init__(self, folder: Path, files: Collection[str]) -> None:
        super().__init__(directory=folder)
        self._files = files

    async def get_response(self, path: str, scope: Scope) -> Response:
        if path not in self._files:
            raise HTTPException(404)
        answer = await super().get_response(path, scope)
        answer.headers["Cache-Control"] = KEPT
        return answer
