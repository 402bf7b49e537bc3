"""Which tests run which lines, for ``benchmarks.mutants``: tests of the core under ``coverage``.

Run in a copy of the tree as ``python -m benchmarks.mutant_coverage DATA FILE...``; DATA gets what
``coverage`` found, and beside it, as JSON, the CPU seconds that each test took.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest


class ByTest:
    """Tells ``coverage`` which test is running, and counts its seconds."""

    def __init__(self, covering: coverage.Coverage) -> None:
        """Begin without seconds."""
        self._covering = covering
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Run a test under its own name."""
        self._covering.switch_context(item.nodeid)
        begin = time.process_time()
        result = yield
        self.seconds[item.nodeid] = time.process_time() - begin
        self._covering.switch_context("")
        return result


def _run(data: Path, files: list[str]) -> None:
    covering = coverage.Coverage(data_file=data, source=["tfm_core", "pages"], config_file=False)
    covering.start()
    by_test = ByTest(covering)
    pytest.main(
        ["-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not browser", *files], plugins=[by_test]
    )
    covering.stop()
    covering.save()
    data.with_suffix(".json").write_text(json.dumps(by_test.seconds))


if __name__ == "__main__":
    _run(Path(sys.argv[1]), sys.argv[2:])
