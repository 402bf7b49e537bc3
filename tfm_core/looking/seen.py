"""What a look returns: the attention maps of a forward pass by module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tfm_core.data.vocabulary import position_labels
from tfm_core.looking.vectors import Vectors
from tfm_core.sentences import N_, Sentence, StudentError

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["self", "cross"]


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """The attention of one module in one forward pass.

    weights: float32 (batch, n_heads, query_len, key_len), on the CPU, as they multiplied values;
    each row sums to 1, to less where a sink or a crop has a share, or to 0 where the mask allows
    nothing. allowed: the mask as it was applied, bool, broadcastable to the weights, True = may
    attend; None where everything is allowed. queries, keys: the positions of rows and columns, all
    but for a crop; length: of both before it. is_fused: PyTorch kept no weights, so that they were
    computed once more from the query and the key. is_over_keys: whether the softmax runs over the
    keys, as it should. vectors: what the weights were computed from; None where that did not show.
    """

    name: str
    kind: Kind
    weights: Tensor
    allowed: Tensor | None
    queries: range
    keys: range
    length: tuple[int, int]
    is_fused: bool
    is_over_keys: bool = True
    vectors: Vectors | None = None

    def numpy(self) -> npt.NDArray[np.float32]:
        """Return the weights as an array."""
        weights: npt.NDArray[np.float32] = self.weights.numpy()
        return weights

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return the weights, as ``numpy`` asks for them."""
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def frame(self) -> pd.DataFrame:
        """Return a row a weight: example, layer (its name), head, query, key, weight.

        Examples and heads count from 0, as in ``weights``; queries and keys are positions of the
        text, from 0, also in a crop.
        """
        import pandas as pd

        shape = self.weights.shape
        example, head, query, key = (axis.ravel() for axis in np.indices(shape))
        return pd.DataFrame(
            {
                "example": example,
                "layer": self.name,
                "head": head,
                "query": np.array(self.queries)[query],
                "key": np.array(self.keys)[key],
                "weight": self.numpy().ravel(),
            }
        )

    def __repr__(self) -> str:
        """Return its name, its kind and its shape in a line."""
        shape = ", ".join(map(str, self.weights.shape))
        causal = " causal" if self.is_causal else ""
        problem = f" {self.problem}" if self.problem else ""
        return f"{self.name}: {self.kind}{causal} ({shape}){problem}"

    @property
    def problem(self) -> str:
        """What is odd, in a sentence, or ""."""
        if self.is_over_keys:
            return ""
        return N_("The softmax runs over another axis than the keys.")

    @cached_property
    def is_causal(self) -> bool:
        """Whether no query may attend to a later key, and some to their own position."""
        n_queries, n_keys = self.length
        if self.allowed is None or n_queries < 2 or self.kind == "cross":
            return False
        shape = (*self.allowed.shape[:-2], len(self.queries), len(self.keys))
        allowed = self.allowed.expand(shape)
        query, key = torch.tensor(self.queries)[:, None], torch.tensor(self.keys)
        for shift in {0, n_keys - n_queries}:  # keys of a cache come before the first query
            later, own = key > query + shift, key == query + shift
            if not bool((allowed & later).any()) and bool((allowed & own).any()):
                return True
        return False


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What a forward pass showed; ``Look`` draws, saves and opens it, too.

    maps: by the name of the module; its second call ends in ``#2``. output: what the model
    returned. shapes: module -> shape of the tensor that it returned first. n_parameters: of the
    model. tokens: names of the positions; two lists are those of the source and of the target.
    unseen: a sentence for each attention whose weights PyTorch did not show.
    """

    model: str
    maps: Mapping[str, AttentionMap]
    output: Any
    shapes: Mapping[str, tuple[int, ...]]
    n_parameters: int
    tokens: tuple[tuple[str, ...], ...]
    unseen: tuple[Sentence, ...]

    def __post_init__(self) -> None:
        """Show the names that a tokenizer of bytes gave as text."""
        object.__setattr__(self, "tokens", tuple(map(position_labels, self.tokens)))

    def names(self, one: AttentionMap) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of a map's rows and columns: the tokens, or numbers from 1."""
        writes = one.kind == "cross" or one.is_causal or "decoder" in one.name.split(".")
        first, last = self.tokens[:1], self.tokens[1:]
        for_queries = (*last, *first) if writes else self.tokens
        for_keys = self.tokens if one.kind == "cross" else for_queries
        return (
            _names(for_queries, one.queries, one.length[0]),
            _names(for_keys, one.keys, one.length[1]),
        )

    def map(self, name: str | int | None = None) -> AttentionMap:
        """Return a map by the name of its module or its number, from 0; the first without one.

        Raises StudentError.
        """
        maps = list(self.maps.values())
        if not maps:
            raise StudentError("This look has no map.")
        number = 0 if name is None else name
        if isinstance(number, int) and -len(maps) <= number < len(maps):
            return maps[number]
        if isinstance(name, str) and name in self.maps:
            return self.maps[name]
        raise StudentError(
            "There is no map {name}. There are {names}.",
            name="" if name is None else name,
            names=", ".join(list(self.maps)[:8]),
        )

    __getitem__ = map

    def __len__(self) -> int:
        """Return the number of maps."""
        return len(self.maps)

    def __iter__(self) -> Iterator[AttentionMap]:
        """Yield the maps in the order in which they were computed."""
        return iter(self.maps.values())

    def frame(self) -> pd.DataFrame:
        """Return the weights of all maps, see ``AttentionMap.frame``. Raises StudentError."""
        import pandas as pd

        self.map()  # raises where there is none
        return pd.concat([one.frame() for one in self], ignore_index=True)

    def __repr__(self) -> str:
        """Return a line for each map."""
        maps = f"{len(self)} map{'' if len(self) == 1 else 's'}"
        lines = [f"{self.model}, {self.n_parameters:,} parameters, {maps}"]
        return "\n".join([*lines, *(f"  {one!r}" for one in self), *map(str, self.unseen)])


def _names(lists: tuple[tuple[str, ...], ...], positions: range, length: int) -> tuple[str, ...]:
    fitting = next((one for one in lists if len(one) == length), None)
    return tuple(str(at + 1) if fitting is None else fitting[at] for at in positions)
