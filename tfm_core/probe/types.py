"""What is kept of a model at one step of its training, and the examples it saw."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.floating[Any]]

RELATIVE = ".relative.table"
"""The end of the names of learned offset biases."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """One look inside, on the P examples of the probe.

    attention: module name -> float16 (A, H, Q, K), padded with zeros, of the first A examples (see
    ``facts.storage``). masks: module name -> bool, broadcastable to it, True = may attend.
    probabilities: float16 (P, classes), pictures only. ids: int32 (P, T), confidence: float16 (P,
    T), tokens, texts: the predicted target, not for pictures. positions: parameter name -> float16
    (rows, d_model), learned only, or (buckets, H) for names that end in RELATIVE. embeddings:
    module name -> float16 (vocabulary, d_model), small tables only. routing: module name of a
    mixture of experts -> float16 (A, T, E), the share of each expert in a token, 0 where the token
    does not pass it. vectors: module name -> what its attention was computed from, float32, by the
    names of ``looking.vectors``; of a look alone.
    """

    step: int
    attention: dict[str, Array] = field(default_factory=dict)
    probabilities: Array | None = None
    ids: Array | None = None
    confidence: Array | None = None
    tokens: list[list[str]] | None = None
    texts: list[str] | None = None
    positions: dict[str, Array] = field(default_factory=dict)
    embeddings: dict[str, Array] = field(default_factory=dict)
    masks: dict[str, Array] = field(default_factory=dict)
    routing: dict[str, Array] = field(default_factory=dict)
    vectors: dict[str, dict[str, Array]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """The fixed examples that every snapshot of a run looks at.

    items, texts: ``src`` and ``tgt`` tokens, ``alignment``, ``src_text``, ``tgt_text``, and
    ``prompt`` for texts to continue; pictures: ``label``; captions: ``src`` patches, ``tgt`` words,
    ``tgt_text``, ``boxes``, ``alignment`` (see ``probe.items``). images: (P, C, height, width)
    uint8, or None. n_attended: how many examples have attention, None for all. mean, std: of each
    channel of the training pictures, pixels from 0 to 1; None where they were not kept.
    """

    kind: str
    items: list[dict[str, Any]]
    images: Array | None = None
    n_attended: int | None = None
    mean: list[float] | None = None
    std: list[float] | None = None

    @property
    def attended(self) -> list[dict[str, Any]]:
        """The examples of which the snapshots keep the attention."""
        return self.items[: self.n_attended]
