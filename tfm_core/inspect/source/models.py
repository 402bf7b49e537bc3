"""The model classes of a generated file, one for each family, as text."""

from __future__ import annotations

from tfm_core.config import (
    CaptionerConfig,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    TextModelConfig,
    TransformerConfig,
    ViTConfig,
)
from tfm_core.config.shape import Shape, TextShape
from tfm_core.inspect.source import pictures
from tfm_core.inspect.source.embedding import output_bias
from tfm_core.inspect.source.layers import method
from tfm_core.inspect.source.parts import adds, model, placed


def model_class(config: TransformerConfig, shape: Shape) -> str:
    """Return the source of the class ``Model``."""
    if isinstance(config, ViTConfig):
        return pictures.vit(config)
    if isinstance(config, CaptionerConfig):
        return pictures.captioner(config)
    assert isinstance(shape, TextShape)
    if isinstance(config, EncoderDecoderConfig):
        return _encoder_decoder(config, shape)
    if isinstance(config, DecoderOnlyConfig):
        return _decoder_only(config, shape)
    assert isinstance(config, EncoderOnlyConfig)
    return _encoder_only(config, shape)


def _output(config: TextModelConfig, shape: TextShape, tied: str) -> list[str]:
    lines = [f"self.output = nn.Linear(D_MODEL, TGT_WORDS{output_bias(config, shape)})"]
    if config.is_tied(shape):
        lines.append(f"self.output.weight = self.{tied}.table.weight  # tied: one matrix, two uses")
    return lines


def _embeddings(shape: TextShape) -> list[str]:
    tgt = "self.src_embedding" if shape.one_vocabulary else "TokenEmbedding(TGT_WORDS)"
    return ["self.src_embedding = TokenEmbedding(SRC_WORDS)", f"self.tgt_embedding = {tgt}"]


def _within(config: TextModelConfig, mask: str, length: str) -> str:
    return f"{mask} & window({length}, x.device)" if config.window else mask


def _encoder_decoder(config: EncoderDecoderConfig, shape: TextShape) -> str:
    init = _embeddings(shape)
    if adds(config.position):
        init += ["self.src_positions = Positions()", "self.tgt_positions = Positions()"]
    init += [
        "self.encoder = Stack(N_ENCODER_LAYERS)",
        "self.decoder = Stack(N_DECODER_LAYERS, has_cross=True)",
    ]
    init += _output(config, shape, "tgt_embedding")
    encode = [
        "keep = (src != PAD)[:, None, None, :]  # (B, 1, 1, S): padding is not attended to",
        f"x = {placed(config, 'src_positions', 'self.src_embedding(src)')}",
        f"return self.encoder(x, {_within(config, 'keep', 'src.size(1)')}), keep",
    ]
    decode = [
        f"x = {placed(config, 'tgt_positions', 'self.tgt_embedding(tgt_in)')}",
        "mask = (tgt_in != PAD)[:, None, None, :] & causal(tgt_in.size(1), x.device)",
        f"x = self.decoder(x, {_within(config, 'mask', 'tgt_in.size(1)')}, memory, memory_mask)",
        "return self.output(x)  # (B, T, TGT_WORDS)",
    ]
    return model(
        "The encoder reads the source; the decoder writes the target and looks back at it.",
        init,
        method("def encode(self, src):", encode),
        method("def decode(self, tgt_in, memory, memory_mask):", decode),
        method(
            "def forward(self, src, tgt_in):", ["return self.decode(tgt_in, *self.encode(src))"]
        ),
        has_dropout=config.dropout > 0,
    )


def _encoder_only(config: EncoderOnlyConfig, shape: TextShape) -> str:
    init = ["self.src_embedding = TokenEmbedding(SRC_WORDS)"]
    init += ["self.src_positions = Positions()"] if adds(config.position) else []
    init += ["self.segments = Segments()"] if shape.n_segments else []
    init += ["self.encoder = Stack(N_LAYERS)"]
    if shape.head == "pooler":
        init += ["self.output = Pooler()"]
    elif shape.is_label:
        init += ["self.output = LabelOutput()"]
    elif shape.head != "states":
        init += _output(config, shape, "src_embedding")
    embedded = "self.src_embedding(src)"
    if shape.n_segments:
        embedded = f"self.segments(self.src_positions({embedded}))"
        inside = f"self.dropout({embedded})" if config.dropout else embedded
    else:
        inside = placed(config, "src_positions", embedded)
    slots = [
        f"length = tgt_in.size(1)  # {_why_length(shape)}",
        "src = F.pad(src, (0, max(0, length - src.size(1))), value=PAD)",
    ]
    cls = ["src = F.pad(src, (1, 0), value=CLS)"] if shape.has_cls else []
    forward = [
        *(cls if shape.is_label else slots),
        "keep = (src != PAD)[:, None, None, :]",
        f"x = {inside}",
        f"x = self.encoder(x, {_within(config, 'keep', 'src.size(1)')})",
        *_read(shape),
    ]
    return model(
        f"Reads everything at once and {_says(shape)}.",
        init,
        method("def forward(self, src, tgt_in):", forward),
        has_dropout=config.dropout > 0,
    )


