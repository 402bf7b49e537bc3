"""Which way a decoder may look along what it writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tfm_core.variants.record import Named, Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Causality(Named):
    """sees_past, sees_future: whether a query sees the tokens before it, and those behind it.

    Of those behind it only while training, the answers among them. note: in a diagram, beside the
    attention. rule: from a window, 0 for none: which keys j query i may ask, in LaTeX, None for
    all. function: what makes the mask in a generated file, out of ``torch.ones(length, length)``
    with ``cut``, None for nothing, behind it; says: what that is.
    """

    sees_past: bool
    sees_future: bool
    note: str
    rule: Callable[[int], str | None]
    function: str
    cut: str | None
    says: str


CAUSAL = Causality(
    name="causal",
    sees_past=True,
    sees_future=False,
    note="causal",
    rule=lambda window: rf"i - {window} \le j \le i" if window else r"j \le i",
    function="causal",
    cut=".tril()",
    says="a query sees itself and the keys before it",
)

CAUSALITIES = Registry("causality", CAUSAL, others="tfm_core.mistakes:forms")
