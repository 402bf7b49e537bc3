"""Tables: rows with named columns, and what a chart says of each column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Column:
    """What a column of a table is called, and how its numbers are written."""

    title: str = ""
    form: str = ""  # of the number that the pointer reads, in d3's signs: ".1%"
    axis: Mapping[str, Any] = field(default_factory=dict)  # settings of an axis of it


def share(title: str, **axis: Any) -> Column:
    """Return a column of numbers from 0 to 1, which are read as per cent."""
    return Column(title, ".1%", {"range": (0, 1.04), "tickformat": ".0%", **axis})


class Columns(dict[str, Column]):
    """The columns of a table, declared beside the measure that returns it."""

    def table(self, values: Any) -> pd.DataFrame:
        """Return a data frame of values that carries these columns."""
        import pandas as pd

        made = pd.DataFrame(values)
        made.attrs["columns"] = self
        return made

    def __deepcopy__(self, memo: object) -> Self:
        """Return itself: pandas copies what a table carries at each step."""
        return self


def table(rows: Iterable[Sequence[object]], **columns: type) -> pd.DataFrame:
    """Return rows with named columns, each of a type.

    ``object`` keeps sentences what they are: of themselves, columns of texts become plain ones.
    """
    import pandas as pd

    return pd.DataFrame(list(rows), columns=[*columns], dtype=object).astype(columns)
