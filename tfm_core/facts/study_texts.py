"""Models that study texts build by hand, as configs of ours: each with what its text says of it.

Where a text leaves a size open, its total decides, or the note says what was chosen. What the texts
get wrong on purpose or not (no output matrix, heads on slices, one norm for all sublayers) is a
setting like any other, so that its cost can be seen.
"""

from __future__ import annotations

from tfm_core.config import EncoderDecoderConfig, EncoderOnlyConfig, ViTConfig
from tfm_core.config.shape import ImageShape, TextShape
from tfm_core.facts.architecture import Architecture
from tfm_core.sentences import N_

_WORDS = 10_000


def _pair(**settings: object) -> EncoderDecoderConfig:
    """Return the sizes that the texts take over from the paper's base model."""
    sizes: dict[str, object] = {
        "d_model": 512, "n_heads": 8, "d_ff": 2048, "n_encoder_layers": 6, "n_decoder_layers": 6,
        "dropout": 0.1, "norm_first": False, "activation": "relu",
    }  # fmt: skip
    return EncoderDecoderConfig.parse(sizes | settings)


FROM_TEXTS = (
    Architecture(
        "text-encoder",
        N_("From the text: Encoder(3, 16, 4, 2)"),
        EncoderOnlyConfig(
            d_model=16, n_heads=4, d_ff=32, n_layers=3, norm_first=False, activation="relu"
        ),
        TextShape(100, 100, one_vocabulary=True, head="states"),
        10,
        10,
        note=N_(
            "The text writes Encoder(3, 16, 4, 2); it is read here as 3 blocks, d_model 16, 4 "
            "heads, and a feed-forward layer 2 times as wide. The vocabulary of 100 words in front "
            "of it is ours."
        ),
    ),
    Architecture(
        "text-transformer",
        N_("From the text: Transformer of 10,000 words"),
        _pair(),
        TextShape(_WORDS, _WORDS),
        10,
        10,
        59_508_496,
        batch=2,
        note=N_("Ids (2, 10) and (2, 10) become logits (2, 10, 10000)."),
    ),
    Architecture(
        "text-simple",
        N_("From the text: SimpleTransformer, encoder-only"),
        EncoderOnlyConfig(
            d_model=512, n_heads=8, d_ff=2048, n_layers=6, dropout=0.1, norm_first=False,
            activation="relu", position="learned", max_len=5000, projections="unbiased",
            final_norm="always",
        ),
        TextShape(_WORDS, _WORDS, one_vocabulary=True, head="states"),
        128,
        128,
        26_583_040,
        note=N_(
            "The text’s total, 26,583,040, decides what its sizes leave open: no biases in the "
            "attention’s four matrices, one norm behind the last block, and no output layer. It "
            "returns the attention weights of every layer."
        ),
    ),
    Architecture(
        "text-synthetic",
        N_("From the text: Transformer on synthetic ids"),
        _pair(projections="no-output", shared_norm=True),
        TextShape(2500, 3000),
        100,
        100,
        43_747_256,
        batch=5,
        note=N_(
            "As its code is written: no output matrix in the attention, and one norm for all "
            "sublayers of a block. That makes 43,747,256 parameters (48,493,496 with both). The "
            "text prints 33,582,976, fewer than the two stacks alone have (39,392,256): its table "
            "must be of other sizes."
        ),
    ),
    Architecture(
        "text-sentiment",
        N_("From the text: sentiment, 3 classes"),
        EncoderOnlyConfig(
            d_model=256, n_heads=8, d_ff=1024, n_layers=4, dropout=0.1, norm_first=False,
            activation="relu", pooling="mean",
        ),
        TextShape(_WORDS, 7, head="mean", n_labels=3, n_hidden=128),
        128,
        1,
        note=N_(
            "4 blocks of width 256, the mean of all words, a hidden layer of 128 and 3 classes. "
            "The vocabulary of 10,000 and d_ff 1,024 are ours; the text leaves them open."
        ),
    ),
    Architecture(
        "text-korean",
        N_("From the text: English to Korean"),
        _pair(),
        TextShape(_WORDS, 8000),
        20,
        25,
        note=N_(
            "Vocabularies of 10,000 and 8,000 words, sentences of 20 and 25 tokens. Width, heads "
            "and blocks are the paper’s base model’s; the text leaves them open."
        ),
    ),
    Architecture(
        "text-vit",
        N_("From the text: ViT for MNIST, 1,770 parameters"),
        ViTConfig(
            d_model=8, n_heads=2, d_ff=24, n_layers=2, patch_size=4, pooling="cls",
            projections="sliced", final_norm="never",
        ),
        ImageShape(28, 1, 10),
        n_parameters=1_770,
        note=N_(
            "Each head maps its own slice of the 8 numbers, nothing mixes the heads, and no norm "
            "stands behind the last block. The text takes the second residual from the normalised "
            "value, a mistake; here it is taken from the sum. Home trains it by the text’s recipe: "
            "“The text’s tiny ViT”."
        ),
    ),
)  # fmt: skip
"""The models, in the order of the texts."""
