"""``python -m tests.static``: print each violation as ``path:line: rule``; 1 if there is any."""

import gc
import sys
from collections.abc import Iterator

from tests.static import budget, documents, imports, requirements, scripts, texts
from tests.static.repository import ROOT, Repository, Violation, repository

CHECKS = (
    *imports.CHECKS,
    *requirements.CHECKS,
    *texts.CHECKS,
    *scripts.CHECKS,
    *documents.CHECKS,
    *budget.CHECKS,
)


def violations(checked: Repository) -> Iterator[Violation]:
    """Yield what every check finds."""
    for check in CHECKS:
        yield from check(checked)


def main() -> int:
    """Check the repository; return the exit code."""
    gc.disable()  # it would look through all syntax trees again and again
    found = list(violations(repository(ROOT)))
    print(*found, f"{len(CHECKS)} checks, {len(found)} violations", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
