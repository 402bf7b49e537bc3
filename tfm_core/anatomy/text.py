"""The anatomy of the three text topologies, in the order of their forward pass."""

from __future__ import annotations

from dataclasses import replace

from tfm_core.anatomy.blocks import N_BUCKETS, WRITING, StackMaker
from tfm_core.anatomy.formula import formula
from tfm_core.anatomy.layers import ID, Maker, model_input, model_output, tensor
from tfm_core.anatomy.names import names_of
from tfm_core.anatomy.part import Part, Saved
from tfm_core.choices.config import (
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    TextModelConfig,
)
from tfm_core.choices.config.shape import TextShape
from tfm_core.choices.variants.norms import NORMS

_FIRST = ("tokens", "heads", "masks")
"""Steps of a walk before anything is computed."""
IDS = {length: Saved(full=formula(f"{ID} {length}")) for length in "ST"}


def maker_of(config: TextModelConfig, shape: TextShape) -> Maker:
    """Return a maker with the sizes of a text model."""
    return Maker.of(
        config,
        src_words=shape.src_vocabulary,
        tgt_words=shape.tgt_vocabulary,
        max_len=config.max_len,
        n_labels=shape.n_labels,
        n_hidden=shape.n_hidden,
        n_segments=shape.n_segments,
        n_buckets=N_BUCKETS,
    )


def encoder_decoder(config: EncoderDecoderConfig, shape: TextShape) -> tuple[Maker, list[Part]]:
    """Return the parts of the Transformer of 2017."""
    make = maker_of(config, shape)
    tied_to = "src_embedding.table.weight" if shape.one_vocabulary else ""
    encoder = StackMaker(make, config, "encoder", config.n_encoder_layers, "S", read="S")
    decoder = StackMaker(
        make,
        config,
        "decoder",
        config.n_decoder_layers,
        "T",
        keys="S",
        read="T",
        has_order=True,
        steps=WRITING,
    )
    return make, [
        model_input("src ids", "S", steps=_FIRST),
        make.embedding("src_embedding", "src_words", "S", saved=IDS["S"]),
        _normed(make, config, shape, "src_positions", "S"),
        encoder.stack(),
        model_input("tgt ids", "T", steps=("tokens",)),
        make.embedding("tgt_embedding", "tgt_words", "T", tied_to=tied_to, saved=IDS["T"]),
        _normed(make, config, shape, "tgt_positions", "T"),
        decoder.stack(),
        output(make, config, shape, tied_to or "tgt_embedding.table.weight"),
        model_output("A", "tgt_words"),
    ]


def _normed(
    make: Maker, config: EncoderDecoderConfig, shape: TextShape, path: str, length: str
) -> Part:
    """Return the positions of one side, with BART's norm behind them."""
    positions = make.positions(path, config.position, length, "max_len")
    if not (shape.embedding_norm and config.has_norms):
        return positions
    n = NORMS[config.norm].n_saved(make.sizes["d_model"])
    saved = Saved(full=formula(f"{n} {length}"))
    return replace(
        positions, children=(make.norm(f"{path}.norm", config.norm, length, saved=saved),)
    )


def decoder_only(config: DecoderOnlyConfig, shape: TextShape) -> tuple[Maker, list[Part]]:
    """Return the parts of a GPT, which reads source and target as one sequence."""
    make = maker_of(config, shape)
    src, one = "src_embedding.table.weight", shape.one_vocabulary
    stack = StackMaker(make, config, "decoder", config.n_layers, "T", has_order=True)
    tables = [
        make.embedding(
            "src_embedding",
            "src_words",
            "T",
            saved=IDS["T"],
            own_name="token_embedding" if one else "source_embedding",
        ),
        make.embedding(
            "tgt_embedding",
            "tgt_words",
            "T",
            tied_to=src if one else "",
            own_name="" if one else "target_embedding",
            is_second_name=one,
        ),
    ]
    # those of the sequence that answer are taken out of it
    selection = Part(
        kind="selection",
        path="",
        inputs=(tensor("x", "T", "d_model"),),
        outputs=(tensor("y", "A", "d_model"),),
        saved=Saved(full=formula("T d_model"), products=formula("A d_model")),
    )
    tied_to = src if one else "tgt_embedding.table.weight"
    return make, [
        model_input("src ids", "T", steps=_FIRST),
        *tables,
        make.positions("positions", config.position, "T", "max_len"),
        stack.stack(),
        selection,
        output(make, config, shape, tied_to),
        model_output("A", "tgt_words"),
    ]


