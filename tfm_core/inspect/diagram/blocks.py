"""The stacks of a diagram: equal blocks once, in a frame that says how many, or one by one."""

from __future__ import annotations

from collections.abc import Iterator

from tfm_core.config import RecurrentConfig, TransformerConfig, WriterConfig
from tfm_core.facts.compute import layers
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.inspect.diagram.drawing import Drawing
from tfm_core.variants.activations import ACTIVATIONS
from tfm_core.variants.causalities import CAUSALITIES
from tfm_core.variants.norms import NORMS
from tfm_core.variants.positions import POSITIONS
from tfm_core.variants.residuals import RESIDUALS
from tfm_core.variants.scales import SCALES


def stack(drawing: Drawing, start: str, name: str, length: int, memory: str | None) -> str:
    """Draw a stack, folded or not; return its last node."""
    config = drawing.config
    assert not isinstance(config, RecurrentConfig)
    n_encoder, n_decoder = layers(config)
    n = n_encoder if name == "encoder" else n_decoder
    x = start
    for first, last in _groups(n, drawing.opened):
        if drawing.opened and last > first:
            x = _closed(drawing, x, name, range(first, last + 1), length)
            if memory is not None:
                drawing.across.append((memory, x))
            continue
        which = f" {first + 1}" if drawing.opened else f" x {n}" if n > 1 else ""
        drawing.frame(f"{name} {first}", name.capitalize(), f"block{which}")
        x = _block(drawing, x, f"{name}.layers.{first}", length, memory)
        drawing.lines.append("}")
    if config.has_final_norm:
        label = f"{NORMS[config.norm].label}{drawing.count(f'{name}.final_norm')}"
        final = drawing.node(f"{name} final", label, "norm")
        drawing.edge(x, final, f"(B, {length}, {config.d_model})")
        return final
    return x


def _groups(n: int, opened: range) -> list[tuple[int, int]]:
    """Return first and last of each group of blocks: one by one where opened, else together."""
    groups: list[tuple[int, int]] = []
    for layer in range(n):
        if groups and layer not in opened and groups[-1][1] not in opened:
            groups[-1] = (groups[-1][0], layer)
        else:
            groups.append((layer, layer))
    return groups


def _closed(drawing: Drawing, x: str, name: str, layers: range, length: int) -> str:
    """Draw blocks that are not opened as one box; return it."""
    first, last = layers[0], layers[-1]
    count = sum(
        row.n_parameters
        for row in parameter_table(drawing.config, drawing.shape).rows
        for layer in layers
        if row.module.startswith(f"{name}.layers.{layer}.")
    )
    words = f"{name.capitalize()} blocks {first + 1} to {last + 1}\\n{len(layers)} like the others"
    node = drawing.node(f"{name}.layers.{first}-{last}", f"{words}\\n{count:,} parameters", name)
    drawing.edge(x, node, f"(B, {length}, {drawing.config.d_model})")
    return node


def _block(drawing: Drawing, x: str, name: str, length: int, memory: str | None) -> str:
    config = drawing.config
    assert not isinstance(config, RecurrentConfig)
    width = f"(B, {length}, {config.d_model})"
    n = layers(config)[name.startswith("decoder")]
    is_repeated = not drawing.opened and n > 1
    for part, label in _sublayers(config, name, memory is not None):
        kind = "feed-forward" if part == "feed_forward" else "attention"
        kind = "cross" if part == "cross_attention" else kind
        text = f"{label}{drawing.count(f'{name}.{part}', is_repeated=is_repeated)}"
        if part == "self_attention":
            shared = drawing.count(f"{name.partition('.')[0]}.relative")
            text += shared and f"{shared} of {config.position}, shared by all blocks"
        node = f"{name}.{part}"
        x = _sublayer(drawing, x, node, text, kind, width)
        if part == "cross_attention" and memory is not None:
            drawing.across.append((memory, node))
    return x


def _sublayer(drawing: Drawing, x: str, node: str, text: str, kind: str, width: str) -> str:
    """Draw a sublayer with what stands around it; return what leaves it."""
    config = drawing.config
    assert not isinstance(config, RecurrentConfig)
    residual, norm, said = RESIDUALS[config.residual], f"{node} norm", width
    is_normed = residual.is_normed(node.rpartition(".")[2])
    is_first = config.has_norms and config.norm_first
    drawing.node(node, text, kind)

    def fork(x: str, said: str) -> str:
        forked = drawing.fork(f"{node} fork")
        drawing.edge(x, forked, said, has_head=False)
        return forked

    def normed(x: str, said: str) -> str:
        drawing.node(norm, NORMS[config.norm].label, "norm")
        drawing.edge(x, norm, said)
        return norm

    skipped = x
    if residual.has_sum and not is_normed:
        x = skipped = fork(x, said)
        said = ""
    if is_first:
        x, said = normed(x, said), ""
    if is_normed:
        x = skipped = fork(x, said)
    drawing.edge(x, node, said)
    x = node
    if residual.has_sum:
        x = f"{node} +"
        drawing.plus(x)
        drawing.edge(node, x)
        drawing.edge(skipped, x, dashed=True)
    return normed(x, "") if config.has_norms and not is_first else x


def _sublayers(config: TransformerConfig, name: str, has_cross: bool) -> Iterator[tuple[str, str]]:
    heads = f"{config.n_heads} heads x {config.d_head}"
    notes = []
    if name.startswith("decoder") and isinstance(config, WriterConfig):
        notes.append(CAUSALITIES[config.causality].note)
    notes += [config.position] if POSITIONS[config.position].is_inside else []
    window = getattr(config, "window", 0)
    notes += [f"window {window}"] if window else []
    words = f" ({', '.join(notes)})" if notes else ""
    width = SCALES[config.scale].width
    if width != "d_head":
        heads += f"\\nscores / sqrt({width})" if width else "\\nscores not scaled"
    yield "self_attention", f"Self-attention{words}\\n{heads}"
    if has_cross:
        yield "cross_attention", f"Cross-attention\\n{heads}"
    activation = ACTIVATIONS[config.activation].label
    sizes = f"{config.d_model} → {config.d_ff} → {config.d_model}"
    yield "feed_forward", f"Feed-forward, {activation}\\n{sizes}"
