"""The anatomy of what reads pictures: the Vision Transformer with its stems, and the captioner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tfm_core.anatomy.blocks import N_BUCKETS as N_ROWS
from tfm_core.anatomy.blocks import WRITING, StackMaker
from tfm_core.anatomy.formula import formula
from tfm_core.anatomy.layers import Maker, model_input, model_output, tensor
from tfm_core.anatomy.names import names_of
from tfm_core.anatomy.part import Part, Saved, Work
from tfm_core.anatomy.text import IDS, head
from tfm_core.choices.config import CaptionerConfig, ViTConfig
from tfm_core.choices.config.shape import CaptionShape, ImageShape, patches_per_side
from tfm_core.choices.variants.stems import POOLINGS, WIDTH, Cut

PatchConfig = ViTConfig | CaptionerConfig
_IMAGE = model_input("image", "channels", "side", "side", steps=("picture",))


def vit(config: ViTConfig, shape: ImageShape) -> tuple[Maker, list[Part]]:
    """Return the parts of a Vision Transformer."""
    has_cls = POOLINGS[config.pooling].has_cls
    make = _maker(config, shape, n_classes=shape.n_classes, has_cls=int(has_cls))
    stack = StackMaker(
        make,
        config,
        "encoder",
        config.n_layers,
        "S",
        read="Q" if has_cls else "",
        last_queries="Q" if has_cls else "",
        has_padding=False,
    )
    parts = [_IMAGE, _stem(make, config, shape)]
    if has_cls:
        parts.append(
            Part(
                kind="embedding",
                path="",
                layer="VisionTransformer",
                names=names_of("vit", "cls"),
                inputs=(tensor("x", "patches", "d_model"),),
                steps=("cls",),
                outputs=(tensor("y", "S", "d_model"),),
                parameters=(make.parameter("cls", "1", "1", "d_model"),),
            )
        )
    pooled = Part(
        kind="pooling",
        path="",
        variant=config.pooling,
        steps=("pooling",),
        inputs=(tensor("x", "Q" if has_cls else "S", "d_model"),),
        outputs=(tensor("y", "d_model"),),
    )
    classes = head(make, "head", "n_classes", "", step="head")
    positions = make.positions("positions", config.position, "S", "patches + has_cls")
    return make, [*parts, positions, stack.stack(), pooled, classes, model_output("n_classes")]


_LOOKING = {
    "self_attention": ("decoder-attention",),
    "feed_forward": ("decoder-feed-forward",),
    "cross_attention": ("cross-attention",),
}


def captioner(config: CaptionerConfig, shape: CaptionShape) -> tuple[Maker, list[Part]]:
    """Return the parts of a captioner: a ViT's encoder, and a decoder that looks at it."""
    make = _maker(config, shape, tgt_words=shape.tgt_vocabulary, max_len=shape.tgt_len, has_cls=0)
    encoder = StackMaker(
        make,
        config,
        "encoder",
        config.n_encoder_layers,
        "S",
        read="S",
        has_padding=False,
    )
    decoder = StackMaker(
        make,
        config,
        "decoder",
        config.n_decoder_layers,
        "T",
        keys="S",
        read="T",
        has_order=True,
        has_memory_padding=False,
        steps=_LOOKING
        if shape.has_regions
        else {
            **WRITING,
            "cross_attention": ("cross-attention", "decoder-add-norm"),
            "feed_forward": ("decoder-feed-forward", "logits"),
        },
    )
    return make, [
        _IMAGE,
        _stem(make, config, shape),
        make.positions("positions", config.position, "S", "patches"),
        *([] if shape.has_regions else [encoder.stack()]),
        model_input("tgt ids", "T", steps=("tokens",)),
        make.embedding(
            "tgt_embedding", "tgt_words", "T", saved=IDS["T"], own_name="word_embedding"
        ),
        make.positions(
            "tgt_positions",
            config.text_position,
            "T",
            "max_len",
            own_name="word_positions",
            step="word-positions",
        ),
        decoder.looking_stack() if shape.has_regions else decoder.stack(),
        head(make, "output", "tgt_words", "A", bias=config.bias),
        model_output("A", "tgt_words"),
    ]


