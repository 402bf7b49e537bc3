"""Pages opened as by a link, without browser or server, and what broke while they were drawn."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from streamlit import config
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from tests.pages.opening import opened_at

# Examples follow from the attack alone, and every one is tried: nothing is made smaller.
TRIED = settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@dataclass
class Tally:
    """What was tried: attacks, views of pages, and what broke, in a line each."""

    attacks: int = 0
    views: int = 0
    broken: list[str] = field(default_factory=list)

    def open(self, what: str, file: str, query: dict[str, str]) -> AppTest:
        """Open a page below pages/; note where it broke."""
        app = opened_at(file, **query)
        self.look(f"{what}: {file} {query}", app)
        return app

    def look(self, what: str, app: AppTest) -> None:
        """Count a page that was drawn; note where it broke, or a row of its list did."""
        self.views += 1
        lost = [one.value for one in app.caption if "see the server's log" in one.value]
        if app.exception or lost:
            said = [*(one.message or one.value for one in app.exception), *lost]
            self.broken.append(f"{what}: {'; '.join(map(str, said))}"[:1000])


@contextmanager
def app_on(root: Path) -> Iterator[None]:
    """Let pages look into a folder of runs, start nothing, and say errors in full."""
    config.set_option("client.showErrorDetails", "full")
    scan, variables = manifest_scanner.scan_component_manifests, dict(os.environ)
    manifest_scanner.scan_component_manifests = functools.cache(scan)  # not for every page anew
    os.environ.update(TFM_RUNS_DIR=str(root), TFM_WARM_WORKERS="0")
    try:
        yield
    finally:
        manifest_scanner.scan_component_manifests = scan
        os.environ.clear()
        os.environ.update(variables)
