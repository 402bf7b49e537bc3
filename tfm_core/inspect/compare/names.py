"""Experiments named by what differs between them: “8 heads, no warm-up”. Torch-free.

A name says all of a few differences, else those that distinguish the experiments; equal ones are
numbered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

from tfm_core.choices.config import Experiment
from tfm_core.choices.config.base import plain
from tfm_core.choices.mistakes import MISTAKES
from tfm_core.choices.variants.norms import NORMS
from tfm_core.inspect.compare.differences import FAMILY, TASK, Difference, differences
from tfm_core.sentences import N_, Sentence, listed, words

MAX_SETTINGS = 3
"""The most settings in a name."""


def names(experiments: Sequence[Experiment]) -> tuple[str, ...]:
    """Return a name for each experiment, all of them different."""
    rows = differences(experiments)
    chosen = _most_distinct([row for row in rows if row.field not in _follows(rows)])
    made = [
        listed(filter(None, (phrase(row, number) for row in chosen))) or experiment.task.facts.label
        for number, experiment in enumerate(experiments)
    ]
    counts, seen = Counter(made), Counter[str]()
    result: list[str] = []
    for name in made:
        seen[name] += 1
        is_alone = counts[name] == 1
        result.append(name if is_alone else N_("{name}, no. {n}", name=name, n=seen[name]))
    return tuple(result)


def change(one: Experiment, other: Experiment) -> str:
    """Return what of the other experiment differs from the first, all of it; empty if nothing."""
    rows = differences([one, other])
    shown = (phrase(row, 1) for row in rows if row.field not in _follows(rows))
    return listed(filter(None, shown))


def _follows(rows: Sequence[Difference]) -> set[str]:
    """Return the settings that differ because another one does."""
    found = {row.field for row in rows}
    return {own for own, other in _FOLLOWERS.items() if other in found}


_FOLLOWERS = {
    "training.weight_decay": "training.optimizer",
    "training.beta2": "training.optimizer",
    "task.alpha": "task.rank",
}
_LAST = ("training.validate_every", "training.snapshots", "training.final_test")
"""Settings that change no weight: in a name only if nothing else differs."""


def _most_distinct(rows: Sequence[Difference]) -> list[Difference]:
    """Return the rows to say: all of a few, else those that distinguish most experiments.

    A different task, or else a different family, is always said.
    """
    candidates = [row for row in rows if row.field not in _LAST] or list(rows)
    if len(candidates) <= MAX_SETTINGS:
        return candidates
    chosen = [row for row in candidates if row.field == TASK] or [
        row for row in candidates if row.field == FAMILY
    ]
    n_distinct = _n_distinct(chosen) if chosen else 1
    while len(chosen) < MAX_SETTINGS:
        best = max(
            (row for row in candidates if row not in chosen),
            key=lambda row: _n_distinct([*chosen, row]),
        )
        if _n_distinct([*chosen, best]) == n_distinct:
            break
        chosen.append(best)
        n_distinct = _n_distinct(chosen)
    return [row for row in candidates if row in chosen]


def _n_distinct(rows: Sequence[Difference]) -> int:
    """Return how many of the experiments these rows distinguish."""
    return len(set(zip(*(row.texts for row in rows), strict=True)))


def phrase(row: Difference, number: int) -> str:
    """Return one value of a row for a name; empty if the experiment has none."""
    value = row.values[number]
    if value is None:
        return ""
    field, forms = row.field, _forms(row.field)
    if isinstance(value, bool) and "yes" in forms:
        return forms["yes" if value else "no"]
    if isinstance(value, int | float) and "many" in forms:
        form = "none" if not value else "one" if value == 1 else "many"
        shown = f"{100 * value:.4g}" if field in _SHARES else plain(value)
        return N_(forms.get(form, forms["many"]), n=shown)
    if field.endswith(".mistakes") and isinstance(value, tuple):
        return listed(MISTAKES[name].short for name in value) or forms["none"]
    if field == "model.norm":
        return NORMS[str(value)].phrase
    if field in _BARE:
        return row.texts[number]
    rule = forms.get("value", N_("{label} {value}"))
    return N_(rule, label=row.label, value=row.texts[number])


@cache
def _forms(field: str) -> Mapping[str, Sentence]:
    """Return how a setting is said, from ``choices/phrases.md``: yes, no, none, one, many, value.

    Empty where it is said as its label and value.
    """
    try:
        return words(f"choices/phrases/{field}")
    except KeyError:
        return {}


_SHARES = {"training.warmup", "training.batch_warmup"}
_BARE = {
    "model.family",
    "model.activation",
    "model.cell",
    "task.operation",
    "task.name",
    "task.base",
    "task.trains",
    "training.optimizer",
    "training.precision",
}
"""Settings whose value says it all."""
