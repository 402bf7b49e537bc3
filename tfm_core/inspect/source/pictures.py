"""The model classes of a generated file that read pictures, as text."""

from __future__ import annotations

from tfm_core.config import CaptionerConfig, ViTConfig
from tfm_core.config.shape import CaptionShape
from tfm_core.inspect.source.layers import AttentionForm, class_, method
from tfm_core.inspect.source.parts import adds, answered, called, kept, model, placed
from tfm_core.variants.causalities import CAUSALITIES
from tfm_core.variants.poolings import POOLINGS
from tfm_core.variants.stems import STEMS


def patches(config: ViTConfig | CaptionerConfig) -> str:
    """Return the source of the stem."""
    cut = class_(
        '''
        class PatchEmbedding(nn.Module):
            """Cut and project: (B, C, H, W) to (B, patches, D_MODEL)."""

            def __init__(self, channels):
                super().__init__()
                self.projection = nn.Linear(channels * PATCH**2, D_MODEL)

            def forward(self, images):
        ''',
        "grid = images.unflatten(3, (-1, PATCH)).unflatten(2, (-1, PATCH))\n"
        "# (B, C, rows, PATCH, columns, PATCH) to (B, rows * columns, C * PATCH^2)\n"
        "return self.projection(grid.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2))",
    )
    stem = STEMS[config.stem]
    if stem.classes is None:
        return cut
    return f"{cut}\n\n{stem.classes}" if stem.cuts else stem.classes


def vit(config: ViTConfig, form: AttentionForm) -> str:
    """Return the source of a Vision Transformer."""
    pooling = POOLINGS[config.pooling]
    init = [_stem(config)]
    init += ["self.cls = nn.Parameter(torch.zeros(1, 1, D_MODEL))"] if pooling.has_cls else []
    init += ["self.positions = Positions()"] if adds(config.position) else []
    init += ["self.encoder = Stack(N_LAYERS)", "self.head = nn.Linear(D_MODEL, N_CLASSES)"]
    forward = ["x = self.stem(images)  # (B, patches, D_MODEL)"]
    if pooling.has_cls:
        forward.append("x = torch.cat([self.cls.expand(x.size(0), -1, -1), x], 1)")
    forward += [
        f"x = self.encoder({placed(config, 'positions', 'x')})",
        *answered(form, f"self.head({pooling.of_patches.format(x='x')})", "(B, N_CLASSES)"),
    ]
    return model(
        "A picture is a sentence of patches; an encoder reads it, one vector tells the class.",
        init,
        method(called(form, "images"), forward),
        has_dropout=config.dropout > 0,
    )


def captioner(config: CaptionerConfig, shape: CaptionShape, form: AttentionForm) -> str:
    """Return the source of a captioner."""
    init = [_stem(config)]
    init += ["self.positions = Positions()"] if adds(config.position) else []
    init += ["self.word_embedding = TokenEmbedding(N_WORDS)"]
    init += ["self.word_positions = WordPositions()"] if adds(config.text_position) else []
    bias = "" if config.bias else ", bias=False"
    init += [
        "self.encoder = Stack(N_ENCODER_LAYERS)",
        "self.decoder = Stack(N_DECODER_LAYERS, has_cross=True)",
        f"self.output = nn.Linear(D_MODEL, N_WORDS{bias})",
    ]
    encode = [
        "x = self.stem(images)  # (B, patches, D_MODEL)",
        f"return self.encoder({placed(config, 'positions', 'x')})",
    ]
    order = CAUSALITIES[config.causality].function
    words = placed(config, "word_positions", "self.word_embedding(words)", config.text_position)
    decode = [
        f"x = {words}",
        f"mask = ({kept('words', shape.pad_id)})[:, None, None, :] & {order}(x.size(1), x.device)",
        "x = self.decoder(x, mask, memory)  # every word may look at every patch",
        "return self.output(x)  # (B, T, N_WORDS)",
    ]
    return model(
        "The encoder reads the patches of a picture; the decoder describes it.",
        init,
        method("def encode(self, images):", encode),
        method("def decode(self, words, memory):", decode),
        method(
            called(form, "images", "words"),
            answered(form, "self.decode(words, self.encode(images))", "(B, T, N_WORDS)"),
        ),
        has_dropout=config.dropout > 0,
    )


def _stem(config: ViTConfig | CaptionerConfig) -> str:
    return f"self.stem = {STEMS[config.stem].code}"
