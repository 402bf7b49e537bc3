"""What runs that stand together are called: where names are equal, what differs is said behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pages.i18n import _
from pages.ui import suspects
from tfm_core.inspect.compare.differences import differences
from tfm_core.inspect.compare.names import names
from tfm_core.runs.run import Run


def told_apart(runs: Sequence[Run]) -> dict[str, str]:
    """Return by id what to say behind the name of a run; nothing of one whose name is its own."""
    alike = defaultdict[str, list[Run]](list)
    for run in runs:
        if run.problem is None and not suspects.is_hidden(run):
            alike[run.meta.name].append(run)
    said: dict[str, str] = {}
    for group in alike.values():
        experiments = [run.experiment for run in group]
        if differences(experiments):
            said |= {
                run.id: str(_(name)) for run, name in zip(group, names(experiments), strict=True)
            }
    return said
