"""The whole of a model: its parts, its sizes, and what follows for lengths of choice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from tfm_core.anatomy.formula import Formula, collected, formula
from tfm_core.anatomy.layers import Maker
from tfm_core.anatomy.names import names_of
from tfm_core.anatomy.part import Attention, Kind, Parameter, Part, Saved
from tfm_core.anatomy.pictures import captioner, vit
from tfm_core.anatomy.recurrent import recurrent
from tfm_core.anatomy.text import decoder_only, encoder_decoder, encoder_only
from tfm_core.choices.config import ModelConfig
from tfm_core.choices.config.shape import CaptionShape, Shape, TextShape

FAMILIES: dict[str, Callable[[Any, Any], tuple[Maker, list[Part]]]] = {
    "encoder-decoder": encoder_decoder,
    "encoder-only": encoder_only,
    "decoder-only": decoder_only,
    "vit": vit,
    "captioner": captioner,
    "recurrent": recurrent,
}

_MODULES = (
    "src_embedding",
    "tgt_embedding",
    "src_positions",
    "tgt_positions",
    "stem",
    "positions",
    "encoder",
    "decoder",
    "bridge",
    "readout",
    "output",
    "head",
    "segments",
    "self_attention",
    "self_attention_norm",
    "cross_attention",
    "cross_attention_norm",
    "feed_forward",
    "feed_forward_norm",
    "router",
    "experts",
    "layers",
    "final_norm",
    "relative",
    "convolution",
    "convolutions",
    "patches",
    "projection",
    "table",
    "norm",
    "in_projection",
    "out_projection",
    "sink",
    "query_norm",
    "key_norm",
    "up",
    "gate",
    "down",
    "onward",
    "back",
    "steps",
    "score",
    "of_state",
    "of_source",
    "matrix",
    "joined",
    "v",
    "dense",
    "hidden",
    "labels",
)
"""Names of modules in the order in which a model registers them, which is that of a state dict."""
_CAPTIONER = ("stem", "positions", "encoder", "tgt_embedding", "tgt_positions", "decoder")
"""The same for a captioner, as far as it differs."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of one example that each stack sees; ``answers`` are those that get an output."""

    encoder: int
    decoder: int
    answers: int


