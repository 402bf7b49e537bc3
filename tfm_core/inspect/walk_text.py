"""The nineteen steps of a text model; a family that lacks a stack lacks its steps."""

from __future__ import annotations

import math

import torch

from tfm_core.config import DecoderOnlyConfig, EncoderDecoderConfig
from tfm_core.config.shape import TextShape
from tfm_core.inspect import walk_answer, walk_attention, walk_block, walk_pooler
from tfm_core.inspect.walk import Question, Seen, Step, number_question, seen, shape_question
from tfm_core.inspect.walk_attention import MODULES, Place, mask_seen
from tfm_core.inspect.walk_subject import Subject
from tfm_core.layers.masks import window_mask


def steps(subject: Subject, layer: int, example: int) -> tuple[Step, ...]:
    """Return the steps; layer: the block that steps 6 to 14, 16 and 17 open, from 0."""
    place = _place(subject, layer, example)
    assert isinstance(subject.shape, TextShape)
    is_causal = isinstance(subject.config, DecoderOnlyConfig)
    found = [
        tokens(subject, example),
        heads(place),
        masks(subject, place),
        embedding(subject, place),
        positions(subject, place),
        walk_attention.projections(place, 6),
        walk_attention.split(place, 7),
        walk_attention.scores(place, 8),
        walk_attention.masking(place, 9, ("causal",) if is_causal else ("padding",)),
        walk_attention.softmax(place, 10),
        walk_attention.weighted_sum(place, 11),
        walk_attention.merge(place, 12),
        walk_block.add_norm(place, 13),
        walk_block.feed_forward(place, 14),
    ]
    if not is_causal:
        found.append(walk_answer.encoder_stack(place))
    if subject.shape.is_label:
        found.append(walk_answer.pooling(place))
    if isinstance(subject.config, EncoderDecoderConfig):
        decoder = min(layer, subject.config.n_decoder_layers - 1)
        other = Place(subject, f"decoder.layers.{decoder}", "T:tgt", example)
        found += [walk_answer.decoder_attention(other), walk_answer.cross_attention(other)]
    if isinstance(subject.shape, TextShape) and subject.shape.head == "pooler":
        return (*found, walk_pooler.answer(place), walk_pooler.whole(subject))
    return (*found, walk_answer.logits(place), walk_answer.whole(subject, example))


def _place(subject: Subject, layer: int, example: int) -> Place:
    if isinstance(subject.config, DecoderOnlyConfig):
        return Place(subject, f"decoder.layers.{layer}", "L:sequence", example)
    axis = "S:src" if isinstance(subject.config, EncoderDecoderConfig) else "S:slots"
    return Place(subject, f"encoder.layers.{layer}", axis, example)


def tokens(subject: Subject, example: int) -> Step:
    """Sentences of different length become one rectangle of numbers."""
    src, tgt = subject.inputs
    names: dict[str, object] = {**MODULES, "S": src.size(1), "T": tgt.size(1)}
    has_source = src.size(1) > 0
    if subject.is_real:
        names |= {
            "sources": [[i for i in row if i] for row in src.tolist()],
            "targets": [[i for i in row if i] for row in tgt.tolist()],
        }
        ids, what = (src, "source") if has_source else (tgt, "text")
        n = int((ids[example] == 0).sum())
        question = number_question(
            f"Of the {ids.size(1)} places of this example's {what}, how many are padding?",
            n,
            f"{n}: it has {ids.size(1) - n} tokens, the longest of the batch {ids.size(1)}.",
        )
    else:
        ids, what = (src, "source") if has_source else (tgt, "text")
        question = shape_question(
            f"the {what}, as a tensor of ids",
            tuple(ids.shape),
            tuple(ids.shape)[::-1],
            (*ids.shape, subject.config.d_model),
            (ids.numel(),),
        )
    code = "src = torch.tensor([row + [0] * (S - len(row)) for row in sources])\n"
    return Step(
        1, "tokens", "Token tensors",
        ("tokens", f"tokens-{subject.reader}"),
        (code if has_source else "") +
        "tgt = torch.tensor([row + [0] * (T - len(row)) for row in targets])",
        (), _ids(subject), question, names=names,
    )  # fmt: skip


def _family(subject: Subject) -> str:
    return str(getattr(subject.config, "family", ""))


def _ids(subject: Subject) -> tuple[Seen, ...]:
    """Return what goes in; a language model has no source."""
    src, tgt = subject.inputs
    what = "target ids" if src.size(1) else "ids of the text"
    target = seen("tgt", f"{what}, from <bos> on", tgt, "B T:tgt")
    return (seen("src", "source ids", src, "B S:src"), target) if src.size(1) else (target,)


def heads(place: Place) -> Step:
    """The one condition on the number of heads."""
    *_, n_heads, d_head, d_model = place.sizes
    projection = place.subject.model.get_parameter(
        f"{place.path}.self_attention.in_projection.weight"
    )
    weight = projection.detach()[:d_model]
    return Step(
        2, "heads", "Heads must divide d_model", ("heads",),
        "d_head = d_model // H\nper_head = weight.view(H, d_head, d_model)",
        (seen("weight", "matrix that makes the queries", weight, "d_model d_model"),),
        (seen("per_head", "its rows, by head", weight.view(n_heads, d_head, d_model),
              "H d_head d_model"),),
        number_question(
            f"d_model is {d_model} and there are {n_heads} heads. How wide is one head?",
            d_head, f"{d_model} / {n_heads} = {d_head}, without a remainder.",
        ),
        names={"H": n_heads, "d_model": d_model},
    )  # fmt: skip


