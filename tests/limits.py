"""Other limits than a server has, for a test."""

from dataclasses import replace

import pytest

from tfm_core.settings import fixed


def limited(monkeypatch: pytest.MonkeyPatch, **values: int) -> None:
    """Change fixed limits of local and public servers for the length of a test."""
    for name in ("LOCAL", "PUBLIC"):
        monkeypatch.setattr(fixed, name, replace(getattr(fixed, name), **values))
