"""``/health``: 200 if the server can train, else 503 and the reason.

On a public server (``TFM_PUBLIC``) strangers read only what the app shows anyway: status and queue.
Disk, workers and version are for the host, who sends ``Authorization: Bearer`` and the host's key.
"""

from __future__ import annotations

from hmac import compare_digest
from typing import Any

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse

from pages.ui.runs import runs_access
from tfm_core import __version__
from tfm_core.runs import settings
from tfm_core.runs.queue.health import Checkup, Health
from tfm_core.runs.settings import Settings


def answer(request: Request) -> JSONResponse:
    """Check the server and respond; Starlette calls this in a thread."""
    return response(_checkup().look(), request, settings.read())


def response(health: Health, request: Request, config: Settings) -> JSONResponse:
    """Return the response to a request on a server with these settings."""
    values: dict[str, Any] = {
        "ok": health.reason is None,
        "reason": health.reason,
        "queue": {
            "running": health.running,
            "max_running": health.max_running,
            "waiting": health.waiting,
            "max_waiting": health.max_waiting,
        },
    }
    if _is_host(request, config):
        values |= {
            "backend": health.backend,
            "workers": {"warm": health.warm, "alive": health.warm + health.running},
            "disk": {"free": health.free, "used": health.used, "writable": health.writable},
            "version": __version__,
        }
    status = 200 if health.reason is None else 503
    return JSONResponse(values, status, {"Cache-Control": "no-store"})


def _is_host(request: Request, config: Settings) -> bool:
    if not config.public:
        return True
    kind, _, key = request.headers.get("authorization", "").partition(" ")
    if config.host_key is None or kind.lower() != "bearer":
        return False
    return compare_digest(key.strip().encode(), config.host_key.encode())


@st.cache_resource(show_spinner=False)
def _checkup() -> Checkup:
    return Checkup(runs_access.queue())
