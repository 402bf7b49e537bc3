"""Experiments named by what differs between them: “8 heads, no warm-up”. Torch-free.

A name says all of a few differences, else those that distinguish the experiments; equal ones are
numbered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from tfm_core.choices.config import Experiment
from tfm_core.choices.config.base import plain
from tfm_core.choices.mistakes import MISTAKES
from tfm_core.choices.variants.norms import NORMS
from tfm_core.inspect.compare.differences import FAMILY, TASK, Difference, differences
from tfm_core.sentences import N_, Sentence, listed

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
    field = row.field
    if isinstance(value, bool) and field in _FLAGS:
        return _FLAGS[field][0 if value else 1]
    if field in _COUNTED and isinstance(value, int | float):
        none, one, many = _COUNTED[field]
        template = none if none and not value else one if one and value == 1 else many
        shown = f"{100 * value:.4g}" if field in _SHARES else plain(value)
        return Sentence(template, {"n": shown})
    if field in _MISTAKES and isinstance(value, tuple):
        return listed(MISTAKES[name].short for name in value) or _MISTAKES[field]
    if field == "model.norm":
        return NORMS[str(value)].phrase
    if field in _VARIANTS:
        return _VARIANTS[field](row.texts[number])
    return N_("{label} {value}", label=row.label, value=row.texts[number])


_SHARES = {"training.warmup", "training.batch_warmup"}
_FLAGS: Mapping[str, tuple[str, str]] = {
    "model.norm_first": (N_("pre-norm"), N_("post-norm")),
    "model.bias": (N_("biases"), N_("no biases")),
    "model.projection_bias": (N_("biases in attention"), N_("no biases in attention")),
    "model.qkv_bias": (
        N_("biases of queries, keys, values"),
        N_("no biases of queries, keys, values"),
    ),
    "model.qk_norm": (N_("QK-norm"), N_("no QK-norm")),
    "model.tie_embeddings": (N_("tied embeddings"), N_("untied embeddings")),
    "model.is_bidirectional": (N_("reads both ways"), N_("reads one way")),
    "training.checkpointing": (N_("checkpointing"), N_("no checkpointing")),
    "training.compile": (N_("compiled"), N_("not compiled")),
    "training.final_test": (N_("tested"), N_("not tested")),
    "task.sizes": (N_("large and small"), N_("one size")),
}
_COUNTED: Mapping[str, tuple[str, str, str]] = {  # of 0, of 1, of another number
    "model.d_model": ("", "", N_("width {n}")),
    "model.n_heads": ("", N_("1 head"), N_("{n} heads")),
    "model.n_kv_heads": (N_("no shared keys"), N_("1 key head"), N_("{n} key heads")),
    "model.head_dim": (N_("d_head of d_model / n_heads"), "", N_("d_head {n}")),
    "model.d_ff": ("", "", N_("d_ff {n}")),
    "model.n_experts": (N_("no experts"), N_("1 expert"), N_("{n} experts")),
    "model.top_k": ("", N_("1 expert per token"), N_("{n} experts per token")),
    "model.balance_weight": (N_("no load balance"), "", N_("load balance {n}")),
    "model.n_layers": ("", N_("1 layer"), N_("{n} layers")),
    "model.n_encoder_layers": ("", N_("1 encoder layer"), N_("{n} encoder layers")),
    "model.n_decoder_layers": ("", N_("1 decoder layer"), N_("{n} decoder layers")),
    "task.n_last": ("", N_("last layer"), N_("last {n} layers")),
    "task.rank": ("", "", N_("rank {n}")),
    "model.dropout": (N_("no dropout"), "", N_("dropout {n}")),
    "model.window": (N_("no window"), "", N_("window {n}")),
    "model.full_every": (N_("windows in all layers"), "", N_("full attention every {n}")),
    "model.patch_size": ("", "", N_("patches of {n}")),
    "task.size": ("", "", N_("size {n}")),
    "task.n_train": ("", "", N_("{n} to learn from")),
    "task.context": ("", "", N_("context {n}")),
    "task.shift": (N_("no shift"), "", N_("shift {n}")),
    "task.rotation": (N_("no rotation"), "", N_("rotation {n}")),
    "task.scale": (N_("no scale"), "", N_("scale {n}")),
    "task.slant": (N_("no slant"), "", N_("slant {n}")),
    "task.label_noise": (N_("no label noise"), "", N_("label noise {n}")),
    "training.steps": ("", N_("1 step"), N_("{n} steps")),
    "training.batch_size": ("", "", N_("batches of {n}")),
    "training.learning_rate": ("", "", N_("learning rate {n}")),
    "training.warmup": (N_("no warm-up"), "", N_("{n}% warm-up")),
    "training.batch_warmup": (N_("whole batches"), "", N_("{n}% half batches")),
    "training.weight_decay": (N_("no weight decay"), "", N_("weight decay {n}")),
    "training.label_smoothing": (N_("no label smoothing"), "", N_("label smoothing {n}")),
    "training.clip_norm": (N_("no clipping"), "", N_("clipping at {n}")),
    "training.patience": (N_("no patience"), "", N_("patience {n}")),
    "seed": ("", "", N_("seed {n}")),
}
_MISTAKES: Mapping[str, str] = {  # without any
    "model.mistakes": N_("no mistakes"),
    "training.mistakes": N_("no mistakes in training"),
}
_VARIANTS: Mapping[str, Callable[[str], str]] = {
    "model.family": lambda label: label,
    "task.operation": lambda label: label,
    "task.name": lambda label: label,
    "task.base": lambda label: label,
    "task.trains": lambda label: label,
    "model.sink": lambda label: N_("sink: {label}", label=label),
    "model.activation": lambda label: label,
    "model.cell": lambda label: label,
    "model.position": lambda label: N_("positions: {label}", label=label),
    "model.text_position": lambda label: N_("word positions: {label}", label=label),
    "model.pooling": lambda label: N_("pooling: {label}", label=label),
    "model.stem": lambda label: N_("stem: {label}", label=label),
    "model.attention": lambda label: N_("score: {label}", label=label),
    "training.optimizer": lambda label: label,
    "training.schedule": lambda label: N_("schedule: {label}", label=label),
    "training.precision": lambda label: label,
}
