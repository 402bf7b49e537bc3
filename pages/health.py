"""What ``/health`` answers a load balancer: 200 where the server can train, else 503 and why.

On one's own machine everybody reads all of it. Where strangers come (``TFM_PUBLIC``), they read
what the app shows them anyway: whether it works, and how long the line is. Room, workers and the
version, which tell how hard a server is to exhaust and which faults it has, are for the host, who
sends ``Authorization: Bearer`` and the host's key. Paths and names of runs are for nobody.
"""

from __future__ import annotations

from hmac import compare_digest
from typing import Any

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse

from pages.ui import runs_access
from tfm_core import __version__
from tfm_core.runs import settings
from tfm_core.runs.queue.health import Checkup, Health
from tfm_core.runs.settings import Settings


def answer(request: Request) -> JSONResponse:
    """Look, and answer; Starlette calls it in a thread of its own."""
    return response(_checkup().look(), request, settings.read())


def response(health: Health, request: Request, said: Settings) -> JSONResponse:
    """Return what a request is told of a look, on a server with these settings."""
    values = _for_everybody(health)
    if _is_host(request, said):
        values |= _for_the_host(health)
    status = 200 if health.reason is None else 503
    return JSONResponse(values, status, {"Cache-Control": "no-store"})


def _for_everybody(health: Health) -> dict[str, Any]:
    line = {
        "running": health.running,
        "max_running": health.max_running,
        "waiting": health.waiting,
        "max_waiting": health.max_waiting,
    }
    return {"ok": health.reason is None, "reason": health.reason, "queue": line}


def _for_the_host(health: Health) -> dict[str, Any]:
    return {
        "backend": health.backend,
        "workers": {"warm": health.warm, "alive": health.warm + health.running},
        "disk": {"free": health.free, "used": health.used, "writable": health.writable},
        "version": __version__,
    }


def _is_host(request: Request, said: Settings) -> bool:
    if not said.public:
        return True
    kind, _, key = request.headers.get("authorization", "").partition(" ")
    if said.host_key is None or kind.lower() != "bearer":
        return False
    return compare_digest(key.strip().encode(), said.host_key.encode())


@st.cache_resource(show_spinner=False)
def _checkup() -> Checkup:
    return Checkup(runs_access.queue())
