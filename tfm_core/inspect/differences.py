"""What differs between experiments: settings in rows, names made of them, and seeds.

A setting that an experiment lacks, or that has no effect in it, has no value there. A name says all
of a few differences, else those that distinguish the experiments; equal ones are numbered.
Torch-free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from pydantic.fields import FieldInfo

from tfm_core.choices.config import Experiment, TunedConfig, family_label
from tfm_core.choices.config.base import Config, choices_of, plain
from tfm_core.choices.mistakes import MISTAKES
from tfm_core.choices.variants.norms import NORMS
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.choices.variants.training import OPTIMISERS
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Sentence, StudentError, listed, words

FAMILY, TASK = "model.family", "task.name"
ABSENT = "–"
"""Shown where an experiment has no such setting."""
MAX_SHOWN = 40
"""Characters of a text that a row shows."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting that differs between experiments.

    field: ``model.n_heads``. values: one an experiment, or None; texts: the same in words.
    """

    field: str
    label: str
    values: tuple[object, ...]
    texts: tuple[str, ...]


SettingValue = tuple[str, object, str]
"""A setting of one experiment: its label, its value, and that in words."""


def differences(experiments: Sequence[Experiment]) -> tuple[Difference, ...]:
    """Return a row for each setting that differs, in the order of the configuration."""
    kept = [settings(experiment) for experiment in experiments]
    rows = []
    for field in _fields(kept):
        found = [each.get(field) for each in kept]
        values = tuple(None if one is None else one[1] for one in found)
        if all(value == values[0] for value in values):
            continue
        label = next(one[0] for one in found if one is not None)
        texts = tuple(ABSENT if one is None else one[2] for one in found)
        rows.append(Difference(field, label, values, texts))
    return tuple(rows)


def settings(experiment: Experiment) -> dict[str, SettingValue]:
    """Return the settings that have an effect: path -> setting, family and task first."""
    return dict(_cached_settings(experiment))


@lru_cache(maxsize=1024)  # a comparison of many runs asks for each several times a drawing
def _cached_settings(experiment: Experiment) -> tuple[tuple[str, SettingValue], ...]:
    return tuple(_settings(experiment))


def _settings(experiment: Experiment) -> Iterator[tuple[str, SettingValue]]:
    model, task = experiment.model, experiment.task
    yield FAMILY, (N_("Family"), model.family, family_label(model.family))
    yield TASK, (N_("Task"), task.name, task.facts.label)
    sections: list[tuple[str, Config]] = [("model", model), ("task", task)]
    if experiment.training is not None:
        sections.append(("training", experiment.training))
    for section, config in sections:
        for name, field in type(config).model_fields.items():
            path = f"{section}.{name}"
            if path not in _SEPARATE and _has_effect(config, name):
                yield path, _setting(config, name, field)
    if experiment.training is not None:
        yield "seed", (N_("Seed"), experiment.seed, str(experiment.seed))


_SEPARATE = {FAMILY, TASK, "task.kind"}


def _has_effect(config: Config, name: str) -> bool:
    """Return whether a setting has an effect, given the others."""
    if name == "max_len":
        return POSITIONS[getattr(config, "position", "none")].has_table
    if name in ("beta1", "beta2"):
        return name in OPTIMISERS[getattr(config, "optimizer", "adamw")].settings
    if name in _OF_PARTS and isinstance(config, TunedConfig):
        return config.trains == _OF_PARTS[name]
    return True


_OF_PARTS = {"n_last": "last", "rank": "lora", "alpha": "lora"}
"""Settings of a part of a model that is trained."""


def _setting(config: Config, name: str, field: FieldInfo) -> SettingValue:
    value = getattr(config, name)
    label = field.title or name
    if name == "size":  # what it counts depends on the task
        label = getattr(getattr(config, "facts", None), "size_label", label)
    if name == "base" and isinstance(config, TunedConfig):
        text = N_("weights of {name}", name=config.called) if value else N_("random weights")
        return label, value, text
    return label, value, value_text(value, field)


def value_text(value: object, field: FieldInfo) -> str:
    """Return a value in words: the label of a variant, a number as one writes it."""
    choices = choices_of(field)
    if choices is not None and isinstance(value, tuple):
        return listed(choices[str(name)].label for name in value) or N_("none")
    if choices is not None and value in choices:
        return choices[str(value)].label
    if isinstance(value, bool):
        return N_("yes") if value else N_("no")
    if isinstance(value, int | float):
        return plain(value)
    text = " ".join(str(value).split())
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} …"


def _fields(kept: Sequence[dict[str, SettingValue]]) -> list[str]:
    """Return every path that one of them has, each section in the order of its settings."""
    found = dict.fromkeys(field for each in kept for field in each)
    sections = ("model", "task", "training", "seed")
    order = {FAMILY: -2, TASK: -1}
    return sorted(found, key=lambda path: order.get(path, sections.index(path.partition(".")[0])))


def matches_search(run: Run, words: str, *, also: str = "") -> bool:
    """Return whether every word is in a label of a run, in ``also``, or begins a variant.

    ``n_heads=8`` finds that setting, ``#too-slow`` the runs with that tag.
    """
    wanted = words.casefold().split()
    if not wanted:
        return True
    labels = run.labels
    parts = [run.meta.name, run.meta.preset or "", *labels.tags, labels.note, labels.group or ""]
    own = ("\n".join(parts) + also).casefold()
    exact = {f"#{tag.casefold()}".replace(" ", "-") for tag in run.labels.tags}
    variants: tuple[str, ...] = ()
    if run.problem is None:
        pairs, variants = _setting_words(run.experiment)
        exact |= pairs
    return all(
        word in exact
        if word[0] == "#" or "=" in word
        else word in own or any(one.startswith(word) for one in variants)
        for word in wanted
    )


@lru_cache(maxsize=8192)
def _setting_words(experiment: Experiment) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return settings as ``name=value``, and the words of the chosen variants."""
    known = settings(experiment)
    pairs = {
        f"{name}={str(value).casefold()}"
        for path, (_label, value, _text) in known.items()
        for name in (path, path.rpartition(".")[2])
    }
    words_of_variants = {
        word
        for path, (_label, value, text) in known.items()
        if isinstance(value, str) and path != "task.text"
        for word in (*text.casefold().split(), value.casefold())
    }
    return frozenset(pairs), tuple(sorted(words_of_variants))