def _maker(config: PatchConfig, shape: ImageShape | CaptionShape, **sizes: int) -> Maker:
    """Return a maker with the sizes of a picture. Raises ValueError where patches do not fit."""
    side = patches_per_side(shape.image_size, config.patch_size)
    return Maker.of(
        config,
        side=shape.image_size,
        channels=shape.channels,
        patch_size=config.patch_size,
        patches=side**2,
        width=WIDTH,
        n_buckets=N_ROWS,
        **{
            f"{name}_{n}": size
            for n, cut in enumerate(_cut(config, shape).halvings, 1)
            for name, size in (("side", cut[0]), ("channels", cut[1]))
        },
        **sizes,
    )


def _cut(config: PatchConfig, shape: ImageShape | CaptionShape) -> Cut:
    return Cut(shape.image_size, shape.channels, config.patch_size, config.d_model)


def _stem(make: Maker, config: PatchConfig, shape: ImageShape | CaptionShape) -> Part:
    stem = _STEMS[config.stem](make, len(_cut(config, shape).halvings))
    return replace(stem, variant=config.stem, steps=("patches", "patch-projection"))


_EMBEDDING: Work = "embedding"


def _patches(make: Maker, path: str, channels: str, saved: Saved) -> Part:
    """Return what cuts a picture into patches and projects each."""
    pixels = f"{channels} patch_size patch_size"
    projection = replace(
        make.linear(f"{path}.projection", "d_model", pixels, "patches"), work=_EMBEDDING
    )
    return Part(
        kind="stem",
        path=path,
        layer="PatchEmbedding",
        inputs=(tensor("images", channels, "side", "side"),),
        outputs=(tensor("x", "patches", "d_model"),),
        saved=saved,
        children=(projection,),
    )


def _plain(make: Maker, _n: int) -> Part:
    return _patches(make, "stem", "channels", Saved(products=formula("side side channels")))


def _conv(make: Maker, _n: int) -> Part:
    # what a kernel sees of each pixel, what the convolution says of it, and that bent
    saved = Saved(
        products=formula("9 side side channels + 2 side side width"),
        once=formula("width patch_size patch_size d_model"),
    )
    convolution = _convolution(
        make, "stem.convolution", ("width", "channels"), ("side", "side"), saved
    )
    return Part(
        kind="stem",
        path="stem",
        layer="ConvStem",
        inputs=convolution.inputs,
        outputs=(tensor("x", "patches", "d_model"),),
        children=(convolution, _patches(make, "stem.patches", "width", Saved())),
    )


def _conv_stack(make: Maker, n: int) -> Part:
    # the picture, and what each convolution says, as it is and bent
    layers = []
    for i in range(n):
        before = (f"channels_{i}", f"side_{i}") if i else ("channels", "side")
        saved = f"2 side_{i + 1} side_{i + 1} channels_{i + 1}"
        saved += "" if i else " + side side channels"
        layers.append(
            _convolution(
                make,
                f"stem.convolutions.{i}",
                (f"channels_{i + 1}", before[0]),
                (f"side_{i + 1}", before[1]),
                Saved(products=formula(saved)),
            )
        )
    projection = replace(
        make.linear("stem.projection", "d_model", "d_model", "patches"), work=_EMBEDDING
    )
    return Part(
        kind="stem",
        path="stem",
        layer="ConvStack",
        inputs=layers[0].inputs,
        outputs=projection.outputs,
        children=(*layers, projection),
    )


def _convolution(
    make: Maker, path: str, channels: tuple[str, str], sides: tuple[str, str], saved: Saved
) -> Part:
    """Return a 3x3 convolution. channels, sides: what comes out, and what goes in."""
    (out, into), (side, before) = channels, sides
    return Part(
        kind="stem",
        path=path,
        layer="Conv2d",
        inputs=(tensor("x", into, before, before),),
        outputs=(tensor("y", out, side, side),),
        parameters=(
            make.parameter(f"{path}.weight", out, into, "3", "3"),
            make.parameter(f"{path}.bias", out),
        ),
        macs=formula(f"9 {side} {side} {out} {into}"),
        work=_EMBEDDING,
        saved=saved,
        names=names_of(make.family, path),
    )


_STEMS: dict[str, Callable[[Maker, int], Part]] = {
    "patches": _plain,
    "conv": _conv,
    "conv-stack": _conv_stack,
}
