"""What each node of the architecture diagram stands for: modules, code, equation, walk steps.

Found by the node's name, which is the name of its module wherever it has one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tfm_core.config import CaptionerConfig, ModelConfig, RecurrentConfig, TransformerConfig
from tfm_core.config.shape import CaptionShape, ImageShape, Shape, TextShape
from tfm_core.facts.compute import layers
from tfm_core.facts.own_names import own_name, own_names
from tfm_core.facts.parameter_table import Row, parameter_table
from tfm_core.inspect.source.file import source_code
from tfm_core.inspect.syntax import statements
from tfm_core.sentences import N_
from tfm_core.variants.norms import NORMS
from tfm_core.variants.positions import POSITIONS, Position
from tfm_core.variants.stems import STEMS

_IN_BLOCK = re.compile(r"^(encoder|decoder)\.layers\.(\d+)\.([a-z_]+)( norm| \+)?$")
_CLOSED = re.compile(r"^(encoder|decoder)\.layers\.(\d+)-(\d+)$")
BREAK = "\\n"  # as DOT writes it
_SUBLAYER = {  # sublayer: its classes in the generated file, its equation
    "self_attention": (("split", "MultiHeadAttention"), "attention"),
    "cross_attention": (("split", "MultiHeadAttention"), "attention"),
    "feed_forward": (("FeedForward",), "feed-forward"),
}
_INSIDE = ("queries-keys-values", "split", "scores", "masking", "softmax", "weighted-sum", "merge")
_WRITTEN = ("decoder-feed-forward", "logits")


@dataclass(frozen=True, slots=True)
class Part:
    """What a node stands for.

    modules: names of modules whose parameters are its own, all below them too. code: classes and
    functions of the generated file. equations: keys of ``equations``. steps: names of the steps of
    the walk, those that the model's walk has not too. layer: its block, from 0; None outside.
    n_blocks: how many blocks share this node.
    """

    title: str
    modules: tuple[str, ...] = ()
    code: tuple[str, ...] = ("Model",)
    equations: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    layer: int | None = None
    n_blocks: int = 1


def part(name: str, label: str, config: ModelConfig, shape: Shape, *, is_folded: bool) -> Part:
    """Return what the node ``name`` stands for; one that is not known is the model's own.

    label: the node's in the diagram. is_folded: whether one block stands for all of its stack.
    """
    if isinstance(config, RecurrentConfig):
        title = label.partition(BREAK)[0]
        recurrent = _recurrent(name, title, config, is_folded=is_folded)
        return recurrent or _ends(name, title, config, shape)
    inside = _IN_BLOCK.match(name)
    if inside is not None:
        return _in_block(inside, label, config, is_folded=is_folded)
    title = label.partition(BREAK)[0]
    closed = _CLOSED.match(name)
    if closed is not None:
        stack, first, last = closed[1], int(closed[2]), int(closed[3])
        modules = tuple(f"{stack}.layers.{layer}" for layer in range(first, last + 1))
        return Part(title, modules, ("Block",), ("block",), ("encoder-stack", "logits"), first)
    if name.endswith(" final"):
        stack = name.removesuffix(" final")
        step = "encoder-stack" if stack == "encoder" else "logits"
        title = f"{title} behind the {stack}"
        return Part(title, (f"{stack}.final_norm",), ("Stack",), ("norm",), (step,))
    if name.endswith("_positions") or name == "positions":
        modules = (name, "positions")
        kind, made, is_of_words = POSITIONS[config.position], "Positions", False
        if isinstance(config, CaptionerConfig) and name == "tgt_positions":
            kind, made, is_of_words = POSITIONS[config.text_position], "WordPositions", True
        code = (*_functions(kind), made)
        step = "word-positions" if is_of_words else "positions"
        return Part(N_("Positions"), modules, code, ("embedding",), (step,))
    return _ends(name, title, config, shape)


def _functions(kind: Position) -> tuple[str, ...]:
    """Return the names of the generated functions that a position kind needs."""
    return tuple(function.name for function in kind.functions)


def _ends(name: str, title: str, config: ModelConfig, shape: Shape) -> Part:
    """Return a part before the stacks or behind them."""
    is_image = isinstance(shape, ImageShape)
    if name.endswith(" ids"):
        return Part(title, steps=("tokens", "masks"))
    if name.endswith("_embedding"):
        tables: tuple[str, ...] = (name,)
        if config.family == "decoder-only":
            tables = ("src_embedding", "tgt_embedding")
        title = f"Embedding of the {_embedded(name, config, shape)}"
        return Part(title, tables, ("TokenEmbedding",), ("embedding",), ("embedding",))
    known = {
        "image": Part(title, steps=("picture",)),
        "stem": Part(title, ("stem",), _STEM_CLASSES, ("embedding",),
                     ("patches", "patch-projection")),
        "cls": Part(title, ("",), ("Model",), (), ("cls",)),
        "segments": Part(title, ("segments",), ("Segments",), ("norm",), ("embedding",)),
        "pool": Part(title, (), ("Model",), ("model",), ("pooling",)),
        "output": Part(title, ("head",) if is_image else ("hidden", "output"), ("Pooler", "Model"),
                       ("model",), ("head", "logits")),
        "logits": Part(title, equations=("model",), steps=("whole",)),
    }  # fmt: skip
    return known.get(name, Part(title, (name,)))


_STEM_CLASSES = tuple(stem.layer.rpartition(":")[2] for stem in STEMS.values())


def _embedded(name: str, config: ModelConfig, shape: Shape) -> str:
    """Return what a table of embeddings is for."""
    if isinstance(shape, CaptionShape):
        return "words"
    assert isinstance(shape, TextShape)
    if config.family == "decoder-only":
        return "source and the target" if shape.has_source else "tokens"
    if config.family == "encoder-only" and (shape.head != "tokens" or shape.mask_id):
        return "tokens"
    return "source" if name == "src_embedding" else "target"


def _recurrent(name: str, title: str, config: RecurrentConfig, *, is_folded: bool) -> Part | None:
    """Return a part of a recurrent model; None where all families have it alike."""
    if name.startswith("encoder.layers."):
        n, layer = config.n_layers, int(name.rpartition(".")[2])
        is_many = is_folded and n > 1
        path = f"encoder.layers.0–{n - 1}" if is_many else name
        words = f"s 1 to {n}" if is_many else f" {layer + 1}"
        code = ("placed", "Reader", "Encoder")
        return Part(
            N_("Encoder layer{words}: {title}", words=words, title=title),
            (path,),
            code,
            ("encoder",),
            ("encoder",),
        )
    look = "decoder.cross_attention"
    return {
        "bridge": Part(title, ("bridge",), ("Model",), ("decoder",), ("bridge",)),
        "attention": Part(title, (look,), ("Score", "Attention"), ("attention",),
                          ("scores", "weights", "context")),
        "steps": Part(N_("Decoder: {title}", title=title), ("decoder.steps",), ("Decoder",),
        ("decoder",),
                      ("writing",)),
        "readout": Part(title, ("readout",), ("Model",), ("model",), ("writing",)),
        "output": Part(title, ("output",), ("Model",), ("model",), ("writing",)),
    }.get(name)  # fmt: skip


def _in_block(
    match: re.Match[str], label: str, config: TransformerConfig, *, is_folded: bool
) -> Part:
    stack, layer, sublayer, kind = match[1], int(match[2]), match[3], match[4]
    n_encoder, n_decoder = layers(config)
    n = n_encoder if stack == "encoder" else n_decoder
    block = f"{stack.capitalize()} block"
    block += f"s 1 to {n}" if is_folded and n > 1 else f" {layer + 1}"
    n_blocks = n if is_folded else 1
    words = sublayer.replace("_", "-")
    path = f"{stack}.layers.0–{n - 1}" if is_folded and n > 1 else f"{stack}.layers.{layer}"
    is_pair = bool(n_encoder and n_decoder)
    steps = _steps(stack, sublayer, is_pair=is_pair)
    if kind is None:
        code, equation = _SUBLAYER.get(sublayer, (("Block",), "block"))
        code = (*_functions(POSITIONS[config.position]), *code) if equation == "attention" else code
        said = label.partition(BREAK)[0]
        title = f"{block}: {said[:1].lower()}{said[1:]}"
        shared = (f"{stack}.relative",) if sublayer == "self_attention" else ()
        modules = (f"{path}.{sublayer}", *shared)
        return Part(title, modules, code, (equation,), steps, layer, n_blocks)
    around = ("add-norm",) if steps == _INSIDE else steps
    if kind == " +":
        return Part(
            N_("{block}: sum around {words}", block=block, words=words),
            (),
            ("Block",),
            ("block",),
            around,
            layer,
        )
    side = "before" if config.norm_first else "behind"
    title = f"{block}: {NORMS[config.norm].label} {side} {words}"
    modules = (f"{path}.{sublayer}_norm",)
    return Part(title, modules, ("Block",), ("norm", "block"), around, layer, n_blocks)


def _steps(stack: str, sublayer: str, *, is_pair: bool) -> tuple[str, ...]:
    if sublayer == "cross_attention":
        return ("cross-attention", "decoder-add-norm")
    if stack == "decoder" and is_pair:  # the walk opens the encoder's blocks
        return ("decoder-attention",) if sublayer == "self_attention" else _WRITTEN
    return _INSIDE if sublayer == "self_attention" else ("feed-forward",)


def parameters_of(one: Part, config: ModelConfig, shape: Shape) -> tuple[Row, ...]:
    """Return the rows of the parameter table, folded or not, that belong to a part."""
    names = own_names(config, shape)
    wanted = tuple(f"{own_name(name, names)}." for name in one.modules if name)
    table = parameter_table(config, shape)
    rows = {row.module: row for row in (*table.folded, *table.rows)}
    return tuple(
        row
        for name, row in rows.items()
        if (f"{name}.".startswith(wanted) if name else "" in one.modules)
    )


def code_of(one: Part, config: ModelConfig, shape: Shape) -> str:
    """Return the classes and functions of the generated file that make a part."""
    definitions = _definitions(config, shape)
    return "\n\n\n".join(definitions[name] for name in one.code if name in definitions)


@lru_cache(maxsize=64)
def _definitions(config: ModelConfig, shape: Shape) -> dict[str, str]:
    text = source_code(config, shape)
    lines: Sequence[str] = text.splitlines()
    return {
        node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno])
        for node in statements(text)
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
