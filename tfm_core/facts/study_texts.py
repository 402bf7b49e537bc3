"""Models that study notebooks build by hand, as configs of ours: each with what differs here.

Their sizes and counts are the notebooks' own. What a notebook does unlike the paper (no output
matrix, heads on slices, one norm for all sublayers, the second residual from the norm) is a setting
like any other, so that its cost can be seen. None of them scales its embeddings by sqrt(d_model).
"""

from __future__ import annotations

from tfm_core.config import EncoderDecoderConfig, EncoderOnlyConfig, ViTConfig
from tfm_core.config.shape import ImageShape, TextShape
from tfm_core.facts.architecture import Architecture
from tfm_core.sentences import N_, Paragraph, joined

_WORDS, _LONGEST = 10_000, 5_000
_DROPPED_AFTER = N_(
    "The notebook drops out after each norm; here, as in the paper, before the sum."
)
_SIZES: dict[str, object] = {
    "d_model": 512, "n_heads": 8, "d_ff": 2048, "dropout": 0.1, "norm_first": False,
    "activation": "relu",
}  # fmt: skip
_LIBRARY: dict[str, object] = {
    "position": "learned", "max_len": _LONGEST, "projection_bias": False, "final_norm": "always",
}  # fmt: skip
"""What the models of one notebook have in common."""


def _pair(**settings: object) -> EncoderDecoderConfig:
    """Return an encoder and a decoder of 6 blocks each, of the sizes of the paper's base model."""
    layers = {"n_encoder_layers": 6, "n_decoder_layers": 6}
    return EncoderDecoderConfig.parse(_SIZES | layers | settings)


def _encoder(n_layers: int, **settings: object) -> EncoderOnlyConfig:
    return EncoderOnlyConfig.parse(_SIZES | {"n_layers": n_layers} | settings)


FROM_TEXTS = (
    Architecture(
        "text-encoder",
        N_("From the notebook: Encoder(3, 16, 4, 2)"),
        _encoder(3, d_model=16, n_heads=4, d_ff=2, dropout=0.0),
        TextShape(100, 100, one_vocabulary=True, head="states", scale_embedding=False),
        10,
        10,
        batch=2,
        note=Paragraph("facts/study-encoder"
        ),
    ),
    Architecture(
        "text-transformer",
        N_("From the notebook: Transformer, 10,000 words"),
        _pair(position="learned", max_len=100),
        TextShape(_WORDS, _WORDS, scale_embedding=False),
        10,
        10,
        59_610_896,
        batch=2,
        note=joined(
            Paragraph("facts/study-transformer"
            ),
            _DROPPED_AFTER,
        ),
    ),
    Architecture(
        "text-simple",
        N_("From the notebook: SimpleTransformer, encoder-only"),
        _encoder(6, **_LIBRARY),
        TextShape(_WORDS, _WORDS, one_vocabulary=True, head="states", scale_embedding=False),
        50,
        50,
        26_583_040,
        batch=2,
        note=Paragraph("facts/study-attention"
        ),
    ),
    Architecture(
        "text-synthetic",
        N_("From the notebook: My_Transformer, synthetic ids"),
        _pair(dropout=0.0, mistakes=("shared-norm", "no-output-projection")),
        TextShape(2500, 3000, scale_embedding=False),
        100,
        100,
        43_747_256,
        batch=5,
        note=Paragraph("facts/study-synthetic"
        ),
    ),
    Architecture(
        "text-sentiment",
        N_("From the notebook: SentimentAnalyzer, 3 classes"),
        _encoder(4, d_model=256, pooling="mean", **_LIBRARY),
        TextShape(_WORDS, 7, head="mean", n_labels=3, n_hidden=128, scale_embedding=False),
        50,
        1,
        9_129_987,
        batch=32,
        note=Paragraph("facts/study-sentiment"
        ),
    ),
    Architecture(
        "text-korean",
        N_("From the notebook: EncoderDecoderTransformer, English to Korean"),
        _pair(**_LIBRARY),
        TextShape(_WORDS, 8000, scale_embedding=False),
        20,
        25,
        62_543_680,
        note=Paragraph("facts/study-translation"
        ),
    ),
    Architecture(
        "text-vit",
        N_("From the notebook: MyVIT for MNIST, 1,770 parameters"),
        ViTConfig(
            d_model=8, n_heads=2, d_ff=24, n_layers=2, patch_size=4, pooling="cls",
            final_norm="never", mistakes=("feed-forward-residual-from-normed", "sliced-heads"),
        ),
        ImageShape(28, 1, 10),
        n_parameters=1_770,
        batch=128,
        note=Paragraph("facts/study-vit"
        ),
    ),
)  # fmt: skip
"""The models, in the order of the notebooks."""
