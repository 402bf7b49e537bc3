"""A real OpenID Connect provider on this machine, and the app that logs people in with it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.runs.waiting import wait_until

PEOPLE = (
    {"sub": "1", "name": "Ann Lee", "email": "ann@example.org", "email_verified": True},
    {"sub": "2", "name": "Ben", "email": "ben@example.org", "email_verified": True},
)
_LISTENS = re.compile(r"running on (http://127\.0\.0\.1:\d+)")


@contextmanager
def provider(folder: Path, people: tuple[dict[str, object], ...] = PEOPLE) -> Iterator[str]:
    """Yield the address of a provider that asks for no password: one says who one is."""
    log = folder / "provider.log"
    claims = [word for person in people for word in ("--user-claims", json.dumps(person))]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "oidc_provider_mock", "--port", "0", *claims],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ,
        )
    try:
        wait_until(lambda: _address(process, log), "the provider listens")
        yield str(_address(process, log)).replace("127.0.0.1", "localhost")
    finally:
        process.kill()
        process.wait()


def _address(process: subprocess.Popen[bytes], log: Path) -> str | None:
    said = log.read_text(errors="replace")
    if process.poll() is not None:
        raise RuntimeError(f"The provider ended at once:\n{said}")
    found = _LISTENS.search(said)
    return None if found is None else found[1]


def environment(folder: Path, provider: str, *, base: str = "") -> dict[str, str]:
    """Write the secrets of an app that logs people in there; return what tells it of them."""
    path = folder / "secrets.toml"
    path.write_text(
        f"""
        [auth]
        redirect_uri = "http://localhost:{{port}}{base}/oauth2callback"
        cookie_secret = "{"only a test knows this secret: " * 2}"
        client_id = "transformer"
        client_secret = "nobody checks it"
        server_metadata_url = "{provider}/.well-known/openid-configuration"
        """
    )
    return {"STREAMLIT_SECRETS_FILES": str(path), "no_proxy": "localhost"}
