"""The labels of sentences of one's own: what of them teaches nothing, and what is worth knowing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tfm_core.data.own.rows import BadData, Problem, Row
from tfm_core.data.vocabulary import SPECIALS
from tfm_core.sentences import N_

MOST_CLASSES = 100


def of_classes(parts: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return what is worth saying of the labels. Raises BadData where they teach nothing."""
    balance = Counter(row.second for part in parts.values() for row in part)
    if len(balance) > MOST_CLASSES:
        raise BadData(
            "There are {n:,} different labels, but at most {most} can be told apart here. If the "
            "labels are in the other column, swap the two.",
            n=len(balance),
            most=MOST_CLASSES,
        )
    if len(balance) == 1:
        raise BadData(
            "All {n:,} sentences have the label “{label}”: there is nothing to tell apart. Add "
            "sentences with another label.",
            n=sum(balance.values()),
            label=next(iter(balance))[:40],
        )
    if strange := [label for label in balance if label in SPECIALS]:
        raise BadData(
            "A label cannot be called {label}, which is a token of every model's own; rename it.",
            label=strange[0],
        )
    rare = [label for label, n in balance.items() if n < 3]
    notes: list[str] = []
    if rare:
        notes.append(
            N_(
                "{n} labels have fewer than 3 sentences, such as “{label}”: nothing can be learned "
                "of them.",
                n=len(rare),
                label=rare[0][:40],
            )
        )
    by_letters: dict[str, list[str]] = {}
    for label in sorted(balance):
        by_letters.setdefault(label.casefold(), []).append(label)
    notes += [
        N_(
            "The labels {labels} differ only in capitals and count as different ones; write them "
            "alike if they mean the same.",
            labels=", ".join(f"“{label[:40]}”" for label in alike),
        )
        for alike in by_letters.values()
        if len(alike) > 1
    ]
    label, most = balance.most_common(1)[0]
    if most > 0.8 * balance.total():
        notes.append(
            N_(
                "{share:.0%} of the sentences have the label “{label}”: a model that always says "
                "so is right that often.",
                share=most / balance.total(),
                label=label[:40],
            )
        )
    return notes


def known_labels(
    parts: Mapping[str, tuple[Row, ...]],
) -> tuple[dict[str, tuple[Row, ...]], list[Problem]]:
    """Leave out unseen examples of labels that training does not have."""
    known = {row.second for row in parts["train"]}
    problems = [
        Problem(
            row.line,
            N_(
                "Line {line} of the test file has the label “{label}”, which training has not.",
                line=row.line,
                label=row.second[:40],
            ),
        )
        for row in parts["test"]
        if row.second not in known
    ]
    left = {
        split: tuple(row for row in rows if row.second in known) for split, rows in parts.items()
    }
    return left, problems
