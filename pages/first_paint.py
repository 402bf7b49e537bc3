"""The page as a browser first gets it: with the app's style, and asking at once for what it needs.

Streamlit's page is empty until its script has drawn something, and would get the style only as one
more element of that: everything on the screen would then move to the place that the style gives it.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PARTS = "BidiComponent", "Html", "PageLink", "Button", "ButtonGroup", "Selectbox"
"""Streamlit's scripts of what the first screens hold, by the beginnings of their names."""
ICONS = "MaterialSymbols-Rounded"

BASE = "window.__streamlit = {BACKEND_BASE_URL: new URL('./', location.href).href}"
"""JavaScript: where the server is. Streamlit would look for it below each page's address first,
and the browser's console would tell of what is not there. All pages lie side by side."""

UNTRANSLATED = """{
const kept = ".stMarkdownBadge, [data-testid=stMetricValue], .live-figure, .diagram, svg, canvas";
new MutationObserver((changes) => changes.forEach(({addedNodes}) => addedNodes.forEach((node) => {
    if (node.nodeType !== Node.ELEMENT_NODE) return;
    for (const part of [node, ...node.querySelectorAll(kept)]) {
        if (part.matches(kept)) part.setAttribute("translate", "no");
    }
}))).observe(document, {childList: true, subtree: true});
}"""
"""JavaScript: no browser translates badges, figures and their numbers. A translator replaces the
text that React updates, and a run's badge would say "Starting" until the page is left."""

_IMPORTED = re.compile(r'(?:from|import)\s*"\./([^"]+\.js)"')
_WEAK = {b"accept-encoding", b"if-none-match", b"if-modified-since", b"range"}
"""What a browser asks for that would have Streamlit's own page answered, or a part of it."""


class FirstPaint:
    """Answer Streamlit's page with the style in it, whatever address is asked for."""

    def __init__(self, app: ASGIApp, *, page: Path, style: str) -> None:
        """Wrap an app whose every page is this HTML file."""
        self.app = app
        self._plain = dressed(page, style)
        self._small = gzip.compress(self._plain, mtime=0)
        self._tag = f'"{hashlib.sha256(self._plain).hexdigest()[:32]}"'

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if not _may_be_page(scope):
            await self.app(scope, receive, send)
            return
        asked = Headers(scope=scope)
        is_small = "gzip" in asked.get("accept-encoding", "")
        body = self._small if is_small else self._plain
        is_page = False

        async def dressed_up(message: Message) -> None:
            nonlocal is_page
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                kind = answer.get("content-type", "")
                is_page = message["status"] == 200 and kind.startswith("text/html")
                if is_page:
                    del answer["last-modified"], answer["accept-ranges"]
                    answer["etag"] = self._tag
                    answer["vary"] = "Accept-Encoding"
                    answer["content-length"] = str(len(body))
                    if is_small:
                        answer["content-encoding"] = "gzip"
            elif is_page:
                if message.get("more_body"):
                    return
                message = {**message, "body": b"" if scope["method"] == "HEAD" else body}
            await send(message)

        plainly = [(name, value) for name, value in scope["headers"] if name not in _WEAK]
        await self.app({**scope, "headers": plainly}, receive, dressed_up)


def _may_be_page(scope: Scope) -> bool:
    """Say whether a request may ask for a page: files have a dot in their name, pages have none."""
    if scope["type"] != "http" or scope["method"] not in {"GET", "HEAD"}:
        return False
    path = scope["path"]
    return "/_stcore/" not in path and "." not in path.rpartition("/")[2]


def dressed(page: Path, style: str) -> bytes:
    """Return the HTML with the style, and with links to what every page will ask for.

    The style stands in the body: behind Streamlit's own, which are added to the head.
    """
    html = page.read_text(encoding="utf-8")
    html = html.replace("<head>", f"<head>\n<script>{BASE}\n{UNTRANSLATED}</script>", 1)
    html = html.replace("</head>", f"{_asked_at_once(page.parent, html)}</head>", 1)
    return html.replace("<body>", f"<body>\n<style>{style}</style>", 1).encode()


def _asked_at_once(folder: Path, html: str) -> str:
    """Return links to Streamlit's scripts of our elements, with what they import, and its icons."""
    scripts = folder / "static" / "js"
    wanted = [path.name for part in PARTS for path in scripts.glob(f"{part}.*.js")]
    found: list[str] = []
    while wanted:
        name = wanted.pop()
        if name not in found and name not in html:
            found.append(name)
            wanted += _IMPORTED.findall((scripts / name).read_text(encoding="utf-8"))
    links = [f'<link rel="modulepreload" crossorigin href="./static/js/{name}">' for name in found]
    links += [
        f'<link rel="preload" as="font" type="font/woff2" crossorigin '
        f'href="./static/media/{path.name}">'
        for path in (folder / "static" / "media").glob(f"{ICONS}.*.woff2")
    ]
    return "\n".join(links)
