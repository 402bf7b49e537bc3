"""The architecture diagram of exactly one model, in DOT: blocks, residuals, shapes on the arrows.

It is a loop over the parts of the model. Equal blocks of a stack are drawn once, in a frame that
says how many there are, or one by one: all of them, or a few and the rest in one box. The browser
lays the DOT out, so no Graphviz is needed here. Each node has its kind as its class, which gives it
the colours of the theme.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, repeat

from tfm_core.anatomy import Attention, Part, Sublayer, anatomy, sublayers
from tfm_core.anatomy.names import Scheme
from tfm_core.choices.config import ModelConfig
from tfm_core.choices.config.shape import Shape, TextShape
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.alignment_scores import ALIGNMENT_SCORES
from tfm_core.choices.variants.cells import CELLS
from tfm_core.choices.variants.forms import CAUSALITIES, SCALES
from tfm_core.choices.variants.norms import NORMS
from tfm_core.choices.variants.poolings import POOLINGS
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.choices.variants.sinks import SINKS
from tfm_core.choices.variants.stems import STEMS
from tfm_core.facts.parameter_table import ParameterRow, parameter_table
from tfm_core.inspect.syntax import statements
from tfm_core.probe.labels import STACKS
from tfm_core.sentences import N_, listed
from tfm_core.trace.drawing import DiagramNode, Drawing, Rows
from tfm_core.trace.source.file import source_code


def diagram(
    config: ModelConfig,
    shape: Shape,
    *,
    src_len: int = 0,
    tgt_len: int = 0,
    opened: range = range(0),
    say: Callable[[str], str] = str,
) -> Drawing:
    """Return the diagram. Shapes are (B, tokens, width), B the batch.

    opened: the blocks of each stack to draw one by one, from 0; those around them share a box, and
    where it is empty the blocks are drawn once. say: translates what is drawn.
    """
    model = anatomy(config, shape)
    drawing = Drawing(model, model.at(src_len, tgt_len), src_len, opened, say)
    for part in model.parts:
        draw = _DRAWN.get(part.layer) or _DRAWN.get(part.kind)
        if draw is not None:
            draw(drawing, part)
    return drawing


def _model_input(drawing: Drawing, part: Part) -> None:
    """Draw a picture or ids, on top of a column."""
    name = part.outputs[0].name
    if drawing.last and not drawing.memory:  # the regions of a picture are not encoded
        shape = drawing.shape(drawing.part("stem").outputs[0])
        drawing.memory = drawing.words("memory", N_("memory"), shape)
        drawing.edge(drawing.last, drawing.memory, has_head=False)
    drawing.side = name.removesuffix(" ids") if name.endswith(" ids") else ""
    label = _ids(drawing) if drawing.side else N_("Picture")
    steps = ("tokens", "masks") if drawing.side else part.steps
    drawing.last = drawing.box(name, "data", label, part, steps=steps)


def _ids(drawing: Drawing) -> str:
    """Return what the ids of a column are in this model."""
    shape, sizes = drawing.model.shape, drawing.sizes
    if drawing.has_two_columns or not isinstance(shape, TextShape):
        return N_("Source ids") if drawing.side == "src" else N_("Target ids, shifted right")
    if drawing.writes:
        return N_("Source, then target ids") if shape.has_source else N_("Token ids")
    if shape.has_cls:
        return N_("Token ids, CLS in front")
    if shape.head != "tokens":
        return N_("Token ids")
    if shape.mask_id:
        return N_("Token ids, some hidden")
    if sizes["S"] > drawing.src_len:
        return N_("Source ids, then empty slots")
    return N_("Source ids")


def _embedding(drawing: Drawing, part: Part) -> None:
    """Draw the table of a column of ids, or both tables of source and target in one sequence."""
    tables = [
        other
        for other in drawing.model.folded
        if (other.layer, other.inputs) == (part.layer, part.inputs)
    ]
    if part is not tables[0]:
        return
    weights = [table.children[0].parameters[0] for table in tables if not table.is_second_name]
    sizes = " + ".join(f"{weight.shape[0]:,}" for weight in weights)
    sizes = f"({sizes})" if len(weights) > 1 else sizes
    is_shared = any(weight.tied_to for weight in weights)
    count = (N_("shared with the source"),) if is_shared else None
    shape, d_model = drawing.model.shape, drawing.number("d_model")
    is_scaled = not isinstance(shape, TextShape) or shape.scale_embedding
    words = N_("Embedding, times √{d_model}", d_model=d_model) if is_scaled else N_("Embedding")
    name = drawing.box(
        part.path,
        "embedding",
        (words, f"{sizes} x {d_model}"),
        part,
        title=_embedded(drawing, shape),
        paths=[table.path for table in tables],
        count=count,
    )
    drawing.lead(name)


def _embedded(drawing: Drawing, shape: Shape) -> str:
    """Return what a table of embeddings is for."""
    if not isinstance(shape, TextShape):
        return N_("Embedding of the words")
    is_of_source = shape.head == "tokens" and not shape.mask_id
    if drawing.has_two_columns:
        is_of_source = drawing.side == "src"
        return N_("Embedding of the source") if is_of_source else N_("Embedding of the target")
    if drawing.writes and shape.has_source:
        return N_("Embedding of the source and the target")
    if drawing.writes or not is_of_source:
        return N_("Embedding of the tokens")
    return N_("Embedding of the source")


def _positions(drawing: Drawing, part: Part) -> None:
    """Draw what is added for positions, if anything."""
    kind = POSITIONS[part.variant]
    if not kind.is_added:
        return
    name = f"{drawing.side}_positions" if drawing.side else part.path
    norms = (NORMS[child.variant].label for child in part.children)
    label, title = (N_("+ positions"), kind.label, *norms), N_("Positions")
    drawing.box(name, "embedding", label, part, title=title, paths=[part.path])
    drawing.lead(name)


def _segments(drawing: Drawing, part: Part) -> None:
    """Draw the vector of a segment, and the norm behind it."""
    label = N_("Segments and norm")
    drawing.lead(drawing.box(part.path, "embedding", label, *part, paths=[part.path]))


def _stem(drawing: Drawing, part: Part) -> None:
    """Draw the patches of a picture."""
    size = drawing.number("patch_size")
    label = N_("{cut} of {size} x {size}, projected", cut=STEMS[part.variant].drawn, size=size)
    drawing.lead(drawing.box(part.path, "embedding", label, part, paths=[part.path]))


def _cls(drawing: Drawing, part: Part) -> None:
    """Draw the token in front of the patches."""
    count = (N_("{n:,} parameters", n=part.parameters[0].size),)
    label = N_("CLS token in front")
    drawing.lead(drawing.box("cls", "embedding", label, part, paths=[part.path], count=count))


def _pooling(drawing: Drawing, part: Part) -> None:
    """Draw how many vectors become one."""
    tokens = N_("words") if drawing.side else N_("patches")
    label = N_(POOLINGS[part.variant].drawn, tokens=tokens)
    drawing.lead(drawing.box("pool", "data", label, part))


def _head(drawing: Drawing, part: Part) -> None:
    """Draw the last layer, if there is one."""
    if part.layer == "Identity":
        return
    d_model = drawing.number("d_model")
    if part.layer == "Pooler":
        label: str | Rows = N_("Pooler: first token, tanh")
    elif part.layer == "LabelOutput":
        hidden = f"{drawing.number('n_hidden')}, ReLU, x " if len(part.children) > 1 else ""
        labels = drawing.number("n_labels")
        label = N_("Linear to the labels"), f"{d_model} x {hidden}{labels}"
    else:
        tied = (N_("the embedding’s matrix: tied"),) if part.parameters[0].tied_to else ()
        answers = drawing.number(part.outputs[0].shape[-1])
        label = N_("Linear"), f"{d_model} x {answers}", *tied
    drawing.lead(drawing.box("output", "output", label, part, paths=[part.path]))


_ANSWERS = {"Pooler": N_("Vector of the text"), "Identity": N_("Vectors of all tokens")}


def _answer(drawing: Drawing, part: Part) -> None:
    """Draw what the model says."""
    layer = next(other.layer for other in drawing.model.folded if other.kind == "head")
    label = _ANSWERS.get(layer, N_("Logits"))
    drawing.lead(drawing.box("logits", "data", label, part), drawing.shape(part.outputs[0]))


_SUBLAYERS = {
    "self_attention": N_("self-attention"),
    "cross_attention": N_("cross-attention"),
    "feed_forward": N_("feed-forward"),
}


def _stack(drawing: Drawing, part: Part) -> None:
    """Draw a stack, folded or not, and what a decoder that looks back at it reads."""
    blocks = [child for child in part.children if child.kind == "block"]
    behind = {child.kind: child for child in part.children if child.kind != "block"}
    if len(part.inputs) > 1:
        heads = [other.outputs[0].name for other in drawing.model.folded if other.kind == "input"]
        drawing.side_by_side(*heads)
    for first, last in _groups(len(blocks), drawing.opened):
        if drawing.opened and last > first:
            _closed(drawing, part, blocks[first : last + 1])
            continue
        n = 1 if drawing.opened else len(blocks)
        number = N_("block x {n}", n=n) if n > 1 else N_("block")
        if drawing.opened:
            number = N_("block {n}", n=first + 1)
        drawing.frame(f"{part.path} {first}", STACKS[part.path], number)
        for sublayer in sublayers(blocks[first]):
            _sublayer(drawing, blocks[first], sublayer, n)
        drawing.lines.append("}")
    final, cross = behind.get("norm"), behind.get("attention")
    if final is not None:
        name, label = f"{part.path} final", NORMS[final.variant].label
        title = N_("{norm} behind the decoder", norm=label)
        if part.path == "encoder":
            title = N_("{norm} behind the encoder", norm=label)
        drawing.box(name, "norm", label, final, part, title=title, paths=[final.path])
        drawing.lead(name)
    if cross is not None:
        kind, rows = _label(drawing, cross)
        drawing.lead(drawing.box(cross.path, kind, rows, cross, paths=[cross.path]))
        drawing.across.append((drawing.memory, drawing.last))
    if drawing.has_two_columns and not drawing.memory:
        drawing.memory = drawing.words("memory", N_("memory"), drawing.shape(part.outputs[0]))
        drawing.edge(drawing.last, drawing.memory, has_head=False)


def _groups(n: int, opened: range) -> list[tuple[int, int]]:
    """Return first and last of each group of blocks: one by one where opened, else together."""
    groups: list[tuple[int, int]] = []
    for layer in range(n):
        if groups and layer not in opened and groups[-1][1] not in opened:
            groups[-1] = (groups[-1][0], layer)
        else:
            groups.append((layer, layer))
    return groups


def _closed(drawing: Drawing, part: Part, blocks: list[Part]) -> None:
    """Draw blocks that are not opened as one box."""
    paths, first = [block.path for block in blocks], _layer(blocks[0])
    last = first + len(blocks) - 1
    label = (
        N_(
            "{stack} blocks {first} to {last}",
            stack=STACKS[part.path],
            first=first + 1,
            last=last + 1,
        ),
        N_("{n} like the others", n=len(blocks)),
    )
    name = f"{paths[0]}-{last}"
    drawing.box(
        name,
        part.path,
        label,
        blocks[0],
        paths=paths,
        steps=part.steps,
        blocks=range(first, first + 1),
    )
    drawing.lead(name)
    if len(part.inputs) > 1:
        drawing.across.append((drawing.memory, drawing.last))


def _layer(block: Part) -> int:
    return int(block.path.rpartition(".")[2])


def _sublayer(drawing: Drawing, block: Part, joint: Sublayer, n: int) -> None:
    """Draw a sublayer with its norm and its residual."""
    sublayer, residual, norm = joint.layer, joint.residual, joint.norm
    name, layer = sublayer.path, _layer(block)
    blocks = range(layer, layer + n)
    stack = STACKS[block.path.partition(".")[0]]
    which = (
        N_("{stack} blocks {first} to {last}", stack=stack, first=1, last=n)
        if n > 1
        else N_("{stack} block {n}", stack=stack, n=layer + 1)
    )
    words = _SUBLAYERS[name.rpartition(".")[2]]
    shapes = chain([drawing.shape(residual.inputs[-1])], repeat(""))  # on the first arrow alone

    def around(kind: str, label: str, *parts: Part, title: str, paths: Sequence[str] = ()) -> str:
        return drawing.box(
            f"{name} {label if kind == 'sum' else kind}", kind, label, *parts, title=title,
            paths=paths, count=(), steps=residual.steps or sublayer.steps, blocks=blocks,
        )  # fmt: skip

    def lead(to: str, *, has_head: bool = True) -> str:
        drawing.edge(drawing.last, to, next(shapes), has_head=has_head)
        drawing.last = to
        return to

    def normed(norm: Part, *, is_before: bool) -> None:
        label = NORMS[norm.variant].label
        title = (
            N_("{block}: {norm} before {sublayer}", block=which, norm=label, sublayer=words)
            if is_before
            else N_("{block}: {norm} behind {sublayer}", block=which, norm=label, sublayer=words)
        )
        lead(around("norm", label, norm, block, title=title, paths=[norm.path]))

    kind, label = _label(drawing, sublayer)
    title = N_("{block}: {sublayer}", block=which, sublayer=words)
    paths, count = _parameters(drawing, sublayer, n)
    drawing.box(name, kind, label, sublayer, title=title, paths=paths, count=count, blocks=blocks)
    skipped = ""
    if joint.has_sum and not joint.is_normed:
        skipped = lead(drawing.fork(f"{name} fork"), has_head=False)
    if norm is not None and joint.norm_first:
        normed(norm, is_before=True)
    if joint.is_normed:
        skipped = lead(drawing.fork(f"{name} fork"), has_head=False)
    lead(name)
    if joint.has_sum:
        title = N_("{block}: sum around {sublayer}", block=which, sublayer=words)
        lead(around("sum", "+", residual, title=title))
        drawing.edge(skipped, drawing.last, dashed=True)
    if norm is not None and not joint.norm_first:
        normed(norm, is_before=False)
    if kind == "cross":
        drawing.across.append((drawing.memory, name))


def _parameters(drawing: Drawing, sublayer: Part, n: int) -> tuple[list[str], Rows]:
    """Return the modules of a sublayer of ``n`` blocks, and how many parameters they have."""
    paths, count = [sublayer.path], drawing.count(sublayer.path, is_repeated=n > 1)
    for shared in (part for part in sublayer if part.kind == "relative"):
        paths.append(shared.path)
        for of_all in drawing.count(shared.path):
            words = N_(
                "{count} of {variant}, shared by all blocks", count=of_all, variant=shared.variant
            )
            count = (*count, words)
    return paths, count


def _has_window_in(drawing: Drawing, part: Attention) -> tuple[int, int]:
    """Return in how many of how many blocks, drawn as one, an attention has its window."""
    if drawing.opened:
        return bool(part.window), 1
    stack = part.path.partition(".")[0]
    windows = [
        one.window
        for one in drawing.model.all
        if isinstance(one, Attention) and not one.is_cross and one.path.startswith(f"{stack}.")
    ]
    return sum(map(bool, windows)), len(windows)


def _unusual(part: Attention) -> Rows:
    """Return what an attention does otherwise than that of 2017."""
    rows: list[str] = []
    if part.n_kv_heads:
        rows.append(N_("{n} of keys and values", n=part.n_kv_heads))
    if part.has_qk_norm:
        rows.append(N_("queries and keys normed"))
    if SINKS[part.sink].is_there:
        rows.append(SINKS[part.sink].phrase)
    width = SCALES[part.scale].width
    if width != "d_head":
        rows.append(N_("scores / sqrt({width})", width=width) if width else N_("scores not scaled"))
    return tuple(rows)


def _label(drawing: Drawing, part: Part) -> tuple[str, Rows]:
    """Return the class and the label of a sublayer, without its parameters."""
    if not isinstance(part, Attention):
        d_model, d_ff = drawing.number("d_model"), drawing.number("d_ff")
        activation = ACTIVATIONS[part.variant].label
        words = N_("Feed-forward, {activation}", activation=activation)
        rows: Rows = (words, f"{d_model} → {d_ff} → {d_model}")
        if part.layer == "MixtureOfExperts":
            n, top_k = drawing.sizes["n_experts"], drawing.sizes["top_k"]
            rows = (N_("{top_k} of {n} experts per token", top_k=top_k, n=n), *rows)
        return "feed-forward", rows
    notes: list[str] = [CAUSALITIES[part.order].note] if part.order else []
    notes += [part.relative] if part.relative else []
    heads: Rows = (N_("{n} heads x {size}", n=part.n_heads, size=drawing.number("d_head")),)
    n_windows, n_blocks = _has_window_in(drawing, part)
    if n_windows == n_blocks:
        notes.append(N_("window {n}", n=part.window))
    elif n_windows and not part.is_cross:
        words = N_(
            "window {n} in {some} of {all} blocks", n=part.window, some=n_windows, all=n_blocks
        )
        heads = (*heads, words)
    heads = (*heads, *_unusual(part))
    if part.is_cross:
        return "cross", (N_("Cross-attention"), *heads)
    if not notes:
        return "attention", (N_("Self-attention"), *heads)
    return "attention", (N_("Self-attention ({notes})", notes=listed(notes)), *heads)


def _recurrent_encoder(drawing: Drawing, part: Part) -> None:
    """Draw the encoder, and what makes the decoder's first state of its last ones."""
    n = len(part.children)
    n_drawn = n if drawing.opened else 1
    for layer, reader in enumerate(part.children[:n_drawn]):
        is_folded = n > n_drawn
        which = N_("block {n}", n=layer + 1) if n_drawn > 1 else N_("block")
        which = N_("block x {n}", n=n) if is_folded else which
        drawing.frame(f"encoder {layer}", STACKS["encoder"], which)
        cell = CELLS[reader.variant].label
        both = len(reader.children) > 1
        label = (
            N_("{cell}, from both ends", cell=cell)
            if both
            else N_("{cell}, from left to right", cell=cell)
        )
        title = (
            N_("Encoder layers 1 to {n}: {title}", n=n, title=label)
            if is_folded
            else N_("Encoder layer {n}: {title}", n=layer + 1, title=label)
        )
        drawing.box(
            reader.path,
            "attention",
            label,
            reader,
            title=title,
            paths=[reader.path],
        )
        if is_folded:
            modules = drawing.modules_below([reader.path], n)
            drawing.nodes[reader.path] = replace(drawing.nodes[reader.path], modules=modules)
        drawing.lead(reader.path)
        drawing.lines.append("}")
    drawing.memory, (_, last) = drawing.last, part.outputs
    label, bridge = N_("tanh of the last states"), drawing.part("bridge")
    drawing.lead(
        drawing.box("bridge", "norm", label, bridge, paths=["bridge"]), drawing.shape(last)
    )