def masks(subject: Subject, place: Place) -> Step:
    """Which query may attend to which key."""
    window = getattr(subject.config, "window", 0)
    near = " & near" if window else ""
    family = _family(subject)
    mask = place.got("self_attention.mask")
    length = place.sizes[1]
    names: dict[str, object] = {**MODULES, place.axis[0]: length}
    if window:
        names["near"] = window_mask(length, window)
    causal = "torch.ones({n}, {n}, dtype=torch.bool).tril()"
    both = _ids(subject)
    tgt = both[-1]
    if family == "decoder-only":
        before: tuple[Seen, ...] = (_keep(subject, length),)
        code = f"mask = keep[:, None, None, :] & {causal.format(n='L')}{near}"
        after: tuple[Seen, ...] = (mask_seen(mask, "sequence"),)
    elif family == "encoder-only":
        ids = subject.tape["src_embedding.ids"]
        has_slots = subject.reader == "encoder-only"
        label = "source ids, with slots to answer in" if has_slots else "ids of the text"
        before = (seen("src", label, ids, "B S:slots"),)
        code = f"mask = (src != 0)[:, None, None, :]{near}"
        after = (mask_seen(mask, "slots"),)
    else:
        before = both
        near_tgt = " & near_tgt" if window else ""
        names |= {"T": tgt.value.size(1)}
        if window:
            names["near_tgt"] = window_mask(tgt.value.size(1), window)
        code = (
            f"mask = (src != 0)[:, None, None, :]{near}\n"
            f"tgt_mask = (tgt != 0)[:, None, None, :] & {causal.format(n='T')}{near_tgt}"
        )
        tgt_mask = subject.tape["decoder.layers.0.self_attention.mask"]
        after = (
            mask_seen(mask, "src"),
            seen("tgt_mask", "target mask: 1 = may attend", tgt_mask, "B 1 Q:tgt K:tgt"),
        )
    topics = [f"masks-{subject.reader}"] + (["window"] if window else [])
    question = _mask_question(after[-1], place.example)
    return Step(3, "masks", "Masks", ("masks", *topics), code, before, after, question, names=names,
                shown=after[-1].name)  # fmt: skip


def _keep(subject: Subject, length: int) -> Seen:
    src, tgt = subject.inputs
    n = (src != 0).sum(1, keepdim=True) + (tgt != 0).sum(1, keepdim=True)
    places = torch.arange(length, device=src.device)
    return seen("keep", "is it a token, not padding?", places < n, "B L:sequence")


def _mask_question(mask: Seen, example: int) -> Question:
    if not mask.has_values:
        batch, _, rows, columns = mask.shape
        return shape_question(
            f"the mask named {mask.name}",
            mask.shape, (batch, rows, columns), (batch, 1, 1, columns), (batch, rows, 1, columns),
            (rows, columns),
        )  # fmt: skip
    row = min(2, mask.shape[2] - 1)
    n = int(mask.value[example, 0, row].sum())
    who = f"the query at position {row + 1}" if mask.shape[2] > 1 else "every query"
    return number_question(
        f"In this example, to how many keys may {who} attend, by the mask named {mask.name}?",
        n,
        f"{n}: the ones in its row of the mask.",
    )


def embedding(subject: Subject, place: Place) -> Step:
    """A row of a table for each id."""
    tape, words = subject.tape, place.axis
    table = subject.model.get_submodule("src_embedding.table")
    ids, embedded = tape["src_embedding.ids"], tape["src_embedding.embedded"]
    batch, length, d_model = embedded.shape
    extra = []
    if "tgt_embedding.embedded" in tape and not isinstance(subject.config, DecoderOnlyConfig):
        target = tape["tgt_embedding.embedded"]
        extra = [seen("tgt_embedded", "the target's vectors", target, "B T:tgt d_model")]
    has_source = subject.inputs[0].size(1) > 0
    if isinstance(subject.config, DecoderOnlyConfig) and has_source:
        joined = tape["positions.unplaced"]
        extra = [seen("joined", "source and target, one sequence", joined, f"B {words} d_model")]
    n_words = table.get_parameter("weight").size(0)
    is_scaled = not isinstance(subject.shape, TextShape) or subject.shape.scale_embedding
    return Step(
        4, "embedding", "Embedding",
        ("embedding" if is_scaled else "embedding-unscaled",)
        + ((f"embedding-{subject.reader}",) if has_source else ()),
        f"embedded = table(ids){' * math.sqrt(d_model)' if is_scaled else ''}",
        (seen("ids", "ids", ids, f"B {words}"),),
        (seen("embedded", "a vector for each token", embedded, f"B {words} d_model"),),
        shape_question(
            "the embedded source" if has_source else "the embedded text",
            (batch, length, d_model), (batch, length), (batch, d_model, length),
            (batch, length, n_words), (n_words, d_model),
        ),
        extra=tuple(extra), names={"math": math, "table": table, "d_model": d_model},
    )  # fmt: skip


def positions(subject: Subject, place: Place) -> Step:
    """Where each token stands."""
    name = "positions" if isinstance(subject.config, DecoderOnlyConfig) else "src_positions"
    step = walk_answer.positions(subject, place.axis, name, 5)
    has_segments = isinstance(subject.shape, TextShape) and subject.shape.n_segments > 0
    return walk_pooler.positions(subject, step) if has_segments else step
