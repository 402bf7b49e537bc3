"""What every answer tells the browser to keep to, whatever a page should hold one day.

The Content-Security-Policy lets scripts come from this server alone. Streamlit needs more of it
than one would like: it writes its styles into the page, hands the scripts of inline components over
as ``blob:`` addresses, and has one script of its own in its page, which is named by its hash.
Graphviz runs as WebAssembly. Nothing needs another host, so nothing may ask one. Links hold the ids
of runs, so no other site is told the address that one came from.
"""

from __future__ import annotations

import base64
import hashlib
import re

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tfm_core.runs import settings

POLICY = {
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
"""What a browser could let a page do and this app never does."""

_INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


class Headers:
    """Put the headers on every answer of an app."""

    def __init__(self, app: ASGIApp, *, page: bytes) -> None:
        """Wrap an app whose every page has the scripts of this HTML."""
        self.app = app
        self.headers = headers(page, settings.read().frame_ancestors)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    answer[name] = value
            await send(message)

        await self.app(scope, receive, with_headers)


def headers(page: bytes, frame_ancestors: str | None = None) -> dict[str, str]:
    """Return the headers: names and values.

    page: the HTML, whose own inline scripts may run. frame_ancestors: the sites that may show the
    app in a frame; None lets every site.
    """
    policy = dict(POLICY)
    policy["script-src"] = " ".join([policy["script-src"], *map(_hashed, _INLINE.findall(page))])
    if frame_ancestors is not None:
        policy["frame-ancestors"] = frame_ancestors
    return {
        "content-security-policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "permissions-policy": ", ".join(f"{name}=()" for name in UNUSED),
        "referrer-policy": "same-origin",
        "x-content-type-options": "nosniff",
    }


def _hashed(script: bytes) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'"
