"""What Streamlit serves to everybody and nobody here needs is not found.

Its metrics tell the names of functions and how full the caches are; ``/health`` tells what a load
balancer has to know. Streamlit has no switch for them, and no route may stand before its own.
"""

from __future__ import annotations

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

CLOSED = "/_stcore/metrics"


class Closed:
    """Answer what is closed with 404, below any path."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an app."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and scope["path"].rstrip("/").endswith(CLOSED):
            await PlainTextResponse("Not Found", 404)(scope, receive, send)
            return
        await self.app(scope, receive, send)