def _says(shape: TextShape) -> str:
    """Return what an encoder-only model answers with."""
    if shape.is_label:
        return "gives one label for the text"
    if shape.head == "pooler":
        return "gives one vector for the text"
    if shape.head == "states":
        return "gives the vectors of all tokens"
    if shape.mask_id:
        return "answers every position, also the hidden ones, in one pass"
    return "answers every position in one pass"


def _why_length(shape: TextShape) -> str:
    """Return what an encoder-only model needs the target's length for."""
    if shape.head in ("pooler", "states"):
        return "the content of tgt_in is not seen"
    if shape.mask_id:
        return "each position answers for itself; the content of tgt_in is not seen"
    return "a slot for each answer; the content of tgt_in is not seen"


def _read(shape: TextShape) -> list[str]:
    """Return the lines from the encoder's vectors to the answer."""
    if shape.head == "states":
        return ["return x[:, :length]  # the vectors of all tokens"]
    if shape.pooling is None:
        return ["return self.output(x[:, :length])"]
    *lines, pooled = (line.format(x="x", keep="(src != PAD)") for line in shape.pooling.of_words)
    return [*lines, f"return self.output({pooled})"]


def _decoder_only(config: DecoderOnlyConfig, shape: TextShape) -> str:
    init = _embeddings(shape)
    init += ["self.positions = Positions()"] if adds(config.position) else []
    init += ["self.decoder = Stack(N_LAYERS)"]
    init += _output(config, shape, "tgt_embedding")
    if not shape.has_source:
        return _language(config, init)
    forward = [
        "# the target follows the source directly, without padding between them",
        "lengths = (src != PAD).sum(1, keepdim=True)",
        "positions = torch.arange(src.size(1) + tgt_in.size(1), device=src.device)[None]",
        "is_src = positions < lengths",
        "from_src = positions.clamp(max=src.size(1) - 1).expand_as(is_src)",
        "from_tgt = positions - lengths",
        "is_tgt = (from_tgt >= 0) & (from_tgt < tgt_in.size(1))",
        "from_tgt = from_tgt.clamp(0, tgt_in.size(1) - 1)",
        "source = self.src_embedding(src.gather(1, from_src))",
        "target = self.tgt_embedding(tgt_in.gather(1, from_tgt))",
        "x = torch.where(is_src[..., None], source, target)",
        "keep = is_src | (is_tgt & (tgt_in.gather(1, from_tgt) != PAD))",
        "mask = keep[:, None, None, :] & causal(positions.size(1), x.device)",
        f"x = {placed(config, 'positions', 'x')}",
        f"x = self.decoder(x, {_within(config, 'mask', 'positions.size(1)')})",
        "answers = lengths + torch.arange(tgt_in.size(1), device=src.device)",
        "return self.output(x.gather(1, answers[..., None].expand(-1, -1, D_MODEL)))",
    ]
    return model(
        "Reads source and target as one sequence, each token seeing only the past.",
        init,
        method("def forward(self, src, tgt_in):", forward),
        has_dropout=config.dropout > 0,
    )


def _language(config: DecoderOnlyConfig, init: list[str]) -> str:
    forward = [
        "# src is empty, (B, 0): a language model continues what it has read so far",
        "mask = (tgt_in != PAD)[:, None, None, :] & causal(tgt_in.size(1), tgt_in.device)",
        f"x = {placed(config, 'positions', 'self.tgt_embedding(tgt_in)')}",
        f"x = self.decoder(x, {_within(config, 'mask', 'tgt_in.size(1)')})",
        "return self.output(x)",
    ]
    return model(
        "Reads a text from left to right and answers each position with the next token.",
        init,
        method("def forward(self, src, tgt_in):", forward),
        has_dropout=config.dropout > 0,
    )
