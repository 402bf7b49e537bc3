"""What the host says of logging in: read once, and refused in a sentence before anything begins."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import streamlit as st
from streamlit.runtime.secrets import Secrets

from pages.ui.accounts import login_setup
from tfm_core.runs import settings

ROOT = Path(__file__).resolve().parents[3]
SHARED = {
    "redirect_uri": "http://localhost:8501/oauth2callback",
    "cookie_secret": "0123456789abcdef" * 4,
}
ONE = {"client_id": "a", "client_secret": "b", "server_metadata_url": "https://example.org/m"}


@pytest.fixture(autouse=True)
def _reads_anew() -> Iterator[None]:
    read = login_setup.read  # a test may put another in its place
    read.cache_clear()
    yield
    read.cache_clear()


def say(monkeypatch: pytest.MonkeyPatch, auth: object) -> None:
    """Let the secrets hold this [auth]."""
    secrets = Secrets()
    secrets._secrets = {"auth": auth}  # type: ignore[assignment]
    monkeypatch.setattr(st, "secrets", secrets)


def without(values: dict[str, str], key: str) -> dict[str, str]:
    return {name: value for name, value in values.items() if name != key}


def test_without_secrets_nobody_logs_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_setup.st, "secrets", Secrets())
    st.config.set_option("secrets.files", [str(tmp_path / "secrets.toml")])
    assert login_setup.read() is None
    login_setup.check(settings.Settings())


def test_one_provider_or_several_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("authlib")
    say(monkeypatch, SHARED | ONE)
    found = login_setup.read()
    assert found is not None
    assert found.providers == {"default": "https://example.org/m"}
    login_setup.read.cache_clear()
    say(monkeypatch, SHARED | {"google": ONE, "work": ONE})
    found = login_setup.read()
    assert found is not None
    assert list(found.providers) == ["google", "work"]


@pytest.mark.parametrize("key", [*SHARED, *ONE])
def test_a_key_that_is_missing_is_named(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in (without(SHARED | ONE, key), SHARED | ONE | {key: "  "}, SHARED | ONE | {key: 7}):
        login_setup.read.cache_clear()
        say(monkeypatch, wrong)
        with pytest.raises(ValueError, match=rf"^\[auth\] in secrets.toml lacks {key}"):
            login_setup.read()


@pytest.mark.parametrize(
    ("auth", "sentence"),
    [
        ("text", "must be a section"),
        (SHARED, r"\[auth\] in secrets.toml lacks client_id"),
        (SHARED | {"google": without(ONE, "client_id")}, r"\[auth.google\] .* lacks client_id"),
        (SHARED | {"my_own": ONE}, r"\[auth.my_own\] .* underscore"),
        (SHARED | ONE | {"cookie_secret": "short"}, "has 5 characters"),
        (SHARED | ONE | {"redirect_uri": "https://example.org/"}, "/oauth2callback"),
        (SHARED | ONE | {"redirect_uri": "/oauth2callback"}, "redirect_uri"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    auth: object, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(monkeypatch, auth)
    with pytest.raises(ValueError, match=sentence) as refused:
        login_setup.read()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "said",
    [
        {"TFM_LOGIN_TO_WATCH": "1"},
        {"TFM_MAY_START": "@example.org"},
        {"TFM_ADMINS": "ann@example.org"},
    ],
)
def test_what_relies_on_logins_is_refused_without(
    said: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_setup, "read", lambda: None)
    with pytest.raises(
        ValueError, match=f"^{next(iter(said))} is set, but .streamlit/secrets.toml has no"
    ):
        login_setup.check(settings.read(said))


@pytest.mark.parametrize(
    ("said", "is_one"),
    [(b'{"authorization_endpoint": "https://example.org"}', True), (b"{}", False), (b"<p>", False)],
)
def test_a_provider_is_who_answers_as_one(
    said: bytes, is_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("authlib")

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *said: object) -> None:
            """Say nothing."""

    monkeypatch.setenv("no_proxy", "*")
    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        setup = login_setup.Setup({"one": f"http://127.0.0.1:{server.server_port}/metadata"})
        monkeypatch.setattr(login_setup, "read", lambda: setup)
        threading.Thread(target=server.handle_request).start()
        told = nullcontext() if is_one else pytest.raises(ValueError, match="login provider")
        with told:
            login_setup.check_reachable("one")


def test_secrets_that_cannot_be_read_open_no_server(tmp_path: Path) -> None:
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit/secrets.toml").write_text("[auth")
    ended = subprocess.run(
        [sys.executable, "-c", "import app"],
        cwd=tmp_path,
        env={"PATH": "", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].startswith("Streamlit's secrets cannot be read.")
