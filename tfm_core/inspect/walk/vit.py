"""The steps of a Vision Transformer: patches, their projection, CLS, positions, blocks, head."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tfm_core.config import CaptionerConfig, ViTConfig
from tfm_core.config.shape import patches_per_side
from tfm_core.inspect.walk import answer, attention, tokens, weights
from tfm_core.inspect.walk import block as walk_block
from tfm_core.inspect.walk import block as walk_stack
from tfm_core.inspect.walk.block_view import MODULES, BlockView, block_view
from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import Seen, WalkStep, number_question, seen, shape_question
from tfm_core.layers.patches import patchify
from tfm_core.sentences import N_
from tfm_core.variants.poolings import POOLINGS
from tfm_core.variants.stems import STEMS


def steps(subject: Subject, layer: int, example: int) -> tuple[WalkStep, ...]:
    """Return the steps; layer: the block that is opened, from 0."""
    view = block_view(subject, "encoder", "N:tokens", layer, example)
    assert isinstance(subject.config, ViTConfig)
    made = [picture(subject), patches(subject), projection(subject)]
    if POOLINGS[subject.config.pooling].has_cls:
        made.append(cls(subject))
    return (
        *made,
        tokens.positions(subject, "N:tokens", "positions"),
        *block(view),
        walk_stack.encoder_stack(view),
        pooling(subject),
        head(subject),
        whole(subject, example),
    )


def block(view: BlockView) -> tuple[WalkStep, ...]:
    """Return the eight steps inside a block that nothing is hidden from."""
    return (
        attention.projections(view),
        attention.split(view),
        weights.scores(view),
        weights.softmax(view),
        attention.weighted_sum(view),
        attention.merge(view),
        walk_block.add_norm(view),
        walk_block.feed_forward(view),
    )


def _pixels(subject: Subject) -> Seen:
    return seen("images", N_("pictures, normalised"), subject.inputs[0], "B C Y X")


def _cutter(subject: Subject) -> str:
    """Name of the module that cuts: the stem, or the part of it behind the convolution."""
    return "stem.patches" if "stem.convolved" in subject.cache else "stem"


def picture(subject: Subject) -> WalkStep:
    """Pixels, with mean 0 and deviation 1."""
    images = subject.inputs[0]
    batch, channels, height, width = images.shape
    before: tuple[Seen, ...] = ()
    names: dict[str, object] = dict(MODULES)
    if subject.pictures is not None and subject.statistics is not None:
        raw = torch.from_numpy(subject.pictures)
        before = (seen("pixels", N_("pixels, 0 to 255"), raw, "B C Y X"),)
        mean, std = subject.statistics
        names |= {"mean": mean[:, None, None], "std": std[:, None, None]}
    n = channels * height * width
    return WalkStep(
        "picture", N_("The picture"), ("picture",), "images = (pixels / 255 - mean) / std",
        before, (_pixels(subject),),
        number_question(
            N_("How many numbers is one picture?"), n,
            N_(
                "{channels} x {height} x {width} = {n:,}; the batch has {batch} of them.",
                channels=channels,
                height=height,
                width=width,
                n=n,
                batch=batch,
            ),
        ),
        names=names,
    )  # fmt: skip


def patches(subject: Subject) -> WalkStep:
    """The picture cut into squares, each a row of numbers."""
    cutter = _cutter(subject)
    config = subject.config
    assert isinstance(config, ViTConfig | CaptionerConfig)
    cut = subject.cache[f"{cutter}.patches"]
    names: dict[str, object] = {**MODULES, "patchify": patchify, "patch_size": config.patch_size}
    code, topics = "patches = patchify(images, patch_size)", STEMS[config.stem].walk_topics
    after = [seen("patches", N_("patches, flattened"), cut, "B patches:patches P")]
    if cutter != "stem":
        code = "seen = F.gelu(convolution(images))\npatches = patchify(seen, patch_size)"
        names |= {"convolution": subject.model.get_submodule("stem.convolution"), "F": F}
        after.append(seen("seen", N_("what the convolution saw"), subject.cache["stem.convolved"],
                          "B C Y X"))  # fmt: skip
    side = subject.inputs[0].size(-1)
    per_side = patches_per_side(side, config.patch_size)
    return WalkStep(
        "patches", N_("Patches"), topics, code, (_pixels(subject),), tuple(after),
        number_question(
            N_(
                "A picture of {side} x {side} is cut into patches of {patch_size} x "
                "{patch_size}. How many are there?",
                side=side,
                patch_size=config.patch_size,
            ),
            cut.size(1), N_(
                "{per_side} in a row and {per_side} rows: {size}.",
                per_side=per_side,
                size=cut.size(1),
            ),
        ),
        names=names,
    )  # fmt: skip


def projection(subject: Subject) -> WalkStep:
    """Each patch becomes a vector, as a word does by its embedding."""
    cutter = _cutter(subject)
    cut, out = subject.cache[f"{cutter}.patches"], subject.cache[f"{cutter}.projected"]
    batch, n, values = cut.shape
    d_model = out.size(-1)
    return WalkStep(
        "patch-projection", N_("Patch projection"), ("projection",), "x = projection(patches)",
        (seen("patches", N_("patches, flattened"), cut, "B patches:patches P"),),
        (seen("x", N_("a vector for each patch"), out, "B patches:patches d_model"),),
        shape_question(
            N_("the projected patches"),
            (batch, n, d_model), (batch, n, values), (batch, d_model), (batch, values, d_model),
            (n, d_model),
        ),
        names={"projection": subject.model.get_submodule(f"{cutter}.projection")},
    )  # fmt: skip


def cls(subject: Subject) -> WalkStep:
    """One more token, which the head will read."""
    x = subject.cache[f"{_cutter(subject)}.projected"]
    token = subject.model.get_parameter("cls").detach()
    joined = subject.cache["positions.unplaced"]
    return WalkStep(
        "cls", N_("CLS token"), ("cls",),
        "tokens = torch.cat([cls.expand(x.size(0), -1, -1), x], 1)",
        (
            seen("x", N_("a vector for each patch"), x, "B patches:patches d_model"),
            seen("cls", N_("the learned CLS vector"), token, "1 1 d_model"),
        ),
        (seen("tokens", N_("CLS and the patches"), joined, "B N:tokens d_model"),),
        number_question(
            N_("There are {size} patches. How many tokens go into the encoder?", size=x.size(1)),
            joined.size(1), f"{x.size(1)} + 1 = {joined.size(1)}.",
        ),
        names=MODULES,
    )  # fmt: skip


def pooling(subject: Subject) -> WalkStep:
    """One vector for the picture."""
    config = subject.config
    assert isinstance(config, ViTConfig)
    memory, pooled = subject.cache["encoder.output"], subject.cache["head.pooled"]
    batch, n, d_model = memory.shape
    chosen = POOLINGS[config.pooling]
    code = f"pooled = {chosen.of_patches.format(x='memory')}"
    return WalkStep(
        "pooling", N_("Pooling"), ("pooling", chosen.walk_topic), code,
        (seen("memory", N_("what the encoder understood"), memory, "B N:tokens d_model"),),
        (seen("pooled", N_("one vector for each picture"), pooled, "B d_model"),),
        shape_question(
            N_("the pooled vector of the batch"), (batch, d_model), (batch, n), (batch, n, d_model),
            (n, d_model), (d_model,),
        ),
    )  # fmt: skip


def head(subject: Subject) -> WalkStep:
    """A score for each class."""
    pooled, scores = subject.cache["head.pooled"], subject.cache["head.logits"]
    d_model, n_classes = pooled.size(1), scores.size(1)
    n = d_model * n_classes + n_classes
    return WalkStep(
        "head", N_("Head"), ("head",), "logits = head(pooled)",
        (seen("pooled", N_("one vector for each picture"), pooled, "B d_model"),),
        (seen("logits", N_("a score for each class"), scores, "B classes:classes"),),
        number_question(
            N_("How many parameters does the head have?"), n,
            f"{d_model} x {n_classes} + {n_classes} = {n:,}.",
        ),
        names={"head": subject.model.get_submodule("head")},
    )  # fmt: skip


def whole(subject: Subject, example: int) -> WalkStep:
    """All of it in one call, and what the model says."""
    scores = subject.cache["head.logits"]
    axes = "B classes:classes"
    names = subject.tokens("classes", 0) or ()
    if scores.is_meta:
        batch, n = scores.shape
        question = shape_question(
            N_("what comes out at the end"), (batch, n), (n,), (batch,), (n, batch)
        )
    else:
        truth = " ".join(subject.truth[example]) if subject.truth else ""
        question = answer.best_of(
            scores[example], names, N_("Which class does this model give this picture?"), truth
        )
    return WalkStep(
        "whole", N_("The whole forward pass"), ("whole", "whole-vit"),
        "logits = model(images)\nprobabilities = logits.softmax(-1)",
        (_pixels(subject),),
        (
            seen("logits", N_("a score for each class"), scores, axes),
            seen("probabilities", N_("a share for each class"), scores.softmax(-1), axes),
        ),
        question, names={"model": subject.model}, shown="probabilities",
    )  # fmt: skip
