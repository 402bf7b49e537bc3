"""The parts of a model: where each stands, what goes in and out, what it holds, costs and saves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Literal

from tfm_core.anatomy.formula import NOTHING, Formula, collected
from tfm_core.choices.variants.stems import STEMS

Kind = Literal[
    "input",
    "embedding",
    "positions",
    "segments",
    "stem",
    "stack",
    "block",
    "attention",
    "projection",
    "head-norm",
    "sink",
    "relative",
    "mask",
    "scores",
    "feed-forward",
    "activation",
    "norm",
    "residual",
    "pooling",
    "selection",
    "head",
    "cell",
    "bridge",
    "readout",
    "answer",
]

Work = Literal[
    "",
    "embedding",
    "recurrence",
    "projections",
    "scores",
    "cross-attention",
    "feed-forward",
    "output",
]
"""The part of the arithmetic that multiply-accumulates belong to."""

_SHOWN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "TokenEmbedding": (("embedding",), ("TokenEmbedding",)),
    "positions": (("embedding",), ("Positions",)),
    "word_positions": (("embedding",), ("WordPositions",)),
    "segments": ((), ("Segments",)),
    "stem": (("embedding",), tuple(stem.layer.rpartition(":")[2] for stem in STEMS.values())),
    "MultiHeadAttention": (("attention",), ("split", "MultiHeadAttention")),
    "FeedForward": (("feed-forward",), ("FeedForward",)),
    "MixtureOfExperts": (("experts", "feed-forward"), ("MixtureOfExperts", "FeedForward")),
    "Block": (("block",), ("Block",)),
    "residual": (("block",), ("Block",)),
    "norm": (("norm",), ()),
    "head-norm": (("attention",), ()),
    "sink": (("attention",), ("Sink",)),
    "Stack": ((), ("Stack",)),
    "Reader": (("encoder",), ("placed", "Reader", "Encoder")),
    "RecurrentAttention": (("attention",), ("Score", "Attention")),
    "AdditiveDecoder": (("decoder",), ("Decoder",)),
    "LuongDecoder": (("decoder",), ("Decoder",)),
    "bridge": (("decoder",), ("Model",)),
    "readout": (("model",), ("Model",)),
    "pooling": (("model",), ("Model",)),
    "head": (("model",), ("Pooler", "Model")),
    "answer": (("model",), ("Model",)),
}
"""Own name, layer or kind of a part -> its equations, and its classes in a generated file."""
_ELSEWHERE = ((), ("Model",))


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor that goes into a part or comes out. shape: a size or a name for each axis."""

    name: str
    shape: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A trained tensor.

    name: its path, as in ``named_parameters``. symbols, shape: each axis as a formula, and as a
    number. tied_to: the path under which it was counted before, else "". is_hidden: whether it is
    a matrix between what the model reads and its answer, which Muon moves.
    """

    name: str
    symbols: tuple[str, ...]
    shape: tuple[int, ...]
    tied_to: str = ""
    is_hidden: bool = False

    @property
    def size(self) -> int:
        """Numbers in it."""
        n = 1
        for size in self.shape:
            n *= size
        return n


@dataclass(frozen=True, slots=True)
class Saved:
    """Numbers that autograd saves of one example for the backward pass.

    full: those in fp32. products: those of matrix products, which autocast makes smaller. copies:
    those that are there only because autocast makes a small one of a full one that is saved too.
    masks: those of one byte. watched: attention weights, saved only where they are recorded.
    once: those saved once for a batch, in fp32. cast: weights of which autocast saves a small copy.
    """

    full: Formula = NOTHING
    products: Formula = NOTHING
    copies: Formula = NOTHING
    masks: Formula = NOTHING
    watched: Formula = NOTHING
    once: Formula = NOTHING
    cast: Formula = NOTHING

    def __add__(self, other: Saved) -> Saved:
        """Save both."""
        return Saved.total([self, other])

    def __mul__(self, n: int) -> Saved:
        """Save it ``n`` times."""
        return Saved(*(n * getattr(self, name) for name in _SAVED))

    @staticmethod
    def total(saved: Iterable[Saved]) -> Saved:
        """Return what all of them save."""
        all_of_them = list(saved)
        return Saved(*(collected(*(getattr(one, n) for one in all_of_them)) for n in _SAVED))


_SAVED = tuple(field.name for field in fields(Saved))
NONE_SAVED = Saved()


@dataclass(frozen=True, slots=True)
class Names:
    """What others call a part, or its tensors: study notebooks, Transformers, TransformerLens.

    Each is empty where there is nothing of the kind, and has several names where one tensor of ours
    is several of theirs.
    """

    notebook: tuple[str, ...] = ()
    hugging_face: tuple[str, ...] = ()
    transformer_lens: tuple[str, ...] = ()


NO_NAMES = Names()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a model.

    path: of its module in the tree; what is no module of its own, such as a residual connection,
    has the path of the module it belongs to and no layer. layer: the module's class. variant: which
    of several it is, a name in the registry of its kind. macs: multiply-accumulates of one example,
    of this part alone, and work: what they belong to. saved: of this part alone. steps: names of
    the walk's steps that are about it; the walk takes them in the order of the parts, a part behind
    its children, each name once. own_name: what its family calls it, where that is not its path.
    is_second_name: it is a table that stands under another name already. children: its parts, in
    the order of the forward pass. repeats: how many equal blocks it stands for where blocks are
    folded, itself being the first.
    """

    kind: Kind
    path: str
    layer: str = ""
    variant: str = ""
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    macs: Formula = NOTHING
    work: Work = ""
    saved: Saved = NONE_SAVED
    steps: tuple[str, ...] = ()
    names: Names = NO_NAMES
    own_name: str = ""
    is_second_name: bool = False
    children: tuple[Part, ...] = ()
    repeats: int = 1

    @property
    def equations(self) -> tuple[str, ...]:
        """The names of its equations."""
        return self._shown[0]

    @property
    def code(self) -> tuple[str, ...]:
        """Its classes and functions in a generated file."""
        return self._shown[1]

    @property
    def _shown(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        keys = (self.own_name, self.layer, self.kind)
        return next((_SHOWN[key] for key in keys if key in _SHOWN), _ELSEWHERE)

    def __iter__(self) -> Iterator[Part]:
        """Iterate over the part and all below it, in the order of the forward pass."""
        yield self
        for child in self.children:
            yield from child


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention(Part):
    """An attention: the queries of some tokens look at the keys of some tokens.

    queries, keys: how many there are, as names of lengths. mask: what hides keys: "padding", a name
    of CAUSALITIES, "window". order: of CAUSALITIES, where its tokens stand in the order in which
    they are written, else "". window: tokens to each side that it sees, 0 for all. scale: of
    SCALES. relative: the position kind that acts in it, else "". n_kv_heads: heads of keys and
    values, where several heads share one; 0 where each has its own. has_qk_norm: whether queries
    and keys are normed before they meet. sink: of SINKS. d_head: the width of a head.
    has_own_width: whether the heads together are not as wide as a token's vector.
    """

    n_heads: int
    queries: str
    keys: str
    is_cross: bool = False
    mask: tuple[str, ...] = ()
    order: str = ""
    window: int = 0
    scale: str = ""
    relative: str = ""
    n_kv_heads: int = 0
    has_qk_norm: bool = False
    sink: str = "none"
    d_head: int = 0
    has_own_width: bool = False

    @property
    def is_sliced(self) -> bool:
        """Whether each head maps only its slice of the vector."""
        return self.children[0].layer == "SlicedProjection"

    @property
    def has_bias(self) -> bool:
        """Whether its queries, keys and values have biases."""
        return len(self.children[0].parameters) > 1

    @property
    def has_output_bias(self) -> bool:
        """Whether the matrix that mixes the heads has a bias."""
        return self.has_output and len(self.children[-1].parameters) > 1

    @property
    def has_output(self) -> bool:
        """Whether a matrix mixes the heads' outputs."""
        return self.children[-1].kind == "projection"


@dataclass(frozen=True, slots=True)
class Sublayer:
    """An attention or a feed-forward layer, and what joins it to the block."""

    layer: Part
    residual: Part
    norm: Part | None
    norm_first: bool

    @property
    def has_sum(self) -> bool:
        """Whether the layer's output is added to anything."""
        return len(self.residual.inputs) > 1

    @property
    def is_normed(self) -> bool:
        """Whether it is added to what the norm makes, not to what goes into it."""
        return self.residual.inputs[0].name == "norm(x)"


def sublayers(block: Part) -> tuple[Sublayer, ...]:
    """Return the sublayers of a Transformer's block in the order of the forward pass."""
    size = len(block.children) // sum(part.kind == "residual" for part in block.children)
    starts = range(0, len(block.children), size)
    return tuple(_sublayer(block.children[first : first + size]) for first in starts)


def _sublayer(parts: tuple[Part, ...]) -> Sublayer:
    by_kind = {part.kind: part for part in parts}
    layer = by_kind.get("attention") or by_kind["feed-forward"]
    norm = by_kind.get("norm")
    return Sublayer(layer, by_kind["residual"], norm, norm_first=parts[0] is norm)
