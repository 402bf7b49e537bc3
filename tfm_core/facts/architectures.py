"""Architectures to scale: published models as configs of ours, with the counts their papers give.

Torch-free. What published models do at their ends, and ours do not, is in their ``TextShape``. What
no paper says is as in the code its authors published: the epsilons of the norms (BERT 1e-12, ViT
1e-6), GPT-2's GELU by a tanh.
"""

from __future__ import annotations

from tfm_core.config import (
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    Experiment,
    SequenceTaskConfig,
    ViTConfig,
)
from tfm_core.config.shape import CaptionShape, ImageShape, TextShape
from tfm_core.data.shape import data_shape
from tfm_core.facts.architecture import Architecture
from tfm_core.facts.study_texts import FROM_TEXTS
from tfm_core.sentences import N_

__all__ = ["ARCHITECTURES", "Architecture", "of_experiment"]


def of_experiment(experiment: Experiment, label: str) -> Architecture:
    """Return the architecture of an experiment, with the longest sequences of its task."""
    shape = data_shape(experiment)
    src, tgt = 0, 0
    if isinstance(shape, TextShape):
        task = experiment.task_as(SequenceTaskConfig)
        src, tgt = task.max_src_len, task.n_answers
    elif isinstance(shape, CaptionShape):
        tgt = shape.tgt_len
    return Architecture("", label, experiment.model, shape, src, tgt)


def _paper(name: str, label: str, d_model: int, n_heads: int, said: str) -> Architecture:
    model = EncoderDecoderConfig(
        d_model=d_model, n_heads=n_heads, d_ff=4 * d_model, n_encoder_layers=6, n_decoder_layers=6,
        dropout=0.1, norm_first=False, activation="relu", tie_embeddings=True,
    )  # fmt: skip
    shape = TextShape(37000, 37000, one_vocabulary=True, output_bias=False)
    source = N_("Vaswani et al. 2017, Table 3: {said}; no fixed vocabulary", said=said)
    return Architecture(name, label, model, shape, 128, 128, None, source)


def _bert(name: str, label: str, width: int, heads: int, layers: int, count: int) -> Architecture:
    model = EncoderOnlyConfig(
        d_model=width, n_heads=heads, d_ff=4 * width, n_layers=layers, dropout=0.1,
        norm_first=False, norm_eps=1e-12, position="learned", max_len=512,
    )  # fmt: skip
    shape = TextShape(
        30522, 30522, one_vocabulary=True, head="pooler", n_segments=2, scale_embedding=False
    )
    return Architecture(name, label, model, shape, 512, 512, count, "Devlin et al. 2019")


def _gpt2(name: str, label: str, width: int, heads: int, layers: int, count: int) -> Architecture:
    model = DecoderOnlyConfig(
        d_model=width, n_heads=heads, d_ff=4 * width, n_layers=layers, dropout=0.1,
        activation="gelu_tanh", position="learned", max_len=1024, tie_embeddings=True,
    )  # fmt: skip
    shape = TextShape(
        50257, 50257, pad_id=None, one_vocabulary=True, output_bias=False, scale_embedding=False,
        has_source=False,
    )  # fmt: skip
    return Architecture(name, label, model, shape, 0, 1024, count, "Radford et al. 2019")


def _vit(
    name: str, label: str, sizes: tuple[int, int, int], patch: int, count: int, source: str
) -> Architecture:
    width, heads, layers = sizes
    model = ViTConfig(
        d_model=width, n_heads=heads, d_ff=4 * width, n_layers=layers, patch_size=patch,
        pooling="cls", norm_eps=1e-6,
    )  # fmt: skip
    return Architecture(name, label, model, ImageShape(224, 3, 1000), 0, 0, count, source)


def _digits() -> Architecture:
    model = ViTConfig(d_model=64, n_heads=4, d_ff=128, n_layers=4, patch_size=7, pooling="cls")
    shape = ImageShape(28, 1, 10)
    return Architecture("vit-mnist", N_("ViT for MNIST, ours"), model, shape, 0, 0, 139_018)


_DOSOVITSKIY = N_("Dosovitskiy et al. 2021, Table 1")
_TOUVRON = N_("Touvron et al. 2021 (DeiT), timm")

ARCHITECTURES: dict[str, Architecture] = {
    architecture.name: architecture
    for architecture in (
        _paper("transformer-base", N_("Transformer base (2017)"), 512, 8, "65 M"),
        _paper("transformer-big", N_("Transformer big (2017)"), 1024, 16, "213 M"),
        _bert("bert-base", "BERT-base", 768, 12, 12, 109_482_240),
        _bert("bert-large", "BERT-large", 1024, 16, 24, 335_141_888),
        _gpt2("gpt2-small", N_("GPT-2 small"), 768, 12, 12, 124_439_808),
        _gpt2("gpt2-medium", N_("GPT-2 medium"), 1024, 16, 24, 354_823_168),
        _gpt2("gpt2-large", N_("GPT-2 large"), 1280, 20, 36, 774_030_080),
        _gpt2("gpt2-xl", N_("GPT-2 XL"), 1600, 25, 48, 1_557_611_200),
        _vit("vit-ti", N_("ViT-Ti/16"), (192, 3, 12), 16, 5_717_416, _TOUVRON),
        _vit("vit-s", N_("ViT-S/16"), (384, 6, 12), 16, 22_050_664, _TOUVRON),
        _vit("vit-b", N_("ViT-B/16"), (768, 12, 12), 16, 86_567_656, _DOSOVITSKIY),
        _vit("vit-b-32", N_("ViT-B/32"), (768, 12, 12), 32, 88_224_232, _DOSOVITSKIY),
        _vit("vit-l", N_("ViT-L/16"), (1024, 16, 24), 16, 304_326_632, _DOSOVITSKIY),
        _vit("vit-h", N_("ViT-H/14"), (1280, 16, 32), 14, 632_045_800, _DOSOVITSKIY),
        _digits(),
        *FROM_TEXTS,
    )
}
