"""The model classes of a generated file, one for each family, as text.

Each has the names of its own family: an encoder-decoder reads a source and writes a target, a GPT
and a BERT read ids.
"""

from __future__ import annotations

from tfm_core.config import (
    CaptionerConfig,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    TextModelConfig,
    TransformerConfig,
    ViTConfig,
    WriterConfig,
)
from tfm_core.config.shape import CaptionShape, Shape, TextShape
from tfm_core.inspect.source import pictures
from tfm_core.inspect.source.embedding import output_bias
from tfm_core.inspect.source.layers import AttentionForm, method
from tfm_core.inspect.source.parts import adds, answered, called, kept, model, placed
from tfm_core.variants.causalities import CAUSALITIES


def model_class(config: TransformerConfig, shape: Shape, form: AttentionForm) -> str:
    """Return the source of the class ``Model``."""
    if isinstance(config, ViTConfig):
        return pictures.vit(config, form)
    if isinstance(config, CaptionerConfig):
        assert isinstance(shape, CaptionShape)
        return pictures.captioner(config, shape, form)
    assert isinstance(shape, TextShape)
    if isinstance(config, EncoderDecoderConfig):
        return _encoder_decoder(config, shape, form)
    if isinstance(config, DecoderOnlyConfig):
        return _decoder_only(config, shape, form)
    assert isinstance(config, EncoderOnlyConfig)
    return _encoder_only(config, shape, form)


def vocabularies(config: TextModelConfig, shape: TextShape) -> dict[str, int]:
    """Return the sizes of the vocabularies by their names in the file."""
    if isinstance(config, DecoderOnlyConfig):
        if shape.one_vocabulary:
            return {"N_WORDS": shape.tgt_vocabulary}
        return {"SOURCE_WORDS": shape.src_vocabulary, "TARGET_WORDS": shape.tgt_vocabulary}
    if isinstance(config, EncoderOnlyConfig):
        answers = {_answers(shape): shape.tgt_vocabulary} if shape.head == "tokens" else {}
        return {"N_WORDS": shape.src_vocabulary} | answers
    return {"SRC_WORDS": shape.src_vocabulary, "TGT_WORDS": shape.tgt_vocabulary}


def _answers(shape: TextShape) -> str:
    """Return what an encoder-only model answers with: its own words, or others."""
    return "N_WORDS" if shape.mask_id or shape.one_vocabulary else "N_ANSWERS"


def _output(config: TextModelConfig, shape: TextShape, tied: str, words: str) -> list[str]:
    lines = [f"self.output = nn.Linear(D_MODEL, {words}{output_bias(config, shape)})"]
    if config.is_tied(shape):
        lines.append(f"self.output.weight = self.{tied}.table.weight  # tied: one matrix, two uses")
    return lines


def _order(config: WriterConfig) -> str:
    """Return the name of the function that says which way a decoder may look."""
    return CAUSALITIES[config.causality].function


def _within(config: TextModelConfig, mask: str, length: str) -> str:
    return f"{mask} & window({length}, x.device)" if config.window else mask


def _encoder_decoder(config: EncoderDecoderConfig, shape: TextShape, form: AttentionForm) -> str:
    tgt = "self.src_embedding" if shape.one_vocabulary else "TokenEmbedding(TGT_WORDS)"
    init = ["self.src_embedding = TokenEmbedding(SRC_WORDS)", f"self.tgt_embedding = {tgt}"]
    if adds(config.position):
        init += ["self.src_positions = Positions()", "self.tgt_positions = Positions()"]
    init += [
        "self.encoder = Stack(N_ENCODER_LAYERS)",
        "self.decoder = Stack(N_DECODER_LAYERS, has_cross=True)",
    ]
    init += _output(config, shape, "tgt_embedding", "TGT_WORDS")
    keep, future = kept("src", shape.pad_id), f"{_order(config)}(tgt_in.size(1), x.device)"
    if shape.pad_id is not None:
        future = f"(tgt_in != PAD)[:, None, None, :] & {future}"
    encode = [
        "# (B, 1, 1, S): padding is not attended to",
        f"keep = ({keep})[:, None, None, :]",
        f"x = {placed(config, 'src_positions', 'self.src_embedding(src)')}",
        f"return self.encoder(x, {_within(config, 'keep', 'src.size(1)')}), keep",
    ]
    mask = _within(config, "mask", "tgt_in.size(1)")
    decode = [
        f"x = {placed(config, 'tgt_positions', 'self.tgt_embedding(tgt_in)')}",
        f"mask = {future}",
        f"x = self.decoder(x, {mask}, memory, memory_mask)",
        "return self.output(x)  # (B, T, TGT_WORDS)",
    ]
    return model(
        "The encoder reads the source; the decoder writes the target and looks back at it.",
        init,
        method("def encode(self, src):", encode),
        method("def decode(self, tgt_in, memory, memory_mask):", decode),
        method(
            called(form, "src", "tgt_in"),
            answered(form, "self.decode(tgt_in, *self.encode(src))", "(B, T, TGT_WORDS)"),
        ),
        has_dropout=config.dropout > 0,
    )


