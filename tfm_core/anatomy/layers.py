"""The layers that all families are made of, as parts: linear layers, norms, tables, attention.

What autograd saves is counted tensor by tensor as PyTorch on a CPU keeps it. With dropout, or where
what is added to the scores is trained, PyTorch's CPU has no fused attention: the weights are kept.
Under autocast matrix products keep their inputs in the smaller format, and a copy of the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tfm_core.anatomy.formula import Formula, formula
from tfm_core.anatomy.names import names_of
from tfm_core.anatomy.part import NONE_SAVED, Parameter, Part, Saved, Tensor
from tfm_core.choices.config import ModelConfig
from tfm_core.choices.variants.norms import NORMS
from tfm_core.choices.variants.positions import NO_POSITIONS, POSITIONS, Position

ID = 2
"""A token's id is 8 bytes: as many numbers in fp32."""


def tensor(name: str, *shape: str) -> Tensor:
    """Return a tensor of one example in a batch of B: its first axis is the batch."""
    return Tensor(name, ("B", *shape))


def model_input(name: str, *shape: str, steps: tuple[str, ...]) -> Part:
    """Return a tensor that a model takes, as a part."""
    return Part(kind="input", path="", outputs=(tensor(name, *shape),), steps=steps)


def model_output(*shape: str, steps: tuple[str, ...] = ("whole",)) -> Part:
    """Return the tensor that a model gives, as a part."""
    return Part(kind="answer", path="", outputs=(tensor("logits", *shape),), steps=steps)


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes parts of a model of known sizes. family: whose names it says."""

    family: str
    sizes: Mapping[str, int]

    @classmethod
    def of(cls, config: ModelConfig, **sizes: int) -> Maker:
        """Return a maker with the widths of a model, and further sizes."""
        widths = {name: getattr(config, name) for name in _WIDTHS if hasattr(config, name)}
        return cls(config.family, {**widths, **sizes})

    def parameter(
        self, name: str, *symbols: str, tied_to: str = "", is_hidden: bool = False
    ) -> Parameter:
        """Return a parameter; each axis is a formula. A matrix of one row alone is a vector."""
        shape = tuple(formula(symbol).value(self.sizes) for symbol in symbols)
        is_hidden = is_hidden and min(shape[-2:]) > 1
        return Parameter(name, symbols, shape, tied_to, is_hidden)

    def linear(
        self,
        path: str,
        out: str,
        into: str,
        length: str,
        *,
        bias: bool = True,
        is_hidden: bool = True,
        saved: Saved = NONE_SAVED,
        tied_to: str = "",
    ) -> Part:
        """Return a linear layer that maps ``length`` vectors of ``into`` numbers to ``out``."""
        weight = self.parameter(f"{path}.weight", out, into, tied_to=tied_to, is_hidden=is_hidden)
        parameters = (weight, self.parameter(f"{path}.bias", out)) if bias else (weight,)
        cast = Formula() if self.family == "recurrent" else formula(f"{out} {into}")
        shape = (length,) if length else ()
        return Part(
            kind="projection",
            path=path,
            layer="Linear",
            inputs=(tensor("x", *shape, into),),
            outputs=(tensor("y", *shape, out),),
            parameters=parameters,
            macs=formula(f"{length} {out} {into}"),
            work="projections",
            saved=replace(saved, cast=cast),
            names=names_of(self.family, path),
        )

    def embedding(
        self,
        path: str,
        words: str,
        length: str,
        *,
        own_name: str = "",
        tied_to: str = "",
        is_second_name: bool = False,
        saved: Saved = NONE_SAVED,
    ) -> Part:
        """Return a table of words with its scale; tied_to: the table whose weight it is."""
        ids, rows = tensor("ids", length), tensor("rows", length, "d_model")
        weight = self.parameter(f"{path}.table.weight", words, "d_model", tied_to=tied_to)
        table = Part(
            kind="embedding",
            path=f"{path}.table",
            layer="Embedding",
            inputs=(ids,),
            outputs=(rows,),
            parameters=(weight,),
            saved=saved,
            names=names_of(self.family, f"{path}.table"),
        )
        return Part(
            kind="embedding",
            path=path,
            layer="TokenEmbedding",
            inputs=(ids,),
            outputs=(rows,),
            steps=("embedding",),
            own_name=own_name,
            is_second_name=is_second_name,
            children=(table,),
        )

    def positions(
        self,
        path: str,
        name: str,
        length: str,
        rows: str,
        *,
        own_name: str = "",
        step: str = "positions",
    ) -> Part:
        """Return what adds positions to ``length`` vectors; ``rows`` of a table, if it has one.

        A kind that acts elsewhere adds nothing here.
        """
        kind = POSITIONS[name] if POSITIONS[name].is_added else NO_POSITIONS
        parameters: tuple[Parameter, ...] = ()
        if kind.has_table:
            parameters = (self.parameter(f"{path}.table", rows, "d_model"),)
        x = tensor("x", length, "d_model")
        return Part(
            kind="positions",
            path=path,
            layer=_class_of(kind),
            variant=name,
            inputs=(x,),
            outputs=(x,),
            parameters=parameters,
            steps=(step,),
            own_name=own_name,
            names=names_of(self.family, path),
        )

    def norm(
        self, path: str, name: str, length: str, *, saved: Saved = NONE_SAVED, tied_to: str = ""
    ) -> Part:
        """Return a norm over ``length`` vectors. tied_to: the norm whose numbers it shares."""
        x = (tensor("x", *((length,) if length else ()), "d_model"),)
        layer = NORMS[name].layer.partition(":")[2]
        inner = f"{path}.norm" if tied_to else path
        parameters = tuple(
            self.parameter(f"{inner}.{n}", *shape, tied_to=f"{tied_to}.{n}" if tied_to else "")
            for n, shape in NORMS[name].parameters.items()
        )
        made = Part(
            kind="norm",
            path=inner,
            layer=layer,
            variant=name,
            inputs=x,
            outputs=x,
            parameters=parameters,
            saved=saved,
            names=names_of(self.family, inner),
        )
        if not tied_to:
            return made
        return Part(
            kind="norm",
            path=path,
            layer="SharedNorm",
            variant=name,
            inputs=x,
            outputs=x,
            children=(made,),
            names=names_of(self.family, path),
        )


_WIDTHS = (
    "d_model",
    "n_heads",
    "n_kv_heads",
    "d_head",
    "d_q",
    "d_kv",
    "d_qkv",
    "d_ff",
    "n_experts",
    "top_k",
)


def _class_of(kind: Position) -> str:
    """Return the class of a position layer; a function that makes one says which it returns."""
    name = kind.layer.partition(":")[2]
    return name if name[0].isupper() else "FixedPositions"