@dataclass(frozen=True)
class Anatomy:
    """One model.

    folded: its parts in the order of the forward pass, with equal blocks of a stack in one; sizes:
    what the names in formulas stand for.
    """

    family: str
    shape: Shape
    folded: tuple[Part, ...]
    sizes: Mapping[str, int]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts in the order of the forward pass, every block by itself."""
        return tuple(_unfolded(part, self.family) for part in self.folded)

    @cached_property
    def all(self) -> tuple[Part, ...]:
        """Every part of every part, in the order of the forward pass."""
        return tuple(part for top in self.parts for part in top)

    @cached_property
    def counted(self) -> tuple[tuple[Part, int], ...]:
        """Every folded part of every part, and how often it is there."""
        return tuple(found for top in self.folded for found in _counted(top))

    def of_kind(self, kind: Kind) -> tuple[Part, ...]:
        """Return all parts of a kind, wherever they lie, with equal blocks in one."""
        return tuple(part for part, _n in self.counted if part.kind == kind)

    @cached_property
    def attentions(self) -> tuple[Attention, ...]:
        """The attentions, those of equal blocks in one."""
        return tuple(part for part, _n in self.counted if isinstance(part, Attention))

    @cached_property
    def blocks(self) -> tuple[Part, ...]:
        """The blocks of a Transformer, equal ones folded."""
        return tuple(part for part, _n in self.counted if part.layer == "Block")

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """All trained tensors in the order of the forward pass; each tied one is there once."""
        return tuple(p for part in self.all for p in part.parameters if not p.tied_to)

    @cached_property
    def n_hidden(self) -> int:
        """Numbers in hidden matrices, which Muon moves."""
        return sum(
            n * one.size for part, n in self.counted for one in part.parameters if one.is_hidden
        )

    @cached_property
    def modules(self) -> tuple[Part, ...]:
        """The parts that hold parameters, each module once, in the order of a state dict."""
        by_path: dict[str, Part] = {}
        for part in self.all:
            if part.parameters:
                by_path.setdefault(part.path, part)
        names: tuple[str, ...] = _MODULES
        if self.family == "captioner":
            names = (*_CAPTIONER, "layers", "final_norm", "relative", *_MODULES)

        def order(path: str) -> tuple[int, ...]:
            steps = path.split(".") if path else []
            return tuple(int(name) if name.isdigit() else names.index(name) for name in steps)

        return tuple(sorted(by_path.values(), key=lambda part: order(part.path)))

    @cached_property
    def macs(self) -> Mapping[str, Formula]:
        """Multiply-accumulates of one example by what they belong to, see ``part.Work``."""
        by_work: dict[str, list[Formula]] = {}
        for part, n in self.counted:
            if part.macs:
                by_work.setdefault(part.work, []).append(n * part.macs)
        return {work: collected(*formulas) for work, formulas in by_work.items()}

    @cached_property
    def saved(self) -> Saved:
        """What autograd saves of one example."""
        return Saved.total(part.saved * n for part, n in self.counted)

    @cached_property
    def saved_at_checkpoints(self) -> Saved:
        """The same with gradient checkpointing: of each block its input alone."""
        inputs = [
            Saved(full=formula(f"{block.repeats} {block.inputs[0].shape[1]} d_model"))
            for block in self.blocks
        ]
        inside = {id(part) for block in self.blocks for part in block}
        rest = [part.saved * n for part, n in self.counted if id(part) not in inside]
        return Saved.total(inputs + rest)

    @cached_property
    def saved_for_loss(self) -> Saved:
        """What is saved behind the stacks, of that: answers, and what they were made of."""
        last = max(n for n, part in enumerate(self.folded) if part.kind == "stack")
        return Saved.total(part.saved for top in self.folded[last + 1 :] for part in top)

    @cached_property
    def logits(self) -> Formula:
        """Numbers in the answers of one example."""
        *_, last = self.folded[-1]
        return formula(" ".join(last.outputs[0].shape[1:]))

    @cached_property
    def own_names(self) -> Mapping[str, str | None]:
        """Path of a module -> its name in the family, None for a second name of a table.

        Paths that are not here, and what lies below a path, keep their names.
        """
        return {
            part.path: None if part.is_second_name else part.own_name
            for part, _n in self.counted
            if part.own_name or part.is_second_name
        }

    def lengths(self, src_len: int, tgt_len: int) -> Lengths:
        """Return how many tokens each stack sees; a picture has as many as patches."""
        n_patches = self.sizes.get("patches", 0) + self.sizes.get("has_cls", 0)
        if isinstance(self.shape, CaptionShape):
            n_words = tgt_len or self.shape.tgt_len
            return Lengths(n_patches, n_words, n_words)
        if not isinstance(self.shape, TextShape):
            return Lengths(n_patches, 0, 1)
        if self.family == "decoder-only":
            return Lengths(0, self.shape.has_source * src_len + tgt_len, tgt_len)
        if self.family == "encoder-only":
            if self.shape.is_label:
                return Lengths(src_len + self.shape.has_cls, 0, 1)
            return Lengths(max(src_len, tgt_len), 0, tgt_len)
        return Lengths(src_len, tgt_len, tgt_len)

    def at(self, src_len: int, tgt_len: int, *, all_queries: bool = True) -> dict[str, int]:
        """Return all sizes for lengths of choice, with which formulas are worked out.

        all_queries: whether all tokens supply queries in the last block, as when recorded, though
        only one is read: see ``Q`` in ``formula``.
        """
        n = self.lengths(src_len, tgt_len)
        lengths = {
            "S": n.encoder,
            "T": n.decoder,
            "A": n.answers,
            "Q": n.encoder if all_queries else 1,
        }
        return {**self.sizes, **lengths}


def _counted(part: Part, times: int = 1) -> Iterator[tuple[Part, int]]:
    times *= part.repeats
    yield part, times
    for child in part.children:
        yield from _counted(child, times)


def _unfolded(part: Part, family: str) -> Part:
    """Return a part with every block of a stack by itself."""
    if part.kind != "stack":
        return part
    children: list[Part] = []
    for one in part.children:
        children.append(replace(one, repeats=1))
        path, _dot, layer = one.path.rpartition(".")
        for number in range(1, one.repeats):
            children.append(_block_at(children[-1], f"{path}.{int(layer) + number}", family))
    return replace(part, children=tuple(children))


def _block_at(block: Part, path: str, family: str) -> Part:
    """Return a block as the one at another path."""
    old = block.path

    def moved(name: str) -> str:
        return path + name[len(old) :] if name.startswith(old) else name

    def part_at(part: Part) -> Part:
        return replace(
            part,
            path=moved(part.path),
            names=names_of(family, moved(part.path)) if part.layer else part.names,
            parameters=tuple(
                replace(one, name=moved(one.name), tied_to=moved(one.tied_to))
                for one in part.parameters
            ),
            children=tuple(part_at(child) for child in part.children),
        )

    return part_at(block)


@lru_cache(maxsize=128)
def anatomy(config: ModelConfig, shape: Shape) -> Anatomy:
    """Return the anatomy of a model.

    Raises ValueError where config and shape do not fit: patches that do not divide a picture.
    """
    maker, parts = FAMILIES[config.family](config, shape)
    return Anatomy(config.family, shape, tuple(parts), maker.sizes)
