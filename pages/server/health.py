"""``/health``: 200 if the server can train, else 503 and the reason.

It says no more than the app shows anyway: status and queue.
"""

from __future__ import annotations

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse

from pages.app.runs import runs_access
from tfm_core.runs.queue.health import Checkup, Health


def answer(_request: Request) -> JSONResponse:
    """Check the server and respond; Starlette calls this in a thread."""
    return response(_checkup().look())


def response(health: Health) -> JSONResponse:
    """Return the response of a server."""
    values = {
        "ok": health.reason is None,
        "reason": health.reason,
        "queue": {
            "running": health.running,
            "max_running": health.max_running,
            "waiting": health.waiting,
            "max_waiting": health.max_waiting,
        },
    }
    status = 200 if health.reason is None else 503
    return JSONResponse(values, status, {"Cache-Control": "no-store"})


@st.cache_resource(show_spinner=False)
def _checkup() -> Checkup:
    return Checkup(runs_access.queue())