def _recurrent_decoder(drawing: Drawing, part: Part) -> None:
    """Draw the decoder with its attention, and the readout that both lead to."""
    words, token = drawing.shape(part.inputs[0]), drawing.last
    asking = next(child for child in part.children if child.kind == "attention")
    score, n = ALIGNMENT_SCORES[asking.variant], drawing.number("n_layers")
    drawing.frame("decoder", N_("Decoder,"), N_("token by token"), below=True)
    label: str = N_("{score} attention", score=score.label)
    attention = drawing.box("attention", "cross", label, asking, paths=[asking.path])
    label = CELLS[part.variant].label
    label = N_("{cell} x {n}", cell=label, n=n) if n != "1" else label
    title = N_("Decoder: {title}", title=label)
    steps = drawing.box("steps", "attention", label, part, title=title, paths=["decoder.steps"])
    label, part = N_("tanh of state and context"), drawing.part("readout")
    readout = drawing.box("readout", "feed-forward", label, part, paths=["readout"])
    drawing.lines.append("}")
    memory, state = drawing.part("encoder").outputs
    drawing.edge(drawing.memory, attention, N_("memory {shape}", shape=drawing.shape(memory)))
    drawing.edge(token, steps, words)
    drawing.edge("bridge", steps, N_("first state {shape}", shape=drawing.shape(state)))
    if score.attends_before_step:
        drawing.edge(attention, steps, N_("context of this step"))
        drawing.edge(steps, attention, N_("state of the step before"), dashed=True)
    else:
        drawing.edge(steps, attention, N_("states {shape}", shape=words))
    drawing.edge(attention, readout, N_("contexts {shape}", shape=words))
    drawing.edge(steps, readout, N_("states {shape}", shape=words))
    drawing.last = readout


