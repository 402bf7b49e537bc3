"""The layers of a generated file: attention, feed-forward, block, stack, as text.

Each function returns the source of one class with exactly what a configuration needs, no branch
left to take. Attention comes in two ways of writing: its softmax in plain lines, which can show its
weights, or one call of PyTorch's fused kernel, which never has them.
"""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Literal, get_args

from tfm_core.config import TransformerConfig, WriterConfig
from tfm_core.inspect.source import projections
from tfm_core.variants.activations import ACTIVATIONS
from tfm_core.variants.causalities import CAUSALITIES
from tfm_core.variants.norms import NORMS
from tfm_core.variants.positions import POSITIONS
from tfm_core.variants.residuals import RESIDUALS
from tfm_core.variants.scales import SCALES

AttentionForm = Literal["written", "fused"]
FORMS: tuple[AttentionForm, ...] = get_args(AttentionForm)

CROSS = {"encoder-decoder", "captioner"}
"""The families whose decoder looks back at what an encoder read."""
UNMASKED = {"vit"}
"""The families in which every token may attend to every other, so that there is no mask."""
PARTLY_MASKED = {"captioner"}
"""The families in which some attention has a mask and some has none."""
SAYS_WRONG = "a mistake, not"
"""How a line says that it is one of the mistakes worth seeing."""


def attention(config: TransformerConfig, form: AttentionForm) -> str:
    """Return the source of multi-head attention, and of cross-attention if there is any."""
    has_cross, is_masked = config.family in CROSS, config.family not in UNMASKED
    names = ["x", *(["memory=None"] if has_cross else []), *_mask_argument(config)]
    inside = POSITIONS[config.position].inside
    if inside is not None:
        names.append(f"{inside.argument}=None" if has_cross else inside.argument)
    made = f"\n{' ' * 16}".join(projections.made(config))
    project = (
        _cross_projection(config) if has_cross else "q, k, v = self.in_projection(x).chunk(3, -1)"
    )
    lines = [project, "q, k, v = split(q), split(k), split(v)  # (B, H, T, D_HEAD)"]
    if inside is not None and inside.turn is not None:
        lines.append(
            f"if {inside.argument} is not None:\n    {inside.turn}" if has_cross else inside.turn
        )
    lines.append(_written(config) if form == "written" else _fused(config))
    lines.append(projections.mixed(config))
    mask = "; mask: bool, True = may attend" if is_masked else ""
    text = _class(
        f'''
        class MultiHeadAttention(nn.Module):
            """{config.n_heads} heads of {config.d_head} dimensions."""

            def __init__(self):
                super().__init__()
                {made}

            def forward(self, {", ".join(names)}):
                """x: (B, T, D_MODEL){mask}."""
        ''',
        "\n".join(lines),
    )
    return "\n\n".join(part for part in (projections.classes(config), text) if part)


def _mask_argument(config: TransformerConfig) -> list[str]:
    """Return the argument that takes a mask, as a list of one, or of none where none is made."""
    if config.family in UNMASKED:
        return []
    return ["mask=None" if config.family in CROSS else "mask"]


def _cross_projection(config: TransformerConfig) -> str:
    if not config.attention_bias:
        own, other = "None", "None"
        head = "weight = self.in_projection.weight"
    else:
        own, other = "bias_in[:D_MODEL]", "bias_in[D_MODEL:]"
        head = "weight, bias_in = self.in_projection.weight, self.in_projection.bias"
    return dedent(f"""\
        if memory is None:
            q, k, v = self.in_projection(x).chunk(3, -1)
        else:  # the target asks, the source answers
            {head}
            q = F.linear(x, weight[:D_MODEL], {own})
            k, v = F.linear(memory, weight[D_MODEL:], {other}).chunk(2, -1)""")


def _bias(config: TransformerConfig) -> str | None:
    """Return the name of what positions add to the scores, None where they add nothing."""
    inside = POSITIONS[config.position].inside
    return None if inside is None or inside.turn is not None else inside.argument


def _written(config: TransformerConfig) -> str:
    """Return softmax(q k^T / sqrt(d_head)) v in plain lines; the weights are kept to be shown."""
    width = SCALES[config.scale].width
    over = f" / math.sqrt({width.upper()})" if width else ""
    wrong = "" if width == "d_head" else f"; {SAYS_WRONG} / math.sqrt(D_HEAD)"
    lines = [f"scores = q @ k.mT{over}  # (B, H, Q, K){wrong}"]
    bias = _bias(config)
    if bias is not None:
        added = f"scores = scores + {bias}"
        lines.append(f"if {bias} is not None:\n    {added}" if config.family in CROSS else added)
    hide = "scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)"
    zero = "weights = weights.masked_fill(~mask, 0.0)"
    softmax = "weights = scores.softmax(-1)  # every row adds up to 1"
    if config.family in UNMASKED:
        lines.append(softmax)
    elif config.family in PARTLY_MASKED:
        lines += [f"if mask is not None:\n    {hide}", softmax]
        if isinstance(config, WriterConfig) and not CAUSALITIES[config.causality].sees_past:
            lines.append(
                f"if mask is not None:  # of padding, only padding lies behind\n    {zero}"
            )
    else:
        lines += [hide, softmax, f"{zero}  # a query that may attend to nothing gets zeros"]
    lines.append("self.weights = weights.detach()  # for who asks to see them")
    kept = "F.dropout(weights, DROPOUT, self.training)" if config.dropout else "weights"
    return "\n".join([*lines, f"heads = {kept} @ v"])


