"""The steps up to the first block: ids or pixels become vectors, and get their positions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tfm_core.choices.config import built
from tfm_core.choices.config.shape import CaptionShape, TextShape, patches_per_side
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.choices.variants.stems import STEMS, halving_widths
from tfm_core.inspect.questions import Question
from tfm_core.layers.patches import patchify
from tfm_core.sentences import N_
from tfm_core.trace.steps import Step, StepTensor, View, ask_choice, ask_number, ask_shape


def tokens(view: View) -> Step:
    """Sentences of different length become one rectangle of numbers."""
    subject = view.subject
    src, tgt = subject.source, subject.inputs[-1]
    names: dict[str, object] = {"T": tgt.size(1), "targets": _rows(tgt)}
    code = "tgt = torch.tensor([row + [0] * (T - len(row)) for row in targets])"
    topic = "tokens"
    if isinstance(subject.shape, TextShape) and subject.shape.pad_id is None:
        code, topic = "tgt = torch.tensor(targets)", "tokens-no-padding"
        names["targets"] = [] if tgt.is_meta else tgt.tolist()
        if src is not None:
            topic = "tokens-one-text"
            names["sources"] = [] if src.is_meta else src.tolist()
            code = f"src = torch.tensor(sources)\n{code}"
    elif src is not None:
        names |= {"S": src.size(1), "sources": _rows(src)}
        code = f"src = torch.tensor([row + [0] * (S - len(row)) for row in sources])\n{code}"
    reader = "encoder-decoder" if subject.reader == "recurrent" else subject.reader
    title = N_("Token tensors")
    if subject.anatomy.of_kind("stem"):
        title = N_("Token tensors of the caption")
    return view.step(
        title,
        (topic, f"tokens-{reader}"),
        code,
        _tokens_question(view),
        *ids_seen(view),
        names=names,
    )


def _rows(ids: Tensor) -> list[list[int]]:
    """Return the ids of each example without its padding; none of a tensor without values."""
    return [] if ids.is_meta else [[i for i in row if i] for row in ids.tolist()]


def _tokens_question(view: View) -> Question:
    subject, target = view.subject, ids_seen(view)[0]
    ids = target.value
    size = ids.size(1)
    has_padding = not isinstance(subject.shape, TextShape) or subject.shape.pad_id is not None
    if ids.is_meta or not has_padding:
        d_model = built(subject.config).d_model
        wrong: dict[str, Sequence[int]] = {
            "swapped": tuple(ids.shape)[::-1],
            "vectors": (*ids.shape, d_model),
            "flat": (ids.numel(),),
            "one_hot": (*ids.shape, subject.n_words),
        }
        return ask_shape("ids", target, wrong, has_given=True, batch=len(ids), size=size)
    n = int((ids[view.example] == 0).sum())
    return ask_number(
        "padding",
        n,
        {"tokens": size - n},
        lines={"hint": "hint_source"} if target.name == "src" else {},
        values=(target.name,),
        name=target.name,
        size=size,
        n_tokens=size - n,
    )


def ids_seen(view: View) -> tuple[StepTensor, ...]:
    """Return what goes in; a language model and a captioner have no source."""
    subject, src = view.subject, view.subject.source
    label = N_("text ids, from <bos> on") if src is None else N_("target ids, from <bos> on")
    if isinstance(subject.shape, CaptionShape):
        label = N_("caption ids, from <bos> on")
    target = view.seen("tgt", label, subject.inputs[-1], "B T:tgt")
    if src is None:
        return (target,)
    return view.seen("src", N_("source ids"), src, "B S:src"), target


def embedding(view: View) -> Step:
    """A row of a table for each id."""
    subject, module = view.subject, view.part.path
    table = subject.model.get_submodule(f"{module}.table")
    made = view.seen(
        "embedded", N_("a vector per token"), f"{module}.embedded", "B {tokens} d_model"
    )
    batch, length, d_model = made.shape
    extra, has_source = [], subject.source is not None
    if has_source and view.letter == "L":
        label, joined = N_("source and target in one sequence"), "positions.unplaced"
        extra = [view.seen("joined", label, joined, "B {tokens} d_model")]
    elif has_source and "tgt_embedding.embedded" in subject.cache:
        label, target = N_("the target's vectors"), "tgt_embedding.embedded"
        extra = [view.seen("tgt_embedded", label, target, "B T:tgt d_model")]
    n_words = table.get_parameter("weight").size(0)
    is_scaled = not isinstance(subject.shape, TextShape) or subject.shape.scale_embedding
    topics: tuple[str, ...] = ("embedding", f"embedding-{'scaled' if is_scaled else 'unscaled'}")
    if has_source or subject.memory_axis:
        topics = (*topics, f"embedding-{subject.reader}")
    return view.step(
        N_("Embedding"),
        topics,
        f"embedded = table(ids){' * math.sqrt(d_model)' if is_scaled else ''}",
        ask_shape(
            "embedding",
            made,
            {
                "ids": (batch, length),
                "swapped": (batch, d_model, length),
                "one_hot": (batch, length, n_words),
                "table": (n_words, d_model),
            },
            d_model=d_model,
        ),
        view.seen("ids", N_("token ids"), f"{module}.ids", "B {tokens}"),
        made,
        *extra,
        names={"table": table, "d_model": d_model},
    )


def positions(view: View) -> Step:
    """Add the positions, if there are any; those of words are separate from those of patches."""
    subject, module, letter = view.subject, view.part.path, view.letter
    cache, kind = subject.cache, POSITIONS[view.part.variant]
    vectors, title = "B {tokens} d_model", N_("Positions")
    tensors = [
        view.seen("embedded", N_("vectors without positions"), f"{module}.unplaced", vectors),
        view.seen("placed", N_("vectors with positions"), f"{module}.placed", vectors),
    ]
    rows, total, names, lines = cache.get(f"{module}.rows"), "embedded", dict[str, object](), []
    shown: StepTensor | None = None
    table: Tensor | None = None
    topics = ["positions", f"position-{kind.name}", *view.dropped]
    if rows is not None:
        total = "embedded + rows"
        shown = view.seen("rows", N_("a row per position"), rows, "{tokens} d_model")
        tensors.append(shown)
        if kind.has_table:
            table = subject.model.get_parameter(f"{module}.table").detach()
            label = N_("a trained row per possible position")
            tensors.append(view.seen("table", label, table, "positions d_model"))
            lines = [f"rows = F.embedding(torch.arange({letter}), table)"]
            names[letter] = len(rows)
    has_segments = bool(subject.anatomy.of_kind("segments"))
    normed = cache.get(f"{module}.normed")
    if view.dropped and not has_segments and normed is None:  # else behind the norm
        total, names["dropout"] = f"dropout({total})", subject.model.get_submodule("dropout")
    lines.append(f"placed = {total}{'' if rows is not None else '  # nothing is added here'}")
    if normed is not None:
        names["norm"] = subject.model.get_submodule(f"{module}.norm")
        lines.append("normed = norm(placed)")
    elif has_segments:
        segments, normed = subject.model.get_submodule("segments"), cache["encoder.input"]
        vector = segments.get_parameter("table.weight").detach()[0]
        tensors.append(view.seen("segment", N_("vector of the first segment"), vector, "d_model"))
        title, names["norm"] = N_("Positions and segments"), segments.get_submodule("norm")
        topics.append("segments")
        lines.append("normed = norm(placed + segment)")
    if normed is not None:
        tensors.append(view.seen("normed", N_("the normalised sum"), normed, vectors))
    if view.name == "word-positions":
        title = N_("Positions of the words")
        topics.append("positions-words")
    return view.step(
        title,
        topics,
        "\n".join(lines),
        _positions_question(shown, table, tensors[1]),
        *tensors,
        names=names,
        shown="" if rows is None else "rows",
    )


def _positions_question(
    rows: StepTensor | None, table: Tensor | None, placed: StepTensor
) -> Question:
    """Ask for the size of a table, or for the shape of what is added; of nothing, what it does."""
    batch, length, d_model = placed.shape
    if rows is None:
        return ask_choice("nothing_added", "order", ("numbers", "every"))
    if table is not None:
        wrong = {"used": length * d_model, "rows": len(table)}
        n = table.numel()
        return ask_number("position_table", n, wrong, n_rows=len(table), d_model=d_model)
    shapes: dict[str, Sequence[int]] = {
        "sum": (batch, length, d_model),
        "one": (length,),
        "swapped": (d_model, length),
        "ids": (batch, length),
    }
    return ask_shape("position_rows", rows, shapes, batch=batch)


def picture(view: View) -> Step:
    """Pixels, with mean 0 and deviation 1."""
    subject = view.subject
    batch, channels, height, width = subject.inputs[0].shape
    raw, names = list[StepTensor](), dict[str, object]()
    if subject.pictures is not None and subject.statistics is not None:
        pixels = torch.from_numpy(subject.pictures)
        raw = [view.seen("pixels", N_("pixels, 0 to 255"), pixels, "B C Y X")]
        mean, std = subject.statistics
        names = {"mean": mean[:, None, None], "std": std[:, None, None]}
    n = channels * height * width
    return view.step(
        N_("The picture"),
        ("picture", "picture-few" if subject.has_own_statistics else "picture-training"),
        "images = (pixels / 255 - mean) / std",
        ask_number(
            "picture",
            n,
            {"batch": n * batch, "channel": height * width},
            channels=channels,
            height=height,
            width=width,
        ),
        *raw,
        names=names,
    )


_CODE = {
    "patches": "patches = patchify(images, patch_size)",
    "conv": "seen = F.gelu(convolution(images))\npatches = patchify(seen, patch_size)",
    "conv-stack": (
        "seen = images\nfor convolution in convolutions:\n"
        "    seen = F.gelu(convolution(seen))\npatches = seen.flatten(2).mT"
    ),
}
"""How patches come about in each stem."""


def _cutter(view: View) -> str:
    """Return the name of the module that cuts: the stem, or its part behind the convolution."""
    return "stem.patches" if "stem.patches.patches" in view.subject.cache else "stem"


def _patches(view: View) -> StepTensor:
    label = N_("flattened patches")
    return view.seen("patches", label, f"{_cutter(view)}.patches", "B patches:patches P")


def _projected(view: View) -> StepTensor:
    label = N_("a vector per patch")
    return view.seen("x", label, f"{_cutter(view)}.projected", "B patches:patches d_model")


def patches(view: View) -> Step:
    """The picture cut into squares, each a row of numbers."""
    subject, stem, tensors = view.subject, STEMS[view.part.variant], [_patches(view)]
    if stem.walk_seen is not None:
        tensors.append(view.seen("seen", stem.walk_seen, "stem.convolved", "B C Y X"))
    patch_size = subject.anatomy.sizes["patch_size"]
    modules = dict(subject.model.get_submodule("stem").named_children())
    return view.step(
        N_("Patches"),
        (*["stem-patches"][: stem.name == "conv"], f"stem-{stem.name}"),
        _CODE[stem.name],
        _patches_question(view),
        *tensors,
        names={**modules, "patchify": patchify, "patch_size": patch_size},
        shown="patches",
    )


def _patches_question(view: View) -> Question:
    """Ask how many patches there are of a picture."""
    sizes = view.subject.anatomy.sizes
    side, patch_size = sizes["side"], sizes["patch_size"]
    per_side = patches_per_side(side, patch_size)
    lines, times = dict[str, str](), 0
    shapes: tuple[str, ...] = ("patches",)
    if STEMS[view.part.variant].halves:
        lines = {"text": "text_halved", "hint": "hint_halved"}
        shapes, times = ("patches", "seen"), len(halving_widths(patch_size, sizes["d_model"]))
    return ask_number(
        "patches",
        per_side**2,
        {"row": per_side, "pixels": patch_size**2},
        lines=lines,
        shapes=shapes,
        side=side,
        patch_size=patch_size,
        per_side=per_side,
        times=times,
    )


def projection(view: View) -> Step:
    """Each patch becomes a vector, as a word does by its embedding."""
    cut, made = _patches(view), _projected(view)
    name = f"{_cutter(view)}.projection"
    return view.step(
        N_("Patch projection"),
        ("projection",),
        "x = projection(patches)",
        _projection_question(made, cut.shape[-1]),
        cut,
        made,
        names={"projection": view.subject.model.get_submodule(name)},
    )


def _projection_question(made: StepTensor, values: int) -> Question:
    """Ask for the shape of (B, patches, d_model), or, where it is that of the patches, for more."""
    batch, n, d_model = made.shape
    if values == d_model:
        n_parameters = values * d_model + d_model
        wrong = {"unbiased": values * d_model, "patches": n * n_parameters}
        return ask_number("projection_size", n_parameters, wrong, size=values, d_model=d_model)
    shapes: dict[str, Sequence[int]] = {
        "before": (batch, n, values),
        "one": (batch, d_model),
        "replaced": (batch, values, d_model),
        "alone": (n, d_model),
    }
    return ask_shape("projection", made, shapes)


def cls(view: View) -> Step:
    """Prepend the CLS token, which the head reads."""
    x, token = _projected(view), view.subject.model.get_parameter("cls").detach()
    label = N_("CLS and the patches")
    made = view.seen("tokens", label, "positions.unplaced", "B N:tokens d_model")
    n, n_tokens = x.shape[1], made.shape[1]
    return view.step(
        N_("CLS token"),
        ("cls",),
        "tokens = torch.cat([cls.expand(x.size(0), -1, -1), x], 1)",
        ask_number("cls", n_tokens, {"patches": n}, shapes=("tokens",), size=n),
        view.seen("cls", N_("the learned CLS vector"), token, "1 1 d_model"),
        x,
        made,
    )
