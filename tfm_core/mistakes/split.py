"""Keys and values that are split into heads by the length of the queries."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tfm_core.mistakes.mistake import Mistake, attentions
from tfm_core.sentences import N_, Paragraph

if TYPE_CHECKING:
    from torch import nn


def _split(model: nn.Module) -> None:
    from tfm_core.mistakes.parts import projected_at_query_length

    for attention in attentions(model):
        attention.project = partial(projected_at_query_length, attention)  # type: ignore[method-assign]


KEYS_AT_QUERY_LENGTH = Mistake(
    name="keys-at-query-length",
    label=N_("Keys and values reshaped with the query length"),
    short=N_("keys as long as queries"),
    help=Paragraph("mistakes/keys-at-query-length-help"),
    source="Vaswani et al. 2017, section 3.2.2, with one length for queries and keys",
    place=None,
    right="k = self.W_K(memory).view(B, S, n_heads, d_head)",
    wrong="k = self.W_K(memory).view(B, T, n_heads, d_head)  # T: the length of the queries",
    apply=_split,
    means=Paragraph("mistakes/keys-at-query-length-effect"),
    probe=None,
)
