"""Other limits than a server has, for a test."""

from dataclasses import replace

import pytest

from tfm_core.settings import decided


def limited(monkeypatch: pytest.MonkeyPatch, **values: int) -> None:
    """Change the limits of local and public servers for the length of a test."""
    for name in ("LOCAL_LIMITS", "PUBLIC_LIMITS"):
        monkeypatch.setattr(decided, name, replace(getattr(decided, name), **values))
