"""The kinds of attention in words, and what the axes of a map mean, without padding; torch-free."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from tfm_core.anatomy import AttentionPlan, Tokens, attentions
from tfm_core.choices.config import Experiment
from tfm_core.choices.variants.forms import Causality
from tfm_core.sentences import N_, StudentError, words


@dataclass(frozen=True, slots=True)
class AttentionKind:
    """One attention of the model in words, those of ``choices/attention.md``.

    short: the label for little room. written: what a row writes, if a token. is_named_by_written:
    its rows are named by that first.
    """

    name: str
    label: str
    help: str
    query: str
    key: str
    look_for: str
    short: str
    written: str = ""
    is_named_by_written: bool = False


STACKS = {"encoder": N_("Encoder"), "decoder": N_("Decoder")}
KINDS: dict[str, AttentionKind] = {
    name: AttentionKind(
        name, **words(f"choices/attention/{name}"), is_named_by_written=name in ("cross", "picture")
    )
    for name in (
        *("encoder", "slots", "words", "blanks", "reading"),
        *("decoder", "cross", "sequence", "text", "picture", "patches"),
    )
}


def seen_through(kind: AttentionKind, order: Causality) -> AttentionKind:
    """Return a kind of causal attention as it is with another mask, or with none."""
    if not order.sees_future:
        return kind
    mask = "unmasked" if order.sees_past else "reversed"
    said = words(f"choices/attention/{mask}")
    decoder_label = said.pop("decoder_label")
    if kind.name == "decoder":
        said["label"] = decoder_label
    return replace(kind, **said)


CLS = "CLS"
RowNames = Literal["written", "read"]
"""Whether a row is named by the token that it writes or reads."""


@dataclass(frozen=True, slots=True)
class MapAxes:
    """The tokens of one map, without padding. query: Q tokens, key: K tokens."""

    query: tuple[str, ...]
    key: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of queries and of keys."""
        return len(self.query), len(self.key)


@dataclass(frozen=True, slots=True)
class RowLabels:
    """The names of the rows of a map.

    names: Q, for an axis. words: Q phrases, ``2: writes 이, after 선생님``; title: what they are.
    """

    names: tuple[str, ...]
    words: tuple[str, ...]
    title: str


def kind_of(experiment: Experiment, module_name: str) -> AttentionKind:
    """Return which attention a module is. Raises ValueError when it is none of this model's."""
    return _kind(experiment, _plan(experiment, module_name))


def _plan(experiment: Experiment, module_name: str) -> AttentionPlan:
    stack, _layer, name = _parts(module_name)
    for plan in attentions(experiment.model):
        if (plan.stack, plan.name) == (stack, name):
            return plan
    raise _no_attention(module_name)


def _kind(experiment: Experiment, plan: AttentionPlan) -> AttentionKind:
    name = _KINDS.get((plan.queries, plan.keys))
    kind = KINDS[name or _BY_ANSWER[plan.keys, experiment.task.facts.answer]]
    if not experiment.task.has_model:  # what a row writes, if anything, is its program's affair
        return replace(kind, written="", is_named_by_written=False)
    order = experiment.model.order
    return seen_through(kind, order) if plan.has_order and order is not None else kind


def kinds_of(experiment: Experiment) -> dict[str, AttentionKind]:
    """Return the kinds of attention of a model by name, in words that fit its masks."""
    kinds = (_kind(experiment, plan) for plan in attentions(experiment.model))
    return {kind.name: kind for kind in kinds}


def layer_of(module_name: str) -> int:
    """Return the layer of an attention module, from 0. Raises StudentError."""
    return _parts(module_name)[1]


def modules_by_kind(experiment: Experiment) -> dict[str, list[str]]:
    """Return the names of a model's attention modules: kind name -> one module a layer."""
    return {_kind(experiment, plan).name: plan.paths for plan in attentions(experiment.model)}


def axes(experiment: Experiment, item: Mapping[str, Any], module_name: str) -> MapAxes:
    """Return the tokens of an example's map in one attention module. Raises StudentError.

    item: an example of the probe; pictures need none.
    """
    plan = _plan(experiment, module_name)
    return MapAxes(_tokens(experiment, item, plan.queries), _tokens(experiment, item, plan.keys))