def _scale(config: TransformerConfig) -> str:
    """Return what the fused kernel is told of the scale; sqrt(D_HEAD) is its own."""
    return "" if SCALES[config.scale].width == "d_head" else ", scale=scale"


def _fused(config: TransformerConfig) -> str:
    """Return one call of the fused kernel, which never lays the weights out in memory."""
    drop = ", dropout_p=drop" if config.dropout else ""
    first = ["drop = DROPOUT if self.training else 0.0"] if config.dropout else []
    width = SCALES[config.scale].width
    if width != "d_head":
        over = f"1 / math.sqrt({width.upper()})" if width else "1.0"
        first.append(f"scale = {over}  # {SAYS_WRONG} 1 / math.sqrt(D_HEAD)")
    call = "F.scaled_dot_product_attention(q, k, v{mask}" + drop + _scale(config) + ")"
    bias = _bias(config)
    if bias is None:
        mask = "" if config.family in UNMASKED else ", attn_mask=mask"
        return "\n".join([*first, "heads = " + call.format(mask=mask)])
    if config.family in UNMASKED:
        return "\n".join([*first, "heads = " + call.format(mask=f", attn_mask={bias}")])
    hidden = f"{bias}.masked_fill(~mask, torch.finfo({bias}.dtype).min)"
    zeros = "heads = heads.masked_fill(~mask.any(-1, keepdim=True), 0.0)"
    if config.family not in CROSS:
        lines = [
            f"scores = {hidden}",
            f"heads = {call.format(mask=', attn_mask=scores')}",
            "# a query that may attend to nothing gets zeros",
            zeros,
        ]
        return "\n".join([*first, *lines])
    lines = [
        "scores = mask",
        f"if {bias} is not None:  # finite, so that no row becomes NaN",
        f"    scores = {hidden}",
        f"heads = {call.format(mask=', attn_mask=scores')}",
        f"if {bias} is not None:  # who may attend to nothing gets zeros",
        f"    {zeros}",
    ]
    return "\n".join([*first, *lines])


def feed_forward(config: TransformerConfig) -> str:
    """Return the source of the feed-forward layer."""
    chosen = ACTIVATIONS[config.activation]
    bias = "" if config.bias else ", bias=False"
    gate = (
        f"\n                self.gate = nn.Linear(D_MODEL, D_FF{bias})" if chosen.is_gated else ""
    )
    layer = "\n                self.dropout = nn.Dropout(DROPOUT)" if config.dropout else ""
    hidden = chosen.code.format(up="self.up(x)", gate="self.gate(x)")
    drop = f"self.dropout({hidden})" if config.dropout else hidden
    return _class(
        f'''
        class FeedForward(nn.Module):
            """Every token alone is widened, bent and narrowed again."""

            def __init__(self):
                super().__init__()
                self.up = nn.Linear(D_MODEL, D_FF{bias}){gate}
                self.down = nn.Linear(D_FF, D_MODEL{bias}){layer}

            def forward(self, x):
        ''',
        f"return self.down({drop})",
    )


def norm(config: TransformerConfig) -> str | None:
    """Return the expression that makes a norm, None without; torch's own epsilon is not said."""
    code = NORMS[config.norm].code
    return None if code is None else code(config.norm_eps)


