"""The kinds of attention in words: queries, keys, and what to look for in a map."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.causalities import Causality


@dataclass(frozen=True, slots=True)
class AttentionKind:
    """One attention of the model in words.

    short: the label for little room. written: what a row writes, if a token. is_named_by_written:
    its rows are named by that first.
    """

    name: str
    label: str
    help: str
    query: str
    key: str
    look_for: str
    short: str
    written: str = ""
    is_named_by_written: bool = False


_EARLIER = N_("Every token attends to itself and earlier ones.")

KINDS: dict[str, AttentionKind] = {
    kind.name: kind
    for kind in (
        AttentionKind(
            "encoder",
            N_("Encoder self-attention"),
            N_("Every source token attends to all source tokens."),
            N_("source token"),
            N_("source token"),
            Paragraph("probe/encoder-look-for"),
            N_("Encoder"),
        ),
        AttentionKind(
            "slots",
            N_("Encoder self-attention"),
            Paragraph("probe/slots-help"),
            N_("answering position"),
            N_("source token"),
            Paragraph("probe/slots-look-for"),
            N_("Encoder"),
            N_("target token written"),
        ),
        AttentionKind(
            "words",
            N_("Self-attention over words"),
            Paragraph("probe/words-help"),
            N_("word"),
            N_("word"),
            Paragraph("probe/words-look-for"),
            N_("Words"),
        ),
        AttentionKind(
            "blanks",
            N_("Self-attention around blanks"),
            N_("Every position attends to all positions. A blank is answered in place."),
            N_("position"),
            N_("position"),
            Paragraph("probe/blanks-look-for"),
            N_("Words"),
        ),
        AttentionKind(
            "decoder",
            N_("Decoder self-attention (causal)"),
            _EARLIER,
            N_("target token so far"),
            N_("target token so far"),
            Paragraph("probe/decoder-look-for"),
            N_("Decoder"),
            N_("target token written"),
        ),
        AttentionKind(
            "cross",
            N_("Cross-attention"),
            N_("Every target token attends to the encoded source tokens."),
            N_("target token so far"),
            N_("source token"),
            Paragraph("probe/cross-look-for"),
            N_("Cross"),
            N_("target token written"),
            is_named_by_written=True,
        ),
        AttentionKind(
            "sequence",
            N_("Self-attention (causal)"),
            _EARLIER,
            N_("token"),
            N_("token"),
            Paragraph("probe/sequence-look-for"),
            N_("Self"),
            N_("token written"),
        ),
        AttentionKind(
            "text",
            N_("Self-attention (causal)"),
            _EARLIER,
            N_("token"),
            N_("token"),
            Paragraph("probe/decoder-look-for"),
            N_("Self"),
            N_("token written"),
        ),
        AttentionKind(
            "picture",
            N_("Cross-attention over the picture"),
            N_("Every word attends to the encoded patches. 1,1 is the top-left patch."),
            N_("word so far"),
            N_("patch"),
            Paragraph("probe/picture-look-for"),
            N_("Cross"),
            N_("word written"),
            is_named_by_written=True,
        ),
        AttentionKind(
            "patches",
            N_("Attention over patches"),
            N_("Every patch attends to all patches. 1,1 is the top-left patch."),
            N_("patch"),
            N_("patch"),
            Paragraph("probe/patches-look-for"),
            N_("Patches"),
        ),
    )
}


def seen_through(kind: AttentionKind, order: Causality) -> AttentionKind:
    """Return a kind of causal attention as it is with another mask, or with none."""
    if not order.sees_future:
        return kind
    is_decoder = kind.name == "decoder"
    if order.sees_past:
        return replace(
            kind,
            label=N_("Decoder self-attention (no causal mask)")
            if is_decoder
            else N_("Self-attention (no causal mask)"),
            help=Paragraph("probe/no-mask-help"),
            look_for=Paragraph("probe/no-mask-look-for"),
        )
    return replace(
        kind,
        label=N_("Decoder self-attention (mask on the wrong axis)")
        if is_decoder
        else N_("Self-attention (mask on the wrong axis)"),
        help=Paragraph("probe/mask-transposed-help"),
        look_for=Paragraph("probe/mask-transposed-look-for"),
    )
