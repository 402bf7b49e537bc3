"""The steps of pictures alone: patches, their projection, CLS, pooling, the head over classes."""

from __future__ import annotations

import torch

from tfm_core.choices.config.shape import patches_per_side
from tfm_core.choices.variants.poolings import POOLINGS
from tfm_core.choices.variants.stems import STEMS, halving_widths
from tfm_core.inspect.questions import Question, number_question
from tfm_core.inspect.walk import answer
from tfm_core.inspect.walk.block_view import BlockView
from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import StepTensor, WalkStep, seen, shape_question
from tfm_core.layers.patches import patchify
from tfm_core.sentences import N_, Paragraph


def _pixels(subject: Subject) -> StepTensor:
    return seen("images", N_("normalised pictures"), subject.inputs[0], "B C Y X")


def _cutter(subject: Subject) -> str:
    """Name of the module that cuts: the stem, or the part of it behind the convolution."""
    return "stem.patches" if "stem.patches.patches" in subject.cache else "stem"


def picture(view: BlockView) -> WalkStep:
    """Pixels, with mean 0 and deviation 1."""
    subject = view.subject
    images = subject.inputs[0]
    batch, channels, height, width = images.shape
    raw: list[StepTensor] = []
    names: dict[str, object] = {}
    if subject.pictures is not None and subject.statistics is not None:
        pixels = torch.from_numpy(subject.pictures)
        raw = [seen("pixels", N_("pixels, 0 to 255"), pixels, "B C Y X")]
        mean, std = subject.statistics
        names = {"mean": mean[:, None, None], "std": std[:, None, None]}
    n = channels * height * width
    topic = "picture-few" if subject.has_own_statistics else "picture-training"
    return view.step(
        "picture",
        N_("The picture"),
        ("picture", topic),
        "images = (pixels / 255 - mean) / std",
        number_question(
            N_("How many numbers make one picture?"),
            n,
            N_(
                "{channels} x {height} x {width} = {n:,}.",
                channels=channels,
                height=height,
                width=width,
                n=n,
                batch=batch,
            ),
            wrong={
                n * batch: N_("Those are the numbers of the whole batch."),
                height * width: N_("That is one channel."),
            },
            hint=N_("Multiply channels, rows and columns."),
        ),
        *raw,
        _pixels(subject),
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


_CUT = "B patches:patches P"


def patches(view: BlockView) -> WalkStep:
    """The picture cut into squares, each a row of numbers."""
    subject = view.subject
    cutter, patch_size = _cutter(subject), subject.anatomy.sizes["patch_size"]
    cut = subject.cache[f"{cutter}.patches"]
    stem = STEMS[view.part.variant]
    tensors = [_pixels(subject), seen("patches", N_("flattened patches"), cut, _CUT)]
    if stem.walk_seen is not None:
        tensors.append(seen("seen", stem.walk_seen, subject.cache["stem.convolved"], "B C Y X"))
    modules = subject.model.get_submodule("stem").named_children()
    return view.step(
        "patches",
        N_("Patches"),
        (*["stem-patches"][: stem.name == "conv"], f"stem-{stem.name}"),
        _CODE[stem.name],
        _patches_question(view),
        *tensors,
        names={**dict(modules), "patchify": patchify, "patch_size": patch_size},
        shown="patches",
    )


def _patches_question(view: BlockView) -> Question:
    """Ask how many patches there are of a picture."""
    sizes = view.subject.anatomy.sizes
    side, patch_size = sizes["side"], sizes["patch_size"]
    per_side = patches_per_side(side, patch_size)
    text = Paragraph("walk_questions/patches", side=side, patch_size=patch_size)
    hint = N_("Count the patches in a row, and the rows.")
    shapes: tuple[str, ...] = ("patches",)
    if STEMS[view.part.variant].halves:
        text = Paragraph(
            "walk_questions/halved", side=side, n=len(halving_widths(patch_size, sizes["d_model"]))
        )
        hint = N_("Count the places in a row, and the rows.")
        shapes = ("patches", "seen")
    return number_question(
        text,
        per_side**2,
        N_("{per_side} x {per_side} = {size}.", per_side=per_side, size=per_side**2),
        wrong={
            per_side: N_("That is one row."),
            patch_size**2: N_("Those are the pixels of a patch."),
        },
        hint=hint,
        shapes=shapes,
    )


def projection(view: BlockView) -> WalkStep:
    """Each patch becomes a vector, as a word does by its embedding."""
    subject = view.subject
    cutter = _cutter(subject)
    cut, out = subject.cache[f"{cutter}.patches"], subject.cache[f"{cutter}.projected"]
    values = cut.size(-1)
    made = seen("x", N_("a vector per patch"), out, "B patches:patches d_model")
    return view.step(
        "patch-projection",
        N_("Patch projection"),
        ("projection",),
        "x = projection(patches)",
        _projection_question(made, values),
        seen("patches", N_("flattened patches"), cut, _CUT),
        made,
        names={"projection": subject.model.get_submodule(f"{cutter}.projection")},
    )


def _projection_question(made: StepTensor, values: int) -> Question:
    """Ask for the shape of (B, patches, d_model), or, where it is that of the patches, for more."""
    batch, n, d_model = made.shape
    if values == d_model:
        size = values * d_model + d_model
        return number_question(
            N_("How many parameters does the projection have?"),
            size,
            N_(
                "{values} x {d_model} + {d_model} = {size:,}, shared by all patches.",
                values=values,
                d_model=d_model,
                size=size,
            ),
            wrong={
                values * d_model: N_("Each output has a bias too."),
                n * size: N_("All patches share one projection."),
            },
            hint=N_("A linear layer: a weight per pair, a bias per output."),
        )
    return shape_question(
        made,
        N_("Each patch becomes a vector of d_model numbers."),
        ((batch, n, values), N_("Those are the patches before the projection.")),
        ((batch, d_model), N_("Every patch keeps its own vector.")),
        ((batch, values, d_model), N_("The projection replaces a patch's values.")),
        ((n, d_model), N_("Every picture has its own patches.")),
    )


def cls(view: BlockView) -> WalkStep:
    """Prepend the CLS token, which the head reads."""
    subject = view.subject
    x = subject.cache[f"{_cutter(subject)}.projected"]
    token = subject.model.get_parameter("cls").detach()
    joined = subject.cache["positions.unplaced"]
    return view.step(
        "cls",
        N_("CLS token"),
        ("cls",),
        "tokens = torch.cat([cls.expand(x.size(0), -1, -1), x], 1)",
        number_question(
            N_("With {size} patches, how many tokens go into the encoder?", size=x.size(1)),
            joined.size(1),
            N_("{n} + 1 = {sum}: the patches and CLS.", n=x.size(1), sum=joined.size(1)),
            wrong={x.size(1): N_("CLS is one more token.")},
            hint=N_("CLS is added to the patches."),
            shapes=("tokens",),
        ),
        seen("cls", N_("the learned CLS vector"), token, "1 1 d_model"),
        seen("x", N_("a vector per patch"), x, "B patches:patches d_model"),
        seen("tokens", N_("CLS and the patches"), joined, "B N:tokens d_model"),
    )


def pooling(view: BlockView) -> WalkStep:
    """One vector for the picture."""
    subject = view.subject
    memory, pooled = subject.cache["encoder.output"], subject.cache["head.pooled"]
    batch, n, d_model = memory.shape
    chosen = POOLINGS[view.part.variant]
    made = seen("pooled", N_("one vector per picture"), pooled, "B d_model")
    return view.step(
        "pooling",
        N_("Pooling"),
        ("pooling", f"pooling-{chosen.name}"),
        f"pooled = {chosen.of_patches.format(x='memory')}",
        shape_question(
            made,
            N_("One vector per picture: the token axis is gone."),
            ((batch, n), N_("A picture is a vector of d_model numbers.")),
            ((batch, n, d_model), N_("That is still a vector per token.")),
            ((n, d_model), N_("Each picture has its own vector.")),
            ((d_model,), N_("Each picture has its own vector.")),
        ),
        seen("memory", N_("the encoder's output"), memory, "B N:tokens d_model"),
        made,
    )


def head(view: BlockView) -> WalkStep:
    """A score for each class."""
    subject = view.subject
    pooled, scores = subject.cache["head.pooled"], subject.cache["head.logits"]
    d_model, n_classes = pooled.size(1), scores.size(1)
    n = d_model * n_classes + n_classes
    return view.step(
        "head",
        N_("Head"),
        ("head",),
        "logits = head(pooled)",
        number_question(
            N_("How many parameters does the head have?"),
            n,
            N_(
                "{d_model} x {n_classes} + {n_classes} = {n:,}.",
                d_model=d_model,
                n_classes=n_classes,
                n=n,
            ),
            wrong={
                d_model * n_classes: N_("Each class has a bias too."),
                d_model + n_classes: N_("Each class weighs all numbers."),
            },
            hint=N_("A weight per class and number, a bias per class."),
        ),
        seen("pooled", N_("one vector per picture"), pooled, "B d_model"),
        seen("logits", N_("a score per class"), scores, "B classes:classes"),
        names={"head": subject.model.get_submodule("head")},
    )


def whole(view: BlockView) -> WalkStep:
    """The whole forward pass, and its prediction."""
    subject, example = view.subject, view.example
    scores = subject.cache["head.logits"]
    axes = "B classes:classes"
    names = subject.tokens("classes", 0) or ()
    made = seen("logits", N_("a score per class"), scores, axes)
    if scores.is_meta:
        batch, n = scores.shape
        question = shape_question(
            made,
            N_("A score per class for each picture."),
            ((n,), N_("Each picture has its own scores.")),
            ((batch,), N_("That would be the best class of each.")),
            ((n, batch), N_("The batch comes first.")),
        )
    else:
        truth = " ".join(subject.truth[example]) if subject.truth else ""
        question = answer.best_of(
            scores[example], names, N_("Which class does the model give this picture?"), truth
        )
    return view.step(
        "whole",
        N_("The whole forward pass"),
        ("whole",),
        "logits = model(images)\nprobabilities = logits.softmax(-1)",
        question,
        _pixels(subject),
        made,
        seen("probabilities", N_("probability of each class"), scores.softmax(-1), axes),
        names={"model": subject.model},
        shown="probabilities",
    )