def block(config: TransformerConfig) -> str:
    """Return the source of a block: its sublayers with residuals and norms in their order."""
    inside = POSITIONS[config.position].inside
    has_cross = config.family in CROSS
    made = norm(config)
    another = "SharedNorm(self.self_attention_norm)" if config.shared_norm else made
    arguments, passed = _mask_argument(config), []
    passed = [] if config.family in UNMASKED else ["mask=mask"]
    if has_cross:
        arguments += ["memory=None", "memory_mask=None"]
    if inside is not None:
        arguments.append(f"{inside.argument}=None" if has_cross else inside.argument)
        passed.append(f"{inside.argument}={inside.argument}")
    init = [
        "self.self_attention = MultiHeadAttention()",
        *([f"self.self_attention_norm = {made}"] if made else []),
        *(
            [
                "if has_cross:",
                "    self.cross_attention = MultiHeadAttention()",
                *([f"    self.cross_attention_norm = {another}"] if another else []),
                "self.has_cross = has_cross",
            ]
            if has_cross
            else []
        ),
        "self.feed_forward = FeedForward()",
        *([f"self.feed_forward_norm = {another}"] if another else []),
        *(["self.dropout = nn.Dropout(DROPOUT)"] if config.dropout else []),
    ]
    steps = [_sublayer(config, "self_attention", ", ".join(passed))]
    if has_cross:
        cross = _sublayer(config, "cross_attention", "memory, mask=memory_mask")
        steps.append("if self.has_cross:\n" + indent(cross, "    "))
    steps += [_sublayer(config, "feed_forward", ""), "return x"]
    head = f'''
        class Block(nn.Module):
            """{_says(config)}"""

            def __init__(self{", has_cross=False" if has_cross else ""}):
                super().__init__()
        '''
    text = (_SHARED_NORM + "\n\n" if config.shared_norm else "") + _class(head, "\n".join(init))
    return text + "\n" + _method(f"def forward({', '.join(['self', 'x', *arguments])}):", steps)


_SHARED_NORM = dedent('''\
    class SharedNorm(nn.Module):
        """Another sublayer's norm, with the same scale and shift."""

        def __init__(self, norm):
            super().__init__()
            self.norm = norm

        def forward(self, x):
            return self.norm(x)
    ''')


def _says(config: TransformerConfig) -> str:
    """Return what stands at the head of a block, mistakes by their name."""
    residual = RESIDUALS[config.residual]
    if residual.normed:
        which = "each" if residual.is_normed("self_attention") else "the second"
        return f"Attention, then feed-forward; {which} residual is taken from norm(x): a mistake."
    each = "each a residual" if residual.has_sum else "no residual: a mistake"
    both = "Attention, then feed-forward" if residual.has_sum else "Attention, feed-forward"
    if not config.has_norms:
        return f"{both}, {each}; no norm: a mistake."
    after = "after each sum" if residual.has_sum else "after each"
    where = "before each sublayer" if config.norm_first else after
    return f"{both}, {each}; the norm stands {where}."


def _sublayer(config: TransformerConfig, name: str, arguments: str) -> str:
    rest = f", {arguments}" if arguments else ""
    residual, lines = RESIDUALS[config.residual], []
    read = f"self.{name}_norm(x)" if config.has_norms and config.norm_first else "x"
    if residual.is_normed(name):
        lines, read = [f"x = {read}"], "x"
    change = f"self.{name}({read}{rest})"
    if config.dropout:
        lines.append(f"y = {change}")
        change = "self.dropout(y)"
    total = f"x + {change}" if residual.has_sum else change
    behind = config.has_norms and not config.norm_first
    lines.append(f"x = self.{name}_norm({total})" if behind else f"x = {total}")
    return "\n".join(lines)


def stack(config: TransformerConfig) -> str:
    """Return the source of a stack of blocks, with the last norm of a pre-norm one."""
    has_cross = config.family in CROSS
    made = "Block(has_cross)" if has_cross else "Block()"
    init = f"self.layers = nn.ModuleList({made} for _ in range(n_layers))"
    final = f"\nself.final_norm = {norm(config)}" if config.has_final_norm else ""
    inside = POSITIONS[config.position].inside
    given = ["x", *([] if config.family in UNMASKED else ["mask"])]
    given += ["memory", "memory_mask"] if has_cross else []
    steps = []
    if inside is not None:
        given.append(f"{inside.argument}={inside.argument}")
        steps = [f"{inside.argument} = {inside.made}"]
        if inside.init is not None:
            is_causal = "has_cross" if has_cross else str(config.family == "decoder-only")
            init += f"\nself.relative = {inside.init.format(is_causal=is_causal)}"
    steps.append(f"for block in self.layers:\n    x = block({', '.join(given)})")
    steps.append("return self.final_norm(x)" if config.has_final_norm else "return x")
    head = f'''
        class Stack(nn.Module):
            """Blocks, one after the other{", and a last norm" if config.has_final_norm else ""}."""

            def __init__(self, n_layers{", has_cross=False" if has_cross else ""}):
                super().__init__()
        '''
    arguments = [
        *_mask_argument(config),
        *(["memory=None", "memory_mask=None"] if has_cross else []),
    ]
    forward = _method(f"def forward({', '.join(['self', 'x', *arguments])}):", steps)
    return _class(head, init + final) + "\n" + forward


def _class(head: str, body: str) -> str:
    """Join the head of a class, ending in an open function, and that function's body."""
    lines = [line for line in dedent(head).strip("\n").split("\n")]
    text = "\n".join(line.rstrip() for line in lines).rstrip()
    return text + "\n" + indent(body, " " * 8) + "\n"


def _method(head: str, steps: list[str]) -> str:
    return indent(head, " " * 4) + "\n" + indent("\n".join(steps), " " * 8) + "\n"


method, class_ = _method, _class
