"""The HTML page that every address gets, and the headers of every answer."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import MutableHeaders, QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pages import i18n
from pages.app.navigation import page_table
from tfm_core import settings

PRELOADED = "BidiComponent", "Html", "PageLink", "Button", "ButtonGroup", "Selectbox"
"""Streamlit's scripts for the elements of the first screens, by the start of their names."""
ICONS = "MaterialSymbols-Rounded"

BASE = "window.__streamlit = {BACKEND_BASE_URL: new URL('./', location.href).href}"
"""JavaScript: the server's address. Streamlit would try below each page's own path first, and log
404s in the console."""

UNTRANSLATED = """{
const fixed = ".stMarkdownBadge, [data-testid=stMetricValue], .live-figure, svg, canvas";
new MutationObserver((changes) => changes.forEach(({addedNodes}) => addedNodes.forEach((node) => {
    if (node.nodeType !== Node.ELEMENT_NODE) return;
    for (const part of [node, ...node.querySelectorAll(fixed)]) {
        if (part.matches(fixed)) part.setAttribute("translate", "no");
    }
}))).observe(document, {childList: true, subtree: true});
}"""
"""JavaScript: browsers must not translate badges, figures and their numbers. A translator replaces
text nodes that React updates, so a badge would stay "Starting" until the page is left."""

EMBEDDED = """document.documentElement.classList.toggle("embedded",
    /[?&]embed=true(&|$)/i.test(location.search));"""
"""JavaScript: marks a page that another site shows in a frame, by Streamlit's own parameter."""

ENTRIES = """{
const push = history.pushState.bind(history);
let isPressed = false;
["pointerdown", "click", "keydown"].forEach((kind) => addEventListener(kind, ({ key }) => {
    isPressed ||= key !== "Tab";
}, true));
const without = (address, names) => {
    const url = new URL(address, location.href);
    const rest = [...url.searchParams].filter(([name]) => !names.includes(name));
    url.search = new URLSearchParams(rest);
    return url.href;
};
history.pushState = (state, title, address) => {
    const before = new URL(location.href), there = new URL(address ?? "", before);
    const embed = before.searchParams.get("embed");
    if (embed && !there.searchParams.has("embed")) {
        there.searchParams.set("embed", embed);
        address = there;
    }
    const named = ["lang", ...(before.searchParams.has("run") ? [] : ["run"])];
    const isNamed = without(there, named) === without(before, named);
    const isOwn = there.pathname === before.pathname && (isNamed || !isPressed);
    isPressed &&= isOwn;
    (isOwn ? history.replaceState.bind(history) : push)(state, title, address);
};
}"""
"""JavaScript: a press makes at most one entry in the history. What a page adds to its address by
itself, the language, and its first run make none: the way back would lead to the same page without
them, which would add them again. A framed page stays one: a link to the same page loses that."""

_IMPORTED = re.compile(r'(?:from|import)\s*"\./([^"]+\.js)"')
_CACHE_HEADERS = {b"accept-encoding", b"if-none-match", b"if-modified-since", b"range"}
"""Request headers that would make Streamlit answer with its own page, a part of it, or 304."""


def _moved(path: str, request: Request) -> str | None:
    """Return where a page stands that is part of another today, seen from its path; else None."""
    name = path.rstrip("/").rpartition("/")[2]
    page, query = page_table.current_address(name, dict(parse_qsl(request.url.query)))
    up = "../" if path.endswith("/") else ""
    return None if page == name else f"{up}{page}?{urlencode(query)}"


