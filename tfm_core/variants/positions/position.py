"""The record of a position kind, and what it says where it acts: on embeddings, or in attention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tfm_core.variants.record import Variant

ActsOn = Literal["nothing", "embeddings", "queries and keys", "scores"]


@dataclass(frozen=True, slots=True)
class Style:
    """One style in every figure. colour: one of ``plots.palette``; dash and marker as plotly's."""

    colour: str
    dash: str
    marker: str


@dataclass(frozen=True, slots=True)
class Function:
    """A function or a class of the generated file: its name, and its source."""

    name: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The part of a kind that is added to embeddings.

    latex: what is added to token t, of_words: the same for the words of a model that has patches
    too, first: for a CLS token at 0, or None where it gets nothing. rows: equations for all of it
    by d_model. doc, init and forward: of the class in the generated file; init is None or a line,
    in which ``{length}`` is the constant with the longest sequence.
    """

    latex: str
    of_words: str
    first: str | None
    rows: Callable[[int], tuple[str, ...]]
    doc: str
    init: str | None
    forward: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """The part of a kind that acts inside attention.

    query, key: what is multiplied, in LaTeX; plus: what follows the product, or ""; where: from a
    config to equations that explain it, or None. title: of what is added to the scores in the
    walk, or of the turned queries. topic, words: what the walk says of it. parameters: the shape of
    each trained tensor, as formulas; saved_once: the formula, in ``{queries}`` and ``{length}``, of
    the numbers that PyTorch keeps once for a batch; by_distance: what it adds the farther a key is,
    in words, None where the kind has its own view. In the generated file init makes
    ``self.relative`` of a stack, or is None: ``{is_causal}`` in it tells a decoder from an encoder;
    the value ``made``, called ``argument``, is handed to every attention. turn: the line that
    changes q and k by it; None where it is a bias, added to the scores.
    """

    query: str
    key: str
    plus: str
    where: Callable[[Any], tuple[str, ...]] | None
    title: str
    topic: str
    words: str
    parameters: Mapping[str, tuple[str, ...]]
    saved_once: str
    by_distance: str | None
    init: str | None
    made: str
    argument: str
    turn: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Position(Variant):
    """A position kind.

    layer: ``"module:name"``, called with those of length, side, d_model, d_head, n_heads and
    is_causal that init_args names. needs_grid: it needs rows and columns, which patches have.
    is_learned: training changes it. impossible: from d_model and d_head to a sentence, or None
    where it can be. functions: of the generated file, in order; functions_of: from a config, where
    they depend on it. topic, words: what the walk says
    where vectors get their place. added, inside: by what it acts on; None elsewhere.
    """

    acts_on: ActsOn
    layer: str
    init_args: tuple[str, ...]
    needs_grid: bool
    is_learned: bool
    impossible: Callable[[int, int], str | None]
    functions: tuple[Function, ...]
    topic: str
    words: str
    style: Style
    added: Added | None
    inside: Inside | None
    functions_of: Callable[[Any], tuple[Function, ...]] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError when a part is empty, or missing where the kind acts."""
        Variant.__post_init__(self)
        for part, is_due in (("added", self.is_added), ("inside", self.is_inside)):
            if (getattr(self, part) is not None) != is_due:
                what = "lacks its" if is_due else "must not have"
                raise ValueError(
                    f"Position {self.name!r} acts on {self.acts_on} and {what} {part} part."
                )
        if self.inside is not None and (self.inside.turn is None) != (self.acts_on == "scores"):
            raise ValueError(
                f"Position {self.name!r} acts on {self.acts_on}: inside.turn must be given for "
                "queries and keys, and None for scores."
            )

    @property
    def is_added(self) -> bool:
        """Whether it is added to embeddings."""
        return self.acts_on == "embeddings"

    @property
    def is_inside(self) -> bool:
        """Whether it acts inside attention."""
        return self.acts_on in ("queries and keys", "scores")

    @property
    def has_table(self) -> bool:
        """Whether it is a table of trained vectors, one a position, which ends somewhere."""
        return self.is_added and self.is_learned


def always_possible(d_model: int, d_head: int) -> None:
    """Return None: this kind fits every width."""


def nothing_more(d_model: int) -> tuple[str, ...]:
    """Return no equations: the name says it all."""
    return ()
