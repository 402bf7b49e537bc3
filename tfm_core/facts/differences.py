"""Two models side by side: what differs between them, in numbers and in words."""

from __future__ import annotations

from dataclasses import asdict

from tfm_core.config import FAMILIES
from tfm_core.facts.architectures import Architecture
from tfm_core.facts.compute import macs
from tfm_core.facts.parameter_table import parameter_table

SHAPE_LABELS = {
    "src_vocabulary": "Source vocabulary",
    "tgt_vocabulary": "Target vocabulary",
    "one_vocabulary": "One vocabulary for source and target",
    "output_bias": "Bias in the output layer",
    "head": "What it answers with",
    "n_segments": "Segment embeddings",
    "scale_embedding": "Embeddings times sqrt(d_model)",
    "has_source": "Reads a source",
    "n_labels": "Labels to choose from",
    "mask_id": "Id of the token that hides a word (0: none does)",
    "image_size": "Pixels to a side",
    "n_classes": "Classes",
}


def differences(first: Architecture, second: Architecture) -> list[str]:
    """Return sentences on how the second model differs from the first; none if equal."""
    one, other = first.model, second.model
    changes = []
    if one.family != other.family:
        changes.append(
            f"{second.label} is of the family {FAMILIES[other.family].label}, {first.label} of the "
            f"family {FAMILIES[one.family].label}."
        )
    old, new = one.model_dump(), other.model_dump()
    for name in (name for name in new if name in old and name != "family"):
        if old[name] != new[name]:
            label = type(other).model_fields[name].title or name
            changes.append(f"{label}: {_said(new[name])} instead of {_said(old[name])}.")
    old, new = asdict(first.shape), asdict(second.shape)
    for name in (name for name in new if name in old and name != "pad_id"):
        if old[name] != new[name]:
            label = SHAPE_LABELS.get(name, name.replace("_", " ").capitalize())
            changes.append(f"{label}: {_said(new[name])} instead of {_said(old[name])}.")
    if first.model == second.model and first.shape == second.shape:
        return []
    return [*changes, *_sizes(first, second)]


def _sizes(first: Architecture, second: Architecture) -> list[str]:
    counts = [parameter_table(a.model, a.shape).total for a in (first, second)]
    work = [
        sum(macs(a.model, a.shape, src_len=a.src_len, tgt_len=a.tgt_len).values())
        for a in (first, second)
    ]
    return [
        f"It has {_ratio(counts[1], counts[0])} the parameters: {counts[1]:,} "
        f"instead of {counts[0]:,}.",
        f"One full example takes {_ratio(work[1], work[0])} the arithmetic: {work[1] / 1e9:,.4g} "
        f"instead of {work[0] / 1e9:,.4g} GMAC.",
    ]


def _ratio(new: int, old: int) -> str:
    return "exactly" if new == old else f"{new / old:.3g} times"


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
