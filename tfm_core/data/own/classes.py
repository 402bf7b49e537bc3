"""The labels of custom sentences: those that teach nothing are refused, others noted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tfm_core.data.own.containers import BadData
from tfm_core.data.own.records import Row
from tfm_core.data.vocabulary import SPECIALS
from tfm_core.sentences import N_, Paragraph

MAX_CLASSES = 100
_MAX_SPELLINGS = 3  # groups that are listed one by one
_WHOLE = re.compile(r"([-+]?\d+)\.0+")


def plain_label(label: str) -> str:
    """Return a label as it is compared: a whole number has no fraction, ``1.0`` is ``1``."""
    whole = _WHOLE.fullmatch(label)
    return label if whole is None else whole[1]


def spellings_of(labels: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Return groups of labels that differ only in case, the most frequent first."""
    groups: dict[str, list[str]] = {}
    for label, _n in Counter(labels).most_common():
        groups.setdefault(label.casefold(), []).append(label)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def spelling_notes(spellings: Sequence[Sequence[str]], *, is_merged: bool) -> Iterator[str]:
    """Yield which labels differ only in case, and whether they are merged."""
    for group in spellings[:_MAX_SPELLINGS]:
        labels = ", ".join(f"“{label[:40]}”" for label in group)
        if is_merged:
            yield N_(
                "{labels} differ only in case and are merged as “{label}”.",
                labels=labels,
                label=group[0][:40],
            )
        else:
            yield N_("{labels} differ only in case and stay separate.", labels=labels)


def label_notes(parts: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return notes on the labels. Raises BadData where they teach nothing."""
    balance = Counter(row.second for part in parts.values() for row in part)
    if len(balance) > MAX_CLASSES:
        raise BadData(
            "There are {n:,} labels; the limit is {most}. Is another column the label?",
            n=len(balance),
            most=MAX_CLASSES,
        )
    if len(balance) == 1:
        raise BadData(
            "All {n:,} sentences have the label “{label}”. Add sentences with another.",
            n=sum(balance.values()),
            label=next(iter(balance))[:40],
        )
    if strange := [label for label in balance if label in SPECIALS]:
        raise BadData("Rename the label {label}: it is a special token.", label=strange[0])
    rare = [label for label, n in balance.items() if n < 3]
    notes: list[str] = []
    if rare:
        notes.append(
            N_(
                "Labels with fewer than 3 sentences: {n}, such as “{label}”.",
                n=len(rare),
                label=rare[0][:40],
            )
        )
    label, most = balance.most_common(1)[0]
    if most > 0.8 * balance.total():
        notes.append(
            Paragraph("own-data/mostly-one-label", share=most / balance.total(), label=label[:40])
        )
    return notes


def known_labels(
    parts: Mapping[str, tuple[Row, ...]],
) -> tuple[dict[str, tuple[Row, ...]], list[Row]]:
    """Drop validation and test examples whose label training lacks; return the problems too."""
    train_labels = {row.second for row in parts["train"]}
    template = N_("{place} has the label “{label}”, which never occurs in training.")
    problems = [
        replace(row, sentence=N_(template, place=row.place, label=row.second[:40]))
        for rows in parts.values()
        for row in rows
        if row.second not in train_labels
    ]
    remaining = {
        split: tuple(row for row in rows if row.second in train_labels)
        for split, rows in parts.items()
    }
    return remaining, problems
