"""The blocks of a pasted model: what its repeated layers are, by their sizes and their names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tfm_core.inspect.notebook.pasted import Layer, Pasted
from tfm_core.sentences import N_, StudentError

_INDEX = re.compile(r"(?:block|layer)?_?\d+(?:-\d+)?$", re.I)
_ATTENTION = re.compile(
    r"att|mha|msa|mhsa|self\b|w_?[qkvo]\b|\b[qkvo]_proj|\b[qkvo]\b|query|key|value|in_proj|out_proj"
    r"|mapping|fc_out|c_attn|qkv",
    re.I,
)
_FEED_FORWARD = re.compile(
    r"fc\d|linear_?[12]\b|\bup\b|\bdown\b|gate|mlp|ffn?\b|ffwd|feed|intermediate|dense_?[12]|dense\w*dense|c_fc"
    r"|^output",
    re.I,
)


@dataclass(slots=True)
class Block:
    """What one block of a stack is made of. sliced: heads that map their own slices, or 0."""

    d_model: int
    n_attentions: int
    has_output: bool
    sliced: int
    d_ff: int
    is_gated: bool
    attention_bias: bool
    bias: bool
    n_lost_biases: int
    n_norms: int
    norm_layer: str
    eps: float | None
    is_norm_before: bool | None
    rest: list[Layer] = field(default_factory=list)


@dataclass(slots=True)
class Stack:
    """Equal blocks. path: of what holds them."""

    path: str
    n_layers: int
    block: Block
    are_equal: bool


def stacks_of(pasted: Pasted) -> tuple[list[Stack], list[Layer]]:
    """Return the stacks of a model, and the layers around them.

    Raises ValueError, in a sentence, for blocks that no model here has.
    """
    groups: dict[str, dict[str, list[Layer]]] = {}
    around: list[Layer] = []
    for layer in pasted.layers:
        place = _place(layer.path)
        if place is None:
            around.append(layer)
        else:
            groups.setdefault(place[0], {}).setdefault(place[1], []).append(layer)
    stacks: list[Stack] = []
    for path, elements in groups.items():
        first = next(iter(elements.values()))
        if not _is_block(first):
            around += [layer for element in elements.values() for layer in element]
            continue
        start = len(f"{path}.{next(iter(elements))}.".lstrip("."))
        forms = [_form(element, path) for element in elements.values()]
        n = sum(_n_of(index) for index in elements)
        stacks.append(Stack(path, n, _block(first, start), are_equal=len(set(forms)) == 1))
    if not stacks and _is_block(around):
        whole = [one for one in around if _ATTENTION.search(one.path) or one.kind != "embedding"]
        stacks = [Stack("", 1, _block(whole, 0), are_equal=True)]
        around = [one for one in around if one not in whole]
    return stacks, around


def _place(path: str) -> tuple[str, str] | None:
    """Return what holds a layer's block and the block's index, if it lies in one."""
    names = path.split(".")
    at = next((i for i, name in enumerate(names[:-1]) if _INDEX.match(name)), None)
    return None if at is None else (".".join(names[:at]), names[at])


def _n_of(index: str) -> int:
    first, dash, last = re.sub(r"^\D*", "", index).partition("-")
    return int(last) - int(first) + 1 if dash else 1


def _form(element: Sequence[Layer], path: str) -> tuple[tuple[object, ...], ...]:
    depth = path.count(".") + 2 if path else 1
    return tuple(
        (".".join(one.path.split(".")[depth:]), one.kind, one.into, one.out, one.has_bias)
        for one in element
        if "relative_attention_bias" not in one.path  # of T5, in the first block alone
    )


def _is_block(layers: Sequence[Layer]) -> bool:
    linear = [one for one in layers if one.kind in ("linear", "attention")]
    return len(linear) > 2 and any(_ATTENTION.search(one.path) for one in linear)


def _block(layers: Sequence[Layer], start: int) -> Block:
    norms = [one for one in layers if one.kind == "norm"]
    linear = [one for one in layers if one.kind in ("linear", "attention")]
    sizes = Counter(one.out for one in norms) or Counter(one.into for one in linear)
    d_model = sizes.most_common(1)[0][0]
    inside = {id(one): one.path[start:] for one in layers}
    attention = [one for one in linear if _is_of_attention(one, inside[id(one)], d_model)]
    others = [one for one in linear if one not in attention]
    wide = [one for one in others if one.into == d_model]
    narrow = [one for one in others if one.out == d_model and one not in wide]
    if not narrow and len(wide) > 1:  # d_ff is d_model
        narrow = [wide.pop()]
    if not wide or len(narrow) != 1 or len({one.out for one in wide}) != 1 or len(wide) > 2:
        raise StudentError("No feed-forward layer of two matrices was found in the blocks.")
    n_blocks = min(one.times for one in layers)
    n_matrices, sliced = _matrices(attention, d_model, n_blocks)
    n_attentions = 2 if n_matrices > 4 else 1
    first_norm = next((i for i, one in enumerate(layers) if one.kind == "norm"), None)
    first_linear = next(i for i, one in enumerate(layers) if one in attention)
    known = {id(one) for one in (*norms, *attention, *wide, *narrow)}
    return Block(
        d_model=d_model, n_attentions=n_attentions,
        has_output=n_matrices % 4 == 0, sliced=sliced,
        d_ff=wide[0].out, is_gated=len(wide) == 2,
        attention_bias=all(one.has_bias for one in attention),
        bias=all(one.has_bias for one in (*wide, *narrow)),
        n_lost_biases=_lost_biases(attention),
        n_norms=sum(one.times for one in norms) // max(layers[0].times, 1),
        norm_layer=norms[0].layer if norms else "",
        eps=next((one.eps for one in norms if one.eps is not None), None),
        is_norm_before=_is_before([inside[id(one)] for one in norms], first_norm, first_linear),
        rest=[one for one in layers if id(one) not in known],
    )  # fmt: skip


def _lost_biases(attention: Sequence[Layer]) -> int:
    """Return the numbers in biases of some matrices of an attention whose others have none."""
    if all(one.has_bias for one in attention):
        return 0
    return sum(one.out for one in attention if one.has_bias)


def _is_of_attention(layer: Layer, path: str, d_model: int) -> bool:
    if layer.kind == "attention":
        return True
    is_square, is_fused = layer.into == layer.out, layer.out == 3 * layer.into
    if layer.into == d_model and (is_square or is_fused):
        return bool(_ATTENTION.search(path)) or not _FEED_FORWARD.search(path)
    return bool(_ATTENTION.search(path)) and not _FEED_FORWARD.search(path)


def _matrices(attention: Sequence[Layer], d_model: int, n_blocks: int) -> tuple[int, int]:
    """Return how many d_model x d_model matrices there are, and into how many slices they are cut.

    Raises ValueError, in a sentence, where they are none that are built here.
    """
    slices = [one for one in attention if one.into == one.out < d_model]
    if slices and d_model % slices[0].into == 0:
        heads = d_model // slices[0].into
        maps = sum(one.times for one in slices) // n_blocks
        if maps != 3 * heads:
            raise StudentError(
                "Your {heads} heads share maps of {width} numbers; here each head has its own.",
                heads=heads,
                width=slices[0].into,
            )
        return 3 + (len(attention) > len(slices)), heads
    n = 0
    for one in attention:
        if one.into != d_model or one.out not in (d_model, 3 * d_model):
            if one.into == d_model and d_model % one.out == 0:
                raise StudentError(
                    "“{name}” has {out:,} numbers where queries have {into:,}: keys and values "
                    "that heads share are not read yet.",
                    name=one.path[-60:],
                    into=one.into,
                    out=one.out,
                )
            raise StudentError(
                "“{name}” maps {into:,} numbers to {out:,}; here queries, keys and values are as "
                "wide as the model, {d_model:,}.",
                name=one.path[-60:],
                into=one.into,
                out=one.out,
                d_model=d_model,
            )
        n += 3 if one.kind == "attention" or one.out == 3 * one.into else 1
    if n not in (3, 4, 6, 8):
        raise StudentError(
            "{n} square matrices in a block; an attention has three and perhaps an output matrix.",
            n=n,
        )
    return n, 0


def _is_before(paths: Sequence[str], norm: int | None, linear: int) -> bool | None:
    """Return whether norms stand before the sublayers: by their names, else unknown."""
    text = " ".join(paths).lower()
    if re.search(r"addnorm|add_norm|output\.layernorm|final_layer_norm|sublayer", text):
        return False
    if re.search(r"before|ln_1|input_layernorm|pre_?norm|norm_?first", text):
        return True
    return True if norm is not None and norm < linear else None


def unbuildable(stacks: Sequence[Stack]) -> str:
    """Return why these stacks make no model here, or ""."""
    if len(stacks) > 2:
        return N_("There are {n} stacks of blocks; a model here has one or two.", n=len(stacks))
    if len(stacks) == 1 and stacks[0].block.n_attentions > 1:
        return N_("A decoder that looks at an encoder stands here alone; paste the whole model.")
    if len({one.block.d_model for one in stacks}) > 1:
        return N_("The two stacks have different widths.")
    return ""