MAX_SETTINGS = 3
"""The most settings in a name."""


def run_names(experiments: Sequence[Experiment]) -> tuple[str, ...]:
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


def change_text(one: Experiment, other: Experiment) -> str:
    """Return all that differs in the other experiment, as text; empty if nothing differs."""
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


MIN_SEEDS, USUAL_SEEDS, MAX_SEEDS = 2, 5, 20
"""Seeds of one configuration: limits, and the default."""
_LAST_SEED = 2**31 - 1


def is_same_but_seed(one: Experiment, other: Experiment) -> bool:
    """Return whether two experiments differ in nothing but, perhaps, their seed.

    How many snapshots are taken changes no weight.
    """
    if (one.model, one.task) != (other.model, other.task):
        return False
    if one.training is None or other.training is None:
        return one.training is other.training
    return one.training.replace(snapshots=other.training.snapshots) == other.training


def group_by_seed(runs: Sequence[Run]) -> list[dict[int, Run]]:
    """Return runs that differ in their seed alone together, by seed, ascending.

    The first run of a seed counts, and groups keep the order of their first runs. Damaged runs
    are left out.
    """
    groups: list[tuple[Experiment, dict[int, Run]]] = []
    for run in runs:
        if run.problem is not None:
            continue
        experiment = run.experiment
        for first, group in groups:
            if is_same_but_seed(first, experiment):
                group.setdefault(experiment.seed, run)
                break
        else:
            groups.append((experiment, {experiment.seed: run}))
    return [dict(sorted(group.items())) for _experiment, group in groups]


def seed_plans(
    experiments: Sequence[Experiment], runs: Sequence[Run], n: int
) -> list[tuple[Mapping[int, Run], list[Experiment]]]:
    """Return, for ``n`` seeds of each experiment, the runs that exist, by seed, and what lacks.

    All get the same seeds: first those that most have, then those after the first experiment's.
    Runs count as in ``counts_as_seed``. Raises StudentError for a wrong n.
    """
    if not MIN_SEEDS <= n <= MAX_SEEDS:
        raise StudentError(
            "Choose {fewest} to {most} seeds, not {n}.", n=n, fewest=MIN_SEEDS, most=MAX_SEEDS
        )
    known = [runs_by_seed(experiment, runs) for experiment in experiments]
    wanted = _choose_seeds([*known, {one.seed for one in experiments[:1]}], experiments[0].seed, n)
    return [
        (found, [experiment.replace(seed=seed) for seed in wanted if seed not in found])
        for experiment, found in zip(experiments, known, strict=True)
    ]


def _choose_seeds(known: Iterable[Iterable[int]], first: int, n: int) -> list[int]:
    """Return ``n`` seeds: the most frequent first, then those from ``first`` on."""
    counts = Counter(seed for seeds in known for seed in seeds)
    wanted = sorted(counts, key=lambda seed: (-counts[seed], seed))[:n]
    seed = first
    while len(wanted) < n:
        if seed not in wanted:
            wanted.append(seed)
        seed = seed + 1 if seed < _LAST_SEED else 0
    return wanted


def runs_by_seed(experiment: Experiment, runs: Iterable[Run]) -> dict[int, Run]:
    """Return the runs of an experiment by seed, ascending: the first of each seed that counts."""
    found: dict[int, Run] = {}
    for run in runs:
        if (
            run.problem is None
            and is_same_but_seed(run.experiment, experiment)
            and counts_as_seed(run)
        ):
            found.setdefault(run.experiment.seed, run)
    return dict(sorted(found.items()))


def counts_as_seed(run: Run) -> bool:
    """Return whether a run is one seed of its configuration: active, finished or diverged."""
    if run.meta.parent is not None:
        return False
    status = run.status
    if status.is_active or status.state == "finished":
        return True
    outcome = run.outcome
    return outcome is not None and outcome.kind == "diverged"
