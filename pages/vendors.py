"""The scripts of others that pages load: these files are served, and nothing beside them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import plotly
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Mount
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


def routes(prefixes: Collection[str]) -> list[Mount]:
    """Serve the scripts of plotly, uPlot and Graphviz at /vendor/... below each of these paths."""
    return [
        Mount(f"{prefix}/vendor/{name}", _Only(folder, files))
        for prefix in prefixes
        for name, (folder, files) in VENDORS.items()
    ]


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