def rows(
    experiment: Experiment, item: Mapping[str, Any], module_name: str, by: RowNames | None = None
) -> RowLabels:
    """Return the row names of an example's map in one attention module.

    by: None takes the default of the kind. A row that writes nothing is named by what it reads.
    """
    kind = kind_of(experiment, module_name)
    read = axes(experiment, item, module_name).query
    written = written_tokens(experiment, item, module_name)
    if by is None:
        by = "written" if kind.is_named_by_written else "read"
    phrases = []
    for n, (at, token) in enumerate(zip(read, written, strict=True), 1):
        if token is None:
            phrases.append(N_("query {n}: {at}", n=n, at=at))
        elif by == "written":
            values = {"n": n, "token": token, "at": at}
            phrases.append(
                N_("{n}: writes {token}, at {at}", **values)
                if kind.name == "slots"  # it answers in place
                else N_("{n}: writes {token}, after {at}", **values)
            )
        else:
            phrases.append(N_("{n}: {at}, and writes {token}", n=n, token=token, at=at))
    if by == "read" or not any(written):
        return RowLabels(read, tuple(phrases), kind.query)
    names = (at if token is None else token for at, token in zip(read, written, strict=True))
    return RowLabels(tuple(names), tuple(phrases), kind.written)


def written_tokens(
    experiment: Experiment, item: Mapping[str, Any], module_name: str
) -> tuple[str | None, ...]:
    """Return the token that each row of an example's map writes, or None.

    The true token, or in the user's own example what the model wrote, without <eos> if ``is_cut``.
    """
    kind = kind_of(experiment, module_name)
    read = axes(experiment, item, module_name).query
    if not kind.written:
        return (None,) * len(read)
    ends = kind.name != "text" and not item.get("is_cut", False)  # a text goes on
    answer = (*item["tgt"], experiment.task.end) if ends else tuple(item["tgt"])
    before = len(item.get("src", ())) if kind.name in {"sequence", "text"} else 0
    known = (*(None for _ in range(before)), *answer)
    return (*known, *(None for _ in range(len(read) - len(known))))[: len(read)]


def patches_per_side(experiment: Experiment) -> int:
    """Return the number of patches in a row of the picture. Raises StudentError for texts."""
    if not experiment.patches_per_side:
        raise StudentError("Only a Vision Transformer has patches; this model reads text.")
    return experiment.patches_per_side


def patch_names(side: int) -> tuple[str, ...]:
    """Return the names of patches, ``row,column`` from 1, row by row."""
    numbers = range(1, side + 1)
    return tuple(f"{row},{column}" for row in numbers for column in numbers)


def _tokens(experiment: Experiment, item: Mapping[str, Any], tokens: Tokens) -> tuple[str, ...]:
    """Return the tokens of an example on one axis."""
    if tokens == "patches":
        return (CLS,) * experiment.has_cls + patch_names(experiment.patches_per_side)
    src, tgt = tuple(item.get("src", ())), tuple(item["tgt"])
    if tokens in ("past", "target"):
        return (experiment.task.begin, *tgt) if experiment.task.begin else tgt
    if tokens == "sequence":
        return (*src, experiment.task.begin, *tgt)
    if tokens == "answering":
        src = (CLS,) * experiment.has_cls + src
        if experiment.task.facts.answer == "sequence":  # <eos> needs a position, too
            src += tuple(f"slot {i + 1}" for i in range(len(src), len(tgt) + 1))
    return src


_KINDS: dict[tuple[Tokens, Tokens], str] = {  # by queries and keys
    ("source", "source"): "encoder",
    ("target", "target"): "decoder",
    ("target", "source"): "cross",
    ("target", "patches"): "picture",
    ("patches", "patches"): "patches",
    ("given", "given"): "reading",
    ("past", "past"): "text",
}
_BY_ANSWER: dict[tuple[Tokens, str], str] = {  # of a stack that answers where it reads
    ("answering", "sequence"): "slots",
    ("answering", "label"): "words",
    ("answering", "blanks"): "blanks",
    ("answering", "vectors"): "reading",
    ("sequence", "sequence"): "sequence",
    ("sequence", "text"): "text",
}
_MODULE = re.compile(r"(encoder|decoder)(?:\.layers\.(\d{1,4}))?\.(self_attention|cross_attention)")


def _parts(module_name: str) -> tuple[str, int, str]:
    match = _MODULE.fullmatch(module_name)
    if match is None:
        raise _no_attention(module_name)
    return match[1], int(match[2] or 0), match[3]


def _no_attention(module_name: str) -> StudentError:
    return StudentError(
        "{module_name!r} is not an attention module such as encoder.layers.0.self_attention.",
        module_name=module_name,
    )
