"""Generate docs/settings.md: ``python -m tfm_core.settings.page > docs/settings.md``."""

from __future__ import annotations

from tfm_core.settings import fixed
from tfm_core.settings.decided import OTHERS, VARIABLES, Variable

_INTRODUCTION = """# Settings

These environment variables configure the app, the workers and the command line. An empty variable
counts as not set. An invalid value stops the start with one sentence and exit code 2; an unknown
name that begins with `TFM_` is only reported. The limits apply in the browser; the command line
has none.

“Public” is the default with `TFM_PUBLIC=1`. “Only shows”: no run can be started or resumed, and the
pages say so.

{limits}

This page is generated from the code; CONTRIBUTING.md has the command.

| variable | meaning | default | 0 means |
|---|---|---|---|
"""


_LIMITS = (
    "Other limits are fixed: {local.max_queued} runs may wait, and {local.max_per_session} of one "
    "visitor (public: {public.max_per_session})\nmay train or wait. A paused run keeps its place "
    "for {local.max_pause} seconds (public: {public.max_pause}) while\nothers wait. On a public "
    "server a run has at most {public.max_steps:,} steps and\n"
    "{public.max_parameters:,} parameters, "
    "and {public.max_runs:,} runs and 2 GB of visitors' data sets are kept."
)


def page() -> str:
    """Return the page as Markdown."""
    limits = _LIMITS.format(local=fixed.LOCAL, public=fixed.PUBLIC)
    return _INTRODUCTION.format(limits=limits) + "".join(map(_row, (*VARIABLES, *OTHERS)))


def _row(variable: Variable) -> str:
    cells = (f"`{variable.name}`", variable.meaning, variable.default, variable.zero or "–")
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    print(page(), end="")
