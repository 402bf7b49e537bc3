"""Two models side by side: what differs between them, in numbers and in words."""

from __future__ import annotations

from dataclasses import asdict

from tfm_core.choices.config import FAMILIES
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.facts.architectures import Architecture
from tfm_core.facts.compute import macs
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.sentences import N_, Paragraph, Sentence, words


def differences(first: Architecture, second: Architecture) -> list[str]:
    """Return sentences on how the second model differs from the first; none if equal."""
    first_config, second_config = first.model, second.model
    changes = []
    if first_config.family != second_config.family:
        changes.append(
            N_(
                "Family: {label} is {label_2}, {first_label} is {label_3}.",
                label=second.label,
                label_2=FAMILIES[second_config.family].label,
                first_label=first.label,
                label_3=FAMILIES[first_config.family].label,
            )
        )
    old, new = first_config.model_dump(), second_config.model_dump()
    # with a table of positions, a model can't read more than ``max_len`` tokens
    limited = [
        POSITIONS[getattr(m, "position", "none")].has_table for m in (first_config, second_config)
    ]
    for name in (name for name in new if name in old and name != "family"):
        if name == "max_len" and not all(limited):
            changes += _limits(first, second, *limited)
        elif old[name] != new[name]:
            label = type(second_config).model_fields[name].title or name
            changes.append(_changed(label, old[name], new[name]))
    old, new = asdict(first.shape), asdict(second.shape)
    labels = words("choices/settings/shape")
    for name in (name for name in new if name in old):
        if name == "pad_id" and None not in (old[name], new[name]):
            continue  # which number it has says nothing of a model
        if old[name] != new[name]:
            label = labels.get(name, name.replace("_", " ").capitalize())
            changes.append(_changed(label, old[name], new[name]))
    if first.model == second.model and first.shape == second.shape:
        return []
    return [*changes, *_sizes(first, second)]


def _changed(label: str, old: object, new: object) -> Sentence:
    values = {"new": _value_text(new), "old": _value_text(old)}
    return N_("{label}: {new} instead of {old}.", label=label, **values)


def _limits(
    first: Architecture, second: Architecture, is_first: bool, is_second: bool
) -> list[Sentence]:
    """Return which of two models alone has a longest sequence; nothing where neither has one."""
    if is_first == is_second:
        return []
    limited, other = (second, first) if is_second else (first, second)
    return [
        N_(
            "Longest sequence: {label} has {n:,} positions; {other} has no limit.",
            label=limited.label,
            n=limited.model.model_dump()["max_len"],
            other=other.label,
        )
    ]


def _sizes(first: Architecture, second: Architecture) -> list[str]:
    counts = [parameter_table(a.model, a.shape).total for a in (first, second)]
    work = [
        sum(macs(a.model, a.shape, src_len=a.src_len, tgt_len=a.tgt_len).values())
        for a in (first, second)
    ]
    sentences = [N_("It has the same number of parameters: {n:,}.", n=counts[0])]
    if counts[0] != counts[1]:
        sentences = [
            N_(
                "It has {ratio:.3g} times the parameters: {new:,} instead of {old:,}.",
                ratio=counts[1] / counts[0],
                new=counts[1],
                old=counts[0],
            )
        ]
    if work[0] == work[1]:
        return [*sentences, N_("A full example takes the same arithmetic.")]
    giga = [n_macs / 1e9 for n_macs in work]
    ratio = work[1] / work[0]
    return [*sentences, Paragraph("facts/compute", ratio=ratio, work=giga[1], work_2=giga[0])]


def _value_text(value: object) -> str:
    if isinstance(value, bool):
        return N_("yes") if value else N_("no")
    if value is None or value == ():
        return N_("none")
    if isinstance(value, tuple):
        return ", ".join(value)
    return f"{value:,}" if isinstance(value, int) else str(value)