def _encoder_only(config: EncoderOnlyConfig, shape: TextShape, form: AttentionForm) -> str:
    init = ["self.token_embedding = TokenEmbedding(N_WORDS)"]
    init += ["self.positions = Positions()"] if adds(config.position) else []
    init += ["self.segments = Segments()"] if shape.n_segments else []
    init += ["self.encoder = Stack(N_LAYERS)"]
    if shape.head == "pooler":
        init += ["self.output = Pooler()"]
    elif shape.is_label:
        init += _label_layers(config, shape)
    elif shape.head != "states":
        init += _output(config, shape, "token_embedding", _answers(shape))
    mask = _within(config, "keep[:, None, None, :]", "ids.size(1)")
    forward = [
        *(["ids = F.pad(ids, (1, 0), value=CLS)  # what answers stands in front"]
          if shape.has_cls else []),
        f"keep = {kept('ids', shape.pad_id)}  # (B, T): padding is not attended to",
        f"x = {_embedded(config, shape)}",
        f"x = self.encoder(x, {mask})",
        *_read(shape, form),
    ]  # fmt: skip
    return model(
        f"Reads everything at once and {_says(shape)}.",
        init,
        method(called(form, "ids"), forward),
        has_dropout=config.dropout > 0,
    )


def _embedded(config: EncoderOnlyConfig, shape: TextShape) -> str:
    """Return the expression of what goes into the encoder."""
    if not shape.n_segments:
        return placed(config, "positions", "self.token_embedding(ids)")
    x = "self.token_embedding(ids)"
    x = f"self.positions({x})" if adds(config.position) else x
    return f"self.dropout(self.segments({x}))" if config.dropout else f"self.segments({x})"


def _label_layers(config: EncoderOnlyConfig, shape: TextShape) -> list[str]:
    bias = output_bias(config, shape)
    if not shape.n_hidden:
        return [f"self.output = nn.Linear(D_MODEL, N_LABELS{bias})"]
    return [
        f"self.hidden = nn.Linear(D_MODEL, N_HIDDEN{bias})",
        f"self.output = nn.Linear(N_HIDDEN, N_LABELS{bias})",
    ]


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
    if shape.one_vocabulary:
        return "answers every position in one pass"
    return "answers every position in one pass, padding too"


def _read(shape: TextShape, form: AttentionForm) -> list[str]:
    """Return the lines from the encoder's vectors to the answer."""
    if shape.head == "states":
        return answered(form, "x", "(B, T, D_MODEL)")
    if shape.pooling is None:
        sizes = "(B, D_MODEL)" if shape.head == "pooler" else f"(B, T, {_answers(shape)})"
        return answered(form, "self.output(x)", sizes)
    *lines, pooled = (line.format(x="x", keep="keep") for line in shape.pooling.of_words)
    read = f"F.relu(self.hidden({pooled}))" if shape.n_hidden else pooled
    return [*lines, *answered(form, f"self.output({read})[:, 0]", "(B, N_LABELS)")]


def _decoder_only(config: DecoderOnlyConfig, shape: TextShape, form: AttentionForm) -> str:
    if shape.one_vocabulary:
        words, tied, embedded = "N_WORDS", "token_embedding", "self.token_embedding(ids)"
        init = ["self.token_embedding = TokenEmbedding(N_WORDS)"]
        methods = []
        says = "Reads a text from left to right and answers each position with the next token."
    else:
        words, tied, embedded = "TARGET_WORDS", "target_embedding", "self.embed(ids)"
        init = [
            "self.source_embedding = TokenEmbedding(SOURCE_WORDS)",
            "self.target_embedding = TokenEmbedding(TARGET_WORDS)",
        ]
        embed = [
            "source = self.source_embedding(ids.clamp(max=SOURCE_WORDS - 1))",
            "target = self.target_embedding((ids - SOURCE_WORDS).clamp(min=0))",
            "return torch.where((ids < SOURCE_WORDS)[..., None], source, target)",
        ]
        methods = [method("def embed(self, ids):", embed)]
        says = (
            "Reads source and target as one sequence, ids of the target counted on from "
            "SOURCE_WORDS."
        )
    init += ["self.positions = Positions()"] if adds(config.position) else []
    init += ["self.decoder = Stack(N_LAYERS)", *_output(config, shape, tied, words)]
    mask = f"mask = {_order(config)}(ids.size(1), ids.device)"
    if shape.pad_id is not None:
        mask = f"mask = (ids != PAD)[:, None, None, :] & {mask.removeprefix('mask = ')}"
    forward = [
        mask,
        f"x = {placed(config, 'positions', embedded)}",
        f"x = self.decoder(x, {_within(config, 'mask', 'ids.size(1)')})",
        *answered(form, "self.output(x)", f"(B, T, {words}): what comes next"),
    ]
    return model(
        says, init, *methods, method(called(form, "ids"), forward), has_dropout=config.dropout > 0
    )
