"""A set of texts that is kept, looked through again: the same report as before it was kept."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tfm_core.data.own.report import Report
from tfm_core.data.own.rows import Row
from tfm_core.data.own.sets import TOKENS, OwnSet, SetDamaged
from tfm_core.data.own.text import FILE, own_vocabulary
from tfm_core.data.own.texts import COLUMNS
from tfm_core.data.own.tokens import Cutter, learned_from_text

SPLITS = ("train", "validation", "test")
_MAX_CUT = 5_000
"""Rows of which the lengths are counted; of a larger set the first ones."""


def report_of(own: OwnSet) -> Report:
    """Return what a set holds. Raises SetDamaged, in a sentence."""
    unit = str(own.details.get("unit", ""))
    if own.kind == "text":
        text = own.content(FILE).decode(errors="replace")
        known = own_vocabulary(own.id)
        tokens = known[1] if known else learned_from_text(unit, text).text_vocabulary(text)
        return Report(
            "text", own.name, unit, own.split, ("line",), counts=own.counts, text=text,
            words=(tokens,),
        )  # fmt: skip
    columns = COLUMNS[own.kind]
    try:
        rows = {split: _rows(own.content(f"{split}.jsonl")) for split in SPLITS}
        sides = json.loads(own.content(TOKENS))
        cutters = tuple(Cutter.from_json(side["cut"]) for side in sides)
        words = tuple(tuple(side["words"]) for side in sides)
    except SetDamaged:
        raise
    except (ValueError, KeyError, TypeError, RecursionError):
        raise SetDamaged(
            "The set “{name}” is damaged. Remove it and add your data again; its runs still open.",
            name=own.name,
        ) from None
    everything = [row for split in SPLITS for row in rows[split]]
    some = everything[:_MAX_CUT]
    balance = Counter(row.second for row in everything if own.kind == "labels")
    return Report(
        own.kind,
        own.name,
        unit,
        own.split,
        columns,
        rows=rows,
        counts=own.counts,
        lengths={
            columns[0]: tuple(len(cutters[0].cut(row.first)) for row in some),
            columns[1]: tuple(len(cutters[1].cut(row.second)) for row in some),
        },
        balance=dict(balance.most_common()),
        n_across=int(own.details.get("n_across") or 0),
        words=words,
    )


def as_lines(report: Report) -> str:
    """Return the rows of a report as they could be pasted again, with a tab between both texts."""
    if report.kind == "text":
        return report.text
    lines = (f"{row.first}\t{row.second}" for split in SPLITS for row in report.rows[split])
    return "\n".join(lines) + "\n"


def _rows(content: bytes) -> tuple[Row, ...]:
    found: list[Row] = []
    for number, line in enumerate(content.decode().split("\n"), 1):
        if line:
            first, second = _two(json.loads(line))
            found.append(Row(number, first, second))
    return tuple(found)


def _two(values: Any) -> tuple[str, str]:
    first, second = values
    if not (isinstance(first, str) and isinstance(second, str)):
        raise ValueError
    return first, second
