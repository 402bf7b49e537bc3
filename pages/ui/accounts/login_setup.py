"""The login setup: ``[auth]`` of Streamlit's secrets, read once and checked at startup.

Streamlit does the rest (``st.login``, with Authlib). Without ``[auth]`` nobody logs in.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from streamlit.errors import StreamlitSecretNotFoundError

from tfm_core.runs.settings import Settings
from tfm_core.sentences import StudentError

DEFAULT = "default"
"""What Streamlit calls the provider that ``[auth]`` names itself."""

SHORTEST_SECRET = 32
"""Characters of the secret that signs who somebody is: who guesses it can be anybody."""

_CALLBACK = "/oauth2callback"
_SHARED = "redirect_uri", "cookie_secret"
_OF_A_PROVIDER = "client_id", "client_secret", "server_metadata_url"
_PATIENCE = 8.0  # seconds
_NOT_FOUND = "no-secrets-found"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Setup:
    """The login providers: name -> address of their metadata."""

    providers: Mapping[str, str]


@functools.cache
def read() -> Setup | None:
    """Return the login setup, or None. Raises StudentError if ``[auth]`` is wrong.

    It stays the same while the server runs, even if the file changes.
    """
    section = _section()
    if section is None:
        return None
    for key in _SHARED:
        _check_text(section, key, "[auth]")
    if len(section["cookie_secret"]) < SHORTEST_SECRET:
        raise StudentError(
            "cookie_secret in [auth] has {n} characters; it needs {least}: openssl rand -hex 32",
            n=len(section["cookie_secret"]),
            least=SHORTEST_SECRET,
        )
    _check_callback(section["redirect_uri"])
    providers = {
        name: part
        for name, part in section.items()
        if isinstance(part, Mapping) and name != "client_kwargs"
    }
    if not providers or any(key in section for key in _OF_A_PROVIDER):
        providers[DEFAULT] = section
    for name, part in providers.items():
        _check_provider(name, part)
    if not all(map(importlib.util.find_spec, ("authlib", "httpx"))):
        raise StudentError(
            "[auth] in secrets.toml needs packages: pip install -r requirements-login.txt."
        )
    return Setup({name: str(part["server_metadata_url"]) for name, part in providers.items()})


def check(config: Settings) -> None:
    """Raise StudentError if ``[auth]`` is wrong, or missing although a variable needs it."""
    relying = {
        "TFM_LOGIN_TO_WATCH": config.login_to_watch,
        "TFM_MAY_START": config.may_start,
        "TFM_ADMINS": config.admins,
    }
    name = next((name for name, value in relying.items() if value), None)
    if read() is None and name is not None:
        raise StudentError(
            "{name} is set, but .streamlit/secrets.toml has no [auth]. See docs/deploy.md.",
            name=name,
        )


def check_reachable(provider: str) -> None:
    """Raise StudentError if a provider does not respond as expected."""
    from authlib.integrations.httpx_client import OAuth2Client

    setup = read()
    assert setup is not None
    address = setup.providers[provider]
    try:
        with OAuth2Client(timeout=_PATIENCE, follow_redirects=True) as client:
            answer = client.send(client.build_request("GET", address))
            is_one = "authorization_endpoint" in answer.json()
    except Exception as error:  # of whichever client Authlib has, for a bad name, no JSON
        logger.warning("The login provider at %s cannot be asked: %r", address, error)
        is_one = False
    if not is_one:
        raise StudentError(
            "The login provider {host} does not respond as expected. Try again later.",
            host=urlsplit(address).hostname or address,
        )


def _section() -> Mapping[str, Any] | None:
    """Return ``[auth]`` of the secrets, or None. Raises StudentError."""
    try:
        section = st.secrets.to_dict().get("auth")
    except StreamlitSecretNotFoundError as error:
        if error.error_id == _NOT_FOUND:
            return None
        raise StudentError("Streamlit's secrets cannot be read. {why}", why=str(error)) from None
    except (OSError, ValueError) as error:
        raise StudentError("Streamlit's secrets cannot be read. {why}", why=str(error)) from None
    if section is None or isinstance(section, Mapping):
        return section
    raise StudentError("auth in secrets.toml must be a section, [auth].")


def _check_provider(name: str, part: Mapping[str, Any]) -> None:
    where = "[auth]" if name == DEFAULT else f"[auth.{name}]"
    if "_" in name:
        raise StudentError(
            "{where} in secrets.toml: Streamlit accepts no underscore in the name. Rename it.",
            where=where,
        )
    for key in _OF_A_PROVIDER:
        _check_text(part, key, where)


def _check_text(part: Mapping[str, Any], key: str, where: str) -> None:
    if not isinstance(part.get(key), str) or not part[key].strip():
        raise StudentError(
            "{where} in secrets.toml lacks {key}. docs/deploy.md has an example.",
            where=where,
            key=key,
        )


def _check_callback(address: str) -> None:
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    path = f"/{base}{_CALLBACK}" if base else _CALLBACK
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path != path:
        raise StudentError(
            "redirect_uri in [auth] is {address!r}, but must be the app's address and {path}.",
            address=address,
            path=path,
        )