def encoder_only(config: EncoderOnlyConfig, shape: TextShape) -> tuple[Maker, list[Part]]:
    """Return the parts of a BERT, with what it has at its ends."""
    make = maker_of(config, shape)
    asks = "Q" if shape.has_cls else ""
    read = "A" if shape.head == "tokens" else "S"
    read = asks if shape.is_label else read
    stack = StackMaker(make, config, "encoder", config.n_layers, "S", read=read, last_queries=asks)
    parts = [
        model_input("src ids", "S", steps=_FIRST),
        make.embedding(
            "src_embedding", "src_words", "S", saved=IDS["S"], own_name="token_embedding"
        ),
        make.positions("src_positions", config.position, "S", "max_len", own_name="positions"),
    ]
    if shape.n_segments:
        parts.append(_segments(make, config))
    return make, [*parts, stack.stack(), *_reader(make, config, shape)]


def _segments(make: Maker, config: EncoderOnlyConfig) -> Part:
    """Return BERT's segments: a vector that is added, then a norm."""
    x = tensor("x", "S", "d_model")
    table = Part(
        kind="segments",
        path="segments.table",
        layer="Embedding",
        parameters=(make.parameter("segments.table.weight", "n_segments", "d_model"),),
        names=names_of(make.family, "segments.table"),
    )
    norm = (make.norm("segments.norm", config.norm, "S"),) if config.has_norms else ()
    return Part(
        kind="segments",
        path="segments",
        layer="Segments",
        inputs=(x,),
        outputs=(x,),
        steps=("embedding",),
        children=(table, *norm),
    )


def _reader(make: Maker, config: EncoderOnlyConfig, shape: TextShape) -> list[Part]:
    """Return what answers at the end: a label, BERT's pooler, a word each, or nothing."""
    answering = tensor("x", "A", "d_model")
    states = tensor("x", "Q" if shape.has_cls else "S", "d_model")
    if shape.head == "tokens":
        words = output(make, config, shape, "src_embedding.table.weight")
        return [words, model_output("A", "tgt_words")]
    if shape.head == "states":
        return [
            Part(
                kind="head",
                path="output",
                layer="Identity",
                inputs=(answering,),
                outputs=(tensor("y", "A", "d_model"),),
                saved=Saved(full=formula(f"A d_model + {ID} A")),
            ),
            model_output("A", "d_model", steps=()),
        ]
    if shape.head == "pooler":
        dense = replace(
            make.linear(
                "output.dense", "d_model", "d_model", "", bias=config.bias, is_hidden=False
            ),
            work="output",
        )
        return [
            Part(
                kind="head",
                path="output",
                layer="Pooler",
                inputs=(answering,),
                outputs=(tensor("y", "d_model"),),
                children=(dense,),
                steps=("logits",),
                saved=Saved(full=formula(f"d_model + {ID} A")),
            ),
            model_output("d_model"),
        ]
    assert shape.pooling is not None
    pooled = Part(
        kind="pooling",
        path="",
        variant=shape.pooling.name,
        inputs=(states,),
        outputs=(tensor("y", "1", "d_model"),),
        steps=("pooling",),
        macs=formula("S d_model" if shape.pooling.reads_padding else ""),
        work="output",
    )
    has_bias, last = config.bias and shape.output_bias, "d_model"
    layers = []
    if shape.n_hidden:
        last = "n_hidden"
        layers.append(
            replace(
                make.linear("output.hidden", last, "d_model", "1", bias=has_bias),
                work="output",
                own_name="hidden",
            )
        )
    labels = replace(
        make.linear(
            "output.labels",
            "n_labels",
            last,
            "1",
            bias=has_bias,
            is_hidden=False,
            saved=Saved(full=formula(f"n_labels + {ID} A")),
        ),
        work="output",
        own_name="output",
    )
    answered = (tensor("logits", "1", "tgt_words"),)
    return [
        pooled,
        Part(
            kind="head",
            path="output",
            layer="LabelOutput",
            inputs=pooled.outputs,
            outputs=answered,
            children=(*layers, labels),
            steps=("logits",),
        ),
        model_output("n_labels"),
    ]


def output(make: Maker, config: TextModelConfig, shape: TextShape, table: str) -> Part:
    """Return the matrix that answers with words; ``table``: the one it is where both are tied."""
    return head(
        make,
        "output",
        "tgt_words",
        "A",
        bias=config.bias and shape.output_bias,
        tied_to=table if config.is_tied(shape) else "",
    )


def head(
    make: Maker,
    path: str,
    answers: str,
    length: str,
    *,
    bias: bool = True,
    tied_to: str = "",
    step: str = "logits",
) -> Part:
    """Return a linear layer that answers; logits and answers are kept for the loss."""
    return replace(
        make.linear(
            path,
            answers,
            "d_model",
            length,
            bias=bias,
            tied_to=tied_to,
            is_hidden=False,
            saved=Saved(full=formula(f"{length} {answers} + {ID} A")),
        ),
        work="output",
        kind="head",
        steps=(step,),
    )