class FirstPage:
    """Answer every page address with Streamlit's HTML, with the style and preloads in it.

    Otherwise the style would arrive as one more element of the page, and everything would move. The
    document says the visitor's language from its first byte.
    """

    def __init__(self, app: ASGIApp, *, page: Path, style: str) -> None:
        """Wrap an app whose every page is this HTML file."""
        self.app = app
        self._english = page_html(page, style)
        self._bodies: dict[str, tuple[bytes, bytes]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_read = scope["type"] == "http" and scope["method"] in {"GET", "HEAD"}
        path = scope.get("path", "")
        # names of files have a dot
        if not is_read or "/_stcore/" in path or "." in path.rpartition("/")[2]:
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        if (there := _moved(path, request)) is not None:
            await RedirectResponse(there)(scope, receive, send)
            return
        plain, small = self._body(
            i18n.of_visitor(
                QueryParams(scope["query_string"]).get(i18n.QUERY),
                request.cookies.get(i18n.COOKIE),
                re.split("[,;]", request.headers.get("accept-language", ""))[0],
            )
        )
        is_small = "gzip" in request.headers.get("accept-encoding", "")
        body = small if is_small else plain
        tag = f'"{hashlib.sha256(plain).hexdigest()[:32]}"'
        is_page = False

        async def with_own_page(message: Message) -> None:
            nonlocal is_page
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                kind = answer.get("content-type", "")
                is_page = message["status"] == 200 and kind.startswith("text/html")
                if is_page:
                    del answer["last-modified"], answer["accept-ranges"]
                    answer["etag"] = tag
                    answer["vary"] = "Accept-Encoding, Accept-Language, Cookie"
                    answer["content-length"] = str(len(body))
                    if is_small:
                        answer["content-encoding"] = "gzip"
            elif is_page:
                if message.get("more_body"):
                    return
                message = {**message, "body": b"" if scope["method"] == "HEAD" else body}
            await send(message)

        headers = [(name, value) for name, value in scope["headers"] if name not in _CACHE_HEADERS]
        await self.app({**scope, "headers": headers}, receive, with_own_page)

    def _body(self, language: str) -> tuple[bytes, bytes]:
        """Return the page in a language, plain and packed."""
        if language not in self._bodies:
            plain = self._english.replace(b'lang="en"', f'lang="{language}"'.encode(), 1)
            self._bodies[language] = plain, gzip.compress(plain, mtime=0)
        return self._bodies[language]


def page_html(page: Path, style: str) -> bytes:
    """Return the HTML with the style and with preloads of what every page needs.

    The style is in the body, after Streamlit's own styles, which are added to the head.
    """
    html = page.read_text(encoding="utf-8")
    html = html.replace(
        "<head>", f"<head>\n<script>{BASE}\n{EMBEDDED}\n{ENTRIES}\n{UNTRANSLATED}</script>", 1
    )
    html = html.replace("</head>", f"{_preloads(page.parent, html)}</head>", 1)
    return html.replace("<body>", f"<body>\n<style>{style}</style>", 1).encode()


def _preloads(folder: Path, html: str) -> str:
    """Return preload links for ``PRELOADED``, the scripts that these import, and the icon font."""
    scripts = folder / "static" / "js"
    wanted = [path.name for part in PRELOADED for path in scripts.glob(f"{part}.*.js")]
    names: list[str] = []
    while wanted:
        name = wanted.pop()
        if name not in names and name not in html:
            names.append(name)
            wanted += _IMPORTED.findall((scripts / name).read_text(encoding="utf-8"))
    links = [f'<link rel="modulepreload" crossorigin href="./static/js/{name}">' for name in names]
    links += [
        f'<link rel="preload" as="font" type="font/woff2" crossorigin '
        f'href="./static/media/{path.name}">'
        for path in (folder / "static" / "media").glob(f"{ICONS}.*.woff2")
    ]
    return "\n".join(links)


POLICY = {  # Streamlit needs inline styles, blob: scripts of components; Graphviz is WebAssembly
    "default-src": "'self'",
    "script-src": "'self' blob: 'wasm-unsafe-eval'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self' data: blob:",
    "worker-src": "'self' blob:",
    "media-src": "'self' data: blob:",
    "frame-src": "'none'",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}
UNUSED = (
    "accelerometer",
    "camera",
    "display-capture",
    "geolocation",
    "gyroscope",
    "hid",
    "magnetometer",
    "microphone",
    "midi",
    "payment",
    "serial",
    "usb",
)
"""Browser features that the app never uses."""

_INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


class SecurityHeaders:
    """Add the security headers to every response."""

    def __init__(self, app: ASGIApp, *, page: bytes) -> None:
        """Wrap an app. page: the HTML of every page, whose inline scripts may run."""
        self.app = app
        self.headers = headers(page, settings.read().frame_ancestors)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                response = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    response[name] = value
            await send(message)

        await self.app(scope, receive, with_headers)


def headers(page: bytes, frame_ancestors: str | None = None) -> dict[str, str]:
    """Return the security headers by name.

    page: the HTML, whose inline scripts are allowed by hash. frame_ancestors: the sites that may
    embed the app; None allows all. Links hold the ids of runs, so referrers stay on this origin.
    """
    policy = dict(POLICY)
    digests = (hashlib.sha256(script).digest() for script in _INLINE.findall(page))
    hashes = (f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    policy["script-src"] = " ".join([policy["script-src"], *hashes])
    if frame_ancestors is not None:
        policy["frame-ancestors"] = frame_ancestors
    return {
        "content-security-policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "permissions-policy": ", ".join(f"{name}=()" for name in UNUSED),
        "referrer-policy": "same-origin",
        "x-content-type-options": "nosniff",
    }
