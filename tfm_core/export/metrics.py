"""The curves of a run as one table of what was recorded."""

from __future__ import annotations

import pandas as pd

from tfm_core.plots import export
from tfm_core.runs.curves import Curves, Series


def table(curves: Curves) -> pd.DataFrame:
    """Return all series one below the other; ``split`` says which, "train" for the batches.

    Validation of averaged weights, where there are any, is "validation-average".
    """
    parts = [
        _frame("train", curves.steps),
        _frame("validation", curves.validation),
        _frame("validation-average", curves.averaged),
        _frame("test", curves.test),
    ]
    names = list(dict.fromkeys(name for part in parts for name in part.columns))
    rows = [part for part in parts if len(part)]
    whole = pd.concat(rows) if rows else parts[0]
    return whole.reindex(columns=names).astype({"step": "int64"})


def csv_of(curves: Curves) -> bytes:
    """Return the table as CSV."""
    return export.csv(table(curves))


def _frame(split: str, series: Series) -> pd.DataFrame:
    columns = {name: series[name] for name in series.columns}
    return pd.DataFrame({"split": [split] * len(series), **columns})
