"""Tables: rows with named columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def table(rows: Iterable[Sequence[object]], **columns: type) -> pd.DataFrame:
    """Return rows with named columns, each of a type.

    ``object`` keeps sentences what they are: of themselves, columns of texts become plain ones.
    """
    import pandas as pd

    return pd.DataFrame(list(rows), columns=[*columns], dtype=object).astype(columns)
