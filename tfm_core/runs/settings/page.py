"""Generate docs/settings.md: ``python -m tfm_core.runs.settings.page > docs/settings.md``."""

from __future__ import annotations

from tfm_core.runs.settings.decided import OTHERS, VARIABLES, Variable

_INTRODUCTION = """# Settings

These environment variables configure the app, the workers and the command line. An empty variable
counts as not set. An invalid value stops the start with one sentence and exit code 2. The limits
apply in the browser; the command line has none.

“Public” is the default with `TFM_PUBLIC=1`. “Only shows”: no run can be started or resumed, and the
pages say so.

This page is generated from the code; CONTRIBUTING.md has the command.

| variable | meaning | default | 0 means |
|---|---|---|---|
"""


def page() -> str:
    """Return the page as Markdown."""
    return _INTRODUCTION + "".join(map(_row, (*VARIABLES, *OTHERS)))


def _row(variable: Variable) -> str:
    cells = (f"`{variable.name}`", variable.meaning, variable.default, variable.zero or "–")
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    print(page(), end="")
