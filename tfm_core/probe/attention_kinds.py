"""The kinds of attention in words: queries, keys, and what to look for in a map."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tfm_core.sentences import N_
from tfm_core.variants.forms import Causality


@dataclass(frozen=True, slots=True)
class AttentionKind:
    """One attention of the model in words: its name, its queries and keys, what to look for.

    short: the label where there is little room. written: what a row writes, where it writes a
    token; empty where none does. is_named_by_written: its rows are called by that first of all,
    because the keys are what it is made of.
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


KINDS: dict[str, AttentionKind] = {
    kind.name: kind
    for kind in (
        AttentionKind(
            "encoder",
            N_("Encoder self-attention"),
            N_("Every source token attends to all source tokens, before and behind it."),
            N_("source token"),
            N_("source token"),
            N_(
                "A diagonal is a head that copies a token, a line beside it a head that looks "
                "at the neighbour, a column a token that everybody reads.",
            ),
            N_("Encoder"),
        ),
        AttentionKind(
            "slots",
            N_("Encoder self-attention"),
            N_(
                "Every position attends to the source tokens. Position t answers target token "
                "t; where the source is shorter than the answer, empty slots attend too, but no "
                "token can attend to them.",
            ),
            N_("position that answers"),
            N_("source token"),
            N_(
                "Position t writes target token t: the strongest cells of its row are what it "
                "is made of. The columns of slots are masked: nobody may read an empty slot.",
            ),
            N_("Encoder"),
            N_("target token written"),
        ),
        AttentionKind(
            "words",
            N_("Self-attention over the words"),
            N_(
                "Every word attends to all words, before and behind it, and so does the CLS "
                "token, where one stands in front. One label is read from the CLS token, or "
                "from the mean of all words.",
            ),
            N_("word"),
            N_("word"),
            N_(
                "Look where the words that decide are read: a negation by its adjective, “but” "
                "by everybody. In the last layer the row of CLS, if there is one, gathers the "
                "answer.",
            ),
            N_("Words"),
        ),
        AttentionKind(
            "blanks",
            N_("Self-attention around the blanks"),
            N_(
                "Every position attends to all positions, before and behind it. A blank is "
                "answered where it stands.",
            ),
            N_("position"),
            N_("position"),
            N_(
                "The row of a blank says which words it is guessed from: its article, its verb, "
                "its time. A causal model would see only the left half of that row.",
            ),
            N_("Words"),
        ),
        AttentionKind(
            "decoder",
            N_("Decoder self-attention (causal)"),
            N_("Every target token attends to itself and the target tokens before it."),
            N_("target token so far"),
            N_("target token so far"),
            N_(
                "The grey triangle is exactly 0: the causal mask hides the future. Each row "
                "predicts the token after its own.",
            ),
            N_("Decoder"),
            N_("target token written"),
        ),
        AttentionKind(
            "cross",
            N_("Cross-attention"),
            N_("Every target token attends to the source, whose tokens the encoder has read."),
            N_("target token so far"),
            N_("source token"),
            N_(
                "The strongest cell of a row is often the source token that its target token comes "
                "from: a diagonal where the order is kept, an anti-diagonal where it is reversed.",
            ),
            N_("Cross"),
            N_("target token written"),
            is_named_by_written=True,
        ),
        AttentionKind(
            "sequence",
            N_("Self-attention (causal)"),
            N_(
                "Source and target are one sequence; every token attends to itself and those "
                "before it.",
            ),
            N_("token"),
            N_("token"),
            N_(
                "The grey triangle is exactly 0: the causal mask hides the future. From <bos> "
                "on, each row predicts the token after its own; strong cells left of <bos> read "
                "the source.",
            ),
            N_("Self"),
            N_("token written"),
        ),
        AttentionKind(
            "text",
            N_("Self-attention (causal)"),
            N_("Every token of the text attends to itself and those before it."),
            N_("token"),
            N_("token"),
            N_(
                "The grey triangle is exactly 0: the causal mask hides the future. Each row "
                "predicts the token after its own.",
            ),
            N_("Self"),
            N_("token written"),
        ),
        AttentionKind(
            "picture",
            N_("Cross-attention over the picture"),
            N_(
                "Every word attends to the patches of the picture, which the encoder has read. "
                "1,1 is the top-left patch.",
            ),
            N_("word so far"),
            N_("patch"),
            N_(
                "A row says where the model looks while it writes a word: for a number that should "
                "be where that digit stands.",
            ),
            N_("Cross"),
            N_("word written"),
            is_named_by_written=True,
        ),
        AttentionKind(
            "patches",
            N_("Attention over patches"),
            N_(
                "Every patch of the picture attends to all patches. 1,1 is the top-left patch.",
            ),
            N_("patch"),
            N_("patch"),
            N_(
                "Columns are patches that everybody reads, often those with ink; a diagonal is "
                "a head that stays where it is.",
            ),
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
            help=N_(
                "A mistake worth seeing: every token attends to all others, those behind it too, "
                "which it has to answer with."
            ),
            look_for=N_(
                "No triangle is grey: a row may read the cell right of the diagonal, the token "
                "that it has to answer with. When the model writes by itself, that is not there."
            ),
        )
    return replace(
        kind,
        label=N_("Decoder self-attention (mask on the wrong axis)")
        if is_decoder
        else N_("Self-attention (mask on the wrong axis)"),
        help=N_(
            "A mistake worth seeing: every token attends to itself and to those behind it, and to "
            "none before it."
        ),
        look_for=N_(
            "The grey triangle, exactly 0, lies on the wrong side: it hides the past. The cell "
            "right of the diagonal is the token that the row has to answer with."
        ),
    )