_DRAWN: dict[str, Callable[[Drawing, Part], None]] = {
    "input": _model_input,
    "stem": _stem,
    "TokenEmbedding": _embedding,
    "VisionTransformer": _cls,
    "positions": _positions,
    "segments": _segments,
    "Stack": _stack,
    "RecurrentEncoder": _recurrent_encoder,
    "AdditiveDecoder": _recurrent_decoder,
    "LuongDecoder": _recurrent_decoder,
    "pooling": _pooling,
    "head": _head,
    "answer": _answer,
}
"""Layer or kind of a part -> what draws it. Others are drawn with these, or not at all."""


def parameters_of(
    node: DiagramNode, config: ModelConfig, shape: Shape, scheme: Scheme = "ours"
) -> tuple[ParameterRow, ...]:
    """Return the rows of the parameter table, of blocks in one or not, that belong to a node."""
    modules = {path or "cls" for path in node.modules}
    table = parameter_table(config, shape, scheme)
    rows = {(row.path, row.matrix): row for row in (*table.by_block, *table.rows)}
    return tuple(row for (path, _matrix), row in rows.items() if path in modules)


def code_of(node: DiagramNode, config: ModelConfig, shape: Shape) -> str:
    """Return the classes and functions of the generated file that make a node."""
    definitions = _definitions(config, shape)
    return "\n\n\n".join(definitions[name] for name in node.code if name in definitions)


@lru_cache(maxsize=64)
def _definitions(config: ModelConfig, shape: Shape) -> dict[str, str]:
    text = source_code(config, shape)
    lines = text.splitlines()
    return {
        node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno])
        for node in statements(text)
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
