"""The kinds of attention in words: queries, keys, and what to look for in a map."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AttentionKind:
    """One attention of the model in words: its name, its queries and keys, what to look for."""

    name: str
    label: str
    help: str
    query: str
    key: str
    look_for: str


KINDS: dict[str, AttentionKind] = {
    kind.name: kind
    for kind in (
        AttentionKind(
            "encoder",
            "Encoder self-attention",
            "Every source token attends to all source tokens, before and behind it.",
            "source token",
            "source token",
            "A diagonal is a head that copies a token, a line beside it a head that looks at the "
            "neighbour, a column a token that everybody reads.",
        ),
        AttentionKind(
            "slots",
            "Encoder self-attention",
            "Every position attends to the source tokens. Position t answers target token t; "
            "where the "
            "source is shorter than the answer, empty slots attend too, but no token can attend "
            "to them.",
            "position that answers",
            "source token",
            "Position t writes target token t: the strongest cells of its row are what it is made "
            "of. The columns of slots are masked: nobody may read an empty slot.",
        ),
        AttentionKind(
            "words",
            "Self-attention over the words",
            "Every word attends to all words, before and behind it, and so does the CLS token, "
            "where one "
            "stands in front. One label is read from the CLS token, or from the mean of all words.",
            "word",
            "word",
            "Look where the words that decide are read: a negation by its adjective, “but” by "
            "everybody. In the last layer the row of CLS, if there is one, gathers the answer.",
        ),
        AttentionKind(
            "blanks",
            "Self-attention around the blanks",
            "Every position attends to all positions, before and behind it. A blank is answered "
            "where it stands.",
            "position",
            "position",
            "The row of a blank says which words it is guessed from: its article, its verb, its "
            "time. A causal model would see only the left half of that row.",
        ),
        AttentionKind(
            "decoder",
            "Decoder self-attention (causal)",
            "Every target token attends to itself and the target tokens before it.",
            "target token so far",
            "target token so far",
            "The grey triangle is exactly 0: the causal mask hides the future. Each row predicts "
            "the token after its own.",
        ),
        AttentionKind(
            "cross",
            "Cross-attention",
            "Every target token attends to the source, whose tokens the encoder has read.",
            "target token so far",
            "source token",
            "The strongest cell of a row is often where the next target token comes from: a "
            "diagonal where the order is kept, an anti-diagonal where it is reversed.",
        ),
        AttentionKind(
            "sequence",
            "Self-attention (causal)",
            "Source and target are one sequence; every token attends to itself and those before "
            "it.",
            "token",
            "token",
            "The grey triangle is exactly 0: the causal mask hides the future. From <bos> on, each "
            "row predicts the token after its own; strong cells left of <bos> read the source.",
        ),
        AttentionKind(
            "text",
            "Self-attention (causal)",
            "Every token of the text attends to itself and those before it.",
            "token",
            "token",
            "The grey triangle is exactly 0: the causal mask hides the future. Each row predicts "
            "the token after its own.",
        ),
        AttentionKind(
            "picture",
            "Cross-attention over the picture",
            "Every word attends to the patches of the picture, which the encoder has read. A "
            "patch is named row,column, from 1.",
            "word so far",
            "patch",
            "A row says where the model looks while it writes the word after its own: for a number "
            "that should be where that digit stands.",
        ),
        AttentionKind(
            "patches",
            "Attention over patches",
            "Every patch of the picture attends to all patches. A patch is named row,column, "
            "from 1.",
            "patch",
            "patch",
            "Columns are patches that everybody reads, often those with ink; a diagonal is a head "
            "that stays where it is.",
        ),
    )
}
