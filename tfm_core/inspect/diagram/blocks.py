"""The stacks of a diagram: equal blocks once, in a frame that says how many, or one by one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat

from tfm_core.anatomy import Attention, Part, Sublayer, sublayers
from tfm_core.inspect.diagram.drawing import BREAK, Blocks, Drawing
from tfm_core.sentences import N_
from tfm_core.variants.activations import ACTIVATIONS
from tfm_core.variants.forms import CAUSALITIES, SCALES
from tfm_core.variants.norms import NORMS


def stack(drawing: Drawing, part: Part) -> None:
    """Draw a stack, folded or not, and what a decoder that looks back at it reads."""
    blocks = [child for child in part.children if child.kind == "block"]
    if len(part.inputs) > 1:
        heads = [other.outputs[0].name for other in drawing.model.folded if other.kind == "input"]
        drawing.side_by_side(*heads)
    for first, last in _groups(len(blocks), drawing.opened):
        if drawing.opened and last > first:
            _closed(drawing, part, blocks[first : last + 1])
            continue
        n = 1 if drawing.opened else len(blocks)
        which = f" {first + 1}" if drawing.opened else f" x {n}" if n > 1 else ""
        drawing.frame(f"{part.path} {first}", part.path.capitalize(), f"block{which}")
        _block(drawing, blocks[first], n)
        drawing.lines.append("}")
    final = part.children[-1]
    if final.kind == "norm":
        name, label = f"{part.path} final", NORMS[final.variant].label
        title = f"{label} behind the {part.path}"
        drawing.box(name, "norm", label, final, part, title=title, paths=[final.path])
        drawing.lead(name)
    if drawing.has_two_columns and not drawing.memory:
        words = f"memory{BREAK}{drawing.shape(part.outputs[0])}"
        drawing.memory = drawing.words("memory", words)
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
    label = f"{part.path.capitalize()} blocks {first + 1} to {last + 1}"
    label += f"{BREAK}{len(blocks)} like the others"
    name = f"{paths[0]}-{last}"
    drawing.box(
        name, part.path, label, blocks[0], paths=paths, steps=part.steps, blocks=Blocks(first)
    )
    drawing.lead(name)
    if len(part.inputs) > 1:
        drawing.across.append((drawing.memory, drawing.last))


def _layer(block: Part) -> int:
    return int(block.path.rpartition(".")[2])


def _block(drawing: Drawing, block: Part, n: int) -> None:
    """Draw one block for ``n`` equal ones."""
    for sublayer in sublayers(block):
        _sublayer(drawing, block, sublayer, n)


def _sublayer(drawing: Drawing, block: Part, joint: Sublayer, n: int) -> None:
    """Draw a sublayer with its norm and its residual."""
    sublayer, residual, norm = joint.layer, joint.residual, joint.norm
    name, layer = sublayer.path, _layer(block)
    blocks = Blocks(layer, n)
    stack = block.path.partition(".")[0].capitalize()
    which = f"{stack} block" + (f"s 1 to {n}" if n > 1 else f" {layer + 1}")
    words = name.rpartition(".")[2].replace("_", "-")
    shapes = chain([drawing.shape(residual.inputs[-1])], repeat(""))  # on the first arrow alone

    def around(kind: str, label: str, *parts: Part, title: str, paths: Sequence[str] = ()) -> str:
        return drawing.box(
            f"{name} {label if kind == 'sum' else kind}", kind, label, *parts, title=title,
            paths=paths, count="", steps=residual.steps or sublayer.steps, blocks=blocks,
        )  # fmt: skip

    def lead(to: str, *, has_head: bool = True) -> str:
        drawing.edge(drawing.last, to, next(shapes), has_head=has_head)
        drawing.last = to
        return to

    def normed(norm: Part, side: str) -> None:
        label = NORMS[norm.variant].label
        title = f"{which}: {label} {side} {words}"
        lead(around("norm", label, norm, block, title=title, paths=[norm.path]))

    kind, label = _label(drawing, sublayer)
    first = label.partition(BREAK)[0]
    title = f"{which}: {first[:1].lower()}{first[1:]}"
    paths, count = _parameters(drawing, sublayer, n)
    drawing.box(name, kind, label, sublayer, title=title, paths=paths, count=count, blocks=blocks)
    skipped = ""
    if joint.has_sum and not joint.is_normed:
        skipped = lead(drawing.fork(f"{name} fork"), has_head=False)
    if norm is not None and joint.norm_first:
        normed(norm, "before")
    if joint.is_normed:
        skipped = lead(drawing.fork(f"{name} fork"), has_head=False)
    lead(name)
    if joint.has_sum:
        title = N_("{block}: sum around {words}", block=which, words=words)
        lead(around("sum", "+", residual, title=title))
        drawing.edge(skipped, drawing.last, dashed=True)
    if norm is not None and not joint.norm_first:
        normed(norm, "behind")
    if kind == "cross":
        drawing.across.append((drawing.memory, name))


def _parameters(drawing: Drawing, sublayer: Part, n: int) -> tuple[list[str], str]:
    """Return the modules of a sublayer of ``n`` blocks, and how many parameters they have."""
    paths, count = [sublayer.path], drawing.count(sublayer.path, is_repeated=n > 1)
    for shared in (part for part in sublayer if part.kind == "relative"):
        paths.append(shared.path)
        if of_all := drawing.count(shared.path):
            count += f"{of_all} of {shared.variant}, shared by all blocks"
    return paths, count


def _label(drawing: Drawing, part: Part) -> tuple[str, str]:
    """Return the class and the label of a sublayer, without its parameters."""
    if not isinstance(part, Attention):
        d_model, d_ff = drawing.number("d_model"), drawing.number("d_ff")
        activation = ACTIVATIONS[part.variant].label
        return (
            "feed-forward",
            f"Feed-forward, {activation}{BREAK}{d_model} → {d_ff} → {d_model}",
        )
    notes = [CAUSALITIES[part.order].note] if part.order else []
    notes += [part.relative] if part.relative else []
    notes += [f"window {part.window}"] if part.window else []
    heads = f"{BREAK}{part.n_heads} heads x {drawing.number('d_head')}"
    width = SCALES[part.scale].width
    if width != "d_head":
        heads += f"{BREAK}scores / sqrt({width})" if width else f"{BREAK}scores not scaled"
    if part.is_cross:
        return "cross", f"Cross-attention{heads}"
    noted = f" ({', '.join(notes)})" if notes else ""
    return "attention", f"Self-attention{noted}{heads}"
