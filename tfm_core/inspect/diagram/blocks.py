"""The stacks of a diagram: equal blocks once, in a frame that says how many, or one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, repeat

from tfm_core.anatomy import Attention, Part, Sublayer, sublayers
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.forms import CAUSALITIES, SCALES
from tfm_core.choices.variants.norms import NORMS
from tfm_core.choices.variants.sinks import SINKS
from tfm_core.inspect.diagram.drawing import Blocks, Drawing, Rows
from tfm_core.sentences import N_, Sentence, listed

STACKS = {"encoder": N_("Encoder"), "decoder": N_("Decoder")}
_SUBLAYERS = {
    "self_attention": N_("self-attention"),
    "cross_attention": N_("cross-attention"),
    "feed_forward": N_("feed-forward"),
}
_BEHIND: dict[str, Callable[[str], Sentence]] = {
    "encoder": lambda norm: N_("{norm} behind the encoder", norm=norm),
    "decoder": lambda norm: N_("{norm} behind the decoder", norm=norm),
}


def stack(drawing: Drawing, part: Part) -> None:
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
        drawing.frame(f"{part.path} {first}", STACKS[part.path], _number(drawing, first, n))
        _block(drawing, blocks[first], n)
        drawing.lines.append("}")
    final, cross = behind.get("norm"), behind.get("attention")
    if final is not None:
        name, label = f"{part.path} final", NORMS[final.variant].label
        title = _BEHIND[part.path](label)
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


def _number(drawing: Drawing, first: int, n: int) -> str:
    """Return which block a frame holds, or for how many it stands."""
    if drawing.opened:
        return N_("block {n}", n=first + 1)
    return N_("block x {n}", n=n) if n > 1 else N_("block")


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
